// Package gateway is the reverse proxy: it limits requests with weirhttp and sends
// those that are allowed to an upstream.
//
// # One path
//
// The path is brought into the normal form of package urlpath first. Rules and
// routes match that form, and it is what the upstream is sent, so that no other
// spelling reaches it uncounted (case B29). A path without one normal form is
// answered 400, and a query that does not parse loses the pairs that do not, for
// the same reason.
//
// # What upstreams are told about clients
//
// Every forwarding header that came in is removed, whoever wrote it, also in
// spellings that some servers read alike (X_Forwarded_For). Then the configured one
// is set to what trusted proxies and the connection itself vouch for, once (case
// B46), with X-Forwarded-Host and X-Forwarded-Proto. The Host field stays the
// client's. Of the protocols to which a client may ask to upgrade only WebSocket
// is passed on: over any other it could talk past the rules.
//
// # Several upstreams
//
// They take turns. One that cannot be connected to is left alone for a moment, and
// the request is tried once at the next if it has no body; since nothing was sent,
// that is safe whatever its method. A request with a body, or one that an upstream
// took and did not answer, is not sent twice.
package gateway

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/server/metrics"
	"github.com/weirhq/weir/urlpath"
	"github.com/weirhq/weir/weirhttp"
)

// Options are what a Gateway is made of. All but Headers are required.
type Options struct {
	// Routes lead requests to upstreams; the first that matches is taken.
	Routes []config.Route
	// Timeouts are filled in.
	Timeouts config.Timeouts
	// Limiter decides requests, and Headers are the fields that tell clients.
	Limiter *weirhttp.Limiter
	Headers weirhttp.Headers
	// Resolver finds clients.
	Resolver *clientip.Resolver
	// Metrics counts answers.
	Metrics *metrics.Metrics
	// Log hears of upstreams that do not answer: a line for each request, with
	// constant messages, so give it a handler that samples.
	Log *slog.Logger
}

// A Gateway is an http.Handler. It is made by New, and may be asked concurrently.
type Gateway struct {
	o         Options
	limited   http.Handler
	routes    *routes
	transport *http.Transport
}

// New makes a gateway. The error is [rules.Problems] of the routes' matches, which
// config.Load finds too.
func New(o Options) (*Gateway, error) {
	g := &Gateway{o: o, transport: transport(o.Timeouts)}
	routes, err := newRoutes(o.Routes)
	if err != nil {
		return nil, err
	}
	g.routes = routes
	for _, r := range routes.list {
		r.proxy = g.proxy(r)
	}
	g.limited = weirhttp.Middleware(o.Limiter, weirhttp.Options{
		Resolver:      o.Resolver,
		Headers:       o.Headers,
		DraftSpelling: true,
		OnError: func(_ *weirhttp.Request, err error) {
			o.Log.Warn("a charge could not be corrected", "error", err)
		},
	})(http.HandlerFunc(g.forward))
	return g, nil
}

// ServeHTTP answers a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, pause: g.o.Timeouts.Send}
	rec.wait() // "100 Continue" may be the first to be written
	end := g.o.Metrics.Begin()
	defer func() {
		rec.wait() // for what net/http has buffered
		end(rec.status)
	}()

	if r.Method == http.MethodConnect {
		problem(rec, r, http.StatusMethodNotAllowed, "This is a gateway to its own site, not a proxy to others.")
		return
	}
	if r.ProtoMajor != 1 { // the preface of HTTP/2, as if it were a request
		problem(rec, r, http.StatusHTTPVersionNotSupported, "This gateway speaks HTTP/1.")
		return
	}
	if r.Method != strings.ToUpper(r.Method) { // "post" is a POST to some servers, and to no rule
		problem(rec, r, http.StatusNotImplemented, "Methods are written in capitals.")
		return
	}
	r = g.boundBody(rec, withoutHopFields(r, g.o.Resolver.Header()))
	if clean, err := urlpath.Clean(r.URL.EscapedPath()); err == nil {
		r.URL.RawPath, r.URL.Path = clean, urlpath.Decode(clean)
	} // otherwise the middleware answers 400
	g.limited.ServeHTTP(rec, r)
	if rec.status == 0 {
		rec.status = http.StatusOK // as net/http does for a handler that wrote nothing
	}
}

// forward sends an allowed request on its way.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	q, err := weirhttp.NewRequest(r, g.o.Resolver)
	if err != nil { // the middleware has refused those
		problem(w, r, http.StatusBadRequest, "The path has an unclear meaning.")
		return
	}
	route := g.routes.find(q)
	if route == nil {
		problem(w, r, http.StatusNotFound, "No route of this gateway leads there.")
		return
	}
	route.proxy.ServeHTTP(w, r)
}

// Close gives up idle connections to upstreams.
func (g *Gateway) Close() { g.transport.CloseIdleConnections() }
