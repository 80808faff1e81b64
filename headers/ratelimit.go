package headers

import "time"

// Names of the fields whose values this package appends. They may be sent on
// allowed answers too (case S31), but not on redirects (3xx): a client that
// reads r=0 there may not follow, says the draft.
const (
	PolicyField     = "RateLimit-Policy"
	RateLimitField  = "RateLimit"
	RetryAfterField = "Retry-After"
	XLimitField     = "X-RateLimit-Limit"
	XRemainingField = "X-RateLimit-Remaining"
	XResetField     = "X-RateLimit-Reset"
)

// AppendPolicy appends the value of RateLimit-Policy, one item per limit in
// the order given. It appends nothing for no limits: then the field must not
// be sent, an empty List having no form on the wire (RFC 9651 §3.1).
func AppendPolicy(dst []byte, limits ...Limit) []byte {
	for i := range limits {
		l := &limits[i]
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendString(dst, l.Policy)
		dst = append(dst, ";q="...)
		dst = appendInteger(dst, l.Quota)
		if l.Window >= time.Second {
			dst = append(dst, ";w="...)
			dst = appendInteger(dst, ceilSeconds(l.Window))
		}
		if !l.countsRequests() {
			dst = append(dst, ";qu="...)
			dst = appendString(dst, l.Unit)
		}
		dst = appendKey(dst, l)
		if l.Burst > 0 && l.Burst != l.Quota {
			dst = append(dst, ";weir-burst="...)
			dst = appendInteger(dst, l.Burst)
		}
		if l.Window > 0 && l.Window%time.Second != 0 {
			dst = append(dst, ";weir-window="...)
			dst = appendInteger(dst, ceilMilliseconds(l.Window))
		}
	}
	return dst
}

// AppendRateLimit appends the value of RateLimit, one item per limit in the
// order given, nothing for no limits. t is the wait of a limit that refused,
// the reset of another, and is left out if there is none.
func AppendRateLimit(dst []byte, limits ...Limit) []byte {
	for i := range limits {
		l := &limits[i]
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendString(dst, l.Policy)
		dst = append(dst, ";r="...)
		dst = appendInteger(dst, l.Remaining)
		if seconds, ok := l.wait(); ok {
			dst = append(dst, ";t="...)
			dst = appendInteger(dst, seconds)
		}
		dst = appendKey(dst, l)
	}
	return dst
}

func appendKey(dst []byte, l *Limit) []byte {
	if len(l.Key) == 0 || len(l.Key) > MaxKey {
		return dst
	}
	dst = append(dst, ";pk="...)
	return appendBytes(dst, l.Key)
}

// AppendRetryAfter appends the value of Retry-After: whole seconds, rounded
// up, at least 1 (cases B31, B32). For a negative wait, which never ends, it
// appends nothing and returns false: then the field must not be sent.
func AppendRetryAfter(dst []byte, wait time.Duration) ([]byte, bool) {
	if wait < 0 {
		return dst, false
	}
	return appendInteger(dst, retrySeconds(wait)), true
}

// AppendXLimit appends the value of X-RateLimit-Limit: the quota. The X fields
// hold a single value; take the limit that [Tightest] names.
func AppendXLimit(dst []byte, l *Limit) []byte { return appendInteger(dst, l.Quota) }

// AppendXRemaining appends the value of X-RateLimit-Remaining. It can exceed
// the quota where the burst does.
func AppendXRemaining(dst []byte, l *Limit) []byte { return appendInteger(dst, l.Remaining) }

// AppendXReset appends the value of X-RateLimit-Reset: the seconds left, the
// same number as t of RateLimit. If there is none it appends nothing and
// returns false: then the field must not be sent.
func AppendXReset(dst []byte, l *Limit) ([]byte, bool) {
	seconds, ok := l.wait()
	if !ok {
		return dst, false
	}
	return appendInteger(dst, seconds), true
}

func ceilMilliseconds(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}
