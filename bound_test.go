package weir_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// TestNoWindowPassesTheBound tries to press more units through any span of one
// window than Limit.Bound says, with requests of mixed costs at the worst instants:
// just before and at promised retries and resets. A unit counts when its request
// goes on, so waits are added.
func TestNoWindowPassesTheBound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const window = 10 * time.Second
	for _, l := range []weir.Limit{
		{Quota: 10}, {Quota: 10, Burst: 4}, {Quota: 3, Burst: 20},
		{Quota: 10, Algorithm: weir.LeakyQueue, Queue: 9}, {Quota: 10, Algorithm: weir.LeakyQueue},
		{Quota: 10, Algorithm: weir.FixedWindow}, {Quota: 10, Algorithm: weir.FixedWindowFirst},
		{Quota: 10, Algorithm: weir.SlidingWindow}, {Quota: 10, Algorithm: weir.SlidingSlices, Slices: 5},
		{Quota: 10, Algorithm: weir.SlidingLog}, {Quota: 10, Algorithm: weir.WarmUp, WarmUp: time.Microsecond},
	} {
		l.Window = window
		tightest := int64(1 << 62)
		for _, most := range []int64{1, 3, 10} {
			for range 60 {
				clock := newClock()
				m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
				p := policy(t, l)
				type passage struct{ at, units int64 }
				var passed []passage
				for range 80 {
					cost := 1 + r.Int64N(most)
					v := takeOne(t, m, p, "key", cost)
					if v.OK {
						passed = append(passed, passage{v.At + v.Wait, cost})
					}
					switch r.IntN(4) {
					case 0:
						clock.micros.Add(max(v.Retry, 0))
					case 1:
						clock.micros.Add(v.Reset)
					case 2:
						clock.micros.Add(r.Int64N(window.Microseconds()))
					}
				}
				bound := l.Bound(most)
				for i := range passed {
					units := int64(0)
					for _, q := range passed[i:] {
						if q.at-passed[i].at < window.Microseconds() {
							units += q.units
						}
					}
					if units > bound {
						t.Fatalf("%+v: %d units in one window, bound %d", l, units, bound)
					}
					tightest = min(tightest, bound-units)
				}
			}
		}
		t.Logf("%v %d: within %d of the bound", l.Algorithm, l.Quota, tightest)
	}
}
