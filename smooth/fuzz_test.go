package smooth_test

import (
	"errors"
	"math"
	"testing"

	"github.com/weirhq/weir/smooth"
)

// FuzzPace runs any calls at any instants at any pace. Two bits of a byte of ops
// choose what happens, the other six by how much.
func FuzzPace(f *testing.F) {
	f.Add(5.0, 1.0, int64(0), 0.0, []byte{0x10, 0x91, 0x11, 0x41, 0xff, 0x20})
	f.Add(5.0/60, 0.0, int64(10_000_000), 3.0, []byte{0x00, 0x40, 0x9f, 0x01, 0x42, 0xc1, 0x3f})
	f.Add(3e6, 0.0, int64(1), 1.0, []byte{0x02, 0x04, 0x43, 0x85, 0x03, 0xc9})
	f.Add(1e-300, 1e300, int64(0), 0.0, []byte{0x01, 0xbf, 0x01})
	f.Fuzz(func(t *testing.T, rate, burst float64, warmUp int64, factor float64, ops []byte) {
		newPace := func(rate float64) (smooth.Pace, error) {
			if warmUp != 0 {
				return smooth.WarmingUp(rate, warmUp, factor)
			}
			return smooth.Bursty(rate, burst)
		}
		p, err := newPace(rate)
		if err != nil {
			if wrong := new(smooth.ArgumentError); !errors.As(err, &wrong) {
				t.Fatalf("error %v is no ArgumentError", err)
			}
			return
		}
		var (
			now   int64
			s     = p.Fresh(now)
			calls float64 // since the last change of rate, as is
			taken float64 // the permits that were granted
			since int64   // the first instant at which one may have been granted
		)
		for i, b := range ops {
			size := int64(1) << (b & 0x3f)
			if b&0x3f == 0x3f {
				size = math.MaxInt64
			}
			before := s
			switch b >> 6 {
			case 0, 1: // reserve
				var wait int64
				s, wait = p.Reserve(s, now, size)
				granted := max(now, before.Next)
				if wait != granted-now {
					t.Fatalf("op %d: waits %d from %d, want until %d", i, wait, now, granted)
				}
				if before.Grants(now, wait-1) != (wait == 0) || !before.Grants(now, wait) {
					t.Fatalf("op %d: waits %d, which Grants does not know", i, wait)
				}
				// All permits granted before this instant were paid for with time, but for
				// the at most three cuts to whole ticks in each call.
				paid := float64(granted-since) + 3*calls
				if need := taken * 1e6 / p.Rate(); granted < math.MaxInt64 && need > paid*(1+1e-9)+1 {
					t.Fatalf("op %d: granted at %d, but what was taken before needs %v ticks of %v", i, granted, need, paid)
				}
				calls, taken = calls+1, taken+float64(size)
			case 2: // time passes
				now += min(size, math.MaxInt64-now)
				s = p.Resync(s, now)
			case 3: // another rate, from a 2^32nd to 2^32 times as much
				to, err := p.WithRate(rate * math.Ldexp(1, int(b&0x3f)-32))
				if err != nil {
					continue
				}
				p, s = to, p.Change(to, s, now)
				calls, taken, since = 0, 0, s.Next
				if warmUp == 0 {
					taken = -s.Stored // it was paid for before
				}
			}
			if math.IsNaN(s.Stored) || s.Stored < 0 || s.Stored > s.Max*(1+1e-9) || math.IsInf(s.Stored, 0) || math.IsInf(s.Max, 0) {
				t.Fatalf("op %d: %+v becomes %+v", i, before, s)
			}
			if s.Next < before.Next {
				t.Fatalf("op %d: the next free instant goes back from %d to %d", i, before.Next, s.Next)
			}
			if at := p.Full(s); at < s.Next {
				t.Fatalf("op %d: %+v is full at %d", i, s, at)
			} else if warmUp != 0 && at < math.MaxInt64 && p.Resync(s, at).Stored < p.Fresh(at).Stored {
				t.Fatalf("op %d: %+v is not fresh at %d", i, s, at)
			}
			words := [3]uint64{uint64(s.Next), math.Float64bits(s.Stored), math.Float64bits(s.Max)}
			if back := (smooth.State{Next: int64(words[0]), Stored: math.Float64frombits(words[1]), Max: math.Float64frombits(words[2])}); back != s {
				t.Fatalf("op %d: %+v does not survive as words: %+v", i, s, back)
			}
		}
	})
}
