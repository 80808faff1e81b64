package weir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

// inBubble runs a test with the system clock of a synctest bubble: time passes
// when everybody waits.
func inBubble(t *testing.T, rules []weir.Rule[request], test func(t *testing.T, l *weir.Limiter[request])) {
	synctest.Test(t, func(t *testing.T) {
		l, err := weir.New(weir.NewMemory(weir.MemoryOptions{}), weir.Ruleset[request]{Rules: rules}, weir.Options[request]{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, l)
	})
}

func one(l weir.Limit) []weir.Rule[request] {
	return []weir.Rule[request]{{Name: "rule", Limits: []weir.Limit{l}, Cost: func(r request) int64 { return max(r.cost, 1) }}}
}

func TestWaitForWhatCanNeverBe(t *testing.T) {
	inBubble(t, one(weir.PerHour(5)), func(t *testing.T, l *weir.Limiter[request]) {
		start := time.Now()
		if _, err := l.Wait(t.Context(), request{cost: 6}); !errors.Is(err, weir.ErrNever) {
			t.Errorf("%v, want ErrNever", err)
		}
		if d, _ := l.Peek(t.Context(), request{}); d.Limit(0).Remaining != 5 || !time.Now().Equal(start) {
			t.Errorf("%d left after %v", d.Limit(0).Remaining, time.Since(start))
		}
	})
}

// Case B50: a cancelled wait gives its place back, and never lifts the balance
// above the capacity.
func TestACancelledWaitTakesNothing(t *testing.T) {
	for _, limit := range []weir.Limit{weir.PerHour(2), {Quota: 2, Window: time.Hour, Algorithm: weir.LeakyQueue, Queue: 5},
		{Quota: 2, Window: time.Hour, Algorithm: weir.SlidingLog}, {Quota: 2, Window: time.Hour, Algorithm: weir.FixedWindow}} {
		t.Run(limit.Algorithm.String(), func(t *testing.T) {
			inBubble(t, one(limit), func(t *testing.T, l *weir.Limiter[request]) {
				spend := func() (n int) {
					for {
						if d, _ := l.Take(t.Context(), request{}); !d.Allowed || d.Wait > 0 && n > 0 {
							if d.Allowed {
								_ = l.Refund(t.Context(), request{}, &d)
							}
							return n
						}
						n++
					}
				}
				want := spend()
				before, _ := l.Peek(t.Context(), request{})
				for range 10 {
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error)
					go func() {
						_, err := l.Wait(ctx, request{})
						done <- err
					}()
					synctest.Wait()
					cancel()
					if err := <-done; !errors.Is(err, context.Canceled) {
						t.Fatalf("%v, want Canceled", err)
					}
				}
				after, _ := l.Peek(t.Context(), request{})
				if before.Limit(0) != after.Limit(0) {
					t.Errorf("before %+v\nafter  %+v", before.Limit(0), after.Limit(0))
				}
				time.Sleep(3 * time.Hour)
				if got := spend(); got != want {
					t.Errorf("%d at once after the waits were cancelled, %d before", got, want)
				}
			})
		})
	}
}

// strictStore does nothing for a caller who has left, as a store across a network.
type strictStore struct{ weir.Store }

func (s strictStore) Adjust(ctx context.Context, asks []weir.Ask) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Adjust(ctx, asks)
}

// TestGivingBackOutlivesTheCaller: the refund of a cancelled wait must not fail
// for the very reason it is made.
func TestGivingBackOutlivesTheCaller(t *testing.T) {
	c := weirtest.Clock{Park: true}
	s := newSceneOn(t, &c, strictStore{weir.NewMemory(weir.MemoryOptions{Clock: &c})}, one(weir.PerHour(1))...)
	s.takes(1, request{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = c.AwaitParked(t.Context(), 1)
		cancel()
	}()
	d, err := s.Wait(ctx, request{})
	if !errors.Is(err, context.Canceled) || d.Wait != time.Hour {
		t.Errorf("%v, wait %v", err, d.Wait)
	}
	if d, err := s.Peek(t.Context(), request{}); err != nil || d.RetryAfter != time.Hour {
		t.Errorf("the next is told %v, %v; want 1h, as if nobody had waited", d.RetryAfter, err)
	}
}

// Case B50: whole windows are counted right for those who wait for a fixed one.
func TestWaitersOfAFixedWindowAreNotOverbooked(t *testing.T) {
	c := weirtest.Clock{Park: true}
	s := newSceneOn(t, &c, weir.NewMemory(weir.MemoryOptions{Clock: &c}), one(weir.Limit{Quota: 3, Window: 10 * time.Second, Algorithm: weir.FixedWindow})...)
	served := make(chan time.Duration, 7)
	for range 7 {
		go func() {
			d, err := s.Wait(t.Context(), request{})
			if err != nil {
				t.Error(err)
			}
			served <- d.Wait
		}()
	}
	if err := c.AwaitParked(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	c.Set(time.Minute)
	var got []time.Duration
	for range 7 {
		got = append(got, <-served)
	}
	slices.Sort(got)
	if fmt.Sprint(got) != "[0s 0s 0s 10s 10s 10s 20s]" {
		t.Error(got)
	}
}

// TestWaitTriesAgain: what holds no place is tried again when the verdict said.
func TestWaitTriesAgain(t *testing.T) {
	for _, a := range []weir.Algorithm{weir.SlidingLog, weir.SlidingWindow, weir.FixedWindowFirst, weir.SlidingSlices} {
		t.Run(a.String(), func(t *testing.T) {
			rules := append(one(weir.Limit{Quota: 2, Window: 10 * time.Second, Algorithm: a}),
				weir.Rule[request]{Name: "watch", Limits: []weir.Limit{{Quota: 100, Window: 24 * time.Hour, Algorithm: weir.FixedWindow}}, Mode: weir.Shadow})
			inBubble(t, rules, func(t *testing.T, l *weir.Limiter[request]) {
				start := time.Now()
				served := make(chan time.Duration, 8)
				for range 8 {
					go func() {
						if _, err := l.Wait(t.Context(), request{}); err != nil {
							t.Error(err)
						}
						served <- time.Since(start)
					}()
				}
				var at []time.Duration
				for range 8 {
					at = append(at, <-served)
				}
				for i := range at[2:] { // never 3 in less than a window, for what is exact
					if gap := at[i+2] - at[i]; a == weir.SlidingLog && gap < 10*time.Second {
						t.Errorf("served at %v", at)
					}
				}
				if last := at[7]; last < 20*time.Second || last > 80*time.Second {
					t.Errorf("the last of 8 at 2 per 10s is served at %v", last)
				}
				// However often a waiter tried, the watched rule saw it once.
				if d, _ := l.Peek(t.Context(), request{}); d.Limit(1).Remaining != 92 {
					t.Errorf("the watched rule has %d of 100 left, want 92", d.Limit(1).Remaining)
				}
			})
		})
	}
}

func TestTheLongestWaitCounts(t *testing.T) {
	s := newScene(t,
		weir.Rule[request]{Name: "a", Limits: []weir.Limit{{Quota: 1, Window: time.Second, MaxWait: 5 * time.Second}}},
		weir.Rule[request]{Name: "b", Limits: []weir.Limit{{Quota: 1, Window: 2 * time.Second, MaxWait: 5 * time.Second}}},
		weir.Rule[request]{Name: "watched", Limits: []weir.Limit{{Quota: 1, Window: time.Minute, MaxWait: time.Hour}}, Mode: weir.Shadow})
	for i, want := range []time.Duration{0, 2 * time.Second, 4 * time.Second} {
		if d := s.take(request{}); !d.Allowed || d.Wait != want {
			t.Errorf("request %d: allowed %v, wait %v, want %v", i, d.Allowed, d.Wait, want)
		}
	}
	if d := s.take(request{}); d.Allowed || d.Wait != 0 || d.RetryAfter != time.Second {
		t.Errorf("allowed %v, wait %v, retry %v", d.Allowed, d.Wait, d.RetryAfter)
	}
}
