package weirhttp

import (
	"context"
	"net/http"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/headers"
)

// Middleware puts a limiter in front of handlers. Requests that the limiter
// refuses are answered, and never reach the handler; a rule that makes requests
// wait holds them here, until their context ends. The limiter's rules may be
// swapped at any time.
//
// The handler gets the server's own ResponseWriter, unless RefundOn or Settle need
// to see the answer; then it gets one around it that flushes, hijacks and copies
// files as well as the server's, also through http.ResponseController.
//
// An allowed request costs two allocations, the values of the fields that are
// sent, and one more if its answer is watched.
func Middleware(l *Limiter, o Options) func(http.Handler) http.Handler {
	m := &middleware{Options: o, limiter: l, resolver: o.Resolver}
	if m.resolver == nil {
		m.resolver = peers()
	}
	if m.Clock == nil {
		m.Clock = weir.SystemClock()
	}
	m.exchanges.New = func() any { return new(exchange) }
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}
}

type middleware struct {
	Options
	limiter   *Limiter
	resolver  *clientip.Resolver
	exchanges sync.Pool
}

// exchange is the scratch of one request and its answer.
type exchange struct {
	Request
	decision weir.Decision
	limits   []headers.Limit // of the decision, as clients see them
	fields   fields
	body     []byte
}

func (m *middleware) serve(w http.ResponseWriter, hr *http.Request, next http.Handler) {
	if m.Skip != nil && m.Skip(hr) {
		next.ServeHTTP(w, hr)
		return
	}
	x := m.exchanges.Get().(*exchange)
	if m.allow(w, hr, x) {
		if m.RefundOn == nil && m.Settle.Cost == nil {
			next.ServeHTTP(w, hr)
		} else {
			watched := &recorder{ResponseWriter: w}
			next.ServeHTTP(watched, hr)
			m.settle(watched, x)
		}
	}
	// Not deferred: what a panicking handler may still hold is not used again.
	x.release()
	m.exchanges.Put(x)
}

// allow decides a request. One that is refused has been answered.
func (m *middleware) allow(w http.ResponseWriter, hr *http.Request, x *exchange) bool {
	if err := x.read(hr, m.resolver); err != nil && !m.RawPaths {
		m.refusePath(w, x, err)
		return false
	}
	var err error
	if x.decision, err = m.limiter.Take(hr.Context(), &x.Request); err != nil {
		m.refuseUndecided(w, x)
		return false
	}
	if !x.decision.Allowed {
		m.refuse(w, x)
		return false
	}
	if wait := x.decision.Wait; wait > 0 {
		if err := m.Clock.Sleep(hr.Context(), wait); err != nil {
			m.refund(x)
			m.refuseUndecided(w, x)
			return false
		}
	}
	x.describe(m.ShowShadow)
	x.fields.limits(m.Headers, x.limits)
	if m.DraftSpelling {
		x.fields.spell()
	}
	x.fields.set(w.Header())
	return true
}

// settle corrects the charge by the answer that a handler gave.
func (m *middleware) settle(w *recorder, x *exchange) {
	answer := w.answer()
	if m.RefundOn != nil && m.RefundOn(answer.Status) {
		m.refund(x)
		return
	}
	if m.Settle.Cost == nil {
		return
	}
	if units, ok := m.Settle.Cost(&x.Request, answer); ok {
		m.report(x, m.limiter.Settle(over(x.Context()), &x.Request, &x.decision, m.Settle.Unit, units))
	}
}

// refund gives back what a request took.
func (m *middleware) refund(x *exchange) {
	m.report(x, m.limiter.Refund(over(x.Context()), &x.Request, &x.decision))
}

func (m *middleware) report(x *exchange, err error) {
	if err != nil && m.OnError != nil {
		m.OnError(&x.Request, err)
	}
}

// over is a context for what has to be done though the client may have left.
func over(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// release forgets the request, for the pool.
func (x *exchange) release() {
	x.Request.Request, x.groups = nil, nil
	x.Hostname, x.Path, x.digests = "", "", x.digests[:0]
	x.decision = weir.Decision{}
}
