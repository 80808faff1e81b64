package weir_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/smooth"
)

// TestWarmUpRuleGivesGuavasAnswers holds the rule to the limiter that is held to
// Guava's vectors: the same instants of grants, cold, warm and after idleness.
func TestWarmUpRuleGivesGuavasAnswers(t *testing.T) {
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	p := policy(t, weir.Limit{Quota: 10, Window: time.Second, WarmUp: 4 * time.Second, Algorithm: weir.WarmUp})
	pace, err := smooth.WarmingUp(10, 4_000_000, 3)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.micros.Load()
	guava := pace.Fresh(now)
	granted := 0
	for step := range 3000 {
		now += 10_000
		if step == 1500 {
			now += 3_000_000 // idle: it cools down
		}
		clock.micros.Store(now)
		want := guava.Grants(now, 0)
		v := takeOne(t, m, p, "key", 1)
		if v.OK != want {
			t.Fatalf("step %d: OK %v, Guava %v", step, v.OK, want)
		}
		if !v.OK && v.Retry != guava.Wait(now) {
			t.Fatalf("step %d: retry %d, Guava %d", step, v.Retry, guava.Wait(now))
		}
		if want {
			granted++
			guava, _ = pace.Reserve(guava, now, 1)
		}
	}
	if granted < 200 || granted > 290 {
		t.Fatalf("granted %d in 33 s of 10 a second with two warm-ups", granted)
	}
	clock.micros.Store(now + 60_000_000)
	if m.Sweep(); m.Stats().Keys != 0 {
		t.Error("a cold state is kept though it equals a fresh one")
	}
}

// TestWarmUpNeedsAStoreThatRunsIt: a store that says it cannot is told at load.
func TestWarmUpNeedsAStoreThatRunsIt(t *testing.T) {
	rs := weir.Ruleset[string]{Rules: []weir.Rule[string]{{Name: "warm",
		Limits: []weir.Limit{{Quota: 10, Window: time.Second, WarmUp: time.Second, Algorithm: weir.WarmUp}}}}}
	_, err := weir.New[string](integersOnly{weir.NewMemory(weir.MemoryOptions{})}, rs, weir.Options[string]{})
	var config *weir.ConfigError
	if !errors.Is(err, weir.ErrUnsupported) || !errors.As(err, &config) || config.Rule != "warm" {
		t.Fatalf("got %v", err)
	}
	if _, err := weir.New[string](weir.NewMemory(weir.MemoryOptions{}), rs, weir.Options[string]{}); err != nil {
		t.Fatalf("Memory: %v", err)
	}
}

type integersOnly struct{ weir.Store }

func (integersOnly) Supports(p *weir.Policy) error {
	if p.Limit.Algorithm == weir.WarmUp {
		return weir.ErrUnsupported
	}
	return nil
}

// TestWarmUpGivesBack: a cancelled wait lets the next one in no later than if it
// had never been, and never earlier than now.
func TestWarmUpGivesBack(t *testing.T) {
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	p := policy(t, weir.Limit{Quota: 10, Window: time.Second, WarmUp: time.Second, Algorithm: weir.WarmUp})
	takeOne(t, m, p, "key", 5)
	before := takeOne(t, m, p, "key", 1).Retry
	for range 3 {
		if err := m.Adjust(context.Background(), []weir.Ask{{Policy: p, Key: []byte("key"), Cost: -2}}); err != nil {
			t.Fatal(err)
		}
	}
	after := takeOne(t, m, p, "key", 1)
	if before <= 0 || after.Retry >= before {
		t.Fatalf("retry %d before, %d after", before, after.Retry)
	}
	if !after.OK && after.Retry < 1 {
		t.Fatalf("%+v", after)
	}
}
