package weirhttp

import (
	"net/http"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/clientip"
)

// Options configure a [Middleware]. The zero value is usable: no proxy is trusted,
// and answers carry the fields of the IETF draft. Functions are called on the
// goroutines of the requests, from many at once.
type Options struct {
	// Resolver finds and groups clients; nil trusts no proxy, so that the client is
	// the peer of the connection.
	Resolver *clientip.Resolver

	// Headers are the fields that tell clients their limits. Retry-After is sent with
	// refusals whatever it says.
	Headers Headers

	// DraftSpelling writes the names of the fields as the draft does, RateLimit, and
	// not as http.Header spells its keys, Ratelimit. Clients do not care, people and
	// their scripts may. Handlers behind it that set the same field by
	// http.Header.Set then add to ours instead of replacing it, so it suits a gateway
	// more than an application.
	DraftSpelling bool

	// ShowShadow lists policies in shadow mode among the others. Without it clients
	// are not told of limits that do not limit them.
	ShowShadow bool

	// Skip lets a request through uncounted, such as a health check; nil skips none.
	Skip func(*http.Request) bool

	// RawPaths lets requests through whose path has no normal form, such as one with
	// an escaped slash; rules see the path as it was sent. Without it they are
	// answered 400: what servers read differently, a rule cannot match reliably
	// (case B29), so allow them only if no rule that matters has a path.
	RawPaths bool

	// RefundOn gives back what a request took if it says so of the status of its
	// answer. Refunding 2xx makes a rule of failed logins only. It does not hear of
	// handlers that panic: what those took stays taken.
	RefundOn func(status int) bool

	// Settle corrects what a request took once its answer is known. The zero value
	// does not.
	Settle Settlement

	// OnRefuse writes the body of a refusal, and may set fields of the answer, such as
	// Content-Type, in h. For nil, or if it returns nil, the rule's own body or the
	// built-in one is sent. The status stays what it is: a refusal must not look like
	// success (cases S24, S42).
	OnRefuse func(h http.Header, r *Request, f Refusal) []byte

	// OnError hears when a refund or a settlement failed, so that the charge stayed as
	// it was; nil is nobody. Decisions are heard of by the limiter's Observer.
	OnError func(r *Request, err error)

	// Clock sleeps when a rule makes requests wait; nil is the system's.
	Clock weir.Clock
}

// Headers are the fields that tell clients their limits.
type Headers uint8

const (
	// IETF sends RateLimit and RateLimit-Policy. It is the zero value.
	IETF Headers = iota
	// IETFAndX sends X-RateLimit-Limit, -Remaining and -Reset besides: the tightest
	// policy, and the seconds left.
	IETFAndX
	// OnlyX sends the three X fields alone.
	OnlyX
	// NoHeaders sends none.
	NoHeaders
)

// A Settlement is the cost of a request that is known only afterwards, such as the
// bytes that were sent or the tokens that a model wrote. The rule's cost is the
// estimate that was taken before.
//
// Both this and RefundOn work out the keys of the request once more after the
// handler, which must have left alone what rules count by, headers for instance.
type Settlement struct {
	// Unit is the quota unit that is settled: policies of other units keep their
	// estimate.
	Unit string
	// Cost returns the units that the request really took, or false to keep the
	// estimate; nil settles nothing.
	Cost func(r *Request, a Answer) (units int64, ok bool)
}

// An Answer is what a handler did.
type Answer struct {
	// Status is the answer's status, 101 if the connection was taken over.
	Status int
	// Bytes is the length of its body as the handler wrote it; what is sent over a
	// connection that was taken over does not count.
	Bytes int64
	// Header are its fields. A handler may set one after its body, which is too late
	// for the client but not for Settlement.Cost.
	Header http.Header
}

// A Refusal is what a client is about to be told.
type Refusal struct {
	// Status is the status of the answer, 400 to 599.
	Status int
	// RetryAfter is what the client is told to wait, before it is rounded up to whole
	// seconds; below 0 if no wait helps.
	RetryAfter time.Duration
	// Lang is the language of Message, empty if the rule's message does not say.
	Lang string
	// Message is the sentence for people, the rule's own if it has one.
	Message string
	// Decision is who refused. It is the zero Decision if the request was over
	// before it could be decided.
	Decision *weir.Decision
}
