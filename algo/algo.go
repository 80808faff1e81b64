// Package algo is the arithmetic of rate limits: pure functions from a state
// and an instant to a new state and a verdict.
//
// It knows no clock, lock, network or log. The memory store and the replay of a
// log decide with [Decide] and [DecideLog]; the one algorithm that is not integer
// arithmetic, WarmUp, is in package smooth.
//
// # Units
//
// Time is counted in ticks, one tick being one microsecond since the Unix
// epoch. Quotas, costs and use are whole quota units. All numbers are
// integers; a fraction of a unit is kept exactly, as a count of 1/[Params].Unit
// parts. Params hold values up to [Max] = 2^52-1, so that every number and
// every product that matters stays exact in a Lua double too; the few wider
// products go through one function, scale, that is exact at any width.
//
// # Promises
//
// For every kind of limit (each is a test in promise_test.go):
//
//   - a refusal charges nothing, and the same cost is allowed exactly
//     Verdict.Wait ticks later if nobody else asks, and not one tick earlier;
//   - Verdict.Remaining is the greatest cost that would be allowed next at the
//     same instant, and after Verdict.Reset ticks the state equals a fresh one;
//   - an instant earlier than one already seen counts as the latest one seen;
//   - a state keeps what was used, never what is left, so new Params apply at
//     once to the use of the old ones.
package algo

// Max is the largest value of a quota, cost, burst, window or instant: 2^52-1,
// the microseconds of 142 years.
const Max = 1<<52 - 1

// Never is the Wait of a refusal that no wait can mend, since the cost exceeds
// the capacity.
const Never = -1

// Kind selects an algorithm. Its numbers are part of stored keys: they are
// never renumbered. Package weir has names for people: TokenBucket is a Bucket,
// LeakyQueue a Queue, FixedWindowFirst a FirstWindow, SlidingSlices a SlidingLog
// with a Step.
type Kind uint8

const (
	// Bucket is the token bucket, kept as a debt that drains. GCRA and the
	// leaky bucket used as a meter give the same answers.
	Bucket Kind = 1
	// Queue is the leaky bucket used as a queue: an allowed ask waits for its
	// turn.
	Queue Kind = 2
	// FixedWindow counts in windows aligned to the epoch.
	FixedWindow Kind = 3
	// FirstWindow counts in windows that the first allowed ask opens.
	FirstWindow Kind = 4
	// SlidingWindow weighs the previous aligned window by the share of it that
	// still lies inside the sliding one.
	SlidingWindow Kind = 5
	// SlidingLog counts exactly the units charged in the last Window. With a
	// Step above one tick it counts in slices of that length.
	SlidingLog Kind = 6
	// WarmUp is Guava's SmoothWarmingUp. Its arithmetic is in floating point
	// and lives in package smooth; a store that cannot run it refuses the rule.
	WarmUp Kind = 7
)

// Params are the numbers of one limit. Fields a kind does not name are unused.
type Params struct {
	Kind Kind
	// Cap is the number of units held at once: the burst of a Bucket, the
	// places of a Queue (the one in service included), the quota of a window.
	// 0 allows nothing.
	Cap int64
	// Unit and Drain are the rate of a Bucket or Queue: Drain/Unit units are
	// forgotten in a tick. Both are at least 1.
	Unit, Drain int64
	// Window is the length of a window in ticks, at least 1. For WarmUp it is
	// the time in which Cap units pass when warm.
	Window int64
	// Step is the length in ticks of a slice of a SlidingLog, 1 for the exact
	// log; it divides Window. For WarmUp it is the warm-up period.
	Step int64
}

// State is what one limit remembers of one key. The zero value was never seen.
//
// Bucket and Queue hold Used + Prev/Unit units at instant At. FixedWindow holds
// Used units in the window that begins at Prev, which lies ahead when
// reservations were made; Unit is the window's length. FirstWindow holds Used
// units in the window opened at Prev. SlidingWindow holds Used units in the
// window of At and Prev units in the one before; Unit is the window's length.
// SlidingLog holds Used units in a log whose first Prev entries are dead.
type State struct {
	At   int64 // the latest instant seen
	Used int64
	Prev int64
	Unit int64
}

// Verdict is the answer to one ask, at the instant State.At of the state that
// came with it. It has four words, which the compiler can keep in registers.
type Verdict struct {
	OK bool
	// Wait is, if OK, the ticks after which the asker may go on; else the ticks after
	// which the same ask would be OK, at least 1, or Never.
	Wait int64
	// Reset is the ticks after which nothing is held any more, 0 if nothing is.
	Reset int64
	// Remaining is the greatest cost that would be allowed without a wait
	// (for a Queue: that would find a place) right after this verdict.
	Remaining int64
}

// Decide asks for cost units at instant now, waiting at most slack ticks, of
// any kind but SlidingLog and WarmUp. The returned state is brought up to now
// and, if the verdict is OK, charged; a caller may drop it, and then nothing
// has happened. A cost below 0 counts as 0; a cost of 0 looks without taking.
// Only Bucket, Queue and FixedWindow can make an asker wait.
func Decide(p *Params, s State, now, cost, slack int64) (State, Verdict) {
	now, cost, slack = max(now, 0, s.At), max(cost, 0), min(max(slack, 0), Max)
	switch p.Kind {
	case Bucket:
		return bucket(p, s, now, cost, slack)
	case Queue:
		return queue(p, s, now, cost, slack)
	case FixedWindow:
		return fixed(p, s, now, cost, slack)
	case FirstWindow:
		return first(p, s, now, cost)
	case SlidingWindow:
		return sliding(p, s, now, cost)
	}
	return s, Verdict{Wait: Never} // an unknown kind allows nothing
}

// Adjust corrects a charge that Decide made at instant at (its State.At plus
// Verdict.Wait): delta > 0 charges that many more units at now without asking,
// delta < 0 gives back. What is given back never exceeds what is still held of
// the window that was charged, so it cannot lift a balance above its capacity
// nor pay for the use of others in a later window.
func Adjust(p *Params, s State, now, at, delta int64) State {
	now, delta = max(now, 0, s.At), min(max(delta, -Max), Max)
	switch p.Kind {
	case Bucket, Queue:
		s = drain(p, s, now)
		if s.Used+delta < 0 {
			s.Used, s.Prev = 0, 0
		} else {
			s.Used = clamp(s.Used + delta)
		}
	case FixedWindow:
		s = fixedAt(p, s, now)
		if delta > 0 || at >= s.Prev {
			s.Used = clamp(s.Used + delta)
		}
	case FirstWindow:
		s = firstAt(p, s, now)
		switch {
		case delta > 0 && s.Used == 0:
			s.Prev, s.Used = now, delta
		case delta > 0 || at >= s.Prev:
			s.Used = clamp(s.Used + delta)
		}
	case SlidingWindow:
		s = slidingAt(p, s, now)
		start := now - now%p.Window
		switch {
		case delta > 0 || at >= start:
			s.Used = clamp(s.Used + delta)
		case at >= start-p.Window:
			s.Prev = clamp(s.Prev + delta)
		}
	}
	return s
}

// clamp keeps a count within 0 and Max.
func clamp(n int64) int64 { return min(max(n, 0), Max) }
