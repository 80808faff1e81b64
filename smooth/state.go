package smooth

// State is what a limiter remembers: plain numbers, to be kept in any form that
// keeps their bits. The zero value was never seen; the first function of a
// [Pace] that meets it makes it a fresh one.
//
// A state that comes out of a Pace has Next at least 0 and Stored between 0 and
// Max, both finite. (After a change of rate Stored may exceed Max by the last
// bit of a float64, as in Guava.)
type State struct {
	// Next is the instant at which the next call is granted, in ticks. Later than
	// now, it is a debt; then Stored is as it was when the debt was made.
	Next int64
	// Stored is the permits saved up by idleness until Next.
	Stored float64
	// Max is the most that Stored may become. It tells which pace stored it.
	Max float64
}

// Wait is how long a call at now waits until it is granted, in ticks, at least
// 0 and at most 2^63-1. It does not depend on what the call asks for.
func (s State) Wait(now int64) int64 { return max(sub(s.Next, now), 0) }

// Grants reports whether a call at now is granted within timeout ticks, both
// included. A negative timeout counts as 0. It is Guava's canAcquire.
func (s State) Grants(now, timeout int64) bool { return s.Wait(now) <= max(timeout, 0) }
