package weir_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

func TestARefundGivesBackOnce(t *testing.T) {
	ctx := context.Background()
	s := newScene(t,
		weir.Rule[request]{Name: "user", Limits: []weir.Limit{weir.PerHour(10), {Quota: 20, Window: time.Hour, Algorithm: weir.SlidingLog}}, Key: byUser, Cost: func(r request) int64 { return r.cost }},
		weir.Rule[request]{Name: "watch", Limits: hourly(30), Mode: weir.Shadow},
		weir.Rule[request]{Name: "pair", Limits: hourly(40), Key: weir.Keys(byUser, byIP)},
		weir.Rule[request]{Name: "absent", Limits: hourly(50), Key: byIP, NoKey: weir.SharePartition},
		weir.Rule[request]{Name: "instead", Limits: hourly(60), Key: byIP, NoKey: weir.FallbackKey, Fallback: byUser})
	r := request{user: "alice", ip: "192.0.2.1", cost: 4}
	other := s.take(r)
	d := s.take(r)
	s.wantLeft(r, 2, 12, 28, 38, 48, 58)
	for range 3 {
		if err := s.Refund(ctx, r, &d); err != nil {
			t.Fatal(err)
		}
		s.wantLeft(r, 6, 16, 29, 39, 49, 59)
	}
	if err := s.Refund(ctx, r, &other); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(r, 10, 20, 30, 40, 50, 60)
	// Without an address two of the rules have another partition, or none.
	r.ip = ""
	d = s.take(r)
	s.wantLeft(r, 6, 16, 29, 49, 59)
	if err := s.Refund(ctx, r, &d); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(r, 10, 20, 30, 50, 60)
}

func TestARefusalHasNothingToRefundButItsWatchedRules(t *testing.T) {
	s := newScene(t, weir.Rule[request]{Name: "rule", Limits: hourly(1)}, weir.Rule[request]{Name: "wide", Limits: hourly(9)},
		weir.Rule[request]{Name: "watch", Limits: hourly(9), Mode: weir.Shadow})
	s.take(request{})
	d := s.take(request{})
	if d.Allowed {
		t.Fatal("not refused")
	}
	s.wantLeft(request{}, 0, 8, 7)
	for range 2 {
		if err := s.Refund(t.Context(), request{}, &d); err != nil {
			t.Fatal(err)
		}
	}
	s.wantLeft(request{}, 0, 8, 8)
	peeked, err := s.Peek(t.Context(), request{})
	if err != nil {
		t.Fatal(err)
	}
	var zero weir.Decision
	for _, d := range []*weir.Decision{&peeked, &zero} {
		if err := s.Refund(t.Context(), request{}, d); err != nil {
			t.Fatal(err)
		}
	}
	s.wantLeft(request{}, 0, 8, 8)
}

// TestARefundSurvivesAReload: what was charged under the old rules is given back
// to the same counters.
func TestARefundSurvivesAReload(t *testing.T) {
	rules := []weir.Rule[request]{{Name: "rule", Limits: hourly(5), Key: byUser}}
	s := newScene(t, rules...)
	r := request{user: "alice"}
	d := s.take(r)
	// The rule moves to another place and gets another quota.
	if err := s.Swap(weir.Ruleset[request]{Rules: []weir.Rule[request]{{Name: "new", Limits: hourly(7)}, {Name: "rule", Limits: hourly(9), Key: byUser}}}); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(r, 7, 8)
	if err := s.Refund(t.Context(), r, &d); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(r, 7, 9)
}

func TestSettleTakesTheActualCost(t *testing.T) {
	ctx := context.Background()
	s := newScene(t,
		weir.Rule[request]{Name: "tokens", Limits: hourly(100), Unit: "tokens", Key: byUser, Cost: func(r request) int64 { return r.cost }},
		weir.Rule[request]{Name: "requests", Limits: hourly(10), Key: byUser})
	r := request{user: "alice", cost: 20}
	d := s.take(r)
	s.wantLeft(r, 80, 9)
	for _, c := range []struct{ actual, left int64 }{{35, 65}, {5, 95}, {5, 95}, {50, 50}, {0, 100}, {-3, 100}, {20, 80}, {150, 0}, {100, 0}, {99, 1}} {
		if err := s.Settle(ctx, r, &d, "tokens", c.actual); err != nil {
			t.Fatal(err)
		}
		s.wantLeft(r, c.left, 9)
	}
	if err := s.Settle(ctx, r, &d, "bytes", 1); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(r, 1, 9)
	if err := s.Refund(ctx, r, &d); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(r, 100, 10)
	if err := s.Settle(ctx, r, &d, "tokens", 1<<62); err != nil {
		t.Fatal(err)
	}
	if d := s.take(r); d.Allowed || d.RetryAfter < 24*time.Hour {
		t.Errorf("after an absurd bill: %v, retry %v", d.Allowed, d.RetryAfter)
	}
}

// TestSettleOfAFreeLook: a request that cost nothing when it was asked may turn
// out to have cost something.
func TestSettleOfAFreeLook(t *testing.T) {
	s := newScene(t, weir.Rule[request]{Name: "tokens", Limits: hourly(100), Unit: "tokens", Cost: func(request) int64 { return 0 }})
	d := s.take(request{})
	if err := s.Settle(t.Context(), request{}, &d, "tokens", 30); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(request{}, 70)
}

func TestARefundOfAPastWindowGivesNothing(t *testing.T) {
	for _, a := range []weir.Algorithm{weir.FixedWindow, weir.FixedWindowFirst, weir.SlidingLog, weir.SlidingSlices} {
		s := newScene(t, weir.Rule[request]{Name: "rule", Limits: []weir.Limit{{Quota: 5, Window: time.Hour, Algorithm: a}}})
		d := s.take(request{})
		s.clock.Set(time.Hour)
		s.takes(3, request{})
		if err := s.Refund(t.Context(), request{}, &d); err != nil {
			t.Fatal(err)
		}
		if got := s.left(request{}); got[0] != 2 {
			t.Errorf("%v: %d left, want 2", a, got[0])
		}
	}
}

func TestResetForgetsEveryRuleOfTheRequest(t *testing.T) {
	s := newScene(t,
		weir.Rule[request]{Name: "user", Limits: []weir.Limit{weir.PerHour(3), weir.PerDay(9)}, Key: byUser},
		weir.Rule[request]{Name: "ip", Limits: hourly(4), Key: byIP},
		weir.Rule[request]{Name: "watch", Limits: hourly(5), Mode: weir.Shadow})
	alice, bob := request{user: "alice", ip: "192.0.2.1"}, request{user: "bob", ip: "192.0.2.2"}
	s.takes(3, alice)
	s.takes(1, bob)
	if err := s.Reset(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	s.wantLeft(alice, 3, 9, 4, 5)
	s.wantLeft(bob, 2, 8, 3, 5)
	if err := s.Reset(t.Context(), request{}); err != nil {
		t.Error(err)
	}
}
