package weir_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

// brokenStore fails while it is broken and asks another store else.
type brokenStore struct {
	weir.Store
	broken atomic.Bool
	calls  atomic.Int64
}

func (s *brokenStore) err() error {
	s.calls.Add(1)
	if s.broken.Load() {
		return fmt.Errorf("dial tcp 192.0.2.9:6379: %w", weir.ErrUnavailable)
	}
	return nil
}

func (s *brokenStore) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	if err := s.err(); err != nil {
		return false, err
	}
	return s.Store.Take(ctx, asks, out)
}

func (s *brokenStore) Peek(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	if err := s.err(); err != nil {
		return false, err
	}
	return s.Store.Peek(ctx, asks, out)
}

func (s *brokenStore) Adjust(ctx context.Context, asks []weir.Ask) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.Store.Adjust(ctx, asks)
}

// newOutage is a limiter whose store is broken from the start.
func newOutage(t testing.TB, rules ...weir.Rule[request]) (*scene, *brokenStore) {
	c := new(weirtest.Clock)
	b := &brokenStore{Store: weir.NewMemory(weir.MemoryOptions{Clock: c})}
	s := newSceneOn(t, c, b, rules...)
	b.broken.Store(true)
	return s, b
}

// Case S40: what an outage means is the rule's to say, and it is never silent.
func TestEachRuleSaysWhatAnOutageMeans(t *testing.T) {
	for _, c := range []struct {
		name    string
		outage  weir.Outage
		allowed int // of 5 at a quota of 2
		retry   time.Duration
	}{
		{"local", weir.FailLocal, 2, 30 * time.Minute},
		{"open", weir.FailOpen, 5, 0},
		{"closed", weir.FailClosed, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, b := newOutage(t, weir.Rule[request]{Name: "rule", Limits: hourly(2), Key: byUser, OnOutage: c.outage})
			alice := request{user: "alice"}
			if got := s.takes(5, alice); got != c.allowed {
				t.Errorf("%d were allowed, want %d", got, c.allowed)
			}
			d := s.take(alice)
			if !d.Degraded || d.RetryAfter != c.retry || d.Len() != 1 || d.Limit(0).Policy.Name != "rule" {
				t.Errorf("degraded %v, retry %v, %d limits", d.Degraded, d.RetryAfter, d.Len())
			}
			events := s.heard.Events()
			if len(events) != 12 {
				t.Fatalf("%d events, want a failure and a decision for each of 6 requests", len(events))
			}
			for i, e := range events {
				if i%2 == 0 && !errors.Is(e.Err, weir.ErrUnavailable) || i%2 == 1 && (e.Err != nil || !e.Degraded || e.Keys[0] != "alice") {
					t.Errorf("event %d: %+v", i, e)
				}
			}
			b.broken.Store(false)
			if d := s.take(alice); !d.Allowed || d.Degraded || d.Limit(0).Remaining != 1 {
				t.Errorf("after the outage: %+v", d.Limit(0))
			}
		})
	}
}

func TestOutageWithSeveralRules(t *testing.T) {
	rule := func(name string, n int64, o weir.Outage, m weir.Mode) weir.Rule[request] {
		return weir.Rule[request]{Name: name, Limits: hourly(n), Mode: m, OnOutage: o}
	}
	t.Run("open beside local", func(t *testing.T) {
		s, _ := newOutage(t, rule("open", 1, weir.FailOpen, weir.Enforce), rule("local", 3, weir.FailLocal, weir.Enforce), rule("other", 9, weir.FailLocal, weir.Enforce))
		if got := s.takes(9, request{}); got != 3 {
			t.Errorf("%d were allowed, want the local 3", got)
		}
		s.wantLeft(request{}, 0, 0, 6)
	})
	t.Run("closed beside local", func(t *testing.T) {
		s, b := newOutage(t, rule("local", 3, weir.FailLocal, weir.Enforce), rule("closed", 9, weir.FailClosed, weir.Enforce))
		if got := s.takes(9, request{}); got != 0 {
			t.Errorf("%d were allowed, want none", got)
		}
		// A request that the closed rule refuses is charged to no local one either.
		s.wantLeft(request{}, 3, 0)
		b.broken.Store(false)
		s.wantLeft(request{}, 3, 9)
	})
	t.Run("shadow", func(t *testing.T) {
		s, _ := newOutage(t, rule("closed", 1, weir.FailClosed, weir.Shadow), rule("local", 2, weir.FailLocal, weir.Shadow), rule("open", 4, weir.FailOpen, weir.Enforce))
		if got := s.takes(9, request{}); got != 9 {
			t.Errorf("%d were allowed: a watched rule refuses nothing, in an outage either", got)
		}
		if d := s.take(request{}); d.Limit(0).OK || d.Limit(1).OK || !d.Limit(2).OK {
			t.Errorf("%+v %+v %+v", d.Limit(0), d.Limit(1), d.Limit(2))
		}
	})
	t.Run("nothing to ask", func(t *testing.T) {
		s, b := newOutage(t, weir.Rule[request]{Name: "rule", Limits: hourly(1), Match: func(r request) bool { return r.path == "/limited" }})
		before := b.calls.Load()
		if d := s.take(request{}); !d.Allowed || d.Degraded || b.calls.Load() != before {
			t.Errorf("a request without rules asked the store: %+v", d)
		}
	})
}

// TestTheLocalStoreFailsToo: somebody has to decide.
func TestTheLocalStoreFailsToo(t *testing.T) {
	b := &brokenStore{Store: weir.NewMemory(weir.MemoryOptions{})}
	b.broken.Store(true)
	l, err := weir.New[request](b, weir.Ruleset[request]{Rules: []weir.Rule[request]{{Name: "rule", Limits: hourly(1)}}}, weir.Options[request]{Local: b})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if d, err := l.Take(t.Context(), request{}); err != nil || !d.Allowed || !d.Degraded {
			t.Errorf("allowed %v, degraded %v, %v", d.Allowed, d.Degraded, err)
		}
	}
}

// TestARefundGoesToWhoCharged: what the local store took is not given back to
// the shared one, and the other way round.
func TestARefundGoesToWhoCharged(t *testing.T) {
	s, b := newOutage(t, weir.Rule[request]{Name: "rule", Limits: hourly(5)})
	local := s.take(request{})
	b.broken.Store(false)
	shared := s.take(request{})
	s.take(request{})
	if err := s.Refund(t.Context(), request{}, &local); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(request{}, 3)
	b.broken.Store(true)
	s.wantLeft(request{}, 5)
	if err := s.Refund(t.Context(), request{}, &shared); !errors.Is(err, weir.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	b.broken.Store(false)
	if err := s.Refund(t.Context(), request{}, &shared); err != nil { // it was not marked as done
		t.Fatal(err)
	}
	s.wantLeft(request{}, 4)
}

func TestWaitThroughAnOutage(t *testing.T) {
	s, _ := newOutage(t, weir.Rule[request]{Name: "rule", Limits: []weir.Limit{weir.PerSecond(1)}})
	for i := range 3 {
		d, err := s.Wait(t.Context(), request{})
		if err != nil || !d.Allowed || !d.Degraded || s.clock.Since() != time.Duration(i)*time.Second {
			t.Errorf("wait %d: %v %v at %v", i, d.Allowed, err, s.clock.Since())
		}
	}
	closed, _ := newOutage(t, weir.Rule[request]{Name: "rule", Limits: hourly(1), OnOutage: weir.FailClosed})
	if _, err := closed.Wait(t.Context(), request{}); !errors.Is(err, weir.ErrNever) {
		t.Errorf("%v, want ErrNever: nobody knows until when", err)
	}
}

// TestACancelledRequestIsNoOutage: the store did not fail, its caller left.
func TestACancelledRequestIsNoOutage(t *testing.T) {
	s, _ := newOutage(t, weir.Rule[request]{Name: "rule", Limits: hourly(1), OnOutage: weir.FailOpen})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, err := s.Take(ctx, request{})
	if !errors.Is(err, weir.ErrUnavailable) || d.Allowed || d.RetryAfter != -1 {
		t.Errorf("%v, allowed %v, retry %v", err, d.Allowed, d.RetryAfter)
	}
	if n := len(s.heard.Events()); n != 0 {
		t.Errorf("%d events were observed", n)
	}
}
