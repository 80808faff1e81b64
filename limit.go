package weir

import (
	"fmt"
	"math"
	"time"

	"github.com/weirhq/weir/algo"
)

// An Algorithm decides how a [Limit] counts.
type Algorithm uint8

const (
	// TokenBucket is the default: Burst units at once, Quota units per Window in
	// the long run, so at most Burst + Quota units in any span of one Window. GCRA
	// and the leaky bucket used as a meter are the same limit by other names.
	TokenBucket Algorithm = iota
	// LeakyQueue lets units through one by one at the even rate Quota/Window; up to
	// Queue units wait for their turn, and the rest is refused.
	LeakyQueue
	// FixedWindow allows Quota units in each window aligned to the Unix epoch, so up
	// to twice the Quota around an edge.
	FixedWindow
	// FixedWindowFirst is FixedWindow with windows that the first allowed request of
	// a key opens.
	FixedWindowFirst
	// SlidingWindow weighs the previous window by what is left of it: two counters,
	// at most twice the Quota less one in any span of one Window, and never more than
	// the Quota of even traffic.
	SlidingWindow
	// SlidingSlices counts the current slice and the Slices-1 before it.
	SlidingSlices
	// SlidingLog allows at most Quota units in any span of one Window, exactly. It
	// keeps an instant for every unit, so Quota is at most 4096.
	SlidingLog
	// WarmUp paces at an even rate that rises from a third of Quota/Window to all of
	// it over the WarmUp period, as Guava's SmoothWarmingUp does. Only stores that
	// say so run it; [Memory] does.
	WarmUp
)

var algorithmNames = [...]string{"token_bucket", "leaky_queue", "fixed_window", "fixed_window_first",
	"sliding_window", "sliding_slices", "sliding_log", "warm_up"}

// String is the name the algorithm has in a rule file.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", a)
}

// ParseAlgorithm reads a name that [Algorithm.String] wrote.
func ParseAlgorithm(name string) (Algorithm, bool) {
	for i, n := range algorithmNames {
		if n == name {
			return Algorithm(i), true
		}
	}
	return 0, false
}

// A Limit is a quota of units per window and the algorithm that keeps it. It is
// checked, and turned into exact integers, by [NewPolicy].
type Limit struct {
	// Quota is the number of units per Window, 0 to 2^52-1. A Quota of 0 refuses
	// every request that costs something.
	Quota int64
	// Window is a whole number of microseconds, at least one, at most 142 years.
	Window time.Duration
	// Burst is the number of units that may be taken at once; 0 means Quota.
	// TokenBucket only.
	Burst int64
	// Queue is the number of units that may wait behind the one in service.
	// LeakyQueue only.
	Queue int64
	// MaxWait is the longest wait that Take may hand out. For TokenBucket, 0 means
	// that nothing waits; for LeakyQueue, 0 means that the Queue alone bounds the
	// wait. No other algorithm waits.
	MaxWait time.Duration
	// Slices is the number of slices in a window, 1 to 4096, dividing it into whole
	// microseconds; 0 means 10. SlidingSlices only.
	Slices int
	// WarmUp is the warm-up period, above 0. Algorithm WarmUp only.
	WarmUp time.Duration
	// Algorithm decides how to count; the zero value is TokenBucket.
	Algorithm Algorithm
}

// PerSecond is a token bucket of n units per second.
func PerSecond(n int64) Limit { return Limit{Quota: n, Window: time.Second} }

// PerMinute is a token bucket of n units per minute.
func PerMinute(n int64) Limit { return Limit{Quota: n, Window: time.Minute} }

// PerHour is a token bucket of n units per hour.
func PerHour(n int64) Limit { return Limit{Quota: n, Window: time.Hour} }

// PerDay is a token bucket of n units per day of 24 hours.
func PerDay(n int64) Limit { return Limit{Quota: n, Window: 24 * time.Hour} }

// maxSlices is the most slices of a SlidingSlices window.
const maxSlices = 4096

// MaxLogQuota is the largest quota of a SlidingLog: a key may hold that many
// instants of 16 bytes.
const MaxLogQuota = 4096

// Capacity is the number of units that can be held at once: the burst of a
// bucket, the places of a queue, the quota of a window.
func (l Limit) Capacity() int64 {
	switch {
	case l.Quota == 0:
		return 0
	case l.Algorithm == TokenBucket && l.Burst > 0:
		return l.Burst
	case l.Algorithm == LeakyQueue:
		return l.Queue + 1
	}
	return l.Quota
}

// Bound is the most units that any span of one Window lets go on, if no request
// costs more than cost.
func (l Limit) Bound(cost int64) int64 {
	most := l.Capacity()
	switch l.Algorithm {
	case TokenBucket:
		if l.Quota == 0 {
			return 0
		}
		return most + l.Quota
	case LeakyQueue, WarmUp: // a request goes on at once, and the next one pays for it
		return l.Quota + min(cost, most)
	case FixedWindow, FixedWindowFirst, SlidingSlices:
		return 2 * l.Quota
	case SlidingWindow:
		return max(2*l.Quota-1, 0)
	}
	return l.Quota
}

// params turns a limit into exact integers, or says what is wrong with it and
// what would be right.
func (l Limit) params() (algo.Params, error) {
	window := l.Window.Microseconds()
	switch {
	case l.Quota < 0 || l.Quota > algo.Max:
		return algo.Params{}, fmt.Errorf("quota %d is not within 0 and %d", l.Quota, int64(algo.Max))
	case l.Window <= 0 || l.Window%time.Microsecond != 0 || window > algo.Max:
		return algo.Params{}, fmt.Errorf("window %v is not a whole number of microseconds within 1µs and 142 years", l.Window)
	case l.Burst < 0 || l.Burst > algo.Max:
		return algo.Params{}, fmt.Errorf("burst %d is not within 1 and %d; leave it out to use the quota (%d)", l.Burst, int64(algo.Max), l.Quota)
	case l.Queue < 0 || l.Queue >= algo.Max:
		return algo.Params{}, fmt.Errorf("queue %d is not within 0 and %d", l.Queue, int64(algo.Max)-1)
	case l.MaxWait < 0 || l.MaxWait%time.Microsecond != 0:
		return algo.Params{}, fmt.Errorf("max_wait %v is not a whole number of microseconds, at least 0", l.MaxWait)
	case l.Burst != 0 && l.Algorithm != TokenBucket:
		return algo.Params{}, fmt.Errorf("burst belongs to token_bucket, not to %v", l.Algorithm)
	case l.Queue != 0 && l.Algorithm != LeakyQueue:
		return algo.Params{}, fmt.Errorf("queue belongs to leaky_queue, not to %v", l.Algorithm)
	case l.MaxWait != 0 && l.Algorithm != TokenBucket && l.Algorithm != LeakyQueue:
		return algo.Params{}, fmt.Errorf("max_wait belongs to token_bucket and leaky_queue, not to %v", l.Algorithm)
	case l.Slices != 0 && l.Algorithm != SlidingSlices:
		return algo.Params{}, fmt.Errorf("slices belongs to sliding_slices, not to %v", l.Algorithm)
	case l.WarmUp != 0 && l.Algorithm != WarmUp:
		return algo.Params{}, fmt.Errorf("warm_up belongs to algorithm warm_up, not to %v", l.Algorithm)
	}
	p := algo.Params{Cap: l.Capacity(), Unit: 1, Drain: 1, Window: window, Step: 1}
	switch l.Algorithm {
	case TokenBucket, LeakyQueue:
		p.Kind = algo.Bucket
		if l.Algorithm == LeakyQueue {
			p.Kind = algo.Queue
		}
		p.Unit, p.Drain = window, max(l.Quota, 1)
		d := gcd(p.Unit, p.Drain)
		p.Unit, p.Drain = p.Unit/d, p.Drain/d
		// A float is near enough to tell centuries.
		if drain := float64(p.Cap) * float64(p.Unit) / float64(p.Drain); drain > algo.Max {
			return p, fmt.Errorf("%d units at once at %d per %v take more than 142 years to drain; lower the burst or shorten the window", p.Cap, l.Quota, l.Window)
		}
	case FixedWindow:
		p.Kind = algo.FixedWindow
	case FixedWindowFirst:
		p.Kind = algo.FirstWindow
	case SlidingWindow:
		p.Kind = algo.SlidingWindow
	case SlidingSlices:
		p.Kind = algo.SlidingLog
		slices := int64(l.Slices)
		if slices == 0 {
			slices = 10
		}
		if slices < 1 || slices > maxSlices || window%slices != 0 {
			return p, fmt.Errorf("slices %d is not within 1 and %d, or does not divide the window %v into whole microseconds", slices, maxSlices, l.Window)
		}
		p.Step = window / slices
	case SlidingLog:
		p.Kind = algo.SlidingLog
		if l.Quota > MaxLogQuota {
			return p, fmt.Errorf("quota %d is above %d, too many instants to keep for each key; use sliding_window, or token_bucket for a rate", l.Quota, MaxLogQuota)
		}
	case WarmUp:
		p.Kind = algo.WarmUp
		if l.WarmUp <= 0 || l.WarmUp%time.Microsecond != 0 || l.WarmUp.Microseconds() > algo.Max {
			return p, fmt.Errorf("warm_up %v is not a whole number of microseconds above 0; write for example warm_up: 30s", l.WarmUp)
		}
		if l.Quota == 0 {
			return p, fmt.Errorf("quota 0 cannot warm up; use token_bucket to refuse everything")
		}
		p.Step = l.WarmUp.Microseconds()
	default:
		return p, fmt.Errorf("unknown algorithm %v", l.Algorithm)
	}
	return p, nil
}

// slack is the longest wait Take may hand out, in ticks.
func (l Limit) slack() int64 {
	if l.Algorithm == LeakyQueue && l.MaxWait == 0 {
		return math.MaxInt64
	}
	return l.MaxWait.Microseconds()
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
