package weirtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// allOrNothing: case B43, for every algorithm and in both orders.
func allOrNothing(t *testing.T, open opener) {
	for _, reversed := range []bool{false, true} {
		t.Run(fmt.Sprintf("reversed %v", reversed), func(t *testing.T) {
			open.each(t, 10, func(s *stand, wide *weir.Policy) {
				tight := s.policy("tight", weir.Limit{Quota: 3, Window: time.Hour, Algorithm: weir.FixedWindow})
				both := []weir.Ask{ask(wide, "k", 1), ask(tight, "k", 1)}
				for i := range both {
					both[i].Slack = 0
				}
				if wide.Limit.Algorithm == weir.LeakyQueue {
					both[0].Slack = algo.Max
				}
				at := 0 // where the wide one is
				if reversed {
					both[0], both[1] = both[1], both[0]
					at = 1
				}
				for i := range 8 {
					ok, out := s.take(both...)
					if want := i < 3; ok != want || out[1-at].OK != want || !out[at].OK {
						s.Fatalf("take %d: allowed %v, verdicts %+v", i, ok, out)
					}
					if want := max(10-int64(i)-1, 7); out[at].Remaining != want {
						s.Fatalf("take %d: the wide policy has %d left, want %d", i, out[at].Remaining, want)
					}
				}
				s.wantLeft(wide, "k", 7)
				s.wantLeft(tight, "k", 0)
			})
		})
	}
}

// manyAsks: more asks at once than a store may keep room for, the last refusing.
func manyAsks(t *testing.T, open opener) {
	s := open.stand(t)
	var asks []weir.Ask
	for i := range 20 {
		asks = append(asks, ask(s.policy(fmt.Sprintf("p%d", i), weir.PerHour(5)), fmt.Sprint(i), 1))
	}
	asks = append(asks, ask(s.policy("last", weir.PerHour(2)), "k", 1))
	// The same policy about other keys, as a rule with two subjects asks.
	asks = append(asks, ask(asks[0].Policy, "other", 1), ask(asks[0].Policy, "another", 1))
	for i := range 4 {
		if ok, _ := s.take(asks...); ok != (i < 2) {
			t.Fatalf("take %d: allowed %v", i, ok)
		}
	}
	for _, a := range asks {
		want := int64(3)
		if a.Policy.Name == "last" {
			want = 0
		}
		s.wantLeft(a.Policy, string(a.Key), want)
	}
	if ok, out := s.take(); !ok || len(out) != 0 {
		t.Error("no asks at all are refused")
	}
}

// shadows: a shadow ask counts as on a store where it is asked alone.
func shadows(t *testing.T, open opener) {
	open.each(t, 4, func(s *stand, trial *weir.Policy) {
		alone := open.stand(s.TB)
		live := s.policy("live", weir.Limit{Quota: 2, Window: 10 * time.Minute, Algorithm: weir.FixedWindow})
		for i := range 40 {
			at := time.Duration(i) * 97 * time.Second
			s.clock.Set(at)
			alone.clock.Set(at)
			watched := ask(trial, "k", 1)
			_, want := alone.take(watched)
			watched.Shadow = true
			ok, out := s.take(watched, ask(live, "k", 1))
			if ok != out[1].OK {
				s.Fatalf("at %v: allowed %v, but the enforced ask's verdict is %v", at, ok, out[1].OK)
			}
			if out[0] != want[0] {
				s.Fatalf("at %v: shadow %+v, alone %+v", at, out[0], want[0])
			}
		}
		if ok, _ := s.take(weir.Ask{Policy: trial, Key: []byte("x"), Cost: 5, Shadow: true}); !ok {
			s.Error("a shadow ask by itself refused the request")
		}
	})
}

// peeks: case B34.
func peeks(t *testing.T, open opener) {
	open.each(t, 5, func(s *stand, p *weir.Policy) {
		tight := s.policy("tight", weir.PerHour(9))
		for want := int64(5); want > 0; want-- {
			for range 3 {
				ok, out := s.peek(ask(p, "k", 1), ask(tight, "k", 1), weir.Ask{Policy: tight, Key: []byte("s"), Cost: 1, Shadow: true})
				if wait := p.Limit.Algorithm == weir.LeakyQueue && want < 5; ok == wait || out[0].Remaining != want {
					s.Fatalf("peek: %v %+v, want %d left", ok, out, want)
				}
				if out[2].Remaining != 9 {
					s.Fatalf("a look charged the shadow ask: %+v", out[2])
				}
			}
			a := ask(p, "k", 1)
			a.Slack = algo.Max
			if ok, _ := s.take(a); !ok {
				s.Fatal("a look has taken something")
			}
		}
		s.wantLeft(p, "k", 0)
		s.wantLeft(tight, "k", 9)
		if _, out := s.peek(ask(p, "k", 6)); out[0].OK || out[0].Retry != algo.Never {
			s.Errorf("a look at a cost above the capacity: %+v", out[0])
		}
	})
}

// resets: nothing but the named key of the named policy is forgotten.
func resets(t *testing.T, open opener) {
	open.each(t, 3, func(s *stand, p *weir.Policy) {
		other := s.policy("other", weir.PerHour(3))
		s.take(ask(p, "k", 3), ask(other, "k", 3))
		s.take(ask(p, "l", 3))
		s.reset(ask(p, "k", 0), ask(p, "never seen", 0))
		s.wantLeft(p, "k", 3)
		s.wantLeft(p, "l", 0)
		s.wantLeft(other, "k", 0)
		if ok, _ := s.take(ask(p, "k", 3)); !ok {
			s.Error("a key that was reset is not fresh")
		}
		s.reset(ask(p, "k", 1), ask(p, "l", 1), ask(other, "k", 1))
		s.wantLeft(p, "l", 3)
		s.wantLeft(other, "k", 3)
	})
}

// costs: nothing, everything, too much and absurdly much.
func costs(t *testing.T, open opener) {
	open.each(t, 5, func(s *stand, p *weir.Policy) {
		for _, c := range []struct {
			cost int64
			ok   bool
			left int64
		}{
			{0, true, 5}, {6, false, 5}, {algo.Max, false, 5}, {1<<63 - 1, false, 5},
			{5, true, 0}, {0, true, 0}, {1, false, 0}, {1<<63 - 1, false, 0},
		} {
			a := ask(p, "k", c.cost)
			ok, out := s.take(a)
			if p.Limit.Algorithm == weir.LeakyQueue && c.cost == 0 && c.left == 0 {
				c.ok = false // there is a place, but not at once
			}
			if ok != c.ok || out[0].Remaining != c.left {
				s.Fatalf("cost %d: %v %+v, want %v and %d left", c.cost, ok, out[0], c.ok, c.left)
			}
			if c.cost > 5 && out[0].Retry != algo.Never {
				s.Fatalf("cost %d: retry %d, want never", c.cost, out[0].Retry)
			}
		}
	})
}

// stepsBack: case B11. Every algorithm refuses what it refused later.
func stepsBack(t *testing.T, open opener) {
	open.each(t, 4, func(s *stand, p *weir.Policy) {
		s.clock.Set(100 * time.Hour)
		a := ask(p, "k", 1)
		a.Slack = 0
		if p.Limit.Algorithm == weir.LeakyQueue {
			a.Slack = algo.Max
		}
		for i := range 5 {
			if ok, _ := s.take(a); ok != (i < 4) {
				s.Fatalf("take %d: allowed %v", i, ok)
			}
		}
		for _, at := range []time.Duration{0, 50 * time.Hour, 100 * time.Hour} {
			s.clock.Set(at)
			if ok, out := s.take(a); ok || out[0].Retry < 1 || out[0].Retry > 2*time.Hour.Microseconds() {
				s.Errorf("at %v after 100h: allowed %v, %+v", at, ok, out[0])
			}
		}
		s.clock.Set(102 * time.Hour)
		if ok, _ := s.take(a); !ok {
			s.Error("two windows later the key is still refused")
		}
	})
}

// manyKeys: no two keys meet.
func manyKeys(t *testing.T, open opener) {
	open.each(t, 2, func(s *stand, p *weir.Policy) {
		const keys = 500
		for round := range 3 {
			for i := range keys {
				a := ask(p, fmt.Sprint("key ", i), 1)
				a.Slack = algo.Max
				if p.Limit.Algorithm == weir.FixedWindow || p.Limit.Algorithm == weir.TokenBucket {
					a.Slack = 0
				}
				if ok, _ := s.take(a); ok != (round < 2) {
					s.Fatalf("key %d, take %d: allowed %v", i, round, ok)
				}
			}
		}
	})
}

// anyBytes: case B28, S06, S27: a key is bytes and nothing else.
func anyBytes(t *testing.T, open opener) {
	s := open.stand(t)
	long := strings.Repeat("a", 64<<10)
	keys := []string{"", "\x00", "\x00\x00", "a", "A", "a ", " a", "a\x00", "\xff\xfe", "a{b}c", "}{", "{}", "{a}", ":", "a:b", "a\r\nb",
		"null", "*", "%00", long, long[1:], long[1:] + "b", long + "\x00"}
	// The second of these with the key "cd" must not meet the first with "bcd".
	for _, p := range []*weir.Policy{s.policy("a", weir.PerHour(1)), s.policy("ab", weir.PerHour(1)),
		s.policy("a:", weir.Limit{Quota: 1, Window: time.Hour, Algorithm: weir.SlidingLog})} {
		for _, key := range append(keys, "bcd", "cd", "d") {
			name := key[:min(len(key), 10)]
			if ok, _ := s.take(ask(p, key, 1)); !ok {
				t.Errorf("%s: the key %q… of %d bytes shares another's limit", p.Name, name, len(key))
			}
			if ok, _ := s.take(ask(p, key, 1)); ok {
				t.Errorf("%s: the key %q… of %d bytes has no limit", p.Name, name, len(key))
			}
		}
	}
	// A store must not keep the bytes it was shown.
	p, key := s.policy("a", weir.PerHour(1)), []byte("scratch")
	s.take(weir.Ask{Policy: p, Key: key, Cost: 1})
	copy(key, "garbage")
	if ok, _ := s.take(ask(p, "scratch", 1)); ok {
		t.Error("the store has kept the asker's key instead of its value")
	}
}

// identities: case B23 and B42. A policy made again counts on, with its numbers.
func identities(t *testing.T, open opener) {
	open.each(t, 4, func(s *stand, p *weir.Policy) {
		at := 10 * time.Second
		s.clock.Set(at)
		s.take(ask(p, "k", 4))
		again := s.policy("policy", p.Limit)
		s.wantLeft(again, "k", 0)
		for _, n := range []int64{6, 2, 9} {
			l := p.Limit
			if l.Quota = n; l.Algorithm == weir.LeakyQueue {
				l.Queue = n - 1
			}
			s.wantLeft(s.policy("policy", l), "k", max(n-4, 0))
		}
		other := s.policy("polic", p.Limit)
		s.wantLeft(other, "k", 4)
		for _, l := range limits(4) {
			sliced := func(a weir.Algorithm) bool { return a == weir.SlidingSlices || a == weir.SlidingLog }
			if l.Algorithm == p.Limit.Algorithm || sliced(l.Algorithm) && sliced(p.Limit.Algorithm) {
				continue // slices of one tick are the log
			}
			s.wantLeft(s.policy("policy", l), "k", 4)
		}
	})
	open.script(t, "a new rate applies to the old debt", `
policy p  5 per 1m
at 0s   take k x5  ok      remaining 0
at 1s   take k     refuse  retry 11s
reload policy p  10 per 1m
at 1s   take k     ok      remaining 4
at 7s   take k x5  ok      remaining 0
reload policy p  7 per 1m
at 7s   take k     refuse  retry 32857143us
`)
	open.script(t, "a window of another length starts fresh", `
policy p  fixed_window 2 per 1m
at 0s  take k x2  ok
reload policy p  fixed_window 2 per 1h
at 0s  take k x2  ok
at 0s  take k     refuse
`)
}

// races: cases B15, S18, S19, B43 with many callers at one instant.
func races(t *testing.T, open opener) {
	open.each(t, 5, func(s *stand, p *weir.Policy) {
		const keys, callers = 20, 40
		for k := range keys {
			a := ask(p, fmt.Sprint("fresh ", k), 1)
			if p.Limit.Algorithm == weir.LeakyQueue {
				a.Slack = algo.Max
			}
			if got := s.race(callers, func() []weir.Ask { return []weir.Ask{a} }); got != 5 {
				s.Fatalf("%d of a quota of 5 were allowed", got)
			}
		}
	})
	t.Run("a spent bucket", func(t *testing.T) {
		s := open.stand(t)
		p := s.policy("policy", weir.Limit{Quota: 1, Window: time.Hour, Burst: 100})
		if got := s.race(1000, func() []weir.Ask { return []weir.Ask{ask(p, "k", 1)} }); got != 100 {
			t.Errorf("%d of a burst of 100 were allowed", got)
		}
	})
	t.Run("together", func(t *testing.T) {
		s := open.stand(t)
		wide := s.policy("wide", weir.PerHour(100))
		tight := s.policy("tight", weir.Limit{Quota: 10, Window: time.Hour, Algorithm: weir.SlidingLog})
		watch := s.policy("watch", weir.PerHour(50))
		var n atomic.Int64
		got := s.race(200, func() []weir.Ask {
			asks := []weir.Ask{ask(wide, "k", 1), ask(tight, "k", 1), {Policy: watch, Key: []byte("k"), Cost: 1, Shadow: true}}
			if n.Add(1)%2 == 0 { // callers that ask in the other order must not lock one another
				asks[0], asks[2] = asks[2], asks[0]
			}
			return asks
		})
		if got != 10 {
			t.Errorf("%d were allowed, want 10", got)
		}
		s.wantLeft(wide, "k", 90)
		s.wantLeft(watch, "k", 0)
	})
	t.Run("taken and given back", func(t *testing.T) {
		s := open.stand(t)
		p := s.policy("policy", weir.PerHour(10))
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				out := make([]weir.Verdict, 1)
				a := ask(p, "k", 1)
				ok, err := s.store.Take(context.Background(), []weir.Ask{a}, out)
				if a.Cost, a.At = -1, out[0].At; err == nil && ok {
					err = s.store.Adjust(context.Background(), []weir.Ask{a})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s.wantLeft(p, "k", 10)
	})
}

// race lets many callers take at once and counts the allowed ones.
func (s *stand) race(callers int, asks func() []weir.Ask) int64 {
	s.Helper()
	var allowed atomic.Int64
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(callers)
	for range callers {
		done.Go(func() {
			mine := asks()
			ready.Done()
			<-start
			ok, err := s.store.Take(context.Background(), mine, make([]weir.Verdict, len(mine)))
			if err != nil {
				s.Error(err)
			}
			if ok {
				allowed.Add(1)
			}
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	return allowed.Load()
}

// cancelled: an error says so, and at most what was asked for is taken.
func cancelled(t *testing.T, open opener) {
	s := open.stand(t)
	p := s.policy("policy", weir.PerHour(10))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	asks, out := []weir.Ask{ask(p, "k", 1)}, make([]weir.Verdict, 1)
	for name, call := range map[string]func() error{
		"Take":   func() error { _, err := s.store.Take(ctx, asks, out); return err },
		"Peek":   func() error { _, err := s.store.Peek(ctx, asks, out); return err },
		"Adjust": func() error { return s.store.Adjust(ctx, asks) },
		"Reset":  func() error { return s.store.Reset(ctx, []weir.Ask{ask(p, "other", 0)}) },
	} {
		if err := call(); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, weir.ErrUnavailable) {
			t.Errorf("%s: %v wraps neither the context's error nor ErrUnavailable", name, err)
		}
	}
	if left := s.left(p, "k"); left < 8 || left > 10 {
		t.Errorf("one take and one charge of 1 left %d of 10", left)
	}
	if ok, _ := s.take(ask(p, "k", 8)); !ok {
		t.Error("the store does not work after a cancelled context")
	}
}

func isCannot(err error) bool { return errors.Is(err, ErrCannot) }
