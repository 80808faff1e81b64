package tier_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirtest"
)

func breakerOverBank(t testing.TB, c weir.Clock) weir.Store {
	b := tier.NewBreaker(newBank(c), tier.BreakerOptions{Clock: c})
	t.Cleanup(b.Close)
	return b
}

func TestBreakerKeepsEveryPromiseOfAStore(t *testing.T) { weirtest.TestStore(t, breakerOverBank) }

func TestScriptsOnBreaker(t *testing.T) {
	weirtest.RunScripts(t, os.DirFS("../testdata/decisions"), breakerOverBank)
}

// ward is a breaker in front of a store that can be ill.
type ward struct {
	*bank
	err     atomic.Pointer[error]
	calls   atomic.Int64
	breaker *tier.Breaker
	policy  *weir.Policy
	changes []bool
	settled int
}

func newWard(t *testing.T, o tier.BreakerOptions) *ward {
	w := &ward{bank: newBank(weir.SystemClock())}
	o.OnChange = func(open bool) { w.changes = append(w.changes, open) }
	o.Settle = func(ctx context.Context) {
		w.settled++
		if !w.breaker.Stats().Open {
			t.Error("others may ask before what was decided without the store is settled")
		}
	}
	w.breaker = tier.NewBreaker(w, o)
	t.Cleanup(w.breaker.Close)
	w.policy = must(weir.NewPolicy("p", weir.PerHour(1000)))
	return w
}

func (w *ward) fail(err error) {
	if err == nil {
		w.err.Store(nil)
		return
	}
	w.err.Store(&err)
}

func (w *ward) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	w.calls.Add(1)
	if err := w.err.Load(); err != nil {
		return false, *err
	}
	return w.bank.Take(ctx, asks, out)
}

func (w *ward) take(ctx context.Context) error {
	_, err := w.breaker.Take(ctx, []weir.Ask{{Policy: w.policy, Key: []byte("k"), Cost: 1}}, make([]weir.Verdict, 1))
	return err
}

var errDown = fmt.Errorf("%w: down", weir.ErrUnavailable)

func TestBreakerOpensAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, tier.BreakerOptions{})
		w.fail(errDown)
		for i := range 5 {
			if err := w.take(t.Context()); err != errDown {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		for range 100 {
			if err := w.take(t.Context()); !errors.Is(err, tier.ErrOpen) || !errors.Is(err, weir.ErrUnavailable) {
				t.Fatalf("an open breaker: %v", err)
			}
		}
		if n := w.calls.Load(); n != 5 {
			t.Errorf("%d calls reached a store that is down", n)
		}
		time.Sleep(time.Minute)
		if n := w.calls.Load(); n < 5+60/2 || n > 5+60+4 {
			t.Errorf("%d probes in a minute", n-5)
		}
		w.fail(nil)
		time.Sleep(4 * time.Second)
		if err := w.take(t.Context()); err != nil {
			t.Errorf("a store that is well again: %v", err)
		}
		synctest.Wait()
		if fmt.Sprint(w.changes) != "[true false]" || w.settled != 1 {
			t.Errorf("it told of %v, and settled %d times", w.changes, w.settled)
		}
		if s := w.breaker.Stats(); s.Open || s.Opened != 1 || s.Rejected != 100 || s.Probes < 15 {
			t.Errorf("%+v", s)
		}
	})
}

func TestBreakerStaysClosed(t *testing.T) {
	for name, test := range map[string]struct {
		o  tier.BreakerOptions
		do func(t *testing.T, w *ward)
	}{
		"four failures": {do: func(t *testing.T, w *ward) {
			w.fail(errDown)
			for range 4 {
				_ = w.take(t.Context())
			}
		}},
		"failures far apart": {do: func(t *testing.T, w *ward) {
			for range 50 {
				w.fail(errDown)
				_ = w.take(t.Context())
				w.fail(nil)
				_ = w.take(t.Context())
				time.Sleep(300 * time.Millisecond)
			}
		}},
		"fewer than half": {do: func(t *testing.T, w *ward) {
			for range 50 {
				w.fail(errDown)
				_ = w.take(t.Context())
				w.fail(nil)
				_, _ = w.take(t.Context()), w.take(t.Context())
			}
		}},
		"a part of a Cluster": {o: tier.BreakerOptions{Failures: 20, Percent: 90}, do: func(t *testing.T, w *ward) {
			for range 100 {
				w.fail(errDown)
				_, _, _ = w.take(t.Context()), w.take(t.Context()), w.take(t.Context())
				w.fail(nil)
				_ = w.take(t.Context())
			}
		}},
		"callers who have no time": {do: func(t *testing.T, w *ward) {
			w.fail(context.Canceled)
			for range 50 {
				_ = w.take(t.Context())
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWard(t, test.o)
				test.do(t, w)
				if s := w.breaker.Stats(); s.Open || s.Opened != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestFailuresAloneOpenIt, however few they are: a rule that is asked for rarely must not
// wait for a store that is down each time.
func TestFailuresAloneOpenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, tier.BreakerOptions{})
		w.fail(errDown)
		_ = w.take(t.Context())
		time.Sleep(30 * time.Second)
		_ = w.take(t.Context())
		if err := w.take(t.Context()); !errors.Is(err, tier.ErrOpen) {
			t.Errorf("after two failures in half a minute, and nothing else: %v", err)
		}
	})
}

// TestAllHealTogether: the breaker stays open until the others are there, until what was
// decided meanwhile is settled, and for its rest.
func TestAllHealTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := make(chan struct{})
		w := newWard(t, tier.BreakerOptions{Gather: func(context.Context) { <-others }, Rest: time.Second})
		w.fail(errDown)
		for range 5 {
			_ = w.take(t.Context())
		}
		w.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.breaker.Stats(); !s.Open || w.settled != 0 {
			t.Errorf("without the others: %+v, settled %d times", s, w.settled)
		}
		close(others)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if s := w.breaker.Stats(); !s.Open || w.settled != 1 {
			t.Errorf("at rest: %+v, settled %d times", s, w.settled)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := w.take(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestALateFailureDoesNotOpenAgain: calls that began before the store was ill, and end
// after it is well again, are of the past.
func TestALateFailureDoesNotOpenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		w := newWard(t, tier.BreakerOptions{})
		late := tier.NewBreaker(lagging{w.bank, slow}, tier.BreakerOptions{})
		t.Cleanup(late.Close)
		ask := []weir.Ask{{Policy: w.policy, Key: []byte("k"), Cost: 1}}
		ended := make(chan error, 10)
		for range 5 { // these open it
			go func() { _, err := late.Peek(t.Context(), ask, make([]weir.Verdict, 1)); ended <- err }()
		}
		for range 5 { // these are late
			go func() { ended <- late.Adjust(t.Context(), ask) }()
		}
		synctest.Wait()
		if !late.Stats().Open {
			t.Fatal("it has not opened")
		}
		time.Sleep(time.Second)
		if late.Stats().Open {
			t.Fatal("it has not healed")
		}
		close(slow)
		for range 10 {
			<-ended
		}
		if s := late.Stats(); s.Open || s.Opened != 1 {
			t.Errorf("after failures of the past: %+v", s)
		}
		_, _ = late.Peek(t.Context(), ask, make([]weir.Verdict, 1))
		if s := late.Stats(); s.Open || s.Opened != 1 {
			t.Errorf("after failures of the past and one of now: %+v", s)
		}
	})
}

// TestChangesAreToldInOrder: a store that fails again at once is told to be down last.
func TestChangesAreToldInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		var b *tier.Breaker
		b = tier.NewBreaker(lagging{bank: newBank(weir.SystemClock())}, tier.BreakerOptions{OnChange: func(open bool) {
			if !open {
				for range 5 { // whoever comes while it is told
					_, _ = b.Peek(t.Context(), make([]weir.Ask, 1), make([]weir.Verdict, 1))
				}
			}
			told = append(told, open)
		}})
		t.Cleanup(b.Close)
		for range 5 {
			_, _ = b.Peek(t.Context(), make([]weir.Ask, 1), make([]weir.Verdict, 1))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(told) < 2 || !told[0] || told[1] {
			t.Errorf("told %v, want true, false", told)
		}
	})
}

// TestNothingBeginsAfterClose, whatever fails meanwhile.
func TestNothingBeginsAfterClose(t *testing.T) {
	for range 200 {
		b := tier.NewBreaker(lagging{bank: newBank(weir.SystemClock())}, tier.BreakerOptions{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { _, _ = b.Peek(t.Context(), make([]weir.Ask, 1), make([]weir.Verdict, 1)) })
		}
		b.Close()
		all.Wait()
	}
}

// lagging fails peeks at once, and adjusts when it is let.
type lagging struct {
	*bank
	slow chan struct{}
}

func (l lagging) Peek(context.Context, []weir.Ask, []weir.Verdict) (bool, error) {
	return false, errDown
}

func (l lagging) Adjust(context.Context, []weir.Ask) error {
	<-l.slow
	return errDown
}

func TestAnOpenBreakerCostsNothing(t *testing.T) {
	w := newWard(t, tier.BreakerOptions{Pause: time.Hour})
	w.fail(errDown)
	for range 5 {
		_ = w.take(t.Context())
	}
	ask, out := []weir.Ask{{Policy: w.policy, Key: []byte("k"), Cost: 1}}, make([]weir.Verdict, 1)
	if n := testing.AllocsPerRun(100, func() { _, _ = w.breaker.Take(t.Context(), ask, out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
