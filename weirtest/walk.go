package weirtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// walk sends a store and the reference the same random calls and compares every
// verdict. Instants aim at edges: exactly a promised retry or reset, and one tick
// before.
func walk(t *testing.T, open opener) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for n := range 12 {
		s := open.stand(t)
		w := walker{stand: s, rand: rand.New(rand.NewPCG(seed, uint64(n))), ref: &reference{clock: s.clock, keys: make(map[partition]*held)}}
		if w.policies(); len(w.pool) == 0 {
			t.Skip("the store supports none of the algorithms")
		}
		for range 250 {
			w.move()
			w.call()
		}
	}
}

type walker struct {
	*stand
	rand    *rand.Rand
	ref     *reference
	pool    []*weir.Policy
	charged []weir.Ask // what could be given back
	last    weir.Verdict
}

// policies draws small limits, so that they are often full. A second call draws
// other quotas for the same policies, as a reload does.
func (w *walker) policies() {
	w.pool = w.pool[:0]
	for i, l := range limits(1) {
		l.Quota = 1 + w.rand.Int64N(6)
		l.Window = 10 * time.Second
		switch l.Algorithm {
		case weir.TokenBucket:
			l.Quota, l.Burst = 3, l.Quota // the rate stays, or what is forgotten when would change
		case weir.LeakyQueue:
			l.Quota, l.Queue = 3, l.Quota-1
		}
		p, err := weir.NewPolicy(fmt.Sprint("policy", i), l)
		if err != nil {
			w.Fatal(err)
		}
		if sup, ok := w.store.(weir.Supporter); ok && sup.Supports(p) != nil {
			continue
		}
		w.pool = append(w.pool, p)
	}
}

func (w *walker) move() {
	var d int64
	switch w.rand.IntN(8) {
	case 0:
		d = w.last.Retry
	case 1:
		d = w.last.Retry - 1
	case 2:
		d = w.last.Reset
	case 3:
		d = w.last.Reset - 1
	case 4:
		d = w.rand.Int64N(12_000_000)
	case 5:
		d = 1
	}
	w.clock.Advance(time.Duration(max(d, 0)) * time.Microsecond)
}

// asks draws up to four asks that differ in policy or key.
func (w *walker) asks() (asks []weir.Ask) {
	seen := make(map[partition]bool)
	for range 1 + w.rand.IntN(4) {
		p := w.pool[w.rand.IntN(len(w.pool))]
		a := ask(p, string(rune('a'+w.rand.IntN(2))), w.rand.Int64N(3))
		if seen[part(&a)] {
			continue
		}
		seen[part(&a)] = true
		if w.rand.IntN(10) == 0 {
			a.Cost = p.Limit.Capacity() + w.rand.Int64N(2)
		}
		a.Slack = []int64{0, 0, 1, 5_000_000, 60_000_000}[w.rand.IntN(5)]
		a.Shadow = w.rand.IntN(4) == 0
		asks = append(asks, a)
	}
	return asks
}

func (w *walker) call() {
	ctx, asks := context.Background(), w.asks()
	switch w.rand.IntN(20) {
	case 0:
		w.policies()
		return
	case 1:
		w.reset(asks...)
		_ = w.ref.Reset(ctx, asks)
		return
	case 2, 3:
		if len(w.charged) > 0 {
			a := w.charged[w.rand.IntN(len(w.charged))]
			a.Cost = w.rand.Int64N(4) - a.Cost
			asks = []weir.Ask{a}
			w.adjust(asks...)
			_ = w.ref.Adjust(ctx, asks)
			return
		}
	}
	got, want := make([]weir.Verdict, len(asks)), make([]weir.Verdict, len(asks))
	var ok, wanted bool
	var err error
	look := w.rand.IntN(5) == 0
	if look {
		ok, err = w.store.Peek(ctx, asks, got)
		wanted, _ = w.ref.Peek(ctx, asks, want)
	} else {
		ok, err = w.store.Take(ctx, asks, got)
		wanted, _ = w.ref.Take(ctx, asks, want)
	}
	if err != nil {
		w.Fatal(err)
	}
	if ok != wanted {
		w.Fatalf("at %v %s: allowed %v, want %v", w.clock.Since(), describe(asks), ok, wanted)
	}
	for i := range got {
		if got[i] != want[i] {
			w.Fatalf("at %v %s, ask %d (peek %v):\n got %+v\nwant %+v", w.clock.Since(), describe(asks), i, look, got[i], want[i])
		}
		if a := asks[i]; !look && got[i].OK && (ok || a.Shadow) {
			a.At = got[i].At + got[i].Wait
			w.charged = append(w.charged, a)
		}
		w.last = got[i]
	}
}

func describe(asks []weir.Ask) (s string) {
	for _, a := range asks {
		s += fmt.Sprintf("[%v %d of %q cost %d slack %d shadow %v]", a.Policy.Limit.Algorithm, a.Policy.Limit.Capacity(), a.Key, a.Cost, a.Slack, a.Shadow)
	}
	return s
}

// reference is the contract of [weir.Store] written for obviousness: one
// goroutine, a map, and nothing is ever forgotten.
type reference struct {
	clock weir.Clock
	keys  map[partition]*held
}

var _ weir.Store = (*reference)(nil)

type partition struct{ policy, key string }

func part(a *weir.Ask) partition { return partition{a.Policy.ID(), string(a.Key)} }

// held is what a policy remembers of a key.
type held struct {
	state algo.State
	log   []algo.Entry
}

func (r *reference) now() int64 { return r.clock.Now().UnixMicro() }

func (r *reference) held(a *weir.Ask) *held {
	h := r.keys[part(a)]
	if h == nil {
		h = new(held)
		r.keys[part(a)] = h
	}
	return h
}

func (h *held) decide(p *algo.Params, now, cost, slack int64) (algo.State, algo.Verdict) {
	if p.Kind == algo.SlidingLog {
		return algo.DecideLog(p, h.state, h.log, now, cost)
	}
	return algo.Decide(p, h.state, now, cost, slack)
}

func (r *reference) together(asks []weir.Ask, out []weir.Verdict, commit bool) bool {
	now, allowed := r.now(), true
	next := make([]algo.State, len(asks))
	for i := range asks {
		a := &asks[i]
		var v algo.Verdict
		next[i], v = r.held(a).decide(a.Policy.Params(), now, a.Cost, a.Slack)
		if out[i] = (weir.Verdict{OK: v.OK, At: next[i].At, Reset: v.Reset, Remaining: v.Remaining}); v.OK {
			out[i].Wait = v.Wait
		} else {
			out[i].Retry = v.Wait
		}
		allowed = allowed && (out[i].OK || a.Shadow)
	}
	for i := range asks {
		a, v := &asks[i], &out[i]
		h, p := r.held(a), a.Policy.Params()
		switch {
		case !v.OK:
		case !commit || !allowed && !a.Shadow:
			_, free := h.decide(p, now, 0, a.Slack)
			v.Remaining, v.Reset = free.Remaining, free.Reset
		case p.Kind == algo.SlidingLog:
			h.state, h.log = algo.Record(p, next[i], h.log, a.Cost)
		default:
			h.state = next[i]
		}
	}
	return allowed
}

func (r *reference) Take(_ context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return r.together(asks, out, true), nil
}

func (r *reference) Peek(_ context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return r.together(asks, out, false), nil
}

func (r *reference) Adjust(_ context.Context, asks []weir.Ask) error {
	for i := range asks {
		a := &asks[i]
		h, p := r.held(a), a.Policy.Params()
		if p.Kind == algo.SlidingLog {
			h.state, h.log = algo.AdjustLog(p, h.state, h.log, r.now(), a.At, a.Cost)
		} else {
			h.state = algo.Adjust(p, h.state, r.now(), a.At, a.Cost)
		}
	}
	return nil
}

func (r *reference) Reset(_ context.Context, asks []weir.Ask) error {
	for i := range asks {
		delete(r.keys, part(&asks[i]))
	}
	return nil
}
