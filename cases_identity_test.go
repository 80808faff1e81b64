package weir_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
)

// Case B28, S27.
func TestPartsOfACompositeKeyNeverMeet(t *testing.T) {
	s := newScene(t, weir.Rule[request]{Name: "pair", Limits: hourly(1), Key: weir.Keys(
		func(dst []byte, r request) ([]byte, bool) { return append(dst, r.user...), true },
		func(dst []byte, r request) ([]byte, bool) { return append(dst, r.path...), true })})
	pairs := [][2]string{{"aa", "b"}, {"a", "ab"}, {"a:b", "c"}, {"a", "b:c"}, {"", "ab"}, {"ab", ""}, {"1:2", "3"}, {"1", "2:3"}, {"", ""},
		{"\x00\x00\x00\x01a", ""}, {"", "\x00\x00\x00\x01a"}}
	for round := range 2 {
		for _, p := range pairs {
			if d := s.take(request{user: p[0], path: p[1]}); d.Allowed != (round == 0) {
				t.Errorf("round %d, %q: allowed %v", round, p, d.Allowed)
			}
		}
	}
}

func TestKeysAndSplitKeysAreInverse(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 1000 {
		want := make([]string, r.IntN(5))
		var parts []weir.KeyFunc[request]
		for i := range want {
			b := make([]byte, r.IntN(6))
			for j := range b {
				b[j] = byte(r.IntN(4))
			}
			want[i] = string(b)
			parts = append(parts, weir.Constant[request](want[i]))
		}
		key, ok := weir.Keys(parts...)([]byte("before"), request{})
		key, found := bytes.CutPrefix(key, []byte("before"))
		split, joined := weir.SplitKeys(key)
		var got []string
		for _, p := range split {
			got = append(got, string(p))
		}
		if !ok || !found || !joined || !slices.Equal(got, want) {
			t.Fatalf("%q comes back as %q, %v", want, got, joined)
		}
		if len(want) > 0 {
			if got, ok := weir.SplitKeys(key[:len(key)-1]); ok {
				t.Fatalf("a key cut short is split into %q", got)
			}
		}
	}
	if _, ok := weir.Keys(byUser, byIP)(nil, request{user: "alice"}); ok {
		t.Error("a composite key without one of its parts is a key")
	}
}

// Case S20, S08, S50: two rules never share a counter, whatever their keys.
func TestEachRuleKeepsItsOwnRate(t *testing.T) {
	s := newScene(t,
		weir.Rule[request]{Name: "a", Limits: hourly(5), Key: byUser, Match: func(r request) bool { return r.path == "/a" }},
		weir.Rule[request]{Name: "b", Limits: hourly(2), Key: byUser, Match: func(r request) bool { return r.path == "/b" }})
	if got := s.takes(9, request{user: "alice", path: "/a"}); got != 5 {
		t.Errorf("%d of /a were allowed, want 5", got)
	}
	if got := s.takes(9, request{user: "alice", path: "/b"}); got != 2 {
		t.Errorf("%d of /b were allowed, want 2", got)
	}
}

// Case S18, S19: check and decrement, refill and mark, are one step.
func TestRacingCallersNeverOverdraw(t *testing.T) {
	s := newScene(t, weir.Rule[request]{Name: "rule", Limits: []weir.Limit{{Quota: 1, Window: time.Hour, Burst: 100}}})
	race := func() int64 {
		var allowed atomic.Int64
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if d, err := s.Take(context.Background(), request{}); err == nil && d.Allowed {
					allowed.Add(1)
				}
			})
		}
		wg.Wait()
		return allowed.Load()
	}
	if got := race(); got != 100 {
		t.Errorf("%d were allowed, want 100", got)
	}
	s.clock.Advance(7 * time.Hour)
	if got := race(); got != 7 {
		t.Errorf("%d were allowed after a refill of 7", got)
	}
}

// Case S39: hot keys do not wait for each other. Whether they do is a matter of
// locks; that each is right while the other is hot is what a test can say.
func TestHotKeysDoNotDisturbEachOther(t *testing.T) {
	s := newScene(t, weir.Rule[request]{Name: "rule", Limits: hourly(500), Key: byUser})
	var wg sync.WaitGroup
	var allowed [2]atomic.Int64
	for u := range 2 {
		for range 4 {
			wg.Go(func() {
				for range 300 {
					if s.take(request{user: fmt.Sprint(u)}).Allowed {
						allowed[u].Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if a, b := allowed[0].Load(), allowed[1].Load(); a != 500 || b != 500 {
		t.Errorf("%d and %d were allowed, want 500 of each", a, b)
	}
}

// Case S44: the system's clock is monotonic, and one from outside that steps back
// by an hour neither frees nor freezes a limit for good.
func TestAWallClockStepFreesNothing(t *testing.T) {
	inBubble(t, one(weir.PerSecond(1)), func(t *testing.T, l *weir.Limiter[request]) {
		for i := range 10 {
			for n := range 2 {
				if d, _ := l.Take(t.Context(), request{}); d.Allowed != (n == 0) {
					t.Errorf("second %d, request %d: allowed %v", i, n, d.Allowed)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
	})
	s := newScene(t, one(weir.PerSecond(1))...)
	s.clock.Set(2 * time.Hour)
	s.takes(1, request{})
	s.clock.Set(time.Hour) // an hour back
	if got := s.takes(100, request{}); got != 0 {
		t.Errorf("a step back freed %d", got)
	}
	s.clock.Set(2*time.Hour + time.Second)
	if got := s.takes(100, request{}); got != 1 {
		t.Errorf("%d were allowed a second later, want 1", got)
	}
}
