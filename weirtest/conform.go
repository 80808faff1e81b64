package weirtest

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// TestStore is the conformance suite of [weir.Store]: what holds for one store
// must hold for all of them, to the microsecond. Open makes an empty store that
// decides by the given clock; what it opens it closes by the test's Cleanup. It
// is called many times. A store that is a [weir.Supporter] is not asked for what
// it says it cannot do.
//
// A store may forget a key once that equals a fresh one, and it may answer a
// cancelled context with an error or not; all else is fixed.
func TestStore(t *testing.T, open func(testing.TB, weir.Clock) weir.Store) {
	t.Helper()
	for _, promise := range []struct {
		name string
		hold func(*testing.T, opener)
	}{
		{"EveryAlgorithmAnswersItsTable", tables},
		{"ARandomWalkEqualsTheArithmetic", walk},
		{"AllOrNothing", allOrNothing},
		{"ManyAsksAtOnce", manyAsks},
		{"ShadowAsksAreJudgedAlone", shadows},
		{"PeekChangesNothing", peeks},
		{"AdjustGivesBackAndChargesLater", adjusts},
		{"ResetForgetsOneKeyOfOnePolicy", resets},
		{"CostsAtTheEdges", costs},
		{"TimeThatStepsBackGivesNothing", stepsBack},
		{"EveryKeyIsItsOwn", manyKeys},
		{"KeysAreAnyBytes", anyBytes},
		{"PoliciesOfOneNameAndAlgorithmCountOn", identities},
		{"RacingCallersAreNeverAllowedTooMuch", races},
		{"ACancelledContextDoesNoHarm", cancelled},
	} {
		t.Run(promise.name, func(t *testing.T) { promise.hold(t, open) })
	}
}

type opener func(testing.TB, weir.Clock) weir.Store

// stand is one store under test with its clock.
type stand struct {
	testing.TB
	clock *Clock
	store weir.Store
}

func (open opener) stand(t testing.TB) *stand {
	c := new(Clock)
	return &stand{TB: t, clock: c, store: open(t, c)}
}

// policy makes a policy, or skips the test if the store cannot run it.
func (s *stand) policy(name string, l weir.Limit) *weir.Policy {
	s.Helper()
	p, err := weir.NewPolicy(name, l)
	if err != nil {
		s.Fatal(err)
	}
	if sup, ok := s.store.(weir.Supporter); ok {
		if err := sup.Supports(p); err != nil {
			s.Skip(err)
		}
	}
	return p
}

func (s *stand) take(asks ...weir.Ask) (bool, []weir.Verdict) {
	s.Helper()
	out := make([]weir.Verdict, len(asks))
	ok, err := s.store.Take(context.Background(), asks, out)
	if err != nil {
		s.Fatal(err)
	}
	return ok, out
}

func (s *stand) peek(asks ...weir.Ask) (bool, []weir.Verdict) {
	s.Helper()
	out := make([]weir.Verdict, len(asks))
	ok, err := s.store.Peek(context.Background(), asks, out)
	if err != nil {
		s.Fatal(err)
	}
	return ok, out
}

func (s *stand) adjust(asks ...weir.Ask) {
	s.Helper()
	if err := s.store.Adjust(context.Background(), asks); err != nil {
		s.Fatal(err)
	}
}

func (s *stand) reset(asks ...weir.Ask) {
	s.Helper()
	if err := s.store.Reset(context.Background(), asks); err != nil {
		s.Fatal(err)
	}
}

// left is what a policy has left of a key.
func (s *stand) left(p *weir.Policy, key string) int64 {
	s.Helper()
	_, out := s.peek(ask(p, key, 0))
	return out[0].Remaining
}

func (s *stand) wantLeft(p *weir.Policy, key string, want int64) {
	s.Helper()
	if got := s.left(p, key); got != want {
		s.Errorf("%s of %q has %d left, want %d", p.Name, key, got, want)
	}
}

func ask(p *weir.Policy, key string, cost int64) weir.Ask {
	return weir.Ask{Policy: p, Key: []byte(key), Cost: cost}
}

// script runs a script on a store of its own.
func (open opener) script(t *testing.T, name, text string) {
	t.Run(name, func(t *testing.T) {
		s, err := Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var c Clock
		switch err := Run(t.Context(), s, &c, OnStore(open(t, &c))); {
		case isCannot(err):
			t.Skip(err)
		case err != nil:
			t.Fatal(err)
		}
	})
}

// limits are one limit of each algorithm, all with room for n units in an hour.
func limits(n int64) []weir.Limit {
	return []weir.Limit{
		{Quota: n, Window: time.Hour},
		{Quota: n, Window: time.Hour, Queue: n - 1, Algorithm: weir.LeakyQueue},
		{Quota: n, Window: time.Hour, Algorithm: weir.FixedWindow},
		{Quota: n, Window: time.Hour, Algorithm: weir.FixedWindowFirst},
		{Quota: n, Window: time.Hour, Algorithm: weir.SlidingWindow},
		{Quota: n, Window: time.Hour, Algorithm: weir.SlidingSlices},
		{Quota: n, Window: time.Hour, Algorithm: weir.SlidingLog},
	}
}

// each runs a test once for each algorithm with room for n units in an hour.
func (open opener) each(t *testing.T, n int64, test func(s *stand, p *weir.Policy)) {
	for _, l := range limits(n) {
		t.Run(l.Algorithm.String(), func(t *testing.T) {
			s := open.stand(t)
			test(s, s.policy("policy", l))
		})
	}
}
