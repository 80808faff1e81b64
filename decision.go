package weir

import (
	"iter"
	"time"
)

// A Decision is the answer to one request. The zero value is a refusal by
// nobody; decisions are made by a [Limiter].
type Decision struct {
	// Allowed is whether the request may go on.
	Allowed bool
	// Degraded is set if the store failed and the rules' OnOutage decided.
	Degraded bool
	// Wait is how long an allowed request should wait before it goes on: the longest
	// wait of the enforced policies.
	Wait time.Duration
	// RetryAfter is, for a refused request, the longest RetryAfter of the policies
	// that refused it, rounded up to a microsecond; below 0 if one of them never can
	// allow it, or nobody knows.
	RetryAfter time.Duration
	// Version is that of the Ruleset that decided.
	Version string

	set    any // *compiled[R]
	frame  keeper
	count  int
	inline [inlineLimits]limited
	more   []limited
}

// inlineLimits is how many service limits a Decision holds without allocating.
const inlineLimits = 4

// limited is what a Decision keeps of one ask.
type limited struct {
	policy    *Policy
	rule      int32
	flags     uint8
	cost      int64 // charged; 0 if nothing was
	charged   int64 // the instant of the charge, for Refund
	remaining int64
	reset     int64
	retry     int64
}

const (
	flagOK = 1 << iota
	flagShadow
	flagMissing
	flagLocal
	flagCharged
	flagSpilled
)

// keeper gives access to the keys of a decision while its frame lives.
type keeper interface{ key(i int) []byte }

// A ServiceLimit is what one policy says of a request.
type ServiceLimit struct {
	Policy *Policy
	// OK is whether this policy by itself allows the request.
	OK bool
	// Shadow policies are watched: one that is not OK would have refused.
	Shadow bool
	// Missing is set if the request had no key for the rule.
	Missing bool
	// Remaining is the units left for the key, at least 0.
	Remaining int64
	// Reset is how long until the key has its full quota again.
	Reset time.Duration
	// RetryAfter is, for a policy that is not OK, how long until the same cost would
	// be; below 0 if it never can be.
	RetryAfter time.Duration
}

// Len is the number of service limits.
func (d *Decision) Len() int { return d.count }

// Limit returns service limit i, in the order of the rules.
func (d *Decision) Limit(i int) ServiceLimit {
	l := d.at(i)
	return ServiceLimit{
		Policy:     l.policy,
		OK:         l.flags&flagOK != 0,
		Shadow:     l.flags&flagShadow != 0,
		Missing:    l.flags&flagMissing != 0,
		Remaining:  l.remaining,
		Reset:      duration(l.reset),
		RetryAfter: duration(l.retry),
	}
}

// Limits ranges over the service limits in the order of the rules.
func (d *Decision) Limits() iter.Seq[ServiceLimit] {
	return func(yield func(ServiceLimit) bool) {
		for i := range d.count {
			if !yield(d.Limit(i)) {
				return
			}
		}
	}
}

// Key is the partition key that service limit i was asked about. It is valid
// only during the call of an [Observer]; in a Decision that was returned it is
// nil.
func (d *Decision) Key(i int) []byte {
	if d.frame == nil || i < 0 || i >= d.count {
		return nil
	}
	return d.frame.key(i)
}

func (d *Decision) at(i int) *limited {
	if i < inlineLimits {
		return &d.inline[i]
	}
	return &d.more[i-inlineLimits]
}

// add makes the next service limit.
func (d *Decision) add(p *Policy, rule int, flags uint8) *limited {
	var l *limited
	if d.count < inlineLimits {
		l = &d.inline[d.count]
	} else {
		d.more = append(d.more, limited{})
		l = &d.more[d.count-inlineLimits]
	}
	d.count++
	l.policy, l.rule, l.flags = p, int32(rule), flags
	return l
}

// duration turns ticks into a Duration. Never stays below 0, and spans beyond
// 292 years, which only a bucket overdrawn by Settle can reach, saturate.
func duration(ticks int64) time.Duration {
	const most = int64(1<<63-1) / 1000
	return time.Duration(min(ticks, most)) * time.Microsecond
}
