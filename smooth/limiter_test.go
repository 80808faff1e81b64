package smooth_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/smooth"
)

// In a synctest bubble the system's clock stands still while anyone runs, so
// the instants below are exact.

func newBursty(t testing.TB, rate float64, o smooth.Options) *smooth.Limiter {
	t.Helper()
	l, err := smooth.NewBursty(rate, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// waiter is an Acquire in a goroutine of its own.
type waiter struct {
	cancel context.CancelFunc
	at     time.Duration // when it returned, from its call
	waited time.Duration
	err    error
	done   chan struct{}
}

// wait starts an Acquire and returns when it is asleep or done.
func wait(l *smooth.Limiter, n int) *waiter {
	ctx, cancel := context.WithCancel(context.Background())
	w := &waiter{cancel: cancel, done: make(chan struct{})}
	start := time.Now()
	go func() {
		defer close(w.done)
		defer cancel()
		w.waited, w.err = l.Acquire(ctx, n)
		w.at = time.Since(start)
	}()
	synctest.Wait()
	return w
}

// giveUp cancels the wait and returns when that has been seen to.
func (w *waiter) giveUp() {
	w.cancel()
	<-w.done
}

func TestConcurrentCallersAreSpacedEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBursty(t, 10, smooth.Options{})
		start := time.Now()
		granted := make([]time.Duration, 100)
		var wg sync.WaitGroup
		for i := range granted {
			wg.Go(func() {
				waited, err := l.Acquire(t.Context(), 1)
				granted[i] = time.Since(start)
				if err != nil || waited != granted[i] {
					t.Errorf("Acquire = %v, %v at %v", waited, err, granted[i])
				}
			})
		}
		wg.Wait()
		slices.Sort(granted)
		for i, at := range granted {
			if want := time.Duration(i) * 100 * time.Millisecond; at != want {
				t.Fatalf("caller %d goes on at %v, want %v", i, at, want)
			}
		}
	})
}

// case B50
func TestAWaitPastTheDeadlineFailsAtOnceAndTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBursty(t, 1, smooth.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		start := time.Now()
		var served []time.Duration
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				waited, err := l.Acquire(ctx, 1)
				mu.Lock()
				defer mu.Unlock()
				at := time.Since(start)
				if err == nil {
					served = append(served, at)
					return
				}
				late := new(smooth.DeadlineError)
				if !errors.As(err, &late) || *late != (smooth.DeadlineError{Wait: 3 * time.Second, Left: 2500 * time.Millisecond}) {
					t.Errorf("error %v, want a DeadlineError of a wait of 3s", err)
				}
				if !errors.Is(err, context.DeadlineExceeded) || waited != 0 || at != 0 {
					t.Errorf("%v after %v at %v, want at once", err, waited, at)
				}
			})
		}
		wg.Wait()
		slices.Sort(served)
		if want := []time.Duration{0, time.Second, 2 * time.Second}; !slices.Equal(served, want) {
			t.Errorf("served at %v, want %v", served, want)
		}
		if waited, err := l.Acquire(t.Context(), 1); err != nil || waited != time.Second {
			t.Errorf("the next Acquire = %v, %v, want 1s", waited, err)
		}
	})
}

func TestAWaitMustEndBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBursty(t, 1, smooth.Options{})
		wait(l, 1)
		exact, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if waited, err := l.Acquire(exact, 1); !errors.Is(err, context.DeadlineExceeded) || waited != 0 {
			t.Errorf("Acquire = %v, %v, want none: both end at once", waited, err)
		}
		above, cancel := context.WithTimeout(t.Context(), time.Second+1)
		defer cancel()
		if waited, err := l.Acquire(above, 1); err != nil || waited != time.Second {
			t.Errorf("Acquire = %v, %v, want 1s", waited, err)
		}
	})
}

func TestAContextThatIsOverTakesNothing(t *testing.T) {
	l := newBursty(t, 1, smooth.Options{Clock: newTape()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if waited, err := l.Acquire(ctx, 1); err != context.Canceled || waited != 0 {
		t.Errorf("Acquire = %v, %v", waited, err)
	}
	if ok, err := l.TryAcquire(1, 0); !ok || err != nil {
		t.Errorf("TryAcquire = %v, %v, want the permit to be there", ok, err)
	}
}

func TestACancelledWaitGivesItsPermitsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBursty(t, 1, smooth.Options{})
		wait(l, 1)
		w := wait(l, 50)
		time.Sleep(300 * time.Millisecond)
		w.giveUp()
		if w.err != context.Canceled || w.waited != 300*time.Millisecond {
			t.Errorf("Acquire = %v, %v, want cancelled after 300ms", w.waited, w.err)
		}
		if waited, err := l.Acquire(t.Context(), 1); err != nil || waited != 700*time.Millisecond {
			t.Errorf("the next Acquire = %v, %v, want 700ms", waited, err)
		}
	})
}

func TestALaterCallerKeepsItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBursty(t, 1, smooth.Options{})
		wait(l, 1)
		first, second := wait(l, 1), wait(l, 1)
		first.giveUp()
		if ok, _ := l.TryAcquire(1, 2999*time.Millisecond); ok {
			t.Error("a permit that is lost was granted again: two at the instant of the later caller")
		}
		<-second.done
		if second.err != nil || second.at != 2*time.Second {
			t.Errorf("the later caller: %v at %v, want 2s", second.err, second.at)
		}
		if waited, _ := l.Acquire(t.Context(), 1); waited != time.Second {
			t.Errorf("the next waits %v, want 1s", waited)
		}
	})
}

func TestAllPermitsComeBackWhenAllGiveUp(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			l := newBursty(t, 1, smooth.Options{})
			wait(l, 1)
			var waiters []*waiter
			for range 30 {
				waiters = append(waiters, wait(l, 3))
			}
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(waiters), func(i, j int) {
				waiters[i], waiters[j] = waiters[j], waiters[i]
			})
			for _, w := range waiters {
				w.giveUp()
			}
			if waited, err := l.Acquire(t.Context(), 1); err != nil || waited != time.Second {
				t.Errorf("seed %d: Acquire = %v, %v, want 1s", seed, waited, err)
			}
		})
	}
}

func TestGivingBackNeverLiftsTheBalance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := smooth.NewWarmingUp(5, smooth.Options{WarmUp: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		// Cold prices in a row, whatever was given up between the calls.
		for _, want := range []time.Duration{0, 520, 360, 220, 200, 200} {
			want *= time.Millisecond
			if want > 0 { // else there is nothing to wait for
				for range 3 {
					wait(l, 1000).giveUp()
				}
			}
			if waited, err := l.Acquire(t.Context(), 1); err != nil || waited != want {
				t.Errorf("Acquire = %v, %v, want %v", waited, err, want)
			}
		}
	})
}

func TestANewRateKeepsWhatACancelledWaitTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBursty(t, 1, smooth.Options{})
		wait(l, 1)
		w := wait(l, 1)
		if err := l.SetRate(10); err != nil {
			t.Fatal(err)
		}
		w.giveUp()
		if waited, err := l.Acquire(t.Context(), 1); err != nil || waited != 2*time.Second {
			t.Errorf("Acquire = %v, %v, want 2s: the debt of two at the old rate", waited, err)
		}
		if waited, err := l.Acquire(t.Context(), 1); err != nil || waited != 100*time.Millisecond {
			t.Errorf("Acquire = %v, %v, want 100ms: the new rate", waited, err)
		}
	})
}

func TestTryAcquireWaitsWithinItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBursty(t, 10, smooth.Options{})
		start := time.Now()
		for _, c := range []struct {
			timeout time.Duration
			ok      bool
			at      time.Duration
		}{
			{-time.Second, true, 0},
			{0, false, 0},
			{100*time.Millisecond - 1, false, 0},
			{100 * time.Millisecond, true, 100 * time.Millisecond},
			{time.Hour, true, 200 * time.Millisecond},
		} {
			ok, err := l.TryAcquire(1, c.timeout)
			if at := time.Since(start); ok != c.ok || err != nil || at != c.at {
				t.Errorf("TryAcquire(1, %v) = %v, %v at %v, want %v at %v", c.timeout, ok, err, at, c.ok, c.at)
			}
		}
	})
}

// TestNothingGoesFasterThanTheRate runs what callers do at random, all at once,
// and counts what was granted.
func TestNothingGoesFasterThanTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 100
		seed := rand.Uint64()
		l := newBursty(t, rate, smooth.Options{MaxBurst: 100 * time.Millisecond})
		start := time.Now()
		type grant struct {
			at time.Duration
			n  int
		}
		var mu sync.Mutex
		var grants []grant
		var wg sync.WaitGroup
		for i := range uint64(50) {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, i))
				for range 100 {
					n, patience := 1+r.IntN(5), time.Duration(r.IntN(3000))*time.Millisecond
					ok := false
					switch r.IntN(4) {
					case 0:
						ok, _ = l.TryAcquire(n, patience/10)
					case 1:
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						_, err := l.Acquire(ctx, n)
						ok = err == nil
						cancel()
					case 2:
						ctx, cancel := context.WithCancel(t.Context())
						stop := time.AfterFunc(patience, cancel)
						_, err := l.Acquire(ctx, n)
						ok = err == nil
						stop.Stop()
						cancel()
					case 3:
						if err := l.SetRate(rate); err != nil || l.Rate() != rate {
							t.Errorf("SetRate: %v; Rate() = %v", err, l.Rate())
						}
						time.Sleep(patience)
					}
					if ok {
						mu.Lock()
						grants = append(grants, grant{time.Since(start), n})
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		slices.SortStableFunc(grants, func(a, b grant) int { return int(a.at - b.at) })
		if len(grants) < 500 {
			t.Errorf("seed %d: only %d calls were granted", seed, len(grants))
		}
		// Whatever was granted before an instant was paid for with time. At one
		// instant a call may be followed by others of the burst, the last of
		// which is not paid for yet.
		taken := 0
		for i, g := range grants {
			if due := time.Duration(taken) * time.Second / rate; due > g.at {
				t.Fatalf("seed %d: grant %d at %v, but the %d permits before it need %v", seed, i, g.at, taken, due)
			}
			taken += g.n
		}
	})
}

func TestWhatContradictsIsRefused(t *testing.T) {
	burst := func(o smooth.Options) error { _, err := smooth.NewBursty(1, o); return err }
	warm := func(o smooth.Options) error { _, err := smooth.NewWarmingUp(1, o); return err }
	l := newBursty(t, 1, smooth.Options{Clock: newTape()})
	acquire := func(n int) error { _, err := l.Acquire(t.Context(), n); return err }
	try := func(n int) error { _, err := l.TryAcquire(n, 0); return err }
	_, noRate := smooth.NewBursty(0, smooth.Options{})
	for _, c := range []struct {
		err  error
		want string
	}{
		{noRate, "smooth: rate 0: want a finite number of permits per second above 0"},
		{l.SetRate(-1), "smooth: rate -1: want a finite number of permits per second above 0"},
		{acquire(0), "smooth: permits 0: want at least 1"},
		{try(-3), "smooth: permits -3: want at least 1"},
		{burst(smooth.Options{MaxBurst: -time.Second}), "smooth: burst -1: want a finite number of seconds, at least 0"},
		{burst(smooth.Options{MaxBurst: time.Second, NoBurst: true}), "smooth: burst 1s: want none beside NoBurst"},
		{burst(smooth.Options{WarmUp: time.Second}), "smooth: warm-up 1s: want none for a bursty limiter; NewWarmingUp makes one that warms up"},
		{burst(smooth.Options{ColdFactor: 3}), "smooth: cold factor 3: want none for a bursty limiter; NewWarmingUp makes one that warms up"},
		{warm(smooth.Options{}), "smooth: warm-up 0s: want at least 1µs; a limiter without one is made by NewBursty"},
		{warm(smooth.Options{WarmUp: 999}), "smooth: warm-up 999ns: want at least 1µs; a limiter without one is made by NewBursty"},
		{warm(smooth.Options{WarmUp: time.Second, MaxBurst: time.Second}), "smooth: burst 1s: want neither MaxBurst nor NoBurst for a limiter that warms up; NewBursty takes them"},
		{warm(smooth.Options{WarmUp: time.Second, ColdFactor: 0.5}), "smooth: cold factor 0.5: want a finite number, at least 1"},
	} {
		wrong := new(smooth.ArgumentError)
		if !errors.As(c.err, &wrong) || c.err.Error() != c.want {
			t.Errorf("error %v, want %s", c.err, c.want)
		}
	}
	if ok, err := l.TryAcquire(1, 0); !ok || err != nil || l.Rate() != 1 {
		t.Errorf("TryAcquire = %v, %v at rate %v: a refused call changed the limiter", ok, err, l.Rate())
	}
}

func TestAWaitLongerThanADurationIsCut(t *testing.T) {
	c := newTape()
	c.sleeps = false
	l := newBursty(t, 1e-300, smooth.Options{Clock: c})
	for _, want := range []time.Duration{0, 1<<63 - 1} {
		if waited, err := l.Acquire(t.Context(), 1); err != nil || waited != want {
			t.Errorf("Acquire = %v, %v, want %v", waited, err, want)
		}
	}
}
