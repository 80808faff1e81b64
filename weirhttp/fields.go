package weirhttp

import (
	"net/http"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
)

// The names of package headers as http.Header spells its keys. On the wire case
// does not matter; in the map of an http.Header it decides whether a handler that
// sets the same field replaces ours.
const (
	policyKey     = "Ratelimit-Policy"
	rateLimitKey  = "Ratelimit"
	retryAfterKey = headers.RetryAfterField
	xLimitKey     = "X-Ratelimit-Limit"
	xRemainingKey = "X-Ratelimit-Remaining"
	xResetKey     = "X-Ratelimit-Reset"
)

// describe lists the decision's policies as clients see them.
func (x *exchange) describe(shadows bool) {
	d := &x.decision
	x.limits = x.limits[:0]
	for i := range d.Len() {
		s := d.Limit(i)
		if s.Shadow && !shadows || unanswered(d, &s) {
			continue
		}
		l := headers.Limit{
			Policy: s.Policy.Name, Quota: s.Policy.Limit.Quota, Window: s.Policy.Limit.Window,
			Unit: s.Policy.Unit, Key: x.pk(i), Remaining: s.Remaining,
			Reset: max(s.Reset-d.Wait, 0), RetryAfter: s.RetryAfter,
			Refused: !d.Allowed && !s.OK && !s.Shadow,
		}
		if s.Policy.Limit.Algorithm == weir.TokenBucket {
			l.Burst = s.Policy.Limit.Burst
		}
		x.limits = append(x.limits, l)
	}
}

// unanswered reports whether the store failed and the rule said open or closed:
// then nobody knows what is left, and to claim that nothing is would be a lie. An
// answer with nothing left always has something to wait for, or a quota of 0.
func unanswered(d *weir.Decision, s *weir.ServiceLimit) bool {
	return d.Degraded && s.Remaining == 0 && s.Reset == 0 && s.Policy.Limit.Quota > 0 &&
		(s.OK || s.RetryAfter < 0)
}

// fields are the values of the answer's fields, one after the other: they become
// a single string, and a single array of values.
type fields struct {
	buf   []byte
	names [6]string
	ends  [6]int
	n     int
}

// end ends the value that was appended to buf.
func (f *fields) end(name string) {
	f.names[f.n], f.ends[f.n] = name, len(f.buf)
	f.n++
}

// limits adds the fields that tell limits.
func (f *fields) limits(which Headers, limits []headers.Limit) {
	f.buf, f.n = f.buf[:0], 0
	if len(limits) == 0 || which == NoHeaders {
		return
	}
	if which != OnlyX {
		f.buf = headers.AppendPolicy(f.buf, limits...)
		f.end(policyKey)
		f.buf = headers.AppendRateLimit(f.buf, limits...)
		f.end(rateLimitKey)
	}
	if which == IETF {
		return
	}
	tightest := &limits[headers.Tightest(limits)]
	f.buf = headers.AppendXLimit(f.buf, tightest)
	f.end(xLimitKey)
	f.buf = headers.AppendXRemaining(f.buf, tightest)
	f.end(xRemainingKey)
	var known bool
	if f.buf, known = headers.AppendXReset(f.buf, tightest); known {
		f.end(xResetKey)
	}
}

// spell gives the fields the names that the draft and custom spell.
func (f *fields) spell() {
	for i, key := range f.names[:f.n] {
		switch key {
		case policyKey:
			f.names[i] = headers.PolicyField
		case rateLimitKey:
			f.names[i] = headers.RateLimitField
		case xLimitKey:
			f.names[i] = headers.XLimitField
		case xRemainingKey:
			f.names[i] = headers.XRemainingField
		case xResetKey:
			f.names[i] = headers.XResetField
		}
	}
}

// set sets the fields. What h had under these names goes.
func (f *fields) set(h http.Header) {
	if f.n == 0 {
		return
	}
	text, values, start := string(f.buf), make([]string, f.n), 0
	for i := range f.n {
		values[i] = text[start:f.ends[i]]
		// Full, so that an Add by the handler does not write over the next value.
		h[f.names[i]] = values[i : i+1 : i+1]
		start = f.ends[i]
	}
}
