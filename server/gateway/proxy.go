package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/weirhttp"
)

// maxHeader bounds the header of an upstream's answer, in bytes.
const maxHeader = 256 << 10

// transport speaks HTTP/1.1 to upstreams over connections that are kept.
func transport(t config.Timeouts) *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: t.Connect}).DialContext,
		Protocols:   &http1,
		// The default of 2 would open and close connections all the time: there are
		// few hosts, and each gets the traffic of many clients.
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    t.Connect,
		ResponseHeaderTimeout:  t.Response,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeader,
		// What the upstream encodes goes to the client as it is.
		DisableCompression: true,
	}
}

// proxy is the way of a request to the upstreams of a route and back. Answers
// without a length and event streams are flushed as they come, upgrades are passed
// through, and what the upstream says of its own limits stands beside ours.
func (g *Gateway) proxy(r *route) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) { g.vouch(pr) },
		Transport: &sender{
			pool:      r.pool,
			transport: g.transport,
			now:       time.Now,
			failed:    g.upstreamFailed,
		},
		BufferPool:     new(buffers),
		ErrorHandler:   g.unanswered,
		ErrorLog:       lineLog(g.o.Log, "an answer broke off"),
		ModifyResponse: g.single,
	}
}

// single keeps one voice where a field holds one value: with X-RateLimit-* on,
// those of the upstream would stand beside ours.
func (g *Gateway) single(resp *http.Response) error {
	if resp.StatusCode < 100 { // net/http would not write it
		return fmt.Errorf("gateway: the upstream answered with status %d", resp.StatusCode)
	}
	if g.o.Headers == weirhttp.IETFAndX || g.o.Headers == weirhttp.OnlyX {
		for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			delete(resp.Header, name)
		}
	}
	return nil
}

// upstreamFailed counts and logs an attempt that failed.
func (g *Gateway) upstreamFailed(u *upstream, r *http.Request, err error) {
	if errors.As(err, new(*bodyError)) {
		return // the client's doing, which the context may not show yet
	}
	kind := "broken"
	switch {
	case unreachable(err):
		kind = "connect"
	case isTimeout(err):
		kind = "timeout"
	}
	g.o.Metrics.UpstreamFailed(kind)
	g.o.Log.LogAttrs(r.Context(), levelUpstream, "an upstream did not answer",
		attrs(u.url.Host, r, kind, err)...)
}

// unanswered tells the client that there is no answer.
func (g *Gateway) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	body := failure(r)
	switch {
	case body != nil && isTimeout(body):
		w.Header().Set("Connection", "close")
		problem(w, r, http.StatusRequestTimeout, "The body of the request did not arrive in time.")
	case body != nil:
		w.Header().Set("Connection", "close")
		problem(w, r, http.StatusBadRequest, "The body of the request could not be read.")
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		// The client has left, or the gateway stops: nothing may look like an answer.
		panic(http.ErrAbortHandler)
	case isTimeout(err):
		problem(w, r, http.StatusGatewayTimeout, "The server behind this gateway did not answer in time.")
	default:
		problem(w, r, http.StatusBadGateway, "The server behind this gateway did not answer.")
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// buffers lends what bodies are copied through.
type buffers struct{ pool sync.Pool }

type buffer [32 << 10]byte

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*buffer); ok {
		return p[:]
	}
	return new(buffer)[:]
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(p []byte) { b.pool.Put((*buffer)(p)) }
