package weir

import (
	"math"

	"github.com/weirhq/weir/algo"
	"github.com/weirhq/weir/smooth"
)

// coldFactor is how much slower a cold WarmUp limit is than a warm one, as in
// Guava's RateLimiter.create.
const coldFactor = 3

// pace is the policy's warm-up curve.
func (l Limit) pace() (smooth.Pace, error) {
	return smooth.WarmingUp(float64(l.Quota)/l.Window.Seconds(), l.WarmUp.Microseconds(), coldFactor)
}

// A WarmUp state keeps the next free instant in Unit and the floating-point
// permits in Used (stored) and Prev (the most that may be stored), bit by bit.

func warmState(s algo.State) smooth.State {
	return smooth.State{Next: s.Unit, Stored: math.Float64frombits(uint64(s.Used)), Max: math.Float64frombits(uint64(s.Prev))}
}

func keepWarm(s smooth.State, now int64) algo.State {
	return algo.State{At: now, Used: int64(math.Float64bits(s.Stored)), Prev: int64(math.Float64bits(s.Max)), Unit: min(s.Next, algo.Max)}
}

// decideWarmUp grants as Guava's tryAcquire does: the next free instant decides,
// not the cost, which the next asker pays. A cost above the quota is refused all
// the same, since it could never be had within one window.
func decideWarmUp(p *Policy, s algo.State, now, cost, slack int64) (algo.State, algo.Verdict) {
	now = max(now, s.At)
	w := p.pace.Resync(warmState(s), now)
	var v algo.Verdict
	switch wait := w.Wait(now); {
	case cost > p.params.Cap:
		v.Wait = algo.Never
	case wait > slack:
		v.Wait = wait - slack
	default:
		v.OK = true
		w, v.Wait = p.pace.Reserve(w, now, cost)
	}
	if w.Wait(now) == 0 {
		v.Remaining = p.params.Cap
	}
	v.Reset = min(p.pace.Full(w)-now, algo.Max)
	return keepWarm(w, now), v
}

// adjustWarmUp charges like a call that nobody refuses, or gives back at the warm
// price, the lowest a permit can have had.
func adjustWarmUp(p *Policy, s algo.State, now, delta int64) algo.State {
	now = max(now, s.At)
	w := p.pace.Resync(warmState(s), now)
	if delta >= 0 {
		w, _ = p.pace.Reserve(w, now, delta)
		return keepWarm(w, now)
	}
	back := float64(-delta) * 1e6 / p.pace.Rate()
	w.Next -= int64(min(back, float64(w.Next-now)))
	return keepWarm(w, now)
}
