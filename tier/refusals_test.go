package tier_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirtest"
)

func refusalsOverMemory(_ testing.TB, c weir.Clock) weir.Store {
	return tier.NewRefusals(weir.NewMemory(weir.MemoryOptions{Clock: c}), tier.RefusalsOptions{Clock: c})
}

func TestRefusalsKeepEveryPromiseOfAStore(t *testing.T) {
	weirtest.TestStore(t, refusalsOverMemory)
}

// TestRefusalsOfLongMemoryKeepEveryPromise: nothing hides behind the second after
// which refusals are forgotten.
func TestRefusalsOfLongMemoryKeepEveryPromise(t *testing.T) {
	weirtest.TestStore(t, func(_ testing.TB, c weir.Clock) weir.Store {
		return tier.NewRefusals(weir.NewMemory(weir.MemoryOptions{Clock: c}), tier.RefusalsOptions{Clock: c, Cap: 1000 * time.Hour})
	})
}

func TestScriptsOnRefusals(t *testing.T) {
	weirtest.RunScripts(t, os.DirFS("../testdata/decisions"), refusalsOverMemory)
}

// desk is a Refusals in front of a store that counts its calls, on a clock of its own.
type desk struct {
	testing.TB
	clock *weirtest.Clock
	inner *counted
	tier  *tier.Refusals
}

// counted is a Memory that counts how often it is asked and can do something in between.
type counted struct {
	weir.Store
	clock *weirtest.Clock
	takes int
	asks  int
	// during runs while a take is on its way back.
	during func()
	// there and back are how long a take travels.
	there, back time.Duration
}

func (c *counted) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	c.takes++
	c.asks += len(asks)
	c.clock.Advance(c.there)
	ok, err := c.Store.Take(ctx, asks, out)
	c.clock.Advance(c.back)
	if c.during != nil {
		c.during()
	}
	return ok, err
}

func newDesk(t testing.TB, o tier.RefusalsOptions) *desk {
	c := new(weirtest.Clock)
	inner := &counted{Store: weir.NewMemory(weir.MemoryOptions{Clock: c}), clock: c}
	if o.Clock == nil {
		o.Clock = c
	}
	return &desk{t, c, inner, tier.NewRefusals(inner, o)}
}

func (d *desk) take(asks ...weir.Ask) (bool, []weir.Verdict) {
	d.Helper()
	out := make([]weir.Verdict, len(asks))
	ok, err := d.tier.Take(context.Background(), asks, out)
	if err != nil {
		d.Fatal(err)
	}
	return ok, out
}

// wantCalls checks how often the store has been asked since the last check.
func (d *desk) wantCalls(n int) {
	d.Helper()
	if d.inner.takes != n {
		d.Errorf("the store was asked %d times, want %d", d.inner.takes, n)
	}
	d.inner.takes = 0
}

func policy(t testing.TB, name string, l weir.Limit) *weir.Policy {
	t.Helper()
	p, err := weir.NewPolicy(name, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ask(p *weir.Policy, key string, cost int64) weir.Ask {
	return weir.Ask{Policy: p, Key: []byte(key), Cost: cost}
}

func TestARefusalIsAnsweredLocallyUntilItCouldPass(t *testing.T) {
	for _, l := range []weir.Limit{
		{Quota: 2, Window: time.Second},
		{Quota: 2, Window: time.Second, Algorithm: weir.FixedWindow},
		{Quota: 2, Window: time.Second, Algorithm: weir.FixedWindowFirst},
		{Quota: 2, Window: time.Second, Algorithm: weir.SlidingWindow},
		{Quota: 2, Window: time.Second, Algorithm: weir.SlidingSlices},
		{Quota: 2, Window: time.Second, Algorithm: weir.SlidingLog},
	} {
		t.Run(l.Algorithm.String(), func(t *testing.T) {
			d := newDesk(t, tier.RefusalsOptions{Cap: time.Hour})
			p := policy(t, "p", l)
			d.clock.Set(100 * time.Millisecond)
			d.take(ask(p, "k", 2))
			refused, out := d.take(ask(p, "k", 1))
			if refused {
				t.Fatal("a third of two was allowed")
			}
			d.wantCalls(2)
			first := out[0]
			for range 50 {
				step := max(first.Retry/50, 1)
				d.clock.Advance(time.Duration(step) * time.Microsecond)
				if d.clock.Now().UnixMicro() >= first.At+first.Retry {
					break
				}
				ok, out := d.take(ask(p, "k", 1))
				want := weir.Verdict{At: d.clock.Now().UnixMicro(), Retry: first.At + first.Retry - d.clock.Now().UnixMicro(),
					Reset: first.At + first.Reset - d.clock.Now().UnixMicro()}
				if ok || out[0] != want {
					t.Fatalf("allowed %v\n got %+v\nwant %+v", ok, out[0], want)
				}
			}
			d.wantCalls(0)
			d.clock.Set(100*time.Millisecond + time.Duration(first.Retry)*time.Microsecond)
			if ok, _ := d.take(ask(p, "k", 1)); !ok {
				t.Error("refused when it could pass")
			}
			d.wantCalls(1)
		})
	}
}

func TestARefusalIsForgottenAfterTheCap(t *testing.T) {
	for name, c := range map[string]struct {
		quota, cost int64
	}{"retry in an hour": {1, 1}, "never": {0, 1}, "above the capacity": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, tier.RefusalsOptions{})
			p := policy(t, "p", weir.Limit{Quota: c.quota, Window: time.Hour})
			if c.cost == 1 {
				d.take(ask(p, "k", c.quota))
			}
			d.take(ask(p, "k", c.cost))
			d.inner.takes = 0
			d.clock.Advance(time.Second - time.Microsecond)
			d.take(ask(p, "k", c.cost))
			d.wantCalls(0)
			d.clock.Advance(time.Microsecond)
			d.take(ask(p, "k", c.cost))
			d.wantCalls(1)
		})
	}
}

// TestOnlyTheSameAskIsAnswered: what might be allowed, or refused for another time, or
// has to be counted, is asked.
func TestOnlyTheSameAskIsAnswered(t *testing.T) {
	p := policy(t, "p", weir.Limit{Quota: 4, Window: time.Hour})
	with := func(f func(*weir.Ask)) weir.Ask {
		a := ask(p, "k", 2)
		f(&a)
		return a
	}
	bigger := policy(t, "p", weir.Limit{Quota: 5, Window: time.Hour})
	slower := policy(t, "p", weir.Limit{Quota: 4, Window: 2 * time.Hour})
	other := policy(t, "q", weir.Limit{Quota: 4, Window: time.Hour})
	same := policy(t, "p", weir.Limit{Quota: 4, Window: time.Hour})
	for _, c := range []struct {
		name  string
		calls int
		asks  []weir.Ask
	}{
		{"the same", 0, []weir.Ask{ask(p, "k", 2)}},
		{"the same policy, loaded again", 0, []weir.Ask{ask(same, "k", 2)}},
		{"a smaller cost", 1, []weir.Ask{ask(p, "k", 1)}},
		{"a greater cost", 1, []weir.Ask{ask(p, "k", 3)}},
		{"more slack", 1, []weir.Ask{with(func(a *weir.Ask) { a.Slack = 1 })}},
		{"shadow", 1, []weir.Ask{with(func(a *weir.Ask) { a.Shadow = true })}},
		{"another key", 1, []weir.Ask{ask(p, "l", 2)}},
		{"another policy", 1, []weir.Ask{ask(other, "k", 2)}},
		{"a raised quota", 1, []weir.Ask{ask(bigger, "k", 2)}},
		{"a slower rate", 1, []weir.Ask{ask(slower, "k", 2)}},
		{"beside an unknown one", 1, []weir.Ask{ask(p, "k", 2), ask(other, "k", 1)}},
		{"beside a shadow", 1, []weir.Ask{ask(p, "k", 2), {Policy: other, Key: []byte("k"), Cost: 1, Shadow: true}}},
		{"nothing", 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, tier.RefusalsOptions{})
			d.take(ask(p, "k", 3))
			d.take(ask(p, "k", 2))
			d.inner.takes = 0
			d.take(c.asks...)
			d.wantCalls(c.calls)
		})
	}
}

func TestSeveralRefusalsAnswerTogether(t *testing.T) {
	d := newDesk(t, tier.RefusalsOptions{})
	p, q := policy(t, "p", weir.PerHour(1)), policy(t, "q", weir.PerHour(2))
	d.take(ask(p, "k", 1), ask(q, "k", 1))
	d.take(ask(q, "k", 1))
	both := []weir.Ask{ask(q, "k", 1), ask(p, "k", 1)}
	_, want := d.take(both...)
	d.wantCalls(3)
	ok, got := d.take(both...)
	if ok || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("allowed %v %+v, want %+v", ok, got, want)
	}
	d.wantCalls(0)
	if s := d.tier.Stats(); s.Local != 1 {
		t.Errorf("%d requests were answered here, want 1", s.Local)
	}
}

func TestARefusalEndsWhenThisNodeChangesTheKey(t *testing.T) {
	p := policy(t, "p", weir.PerHour(1))
	for name, change := range map[string]func(*tier.Refusals) error{
		"a refund": func(r *tier.Refusals) error { return r.Adjust(context.Background(), []weir.Ask{ask(p, "k", -1)}) },
		"a reset":  func(r *tier.Refusals) error { return r.Reset(context.Background(), []weir.Ask{ask(p, "k", 0)}) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, tier.RefusalsOptions{})
			d.take(ask(p, "k", 1))
			d.take(ask(p, "k", 1))
			if err := change(d.tier); err != nil {
				t.Fatal(err)
			}
			if ok, _ := d.take(ask(p, "k", 1)); !ok {
				t.Error("still refused")
			}
		})
		t.Run(name+" while a refusal is on its way", func(t *testing.T) {
			d := newDesk(t, tier.RefusalsOptions{})
			d.take(ask(p, "k", 1))
			d.inner.during = func() {
				if err := change(d.tier); err != nil {
					t.Fatal(err)
				}
			}
			d.take(ask(p, "k", 1))
			d.inner.during = nil
			if ok, _ := d.take(ask(p, "k", 1)); !ok {
				t.Error("a refusal from before the change is remembered")
			}
		})
	}
}

// TestAWayToTheStoreTakesTime: nobody is refused longer than by the store, and nobody
// told to come back too early.
func TestAWayToTheStoreTakesTime(t *testing.T) {
	d := newDesk(t, tier.RefusalsOptions{})
	p := policy(t, "p", weir.PerSecond(10))
	d.take(ask(p, "k", 10))
	d.inner.there, d.inner.back = 20*time.Millisecond, 30*time.Millisecond
	_, out := d.take(ask(p, "k", 1)) // at 20 ms: 80 ms are left, 50 of them by now
	if out[0].Retry != 80_000 {
		t.Fatalf("%+v", out[0])
	}
	d.wantCalls(2)
	d.inner.there, d.inner.back = 0, 0
	d.clock.Set(79 * time.Millisecond)
	now := d.clock.Now().UnixMicro()
	if _, out = d.take(ask(p, "k", 1)); now+out[0].Retry < weirtest.StartUnix*1e6+100_000 || out[0].At > now {
		t.Errorf("told to come back at %v: %+v", now+out[0].Retry, out[0])
	}
	d.wantCalls(0)
	d.clock.Set(80 * time.Millisecond)
	d.take(ask(p, "k", 1)) // the store may have decided as early as at 0
	d.wantCalls(1)
}

func TestAClockThatStepsBackAnswersNothing(t *testing.T) {
	d := newDesk(t, tier.RefusalsOptions{})
	p := policy(t, "p", weir.PerHour(1))
	d.clock.Set(time.Hour)
	d.take(ask(p, "k", 1))
	d.take(ask(p, "k", 1))
	d.clock.Set(time.Hour - time.Microsecond)
	d.inner.takes = 0
	d.take(ask(p, "k", 1))
	d.wantCalls(1)
}

func TestRefusalsAreBounded(t *testing.T) {
	const keys = 64
	d := newDesk(t, tier.RefusalsOptions{MaxKeys: keys})
	p := policy(t, "p", weir.Limit{Quota: 0, Window: time.Hour})
	for i := range 50 * keys {
		d.take(ask(p, fmt.Sprint(i), 1))
	}
	d.inner.takes = 0
	for i := range 50 * keys {
		d.take(ask(p, fmt.Sprint(50*keys-1-i), 1))
	}
	// Each ask that was answered here had a place, and those that were not took one.
	if local := d.tier.Stats().Local; local == 0 || local > keys {
		t.Errorf("%d of the last refusals were remembered, want 1 to %d", local, keys)
	}
}

// TestRacingTakesAndRefundsAreNeverRefusedForLong: whatever meets, after the last
// refund a key with units left is allowed.
func TestRacingTakesAndRefundsAreNeverRefusedForLong(t *testing.T) {
	c := new(weirtest.Clock)
	r := tier.NewRefusals(weir.NewMemory(weir.MemoryOptions{Clock: c}), tier.RefusalsOptions{Clock: c, MaxKeys: 16})
	p := policy(t, "p", weir.PerHour(3))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(n)))
			out := make([]weir.Verdict, 1)
			for range 3000 {
				a := ask(p, string(rune('a'+rnd.IntN(4))), 1)
				ok, err := r.Take(context.Background(), []weir.Ask{a}, out)
				if err != nil {
					t.Error(err)
				}
				if a.Cost, a.At = -1, out[0].At; ok {
					if err := r.Adjust(context.Background(), []weir.Ask{a}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, key := range []string{"a", "b", "c", "d"} {
		ok, err := r.Take(context.Background(), []weir.Ask{ask(p, key, 1)}, make([]weir.Verdict, 1))
		if !ok || err != nil {
			t.Errorf("key %s: all was given back, and it is refused (%v)", key, err)
		}
	}
}
