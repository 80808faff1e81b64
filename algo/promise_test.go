package algo_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/algo"
)

// adjust corrects an earlier charge.
func (k *key) adjust(now, at, delta int64) {
	if k.p.Kind == algo.SlidingLog {
		k.state, k.log = algo.AdjustLog(&k.p, k.state, k.log, now, at, delta)
		return
	}
	k.state = algo.Adjust(&k.p, k.state, now, at, delta)
}

// look says what is left, without taking.
func (k *key) look(now int64) algo.Verdict {
	probe := key{p: k.p, state: k.state, log: k.log}
	return probe.take(now, 0, algo.Max)
}

// start is an edge of every window these tests use, so late in the range that
// a product with it would overflow.
const start = 1_524_096_000_000_000

const second, hour = 1_000_000, 3_600_000_000

// small are limits of n units in an hour, one of each kind.
func small(n int64) []algo.Params {
	return []algo.Params{
		{Kind: algo.Bucket, Cap: n, Unit: hour, Drain: n},
		{Kind: algo.Queue, Cap: n, Unit: hour, Drain: n},
		{Kind: algo.FixedWindow, Cap: n, Window: hour},
		{Kind: algo.FirstWindow, Cap: n, Window: hour},
		{Kind: algo.SlidingWindow, Cap: n, Window: hour},
		{Kind: algo.SlidingLog, Cap: n, Window: hour, Step: 1},
		{Kind: algo.SlidingLog, Cap: n, Window: hour, Step: hour / 10},
	}
}

// TestARefundAtOnceEqualsNeverHavingAsked, for all kinds and from any state.
func TestARefundAtOnceEqualsNeverHavingAsked(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		p := params(kinds[r.IntN(len(kinds))], r)
		k, now := key{p: p}, int64(start)
		span := max(p.Window, p.Unit/p.Drain, 1)
		for range r.IntN(20) {
			now += r.Int64N(span)
			k.take(now, r.Int64N(min(p.Cap, 1<<40)+1), 0)
		}
		before := k.look(now)
		twin := key{p: p, state: k.state, log: append([]algo.Entry(nil), k.log...)}
		cost := r.Int64N(min(p.Cap, 1<<40) + 1)
		v := k.take(now, cost, 0)
		if !v.OK {
			continue
		}
		k.adjust(now, k.state.At+v.Wait, -cost)
		if after := k.look(now); after != before {
			t.Fatalf("%+v: took and refunded %d:\nbefore %+v\nafter  %+v", p, cost, before, after)
		}
		// And from then on nobody can tell.
		for range 10 {
			now += r.Int64N(span)
			c := r.Int64N(min(p.Cap, 1<<40) + 2)
			if got, want := k.take(now, c, 0), twin.take(now, c, 0); got != want {
				t.Fatalf("%+v at %d cost %d after a refund:\n got %+v\nwant %+v", p, now, c, got, want)
			}
		}
	}
}

// TestSettleChargesTheDifference: taking c and settling to d leaves what taking
// d would have left.
func TestSettleChargesTheDifference(t *testing.T) {
	for _, p := range small(100) {
		for _, c := range []struct{ cost, actual int64 }{{10, 10}, {10, 3}, {10, 0}, {10, 60}, {0, 7}, {100, 1}, {1, 100}} {
			now := int64(start)
			k, want := key{p: p}, key{p: p}
			k.take(now, 20, algo.Max)
			want.take(now, 20, algo.Max)
			if c.cost > 80 || c.actual > 80 {
				k, want = key{p: p}, key{p: p}
			}
			v := k.take(now, c.cost, algo.Max)
			k.adjust(now, k.state.At+v.Wait, c.actual-c.cost)
			want.take(now, c.actual, algo.Max)
			if got, want := k.look(now), want.look(now); got != want {
				t.Errorf("%+v: %d settled to %d:\n got %+v\nwant %+v", p, c.cost, c.actual, got, want)
			}
		}
	}
}

func TestSettleMayOverdrawAndThatIsPaidBack(t *testing.T) {
	for _, p := range small(10) {
		now := int64(start)
		k := key{p: p}
		k.take(now, 1, 0)
		k.adjust(now, now, 24) // 25 of 10
		if v := k.look(now); v.Remaining != 0 {
			t.Errorf("%+v: %+v", p, v)
		}
		v := k.take(now, 1, 0)
		if v.OK || v.Wait <= 0 {
			t.Errorf("%+v: %+v, want a refusal with an end", p, v)
			continue
		}
		early, late := k, k
		early.log, late.log = append([]algo.Entry(nil), k.log...), append([]algo.Entry(nil), k.log...)
		if p.Kind == algo.Queue { // who waits until there is a place also waits for his turn
			if v := late.take(now+v.Wait, 1, 0); !v.OK {
				t.Errorf("%+v: after Retry, %+v", p, v)
			}
		} else if !late.take(now+v.Wait, 1, 0).OK || early.take(now+v.Wait-1, 1, 0).OK {
			t.Errorf("%+v: the retry %d is not exact", p, v.Wait)
		}
	}
}

// TestRefundsNeverLiftABalance: however much is given back, and how often, never
// more than the capacity is there.
func TestRefundsNeverLiftABalance(t *testing.T) {
	for _, p := range small(10) {
		for _, back := range []int64{-1, -4, -5, -100, -algo.Max, -1 << 63} {
			k, now := key{p: p}, int64(start)
			k.adjust(now, now, back) // never seen
			k.take(now, 4, algo.Max)
			for range 5 {
				k.adjust(now, now, back)
			}
			if v := k.look(now); v.Remaining > 10 {
				t.Errorf("%+v: %d are left after refunds of %d", p, v.Remaining, back)
			}
			if k.take(now, 11, algo.Max).OK {
				t.Errorf("%+v: refunds of %d have lifted the capacity", p, back)
			}
		}
		k := key{p: p}
		for range 5000 { // often enough to pass the range of an int64
			k.adjust(start, start, 1<<63-1)
			if v := k.look(start); v.Remaining != 0 {
				t.Fatalf("%+v: absurd charges left %d", p, v.Remaining)
			}
		}
	}
}

// TestARefundOfAPastWindowGivesNothing: what is given back must still be held.
func TestARefundOfAPastWindowGivesNothing(t *testing.T) {
	for _, p := range small(10) {
		if p.Kind == algo.Bucket || p.Kind == algo.Queue {
			continue // a debt has no window; it drains
		}
		k, now := key{p: p}, int64(start)
		v := k.take(now, 4, 0)
		charged := k.state.At + v.Wait
		later := now + 2*hour
		k.take(later, 6, 0)
		before := k.look(later)
		k.adjust(later, charged, -4)
		if after := k.look(later); after != before || before.Remaining != 4 {
			t.Errorf("%+v:\nbefore %+v\nafter  %+v", p, before, after)
		}
	}
	// Of a drained bucket nothing is left to give back.
	k := key{p: small(10)[0]}
	k.take(start, 4, 0)
	k.take(start+2*hour, 6, 0)
	k.adjust(start+2*hour, start, -4)
	if v := k.look(start + 2*hour); v.Remaining != 8 { // it cannot know whose the 6 are; the sum stays honest
		t.Errorf("a bucket has %d left, want 8", v.Remaining)
	}
}

// TestAWaitIsExact: in a world where the waiting ask had not been made, an ask of
// that cost without slack would be allowed just then, and not one tick before.
func TestAWaitIsExact(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	waited := 0
	for range 4000 {
		kind := []algo.Kind{algo.Bucket, algo.Queue, algo.FixedWindow}[r.IntN(3)]
		p := params(kind, r)
		k, now := key{p: p}, int64(start)
		span := max(p.Window, p.Unit/p.Drain, 1)
		for range 12 {
			now += r.Int64N(3) * r.Int64N(span)
			now = min(now, algo.Max/2)
			cost := r.Int64N(min(p.Cap, 1<<20) + 1)
			slack := r.Int64N(20 * min(span, 1<<44))
			world := k.state
			v := k.take(now, cost, slack)
			if !v.OK || v.Wait == 0 {
				continue
			}
			if v.Wait > slack {
				t.Fatalf("%+v: waits %d, the slack is %d", p, v.Wait, slack)
			}
			waited++
			at := max(now, world.At) + v.Wait
			_, then := algo.Decide(&p, world, at, cost, 0)
			_, early := algo.Decide(&p, world, at-1, cost, 0)
			if !then.OK || early.OK {
				t.Fatalf("%+v at %d cost %d waits %d: then %+v, a tick before %+v", p, now, cost, v.Wait, then, early)
			}
		}
	}
	if waited < 1000 {
		t.Fatalf("only %d waits", waited)
	}
}

// Case B50.
func TestReservationsOfAFixedWindow(t *testing.T) {
	k := key{p: algo.Params{Kind: algo.FixedWindow, Cap: 3, Window: 10 * second}}
	for i, want := range []int64{0, 0, 0, 10, 10, 10, 20} {
		if v := k.take(start, 1, algo.Max); !v.OK || v.Wait != want*second {
			t.Errorf("reservation %d: %+v, want a wait of %d s", i, v, want)
		}
	}
	// A window counts what was reserved in it, and who does not wait is refused.
	for _, c := range []struct {
		at   int64
		cost int64
		wait int64 // below 0: a refusal with that retry
	}{{5, 1, -15}, {10, 1, -10}, {19, 1, -1}, {20, 2, 0}, {20, 1, -10}, {30, 3, 0}} {
		v := k.take(start+c.at*second, c.cost, 0)
		if v.OK != (c.wait == 0) || v.Wait != max(c.wait, -c.wait)*second {
			t.Errorf("at %d s cost %d: %+v, want %d", c.at, c.cost, v, c.wait)
		}
	}
}

// Case B11, for every kind: a step back gives nothing.
func TestAnEarlierInstantCountsAsTheLatest(t *testing.T) {
	for _, p := range small(4) {
		k := key{p: p}
		now := int64(start + 10*hour)
		k.take(now, 4, 0)
		for _, at := range []int64{now - 1, now - 20*hour, 0, -1, -1 << 63} {
			if v := k.take(at, 1, 0); v.OK || k.state.At != now {
				t.Errorf("%+v at %d: %+v, state %+v", p, at, v, k.state)
			}
			k.adjust(at, now, 0)
			if k.state.At != now {
				t.Errorf("%+v: an adjustment took the clock back to %d", p, k.state.At)
			}
		}
	}
}

// TestNewParamsApplyToOldUse: a change of rate restates the debt and forgives
// nothing but what rounding up costs, less than one part.
func TestNewParamsApplyToOldUse(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 4000 {
		k := key{p: params(algo.Bucket, r)}
		k.p.Cap = 1 << 40
		now := int64(start)
		k.take(now, 1+r.Int64N(1000), 0)
		now += r.Int64N(max(k.p.Unit/k.p.Drain, 2))
		k.take(now, 0, 0)
		was := newModel(k.p)
		was.latest, was.debt = now, debt(k)
		next := params(algo.Bucket, r)
		k.p.Unit, k.p.Drain = next.Unit, next.Drain
		k.take(now, 0, 0)
		if k.state.Prev < 0 || k.state.Prev >= k.state.Unit {
			t.Fatalf("%+v: %d parts of 1/%d are a unit or more", k.p, k.state.Prev, k.state.Unit)
		}
		is := debt(k)
		if is.Cmp(was.debt) < 0 {
			t.Fatalf("%+v: a debt of %v became %v", k.p, was.debt, is)
		}
		if over := is.Sub(is, was.debt); over.Cmp(part(k.p.Unit)) >= 0 {
			t.Fatalf("%+v: a debt of %v grew by %v", k.p, was.debt, over)
		}
	}
}

// TestNewCapacityAppliesAtOnce, case B42: up, down, to nothing and back.
func TestNewCapacityAppliesAtOnce(t *testing.T) {
	for _, p := range small(10) {
		k := key{p: p}
		k.take(start, 6, algo.Max)
		for _, c := range []struct{ capacity, left int64 }{{20, 14}, {6, 0}, {3, 0}, {0, 0}, {10, 4}, {algo.Max, algo.Max - 6}} {
			if k.p.Cap = c.capacity; k.look(start).Remaining != c.left {
				t.Errorf("%+v: %+v, want %d left", k.p, k.look(start), c.left)
			}
		}
	}
}

// TestALookTakesNoPlace: not even one that must look beyond a window that a cut
// has made too small for what was used in it.
func TestALookTakesNoPlace(t *testing.T) {
	for _, p := range small(10) {
		k := key{p: p}
		k.take(start, 5, algo.Max)
		k.p.Cap = 3
		k.take(start, 0, algo.Max)
		k.p.Cap = 10
		if v := k.take(start, 5, algo.Max); !v.OK || v.Wait != 0 && p.Kind != algo.Queue {
			t.Errorf("%+v: a look in between made it %+v", p, v)
		}
	}
}

// TestTheExtremes: from one a year to a million a second and Max, nothing
// overflows and nothing is free.
func TestTheExtremes(t *testing.T) {
	const year = 365 * 24 * hour
	for _, c := range []struct {
		name string
		p    algo.Params
		cost int64
		wait int64 // for the same again, in ticks
	}{
		{"one a year", algo.Params{Kind: algo.Bucket, Cap: 1, Unit: year, Drain: 1}, 1, year},
		{"a million a second", algo.Params{Kind: algo.Bucket, Cap: 1_000_000, Unit: 1, Drain: 1}, 1_000_000, second},
		{"a million a tick", algo.Params{Kind: algo.Bucket, Cap: 1_000_000, Unit: 1, Drain: 1_000_000}, 1_000_000, 1},
		{"Max a tick", algo.Params{Kind: algo.Bucket, Cap: algo.Max, Unit: 1, Drain: algo.Max}, algo.Max, 1},
		{"Max in Max ticks", algo.Params{Kind: algo.Bucket, Cap: algo.Max, Unit: 1, Drain: 1}, algo.Max, algo.Max},
		{"a prime a month", algo.Params{Kind: algo.Bucket, Cap: 999_983, Unit: 30 * 24 * hour, Drain: 999_983}, 999_983, 30 * 24 * hour},
		{"one in Max ticks", algo.Params{Kind: algo.Bucket, Cap: 1, Unit: algo.Max, Drain: 1}, 1, algo.Max},
		{"a queue of one a year", algo.Params{Kind: algo.Queue, Cap: 1, Unit: year, Drain: 1}, 1, year},
		{"a fixed window of Max", algo.Params{Kind: algo.FixedWindow, Cap: algo.Max, Window: hour}, algo.Max, hour},
		{"a first window of Max units and ticks", algo.Params{Kind: algo.FirstWindow, Cap: algo.Max, Window: algo.Max}, algo.Max, algo.Max},
		{"a sliding window of Max", algo.Params{Kind: algo.SlidingWindow, Cap: algo.Max, Window: hour}, algo.Max, 2 * hour},
		{"a sliding window of one in a year", algo.Params{Kind: algo.SlidingWindow, Cap: 1, Window: 8 * hour}, 1, 16 * hour},
		{"a log of one in Max ticks", algo.Params{Kind: algo.SlidingLog, Cap: 1, Window: algo.Max, Step: 1}, 1, algo.Max},
	} {
		k := key{p: c.p}
		if v := k.take(start, c.cost, 0); !v.OK || v.Remaining != 0 {
			t.Errorf("%s: %+v at first", c.name, v)
		}
		if v := k.take(start, c.cost, 0); v.OK || v.Wait != c.wait {
			t.Errorf("%s: %+v, want a retry of %d", c.name, v, c.wait)
		}
		for _, cost := range []int64{c.p.Cap + 1, 1<<63 - 1} {
			if v := k.take(start, cost, 1<<63-1); v.OK || v.Wait != algo.Never {
				t.Errorf("%s, cost %d: %+v, want never", c.name, cost, v)
			}
		}
		if v := k.take(start, -1<<63, 0); v.Remaining != 0 {
			t.Errorf("%s: a cost below nothing gave back %d", c.name, v.Remaining)
		}
		if c.wait < algo.Max/2 {
			if v := k.take(start+c.wait, c.cost, 0); !v.OK {
				t.Errorf("%s: %+v after its retry", c.name, v)
			}
		}
	}
	for _, p := range small(0) {
		if p.Drain == 0 {
			p.Drain = 1
		}
		k := key{p: p}
		if v := k.take(start, 1, algo.Max); v.OK || v.Wait != algo.Never {
			t.Errorf("a capacity of 0 of kind %d: %+v", p.Kind, v)
		}
	}
	for _, kind := range []algo.Kind{0, algo.WarmUp, 8, 255} {
		if _, v := algo.Decide(&algo.Params{Kind: kind, Cap: 5, Unit: 1, Drain: 1, Window: 1, Step: 1}, algo.State{}, start, 1, 0); v.OK || v.Wait != algo.Never {
			t.Errorf("kind %d, which is not one of this package: %+v", kind, v)
		}
	}
}

// TestALogDoesNotGrow: refused asks leave no trace, and what is dead is dropped.
func TestALogDoesNotGrow(t *testing.T) {
	k := key{p: algo.Params{Kind: algo.SlidingLog, Cap: 5, Window: second, Step: 1}}
	for i := range int64(10_000) {
		k.take(start+i*10_000, 1, 0)
	}
	if len(k.log) > 12 || cap(k.log) > 16 {
		t.Errorf("a log of 5 has %d entries, room for %d", len(k.log), cap(k.log))
	}
}

// debt is the exact number of units a bucket holds.
func debt(k key) *big.Rat {
	return new(big.Rat).Add(rat(k.state.Used), big.NewRat(k.state.Prev, k.state.Unit))
}

// part is the smallest share of a unit that is kept.
func part(unit int64) *big.Rat { return big.NewRat(1, unit) }
