package headers

import (
	"strings"
	"time"
)

// Limit is one policy and what is left of it for one partition key: a service
// limit of the draft together with its quota policy.
type Limit struct {
	// Policy is the name of the policy. It is escaped wherever it is written.
	Policy string

	// Quota is the number of units per Window. 0 refuses everything (case B38);
	// less counts as 0.
	Quota int64

	// Window is the time the quota is for. 0 or less: the limit has none, as a
	// limit of concurrency, and no w is sent.
	Window time.Duration

	// Burst is the number of units that may be taken at once; 0 is the quota.
	Burst int64

	// Unit is the quota unit: "requests" (also when empty), "content-bytes",
	// "concurrent-requests" or one of the operator's own.
	Unit string

	// Key is the partition key, sent as pk; none when empty. Clients see it:
	// give a digest of anything private. A key longer than [MaxKey] is not
	// sent, since a part of it could be the key of somebody else.
	Key []byte

	// Remaining is the number of units left; less than 0 counts as 0.
	Remaining int64

	// Reset is the time until the quota is fresh; less than 0: unknown, not
	// sent. On a refusal the client is told RetryAfter instead.
	Reset time.Duration

	// RetryAfter is the time until the refused request would be allowed; less
	// than 0: never. It is read only if Refused.
	RetryAfter time.Duration

	// Refused says that this policy refused the request.
	Refused bool
}

// MaxKey is the length in bytes of the longest partition key that is sent, so
// that no client can inflate the answers it gets.
const MaxKey = 64

// wait is the number of seconds the client should count before it expects more
// of this limit; ok is false if there is no such number.
//
// A refusal tells its own wait, because Retry-After should not point to an
// earlier time than RateLimit does (draft, Server Behavior), and a bucket is
// full again long after the next request would be allowed.
func (l *Limit) wait() (seconds int64, ok bool) {
	if l.Refused {
		return retrySeconds(l.RetryAfter), l.RetryAfter >= 0
	}
	return ceilSeconds(l.Reset), l.Reset >= 0
}

// Tightest returns the index of the limit that single-value fields speak of,
// -1 if there are none. The order is total:
//
//  1. a limit that refused, before one that allowed;
//  2. fewer units remaining, whatever the unit;
//  3. the longer time until more is there, never being the longest among
//     refusals, unknown the shortest among the rest;
//  4. the earlier in the list.
func Tightest(limits []Limit) int {
	best := -1
	for i := range limits {
		if best < 0 || limits[i].tighter(&limits[best]) {
			best = i
		}
	}
	return best
}

func (l *Limit) tighter(m *Limit) bool {
	if l.Refused != m.Refused {
		return l.Refused
	}
	if a, b := max(l.Remaining, 0), max(m.Remaining, 0); a != b {
		return a < b
	}
	if l.Refused {
		return longer(l.RetryAfter, m.RetryAfter)
	}
	return max(l.Reset, -1) > max(m.Reset, -1)
}

// RetryAfter returns the longest wait of the limits that refused, -1 if one of
// them never allows the request; refused is false if none refused.
func RetryAfter(limits []Limit) (wait time.Duration, refused bool) {
	i := longest(limits)
	if i < 0 {
		return 0, false
	}
	return max(limits[i].RetryAfter, -1), true
}

// longest returns the index of the refusal with the longest wait, the first of
// equals, -1 if nothing was refused.
func longest(limits []Limit) int {
	best := -1
	for i := range limits {
		if l := &limits[i]; l.Refused && (best < 0 || longer(l.RetryAfter, limits[best].RetryAfter)) {
			best = i
		}
	}
	return best
}

// longer compares two waits of which a negative one never ends.
func longer(a, b time.Duration) bool {
	if a < 0 || b < 0 {
		return a < 0 && b >= 0
	}
	return a > b
}

// ceilSeconds rounds up. Adding a second before the division would overflow
// for the longest durations.
func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// retrySeconds is ceilSeconds, but at least 1: a client told to wait 0 seconds
// retries in a tight loop (cases B32, B49).
func retrySeconds(d time.Duration) int64 { return max(ceilSeconds(d), 1) }

// countsRequests says whether the limit counts the draft's default quota unit.
func (l *Limit) countsRequests() bool {
	return l.Unit == "" || strings.EqualFold(l.Unit, "requests")
}
