package smooth

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What is remembered of cancelled waits is bounded, however clients take turns
// at giving up, and forgotten when their instants have passed.
func TestAbandonedReservationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewBursty(1000, Options{})
		if err != nil {
			t.Fatal(err)
		}
		wait := func() func() {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = l.Acquire(ctx, 1)
			}()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		takeTurns := func(n int) {
			giveUp := wait()
			for range n {
				next := wait() // so that the one before cannot give back
				giveUp()
				giveUp = next
			}
			giveUp()
		}
		if ok, err := l.TryAcquire(1, 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		takeTurns(maxAbandoned + 500)
		if n := len(l.abandoned); n > maxAbandoned {
			t.Errorf("%d reservations are remembered, want at most %d", n, maxAbandoned)
		}
		if n := len(l.abandoned); n < maxAbandoned/2 {
			t.Errorf("%d reservations are remembered: the test does not reach the bound", n)
		}
		time.Sleep(time.Hour)
		if ok, err := l.TryAcquire(2000, 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		takeTurns(10)
		if n := len(l.abandoned); n > 20 {
			t.Errorf("%d reservations are remembered whose instants have passed", n)
		}
	})
}
