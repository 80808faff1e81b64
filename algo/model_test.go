package algo_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/algo"
)

// model answers like Decide, written for obviousness: fractions, no reductions,
// every charge kept for ever.
type model struct {
	p      algo.Params
	latest int64
	debt   *big.Rat // Bucket, Queue: units at latest
	taken  []charge
	opened int64 // FirstWindow: charges before it are of a closed window
}

type charge struct{ at, n int64 }

func newModel(p algo.Params) *model { return &model{p: p, debt: new(big.Rat)} }

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// held is the exact use at an instant not before the latest.
func (m *model) held(now int64) *big.Rat {
	sum := new(big.Rat)
	w := m.p.Window
	switch m.p.Kind {
	case algo.Bucket, algo.Queue:
		gone := new(big.Rat).Mul(rat(now-m.latest), big.NewRat(m.p.Drain, m.p.Unit))
		if sum.Sub(m.debt, gone); sum.Sign() < 0 {
			sum.SetInt64(0)
		}
	case algo.FixedWindow:
		for _, c := range m.taken {
			if c.at/w == now/w {
				sum.Add(sum, rat(c.n))
			}
		}
	case algo.FirstWindow:
		for _, c := range m.taken {
			if c.at >= m.opened && now < m.opened+w {
				sum.Add(sum, rat(c.n))
			}
		}
	case algo.SlidingWindow:
		for _, c := range m.taken {
			switch now/w - c.at/w {
			case 0:
				sum.Add(sum, rat(c.n))
			case 1:
				sum.Add(sum, new(big.Rat).Mul(rat(c.n), big.NewRat(w-now%w, w)))
			}
		}
	case algo.SlidingLog:
		for _, c := range m.taken {
			if now-(c.at-c.at%m.p.Step) < w {
				sum.Add(sum, rat(c.n))
			}
		}
	}
	return sum
}

func (m *model) fits(now, cost int64) bool {
	sum := m.held(now)
	return sum.Add(sum, rat(cost)).Cmp(rat(m.p.Cap)) <= 0
}

func (m *model) charge(now, cost int64) {
	sum := m.held(now)
	m.debt = sum.Add(sum, rat(cost))
	if m.p.Kind == algo.FirstWindow && cost > 0 && (len(m.taken) == 0 || now >= m.opened+m.p.Window) {
		m.opened = now
	}
	m.latest = now
	if cost > 0 {
		m.taken = append(m.taken, charge{now, cost})
	}
}

// drive runs a few dozen asks through the model and through algo and compares
// all they say. Spans are chosen at edges: exactly a promised retry or reset,
// one tick before, a step back.
func drive(t *testing.T, p algo.Params, start int64, r *rand.Rand) {
	m, k := newModel(p), key{p: p}
	now := start
	var last algo.Verdict
	for range 40 {
		span := max(p.Window, p.Unit/p.Drain, 1)
		switch r.IntN(8) {
		case 0:
			now += last.Wait
		case 1:
			now += last.Wait - 1
		case 2:
			now += last.Reset
		case 3:
			now += last.Reset - 1
		case 4:
			now += r.Int64N(span)
		case 5:
			now -= r.Int64N(span)
		case 6:
			now += r.Int64N(3)
		}
		now = min(max(now, 0), algo.Max)
		at := max(now, m.latest)
		cost := r.Int64N(min(p.Cap, 1<<40) + 2)
		if r.IntN(2) == 0 {
			cost = r.Int64N(2)
		}
		want := m.fits(at, cost)
		slack, tooLong := int64(0), false
		behind := m.held(at)
		if p.Kind == algo.Queue { // nobody waits longer than Max
			slack = algo.Max
			wait := new(big.Rat).Mul(behind, big.NewRat(p.Unit, p.Drain))
			tooLong = wait.Cmp(rat(algo.Max)) > 0
		}
		want = want && !tooLong
		v := k.take(now, cost, slack)
		last = v
		if v.OK != want {
			t.Fatalf("%+v at %d cost %d: OK %v, want %v; held %v", p, at, cost, v.OK, want, behind)
		}
		if v.OK {
			m.charge(at, cost)
		} else {
			m.charge(at, 0)
		}
		if k.state.At != at {
			t.Fatalf("%+v: at %d, want %d", p, k.state.At, at)
		}
		if p.Kind == algo.Queue && v.OK {
			wait := new(big.Rat).Mul(behind, big.NewRat(p.Unit, p.Drain))
			if wait.Cmp(rat(v.Wait)) > 0 || v.Wait > 0 && wait.Cmp(rat(v.Wait-1)) <= 0 {
				t.Fatalf("%+v: waits %d, want %v rounded up", p, v.Wait, wait)
			}
		} else if v.OK && v.Wait != 0 {
			t.Fatalf("%+v: waits %d", p, v.Wait)
		}
		if !m.fits(at, v.Remaining) && v.Remaining > 0 || m.fits(at, v.Remaining+1) {
			t.Fatalf("%+v at %d: remaining %d, held %v", p, at, v.Remaining, m.held(at))
		}
		switch {
		case !v.OK && cost > p.Cap:
			if v.Wait != algo.Never {
				t.Fatalf("%+v cost %d: retry %d, want Never", p, cost, v.Wait)
			}
		case !v.OK && v.Wait <= algo.Max && !tooLong:
			if v.Wait < 1 || !m.fits(at+v.Wait, cost) || m.fits(at+v.Wait-1, cost) {
				t.Fatalf("%+v at %d cost %d: retry %d is not exact, held %v", p, at, cost, v.Wait, m.held(at))
			}
		}
		if v.Reset > 0 && v.Reset <= algo.Max && (m.held(at+v.Reset).Sign() != 0 || m.held(at+v.Reset-1).Sign() == 0) ||
			v.Reset == 0 && m.held(at).Sign() != 0 {
			t.Fatalf("%+v at %d: reset %d is not exact", p, at, v.Reset)
		}
	}
}

// params draws a limit of kind, from one unit a year to millions a second.
func params(kind algo.Kind, r *rand.Rand) algo.Params {
	spans := []int64{1, 2, 7, 1000, 999_983, 1_000_000, 60_000_000, 3_600_000_000, 2_592_000_000_000, 31_556_952_000_000}
	caps := []int64{0, 1, 2, 3, 5, 10, 100, 4096, 1_000_003, 1 << 40}
	p := algo.Params{Kind: kind, Cap: caps[r.IntN(len(caps))], Unit: 1, Drain: 1, Window: 1, Step: 1}
	switch kind {
	case algo.Bucket, algo.Queue:
		p.Unit = spans[r.IntN(len(spans))]
		p.Drain = max(caps[r.IntN(len(caps))], 1)
	default:
		p.Window = spans[r.IntN(len(spans))]
		if kind == algo.SlidingLog && r.IntN(2) == 0 {
			for n := int64(2 + r.IntN(10)); n > 1; n-- {
				if p.Window%n == 0 {
					p.Step = p.Window / n
					break
				}
			}
		}
	}
	return p
}

var kinds = []algo.Kind{algo.Bucket, algo.Queue, algo.FixedWindow, algo.FirstWindow, algo.SlidingWindow, algo.SlidingLog}

func TestDecideEqualsTheExactModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		drive(t, params(kinds[r.IntN(len(kinds))], r), r.Int64N(1<<51), r)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(uint8(1), int64(5), int64(12_000_000), int64(1), uint64(1))
	f.Add(uint8(5), int64(1_000_000), int64(2_592_000_000_000), int64(1), uint64(2))
	f.Add(uint8(6), int64(3), int64(60), int64(6), uint64(3))
	f.Fuzz(func(t *testing.T, kind uint8, capacity, span, other int64, seed uint64) {
		p := algo.Params{Kind: kinds[int(kind)%len(kinds)], Cap: min(max(capacity, 0), algo.Max), Unit: 1, Drain: 1, Window: 1, Step: 1}
		span, other = min(max(span, 1), algo.Max), min(max(other, 1), algo.Max)
		switch p.Kind {
		case algo.Bucket, algo.Queue:
			p.Unit, p.Drain = span, other
		default:
			p.Window = min(span, algo.Max/4)
			if p.Kind == algo.SlidingLog && p.Window%other == 0 {
				p.Step = other
			}
		}
		drive(t, p, 1<<50, rand.New(rand.NewPCG(seed, 2)))
	})
}
