package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
)

// Case B50: TB cap 1, 1 per 1 s, a deadline of 2.5 s, 5 callers.
func TestWaitServesInTimeOrFailsAtOnce(t *testing.T) {
	inBubble(t, one(weir.PerSecond(1)), func(t *testing.T, l *weir.Limiter[request]) {
		start := time.Now()
		served, failed := make(chan time.Duration, 5), make(chan time.Duration, 5)
		for range 5 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				switch d, err := l.Wait(ctx, request{}); {
				case err == nil && d.Allowed:
					served <- time.Since(start)
				case errors.Is(err, weir.ErrDeadline) && errors.Is(err, context.DeadlineExceeded):
					failed <- time.Since(start)
				default:
					t.Errorf("%v, %v", d.Allowed, err)
				}
			}()
		}
		for i := range 3 {
			if at := <-served; at != time.Duration(i)*time.Second {
				t.Errorf("caller %d is served at %v", i, at)
			}
		}
		for range 2 {
			if at := <-failed; at != 0 {
				t.Errorf("a caller fails at %v, not at once", at)
			}
		}
		time.Sleep(time.Second) // nobody else took anything: at 3 s one unit is there
		if d, _ := l.Take(t.Context(), request{}); !d.Allowed {
			t.Error("the callers that failed have taken something")
		}
	})
}

func TestAQueueServesInOrderAtAnEvenPace(t *testing.T) {
	inBubble(t, one(weir.Limit{Quota: 10, Window: time.Second, Algorithm: weir.LeakyQueue, Queue: 20}), func(t *testing.T, l *weir.Limiter[request]) {
		start := time.Now()
		type answer struct {
			caller int
			at     time.Duration
			err    error
		}
		answers := make(chan answer, 25)
		for i := range 25 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err := l.Wait(ctx, request{})
				answers <- answer{i, time.Since(start), err}
			}()
			synctest.Wait() // caller i stands in the queue before caller i+1 comes
		}
		// Of the 21 places the last is served after 2 s. Who finds no place would be
		// served later still, and is told at once.
		for range 25 {
			switch a := <-answers; {
			case a.caller >= 21:
				if a.at != 0 || !errors.Is(a.err, weir.ErrDeadline) {
					t.Errorf("caller %d is told %v at %v", a.caller, a.err, a.at)
				}
			case a.err != nil || a.at != time.Duration(a.caller)*100*time.Millisecond:
				t.Errorf("caller %d is served at %v, %v", a.caller, a.at, a.err)
			}
		}
	})
}

// TestAReservationGivenBackFreesNoEarlierWindow: the windows before it stay full,
// even for a store that forgets what equals a fresh key.
func TestAReservationGivenBackFreesNoEarlierWindow(t *testing.T) {
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	p := policy(t, weir.Limit{Quota: 2, Window: time.Hour, Algorithm: weir.FixedWindow})
	takeOne(t, m, p, "key", 2)
	asks, out := []weir.Ask{{Policy: p, Key: []byte("key"), Cost: 1, Slack: 1 << 50}}, make([]weir.Verdict, 1)
	if _, err := m.Take(t.Context(), asks, out); err != nil || out[0].Wait == 0 {
		t.Fatalf("%v %+v", err, out[0])
	}
	asks[0].At, asks[0].Cost = out[0].At+out[0].Wait, -1
	if err := m.Adjust(t.Context(), asks); err != nil {
		t.Fatal(err)
	}
	m.Sweep()
	if v := takeOne(t, m, p, "key", 1); v.OK || v.Retry != time.Hour.Microseconds() || v.Reset != time.Hour.Microseconds() {
		t.Errorf("%+v, want a refusal until the next window", v)
	}
}
