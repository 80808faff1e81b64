package headers

import "time"

// Reason is why a request was refused.
type Reason uint8

const (
	QuotaExceeded   Reason = iota // the client asked too much; 429
	ReducedCapacity               // the service cannot serve more now; 503
)

// Status returns the HTTP status of the reason: 429 or 503.
func (r Reason) Status() int {
	if r == ReducedCapacity {
		return 503
	}
	return 429
}

// Type returns the URI of the reason's problem type, registered with IANA by
// draft-ietf-httpapi-ratelimit-headers, "Problem Types".
func (r Reason) Type() string {
	if r == ReducedCapacity {
		return "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	}
	return "https://iana.org/assignments/http-problem-types#quota-exceeded"
}

// Refusal is what sentence, problem and page have in common. The zero value is
// a 429 that names no policy and asks the client to wait one second.
type Refusal struct {
	Reason Reason

	// Limits are the limits that applied; those that refused are reported.
	Limits []Limit

	// RetryAfter is the wait if no limit knows it, as in overload. The client
	// is told the longest of this and the refused limits' waits; less than 0:
	// never.
	RetryAfter time.Duration
}

// wait returns the longest wait, negative if it never ends.
func (r *Refusal) wait() time.Duration {
	wait := r.RetryAfter
	if i := longest(r.Limits); i >= 0 && longer(r.Limits[i].RetryAfter, wait) {
		wait = r.Limits[i].RetryAfter
	}
	return wait
}
