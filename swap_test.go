package weir_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// Case B42 (a).
func TestARaiseAppliesAtOnceAndKeepsUse(t *testing.T) {
	ruleset := func(n int64) weir.Ruleset[request] {
		return weir.Ruleset[request]{Version: fmt.Sprint("quota ", n), Rules: []weir.Rule[request]{
			{Name: "rule", Limits: []weir.Limit{{Quota: n, Window: time.Hour, Algorithm: weir.SlidingLog}}, Key: byUser}}}
	}
	s := newScene(t, ruleset(10).Rules...)
	alice := request{user: "alice"}
	for i := range 50 {
		s.clock.Set(time.Duration(i) * time.Second)
		if d := s.take(alice); d.Allowed != (i < 10) {
			t.Fatalf("at %ds: allowed %v", i, d.Allowed)
		}
	}
	s.clock.Set(99 * time.Second)
	if err := s.Swap(ruleset(20)); err != nil {
		t.Fatal(err)
	}
	if s.Version() != "quota 20" || len(s.Policies()) != 1 || s.Policies()[0].Limit.Quota != 20 {
		t.Errorf("version %q, policies %v", s.Version(), s.Policies())
	}
	for i := range 11 {
		s.clock.Set(time.Duration(100+i) * time.Second)
		d := s.take(alice)
		if d.Allowed != (i < 10) || d.Version != "quota 20" {
			t.Fatalf("at %ds: allowed %v by %q", 100+i, d.Allowed, d.Version)
		}
		if !d.Allowed && d.RetryAfter != 3490*time.Second {
			t.Errorf("retry %v, want 3490s", d.RetryAfter)
		}
	}
}

func TestWhatStartsAfreshAndWhatDoesNot(t *testing.T) {
	before := weir.Rule[request]{Name: "rule", Limits: []weir.Limit{weir.PerHour(5), {Quota: 5, Window: time.Hour, Algorithm: weir.FixedWindow}}, Key: byUser}
	for _, c := range []struct {
		name   string
		change func(r *weir.Rule[request])
		left   []int64
	}{
		{"nothing", func(*weir.Rule[request]) {}, []int64{2, 2}},
		{"a quota", func(r *weir.Rule[request]) { r.Limits[0].Quota = 7 }, []int64{4, 2}},
		{"the mode", func(r *weir.Rule[request]) { r.Mode = weir.Shadow }, []int64{2, 2}},
		{"the unit", func(r *weir.Rule[request]) { r.Unit = "tokens" }, []int64{2, 2}},
		{"the cost", func(r *weir.Rule[request]) { r.Cost = func(request) int64 { return 2 } }, []int64{2, 2}},
		{"the window of a bucket", func(r *weir.Rule[request]) { r.Limits[0].Window = 7 * time.Hour }, []int64{2, 2}},
		{"the window of a fixed window", func(r *weir.Rule[request]) { r.Limits[1].Window = time.Minute }, []int64{2, 5}},
		{"an algorithm", func(r *weir.Rule[request]) { r.Limits[0].Algorithm = weir.SlidingLog }, []int64{5, 2}},
		{"the name", func(r *weir.Rule[request]) { r.Name = "other" }, []int64{5, 5}},
		{"the order of the limits", func(r *weir.Rule[request]) { r.Limits[0], r.Limits[1] = r.Limits[1], r.Limits[0] }, []int64{5, 5}},
	} {
		s := newScene(t, before)
		r := request{user: "alice"}
		s.takes(3, r)
		after := before
		after.Limits = append([]weir.Limit(nil), before.Limits...)
		c.change(&after)
		if err := s.Swap(weir.Ruleset[request]{Rules: []weir.Rule[request]{after}}); err != nil {
			t.Fatal(err)
		}
		got := s.left(r)
		if fmt.Sprint(got) != fmt.Sprint(c.left) {
			t.Errorf("a change of %s leaves %v, want %v", c.name, got, c.left)
		}
	}
}

func TestABadReloadChangesNothing(t *testing.T) {
	s := newScene(t, weir.Rule[request]{Name: "rule", Limits: hourly(5)})
	s.takes(2, request{})
	for _, bad := range []weir.Rule[request]{{Name: "rule", Limits: hourly(-1)}, {Name: ""}} {
		if err := s.Swap(weir.Ruleset[request]{Version: "bad", Rules: []weir.Rule[request]{{Name: "good", Limits: hourly(1)}, bad}}); err == nil {
			t.Fatal("a bad ruleset was taken")
		}
	}
	if s.Version() != "" {
		t.Errorf("version %q", s.Version())
	}
	s.wantLeft(request{}, 3)
}

// Case B23: a limit does not depend on how often, or when, its rules were loaded.
func TestAReloadedNodeSharesItsCounters(t *testing.T) {
	clock := newClock()
	store := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	ruleset := func() weir.Ruleset[request] {
		return weir.Ruleset[request]{Rules: []weir.Rule[request]{{Name: "rule", Limits: []weir.Limit{{Quota: 2, Window: time.Minute, Algorithm: weir.FixedWindow}}, Key: byUser}}}
	}
	node := func() *weir.Limiter[request] {
		l, err := weir.New(store, ruleset(), weir.Options[request]{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, b := node(), node()
	for range 2 {
		if err := a.Swap(ruleset()); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range []*weir.Limiter[request]{a, b, a, b} {
		if d, err := l.Take(t.Context(), request{user: "alice"}); err != nil || d.Allowed != (i < 2) {
			t.Errorf("request %d: allowed %v, %v", i, d.Allowed, err)
		}
	}
	if a.Policies()[0].ID() != b.Policies()[0].ID() {
		t.Error("the identities differ")
	}
}

// TestSwapUnderLoadLosesNoUse: however often rules change while requests run, a
// key is never allowed more than the largest quota, and no request is refused
// that the smallest would allow.
func TestSwapUnderLoadLosesNoUse(t *testing.T) {
	s := newScene(t, weir.Rule[request]{Name: "rule", Limits: hourly(100), Key: byUser})
	const workers, each, users = 8, 400, 4
	var allowed [users]atomic.Int64
	stop := make(chan struct{})
	var work, swaps sync.WaitGroup
	swaps.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			rules := []weir.Rule[request]{{Name: "rule", Limits: hourly(100 + int64(i%3)*10), Key: byUser}}
			if i%2 == 1 { // the rule moves within the list
				rules = append([]weir.Rule[request]{{Name: "other", Limits: hourly(1_000_000)}}, rules...)
			}
			if err := s.Swap(weir.Ruleset[request]{Rules: rules}); err != nil {
				t.Error(err)
			}
		}
	})
	for w := range workers {
		work.Go(func() {
			for i := range each {
				u := (w + i) % users
				r := request{user: fmt.Sprint(u)}
				d := s.take(r)
				if !d.Allowed {
					continue
				}
				if i%5 == 0 { // given back under whatever rules are in force by then
					if err := s.Refund(t.Context(), r, &d); err != nil {
						t.Error(err)
					}
					continue
				}
				allowed[u].Add(1)
			}
		})
	}
	work.Wait()
	close(stop)
	swaps.Wait()
	for u := range allowed {
		if n := allowed[u].Load(); n < 100 || n > 120 {
			t.Errorf("user %d was allowed %d, want 100 to 120", u, n)
		}
	}
}
