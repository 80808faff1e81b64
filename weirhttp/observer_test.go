package weirhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirhttp"
)

// recording counts what it hears.
type recording struct{ decided, failed atomic.Int64 }

func (o *recording) Decided(context.Context, *weirhttp.Request, *weir.Decision) { o.decided.Add(1) }
func (o *recording) StoreFailed(context.Context, *weirhttp.Request, error)      { o.failed.Add(1) }

// bare is a ResponseWriter that does nothing and allocates nothing.
type bare struct{ h http.Header }

func (w bare) Header() http.Header         { return w.h }
func (w bare) Write(p []byte) (int, error) { return len(p), nil }
func (w bare) WriteHeader(int)             {}

// serve runs one request through a middleware, its fields going to h.
func serve(m func(http.Handler) http.Handler, h http.Header) {
	m(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(bare{h}, httptest.NewRequest("GET", "/", nil))
}

// status keeps the status.
type status struct {
	bare
	code int
}

func (w *status) WriteHeader(code int) { w.code = code }

func newRequest() *http.Request { return httptest.NewRequest("GET", "/", nil) }

// silent is a store that never answers.
type silent struct{ weir.Store }

func (silent) Take(ctx context.Context, _ []weir.Ask, _ []weir.Verdict) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// strict is a store that does nothing for a context that is over, as one behind a
// network would.
type strict struct{ weir.Store }

func (s strict) Adjust(ctx context.Context, asks []weir.Ask) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Adjust(ctx, asks)
}

// flaky is a store that takes and cannot give back.
type flaky struct{ weir.Store }

func (flaky) Adjust(context.Context, []weir.Ask) error { return weir.ErrUnavailable }
