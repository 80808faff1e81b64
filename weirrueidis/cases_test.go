package weirrueidis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirredis/clienttest"
	"github.com/weirhq/weir/weirrueidis"
	"github.com/weirhq/weir/weirtest"
)

// The cases of docs/cases.md that a script of testdata/decisions cannot hold.

func policy(t testing.TB, name string, l weir.Limit) *weir.Policy {
	t.Helper()
	p, err := weir.NewPolicy(name, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// node is one of several that share a Redis: it has a client of its own.
func node(t testing.TB, w clienttest.Where, o weirredis.Options) *weirredis.Store {
	t.Helper()
	c := open(t, w)
	t.Cleanup(c.Close)
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	return weirredis.New(c, o)
}

func at(s *redistest.Server) clienttest.Where { return clienttest.Where{Addresses: []string{s.Addr}} }

// take takes n units of a key.
func take(t testing.TB, s weir.Store, p *weir.Policy, key string, n int64) weir.Verdict {
	t.Helper()
	out := make([]weir.Verdict, 1)
	if _, err := s.Take(context.Background(), []weir.Ask{{Policy: p, Key: []byte(key), Cost: n}}, out); err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// results takes single units, and writes ok or the whole seconds to wait for each.
func results(t testing.TB, s weir.Store, p *weir.Policy, key string, times int) string {
	t.Helper()
	var words []string
	for range times {
		v := take(t, s, p, key, 1)
		if v.OK {
			words = append(words, "ok")
		} else {
			words = append(words, strconv.FormatInt((v.Retry+999_999)/1_000_000, 10))
		}
	}
	return strings.Join(words, " ")
}

// everyAlgorithm are limits of n units per window, one of each that Redis runs.
func everyAlgorithm(n int64, window time.Duration) (all []weir.Limit) {
	for a := weir.TokenBucket; a < weir.WarmUp; a++ {
		l := weir.Limit{Quota: n, Window: window, Algorithm: a}
		if a == weir.LeakyQueue {
			l.Queue = n - 1
		}
		all = append(all, l)
	}
	return all
}

// Case B11: a node whose clock is behind gives out nothing again.
func TestANodeWithASlowClockGivesNothingAgain(t *testing.T) {
	s := redistest.Single(t)
	right, slow := new(weirtest.Clock), new(weirtest.Clock)
	right.Set(10 * time.Second)
	a := node(t, at(s), weirredis.Options{Clock: right})
	b := node(t, at(s), weirredis.Options{Clock: slow})
	p := policy(t, "shared", weir.Limit{Quota: 2, Window: time.Second, Burst: 4})
	want := func(on weir.Store, key string, times int, want string) {
		t.Helper()
		if got := results(t, on, p, key, times); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	want(a, "alice", 5, "ok ok ok ok 1")
	want(b, "alice", 1, "1")
	want(a, "alice", 3, "1 1 1")
	want(a, "bob", 2, "ok ok") // so that the slow one may charge, and writes its time
	want(b, "bob", 1, "ok")
	want(a, "bob", 2, "ok 1")
	right.Advance(500 * time.Millisecond)
	want(a, "alice", 1, "ok")
	want(b, "alice", 1, "1")
}

// Case B15: the first requests of a key, from two nodes at once.
func TestFirstRequestsOfTwoNodesAreNotDoubled(t *testing.T) {
	s := redistest.Single(t)
	nodes := []*weirredis.Store{node(t, at(s), weirredis.Options{}), node(t, at(s), weirredis.Options{})}
	p := policy(t, "once", weir.Limit{Quota: 1, Window: time.Hour})
	for round := range 50 {
		var allowed atomic.Int64
		var callers sync.WaitGroup
		start := make(chan struct{})
		for i := range 50 {
			callers.Go(func() {
				<-start
				out := make([]weir.Verdict, 1)
				ok, err := nodes[i%2].Take(context.Background(), []weir.Ask{{Policy: p, Key: []byte(strconv.Itoa(round)), Cost: 1}}, out)
				if err != nil {
					t.Error(err)
				}
				if ok {
					allowed.Add(1)
				}
			})
		}
		close(start)
		callers.Wait()
		if n := allowed.Load(); n != 1 {
			t.Fatalf("key %d: %d of 50 are allowed, want 1", round, n)
		}
	}
}

// Case B21: Redis forgets the script, and nobody notices.
func TestAFlushedScriptIsSentAgain(t *testing.T) {
	s := redistest.Single(t)
	clock := new(weirtest.Clock)
	store := node(t, at(s), weirredis.Options{Clock: clock})
	p := policy(t, "log", weir.Limit{Quota: 5, Window: time.Minute, Algorithm: weir.SlidingLog})
	if got := results(t, store, p, "alice", 2); got != "ok ok" {
		t.Errorf("before: %q", got)
	}
	s.Must("SCRIPT", "FLUSH")
	if v := take(t, store, p, "alice", 1); !v.OK || v.Remaining != 2 {
		t.Errorf("after the flush: %+v", v)
	}
	if got := results(t, store, p, "alice", 3); got != "ok ok 60" {
		t.Errorf("after the flush: %q", got)
	}
	if stats := store.Stats(); stats.Loads != 2 || stats.Failed+stats.Lost+stats.Mirror != 0 {
		t.Errorf("%+v", stats)
	}
}

// Case B21: Redis comes back with nothing. The client finds it by itself, and from then
// on no request fails; what was used is forgotten.
func TestARedisThatRestartsEmptyStartsAfresh(t *testing.T) {
	s := redistest.Single(t)
	store := node(t, at(s), weirredis.Options{Clock: new(weirtest.Clock)})
	p := policy(t, "log", weir.Limit{Quota: 5, Window: time.Minute, Algorithm: weir.SlidingLog})
	if got := results(t, store, p, "alice", 2); got != "ok ok" {
		t.Errorf("before: %q", got)
	}
	s.Kill()
	s.Restart()
	row := 0 // of answers: so many that each of the client's connections has given some
	redistest.Until(t, "the client has found it", func() bool {
		_, err := store.Peek(t.Context(), []weir.Ask{{Policy: p, Key: []byte("alice"), Cost: 1}}, make([]weir.Verdict, 1))
		if row++; err != nil {
			row = 0
		}
		return row == 100
	})
	failed := store.Stats().Failed
	if got := results(t, store, p, "alice", 6); got != "ok ok ok ok ok 60" {
		t.Errorf("after it: %q", got)
	}
	if stats := store.Stats(); stats.Failed != failed || stats.Mirror != 0 {
		t.Errorf("%+v", stats)
	}
}

// Case B22: events of one instant are several events, of two nodes too.
func TestEventsOfOneInstantOfTwoNodesAreSeveral(t *testing.T) {
	s := redistest.Single(t)
	clock := new(weirtest.Clock)
	clock.Set(7123 * time.Millisecond)
	nodes := []*weirredis.Store{node(t, at(s), weirredis.Options{Clock: clock}), node(t, at(s), weirredis.Options{Clock: clock})}
	p := policy(t, "log", weir.Limit{Quota: 5, Window: 10 * time.Second, Algorithm: weir.SlidingLog})
	var got []string
	for i := range 20 {
		got = append(got, results(t, nodes[i%2], p, "alice", 1))
	}
	if want := slices.Concat(slices.Repeat([]string{"ok"}, 5), slices.Repeat([]string{"10"}, 15)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, step := range []struct {
		at   time.Duration
		want string
	}{{17122 * time.Millisecond, "1 1"}, {17123 * time.Millisecond, "ok ok ok ok ok 10"}} {
		clock.Set(step.at)
		if got := results(t, nodes[1], p, "alice", strings.Count(step.want, " ")+1); got != step.want {
			t.Errorf("at %v: %q, want %q", step.at, got, step.want)
		}
	}
}

// limiter is a node with one rule on a string key.
func limiter(t testing.TB, s weir.Store, o weir.Options[string], rules ...weir.Rule[string]) *weir.Limiter[string] {
	t.Helper()
	l, err := weir.New(s, weir.Ruleset[string]{Rules: rules}, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func whole(dst []byte, r string) ([]byte, bool) { return append(dst, r...), true }

// Case B23: a node that has loaded its rules more often counts with the others.
func TestNodesShareCountersHoweverOftenTheyLoad(t *testing.T) {
	s := redistest.Single(t)
	clock := new(weirtest.Clock)
	rule := weir.Rule[string]{Name: "rule", Limits: []weir.Limit{{Quota: 2, Window: time.Minute, Algorithm: weir.FixedWindow}}, Key: whole}
	a := limiter(t, node(t, at(s), weirredis.Options{Clock: clock}), weir.Options[string]{}, rule)
	b := limiter(t, node(t, at(s), weirredis.Options{Clock: clock}), weir.Options[string]{}, rule)
	for range 2 {
		if err := a.Swap(weir.Ruleset[string]{Rules: []weir.Rule[string]{rule}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range []*weir.Limiter[string]{a, b, a, b} {
		if d, err := l.Take(t.Context(), "alice"); err != nil || d.Allowed != (i < 2) {
			t.Errorf("request %d: %v, %v", i, d.Allowed, err)
		}
	}
}

// way is what stands between a client and Redis. While it is silent it accepts, and says
// nothing.
type way struct {
	ln    net.Listener
	to    string
	group sync.WaitGroup

	mu       sync.Mutex
	silent   bool
	open     map[net.Conn]struct{}
	accepted int
}

func newWay(t testing.TB, to string) *way {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{ln: ln, to: to, silent: true, open: make(map[net.Conn]struct{})}
	w.group.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // it is closed
			}
			w.group.Go(func() { w.serve(c) })
		}
	})
	t.Cleanup(w.close)
	return w
}

func (w *way) serve(c net.Conn) {
	w.mu.Lock()
	w.accepted++
	w.open[c] = struct{}{}
	silent := w.silent
	w.mu.Unlock()
	defer w.leave(c)
	if silent {
		_, _ = io.Copy(io.Discard, c) // until one side is closed
		return
	}
	far, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	w.group.Go(func() {
		_, _ = io.Copy(c, far)
		_ = c.Close()
	})
	_, _ = io.Copy(far, c)
	_ = far.Close()
}

func (w *way) leave(c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	delete(w.open, c)
	w.mu.Unlock()
}

// speak lets new connections through, and ends those that were silent.
func (w *way) speak() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = false
	w.cut()
}

func (w *way) cut() {
	for c := range w.open {
		_ = c.Close()
	}
}

func (w *way) close() {
	_ = w.ln.Close()
	w.mu.Lock()
	w.cut()
	w.mu.Unlock()
	w.group.Wait()
}

// Case B35: a Redis that accepts and never answers delays nobody for longer than the
// store's timeout, and after the breaker has opened not at all. When it answers again
// limits hold, without a restart.
func TestASilentRedisStopsNobody(t *testing.T) {
	s := redistest.Single(t)
	for name, outage := range map[string]weir.Outage{"open": weir.FailOpen, "closed": weir.FailClosed} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			w := newWay(t, s.Addr)
			// The client is patient, so that it is the store's own timeout that lets go.
			c, err := weirrueidis.New(weirrueidis.Options{Addresses: []string{w.ln.Addr().String()}, DialTimeout: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			store := weirredis.New(c, weirredis.Options{Prefix: name, Timeout: 100 * time.Millisecond})
			heard := new(weirtest.Recorder[string])
			rule := weir.Rule[string]{Name: "each", Limits: []weir.Limit{weir.PerDay(2)}, Key: whole, OnOutage: outage}

			// All at once. Their own time is long: it is the store that lets them go.
			bare := limiter(t, store, weir.Options[string]{Observer: heard}, rule)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var callers sync.WaitGroup
			for range 200 {
				callers.Go(func() {
					d, err := bare.Take(ctx, "alice")
					if err != nil || !d.Degraded || d.Allowed != (outage == weir.FailOpen) || d.Limit(0).Remaining < 0 {
						t.Errorf("%+v, %v", d, err)
					}
				})
			}
			callers.Wait()
			if ctx.Err() != nil {
				t.Error("they waited until their own time was over")
			}
			failures := 0
			for _, e := range heard.Events() {
				if e.Err != nil {
					failures++
					if !errors.Is(e.Err, weirredis.ErrTimeout) {
						t.Errorf("%v is not the store's timeout", e.Err)
					}
				}
			}
			if failures != 200 {
				t.Errorf("%d failures of the store were told, want 200", failures)
			}

			// Behind a breaker.
			breaker := tier.NewBreaker(store, tier.BreakerOptions{Pause: 10 * time.Millisecond})
			guarded := limiter(t, breaker, weir.Options[string]{Observer: heard}, rule)
			redistest.Until(t, "the breaker opens", func() bool {
				if d, err := guarded.Take(t.Context(), "alice"); err != nil || !d.Degraded {
					t.Errorf("%+v, %v", d, err)
				}
				return breaker.Stats().Open
			})
			heard.Events()
			for range 200 {
				if d, err := guarded.Take(t.Context(), "alice"); err != nil || !d.Degraded || d.Allowed != (outage == weir.FailOpen) {
					t.Errorf("%+v, %v", d, err)
				}
			}
			for _, e := range heard.Events() {
				if e.Err != nil && !errors.Is(e.Err, tier.ErrOpen) { // which is said without asking
					t.Errorf("behind an open breaker: %v", e.Err)
				}
			}

			w.speak()
			redistest.Until(t, "the breaker closes", func() bool { return !breaker.Stats().Open })
			redistest.Until(t, "decisions are made again", func() bool {
				d, err := guarded.Take(t.Context(), "bob")
				return err == nil && !d.Degraded
			})
			for i := range 3 {
				if d, err := guarded.Take(t.Context(), "carol"); err != nil || d.Degraded || d.Allowed != (i < 2) {
					t.Errorf("request %d of three of two a day: %+v, %v", i, d, err)
				}
			}

			breaker.Close()
			c.Close()
			w.close()
			redistest.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// Case B45: what a watched rule would have refused is counted whether refusals are
// remembered on the node or not, and beside a rule whose refusals are.
func TestEveryShadowRefusalIsToldBesideRememberedOnes(t *testing.T) {
	s := redistest.Single(t)
	watched := weir.Rule[string]{Name: "watched", Mode: weir.Shadow, Key: whole, Limits: []weir.Limit{{Quota: 2, Window: time.Minute, Algorithm: weir.FixedWindow}}}
	tight := weir.Rule[string]{Name: "tight", Key: whole, Limits: []weir.Limit{{Quota: 5, Window: time.Minute, Algorithm: weir.FixedWindow}}}
	for _, remember := range []bool{false, true} {
		for _, enforced := range []bool{false, true} {
			t.Run(fmt.Sprintf("remembered %v, beside an enforced rule %v", remember, enforced), func(t *testing.T) {
				clock := new(weirtest.Clock)
				store := weir.Store(node(t, at(s), weirredis.Options{Prefix: t.Name(), Clock: clock}))
				if remember {
					store = tier.NewRefusals(store, tier.RefusalsOptions{Cap: time.Minute, Clock: clock})
				}
				rules, allow := []weir.Rule[string]{watched}, 10
				if enforced {
					rules, allow = append(rules, tight), 5
				}
				heard := new(weirtest.Recorder[string])
				l := limiter(t, store, weir.Options[string]{Observer: heard}, rules...)
				for range 10 {
					if _, err := l.Take(t.Context(), "alice"); err != nil {
						t.Fatal(err)
					}
				}
				allowed, would, wouldNot, refused := 0, 0, 0, 0
				for _, e := range heard.Events() {
					if e.Allowed {
						allowed++
					}
					for _, l := range e.Limits {
						switch {
						case l.Shadow && l.OK:
							wouldNot++
						case l.Shadow:
							would++
						case !l.OK:
							refused++
						}
					}
				}
				if allowed != allow || would != 8 || wouldNot != 2 || refused != 10-allow {
					t.Errorf("%d allowed, want %d; the watched rule would refuse %d and allow %d, want 8 and 2; %d refused, want %d",
						allowed, allow, would, wouldNot, refused, 10-allow)
				}
			})
		}
	}
}

// Case S51: the very first request of a fresh key is allowed, and says what is left.
func TestTheFirstRequestOfAFreshKeyIsAllowed(t *testing.T) {
	s := redistest.Single(t)
	store := node(t, at(s), weirredis.Options{})
	for _, l := range everyAlgorithm(3, 24*time.Hour) {
		rule := weir.Rule[string]{Name: l.Algorithm.String(), Limits: []weir.Limit{l}, Key: whole}
		d, err := limiter(t, store, weir.Options[string]{}, rule).Take(t.Context(), "alice")
		if err != nil || !d.Allowed || d.Degraded || d.Limit(0).Remaining != 2 {
			t.Errorf("%v: %+v, %v", l.Algorithm, d, err)
		}
	}
}
