package tier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirtest"
)

// A ledger is the exact state of a key that all admissions of all nodes are put into, as
// if each had been decided by one store without a loan.
type ledger struct {
	state algo.State
	net   int64 // admitted and not given back
}

// village is some nodes on one bank, on a clock that stands still but for the test.
type village struct {
	*testing.T
	r     *rand.Rand
	clock *weirtest.Clock // not the bubble's
	bank  *flaky
	nodes []*tier.Lease
	rules []*weir.Policy
	truth map[string]*ledger
	past  []weir.Ask // charges that may be given back
}

// flaky is a bank whose answers get lost.
type flaky struct {
	*bank
	lose func() bool
}

var errLost = fmt.Errorf("%w: lost", weir.ErrUnavailable)

func (f *flaky) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	ok, err := f.bank.Take(ctx, asks, out)
	if f.lose() {
		return false, errLost
	}
	return ok, err
}

func (f *flaky) Lend(ctx context.Context, loans []weir.Loan, out []weir.Grant) error {
	seen := make(map[string]bool)
	for _, l := range loans {
		id := l.Policy.ID() + "\x00" + string(l.Key)
		if seen[id] || l.Used < 0 || l.Back < 0 || l.Want < 0 {
			panic(fmt.Sprintf("the loans of one call: %+v", loans))
		}
		seen[id] = true
	}
	if err := f.bank.Lend(ctx, loans, out); err != nil {
		return err
	}
	if f.lose() {
		clear(out)
		return errLost
	}
	return nil
}

func newVillage(t *testing.T, seed uint64, nodes int) *village {
	v := &village{T: t, r: rand.New(rand.NewPCG(seed, 1)), clock: new(weirtest.Clock), truth: make(map[string]*ledger)}
	v.bank = &flaky{newBank(v.clock), func() bool { return false }}
	for range nodes {
		v.nodes = append(v.nodes, v.node())
	}
	return v
}

func (v *village) node() *tier.Lease {
	l := tier.NewLease(v.bank, tier.LeaseOptions{Clock: v.clock})
	v.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil && !errors.Is(err, errLost) {
			v.Error(err)
		}
	})
	return l
}

func (v *village) now() int64 { return v.clock.Now().UnixMicro() }

func (v *village) of(p *weir.Policy, key []byte) *ledger {
	id := p.ID() + "\x00" + string(key)
	if v.truth[id] == nil {
		v.truth[id] = new(ledger)
	}
	return v.truth[id]
}

// admit puts a charge into the books, which have to allow it.
func (v *village) admit(a *weir.Ask) {
	l := v.of(a.Policy, a.Key)
	next, d := algo.Decide(a.Policy.Params(), l.state, v.now(), a.Cost, 0)
	if !d.OK {
		v.Fatalf("%+v at %d: %d units went on, and the limit has %d left", *a.Policy.Params(), v.now(), a.Cost, d.Remaining)
	}
	l.state, l.net = next, l.net+a.Cost
}

func (v *village) take(n *tier.Lease, asks ...weir.Ask) {
	out := make([]weir.Verdict, len(asks))
	ok, err := n.Take(context.Background(), asks, out)
	if err != nil {
		if !errors.Is(err, errLost) {
			v.Fatal(err)
		}
		return
	}
	all := true
	for i := range asks {
		a, d := &asks[i], &out[i]
		all = all && (d.OK || a.Shadow)
		switch {
		case d.At > v.now(), d.Remaining < 0, d.Remaining > a.Policy.Params().Cap, d.Reset < 0, d.Wait != 0,
			a.Cost > 0 && d.OK == (d.Retry != 0):
			v.Fatalf("at %d: %+v of %+v", v.now(), *d, *a)
		case d.OK && (ok || a.Shadow):
			v.admit(a)
			back := *a
			back.At, back.Cost, back.Shadow = d.At, -a.Cost, false
			if len(v.past) < 100 {
				v.past = append(v.past, back)
			} else {
				v.past[v.r.IntN(100)] = back
			}
		}
	}
	if ok != all {
		v.Fatalf("allowed %v: %+v", ok, out)
	}
}

// request asks a node about one to three policies.
func (v *village) request() {
	n := v.nodes[v.r.IntN(len(v.nodes))]
	var asks []weir.Ask
	for _, i := range v.r.Perm(len(v.rules))[:1+v.r.IntN(min(3, len(v.rules)))] {
		p := v.rules[i]
		cost := int64(1)
		if v.r.IntN(8) == 0 {
			cost = 1 + v.r.Int64N(p.Params().Cap/8+1)
		}
		asks = append(asks, weir.Ask{Policy: p, Key: []byte{'a' + byte(v.r.IntN(2))}, Cost: cost, Shadow: v.r.IntN(8) == 0})
	}
	v.take(n, asks...)
	if v.r.IntN(4) == 0 {
		synctest.Wait() // let loans come
	}
}

// refund gives back a charge, or a part of it, at any node.
func (v *village) refund() {
	if len(v.past) == 0 {
		return
	}
	i := v.r.IntN(len(v.past))
	a := v.past[i]
	v.past[i] = v.past[len(v.past)-1]
	v.past = v.past[:len(v.past)-1]
	for _, p := range v.rules { // under the numbers of now, as a Limiter does
		if p.ID() == a.Policy.ID() {
			a.Policy = p
		}
	}
	if err := v.nodes[v.r.IntN(len(v.nodes))].Adjust(context.Background(), []weir.Ask{a}); err != nil {
		v.Fatal(err)
	}
	l := v.of(a.Policy, a.Key)
	l.state = algo.Adjust(a.Policy.Params(), l.state, v.now(), a.At, a.Cost)
	l.net += a.Cost
}

// lendable draws a limit.
func (v *village) lendable(kind weir.Algorithm) weir.Limit {
	l := weir.Limit{Quota: []int64{20, 50, 200, 1000}[v.r.IntN(4)], Window: time.Second, Algorithm: kind}
	if kind == weir.TokenBucket && v.r.IntN(2) == 0 {
		l.Burst = max(l.Quota/2, 20)
	}
	return l
}

func (v *village) draw() {
	// What was held until now is forgiven by the old numbers, in the bank and in the books,
	// which have not been asked at the same instants.
	v.bank.mu.Lock()
	for _, p := range v.rules {
		for _, key := range []string{"a", "b"} {
			l, h := v.of(p, []byte(key)), v.bank.of(p, []byte(key))
			l.state, _ = algo.Decide(p.Params(), l.state, v.now(), 0, 0)
			h.state, _ = h.decide(p.Params(), v.now(), 0, 0)
		}
	}
	v.bank.mu.Unlock()
	v.rules = v.rules[:0]
	for i, kind := range []weir.Algorithm{weir.TokenBucket, weir.FixedWindow, weir.SlidingWindow} {
		v.rules = append(v.rules, fast(fmt.Sprint("p", i), v.lendable(kind)))
	}
	strict := must(weir.NewPolicy("strict", weir.PerSecond(100)))
	v.rules = append(v.rules, strict)
	// A node hears of new numbers by the first ask under them. Until then it gives back
	// under the old ones, which a limit forgives by.
	for _, n := range v.nodes {
		for _, p := range v.rules {
			v.take(n, ask(p, "a", 0))
		}
	}
	synctest.Wait()
}

// TestEveryAdmissionIsOneTheLimitAllows: of several nodes and limits, over refunds, answers
// that are lost, nodes that crash and others that come, and new numbers, each admission
// fits beside all those before it, to the microsecond.
func TestEveryAdmissionIsOneTheLimitAllows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var local, asked int64
	for round := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			v := newVillage(t, seed+round, 1+int(round%5))
			loss := rand.New(rand.NewPCG(seed, round))
			if round%2 == 0 { // takes and loans are lost, from different goroutines
				v.bank.lose = func() bool {
					v.bank.mu.Lock()
					defer v.bank.mu.Unlock()
					return loss.IntN(40) == 0
				}
			}
			v.draw()
			for range 4000 {
				switch n := v.r.IntN(1000); {
				case n < 900:
					v.request()
					asked++
				case n < 950:
					v.refund()
				case n < 990:
					v.clock.Advance(time.Duration(v.r.Int64N(30_000)) * time.Microsecond)
				case n < 994:
					v.clock.Advance(time.Duration(v.r.Int64N(2_000_000)) * time.Microsecond)
				case n < 996: // a crash
					i := v.r.IntN(len(v.nodes))
					local += v.nodes[i].Stats().Local
					v.nodes[i] = v.node()
				case n < 998: // a node that goes in order
					i := v.r.IntN(len(v.nodes))
					local += v.nodes[i].Stats().Local
					if err := v.nodes[i].Close(context.Background()); err != nil && !errors.Is(err, errLost) {
						t.Fatal(err)
					}
					v.nodes[i] = v.node()
				default:
					v.draw()
				}
			}
			for _, n := range v.nodes {
				local += n.Stats().Local
			}
		})
	}
	t.Logf("%d of %d requests were decided locally", local, asked)
	if local < asked/10 {
		t.Error("that tests little")
	}
}

// TestNothingIsLost: once all nodes are closed, the store holds what was admitted and not
// given back, no more and no less, if time stands still.
func TestNothingIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var local int64
	for round := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			v := newVillage(t, seed+round, 1+int(round%4))
			v.draw()
			for _, p := range v.rules {
				p.Fast = true
			}
			for range 1500 {
				v.request()
			}
			for _, n := range v.nodes {
				local += n.Stats().Local
				if err := n.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range v.rules {
				for _, key := range []string{"a", "b"} {
					out := make([]weir.Verdict, 1)
					if _, err := v.bank.Peek(t.Context(), []weir.Ask{ask(p, key, 0)}, out); err != nil {
						t.Fatal(err)
					}
					if want := p.Params().Cap - v.of(p, []byte(key)).net; out[0].Remaining != want {
						t.Errorf("%+v: %d left of %s, want %d", p.Limit, out[0].Remaining, key, want)
					}
				}
			}
		})
	}
	if local == 0 {
		t.Error("nothing was decided locally")
	}
}
