package weir_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// slower are limits that a reload makes 3600 times slower.
var slower = map[string]func(window time.Duration) weir.Limit{
	"token_bucket": func(w time.Duration) weir.Limit { return weir.Limit{Quota: 100, Window: w} },
	"leaky_queue": func(w time.Duration) weir.Limit {
		return weir.Limit{Quota: 100, Window: w, Queue: 99, Algorithm: weir.LeakyQueue}
	},
	"sliding_log": func(w time.Duration) weir.Limit {
		return weir.Limit{Quota: 100, Window: w, Algorithm: weir.SlidingLog}
	},
	"fixed_window_first": func(w time.Duration) weir.Limit {
		return weir.Limit{Quota: 100, Window: w, Algorithm: weir.FixedWindowFirst}
	},
}

func ruleOf(l weir.Limit) weir.Ruleset[string] {
	return weir.Ruleset[string]{Rules: []weir.Rule[string]{{Name: "rule", Limits: []weir.Limit{l},
		Key: func(dst []byte, r string) ([]byte, bool) { return append(dst, r...), true }}}}
}

func takes(t *testing.T, l *weir.Limiter[string], key string, n int) (allowed int, last weir.Decision) {
	t.Helper()
	for range n {
		d, err := l.Take(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			allowed++
			last = d
		}
	}
	return allowed, last
}

// TestASweepAfterASlowerLimitForgivesNobody: what was used under a limit of a second
// matters for an hour once the limit is of an hour.
func TestASweepAfterASlowerLimitForgivesNobody(t *testing.T) {
	for name, limit := range slower {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
			l, err := weir.New(m, ruleOf(limit(time.Second)), weir.Options[string]{Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := takes(t, l, "key", 200); n != 100 {
				t.Fatalf("allowed %d, want 100", n)
			}
			clock.set(0.1)
			if err := l.Swap(ruleOf(limit(time.Hour))); err != nil {
				t.Fatal(err)
			}
			clock.set(60)
			m.Sweep()
			if n, _ := takes(t, l, "key", 200); n > 13 { // a bucket forgives 1 in 36 s, and 10 before the change
				t.Errorf("the sweep has forgiven: %d more allowed", n)
			}
			clock.set(3 * 3600)
			if m.Sweep(); m.Stats().Keys != 0 {
				t.Error("held for longer than it can matter")
			}
		})
	}
}

// TestAnOldRefundGivesBackNoMoreThanItTook: a decision made before a reload is given
// back under the limit that counts by now.
func TestAnOldRefundGivesBackNoMoreThanItTook(t *testing.T) {
	for name, limit := range slower {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			l, err := weir.New(weir.NewMemory(weir.MemoryOptions{Clock: clock}), ruleOf(limit(time.Second)), weir.Options[string]{Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			_, old := takes(t, l, "key", 1)
			if err := l.Swap(ruleOf(limit(time.Hour))); err != nil {
				t.Fatal(err)
			}
			takes(t, l, "key", 300)
			clock.set(5)
			takes(t, l, "key", 300)
			if err := l.Refund(context.Background(), "key", &old); err != nil {
				t.Fatal(err)
			}
			if n, _ := takes(t, l, "key", 300); n > 1 {
				t.Errorf("one unit was given back, %d are allowed", n)
			}
		})
	}
}

// TestAChargeOfTheOverflowIsGivenBackThere: not to the entry that the key has got of
// its own in between.
func TestAChargeOfTheOverflowIsGivenBackThere(t *testing.T) {
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 10})
	l, err := weir.New(m, ruleOf(weir.Limit{Quota: 5, Window: time.Hour, Algorithm: weir.FixedWindowFirst}), weir.Options[string]{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		takes(t, l, fmt.Sprint("flood", i), 1)
	}
	back := func(d weir.Decision) {
		t.Helper()
		if err := l.Refund(context.Background(), "late", &d); err != nil {
			t.Fatal(err)
		}
	}
	spent := m.Stats().Overflow
	clock.set(3700) // all have expired, and the flood comes again
	for i := range 20 {
		takes(t, l, fmt.Sprint("again", i), 1)
	}
	if m.Stats().Overflow == spent {
		t.Fatal("nothing overflows: the test does not test")
	}
	clock.set(7500)
	for i := range 9 {
		takes(t, l, fmt.Sprint("third", i), 1)
	}
	for range 20 { // a rule of failed logins only must not lock everybody out
		n, d := takes(t, l, "late", 1)
		if n != 1 {
			t.Fatal("refused though all was given back")
		}
		back(d)
	}
	_, held := takes(t, l, "late", 4)
	clock.set(7500 + 3599)
	for i := range 9 {
		if err := l.Reset(context.Background(), fmt.Sprint("third", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := takes(t, l, "late", 9); n != 5 {
		t.Fatalf("a key with a place of its own is allowed %d of 5", n)
	}
	back(held)
	if n, _ := takes(t, l, "late", 9); n != 0 {
		t.Errorf("%d were given back to an entry that was not charged", n)
	}
}

// TestADecisionOfAnotherLimiterChangesNothing: giving back needs the one that took.
func TestADecisionOfAnotherLimiterChangesNothing(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{Clock: newClock()})
	var limiters [2]*weir.Limiter[string]
	for i := range limiters {
		var err error
		if limiters[i], err = weir.New(m, ruleOf(weir.PerHour(1)), weir.Options[string]{}); err != nil {
			t.Fatal(err)
		}
	}
	_, d := takes(t, limiters[0], "key", 1)
	if err := limiters[1].Refund(context.Background(), "key", &d); err != nil {
		t.Fatal(err)
	}
	if n, _ := takes(t, limiters[0], "key", 1); n != 0 {
		t.Error("the other limiter has given back")
	}
}
