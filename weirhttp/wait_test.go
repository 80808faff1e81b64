package weirhttp_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirhttp"
)

// gate is a clock whose sleepers wait for the test.
type gate struct {
	handClock
	asleep chan time.Duration
	wake   chan struct{}
}

func (g *gate) Sleep(ctx context.Context, d time.Duration) error {
	g.asleep <- d
	select {
	case <-g.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const queue = `[{"name": "queue", "key": "ip", "limit": {"quota": 1, "window": "10s", "algorithm": "leaky_queue", "queue": 1}}]`

// A client that leaves while it waits, over a real connection, gets its place
// back, and the handler does not run.
func TestAClientThatLeavesWhileWaitingIsRefunded(t *testing.T) {
	g := &gate{asleep: make(chan time.Duration), wake: make(chan struct{})}
	refused := make(chan int, 1)
	w := start(t, setup{rules: queue, store: strict{weir.NewMemory(weir.MemoryOptions{Clock: g})}, options: weirhttp.Options{Clock: g, OnRefuse: func(_ http.Header, _ *weirhttp.Request, f weirhttp.Refusal) []byte {
		refused <- f.Status
		return nil
	}}})
	w.want("ok", w.do("GET", "/"))

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, "GET", w.url, nil)
		res, err := w.http.Do(r)
		if err == nil {
			res.Body.Close()
		}
		left <- err
	}()
	if d := <-g.asleep; d != 10*time.Second {
		t.Errorf("waits %v, want 10s", d)
	}
	full := w.do("GET", "/") // the only place is taken
	w.want("429", full)
	<-refused
	leave()
	if err := <-left; err == nil {
		t.Error("the client that left got an answer")
	}
	if s := <-refused; s != 503 { // which nobody reads; it comes after the refund
		t.Errorf("got %d, want 503", s)
	}
	if w.served.Load() != 1 {
		t.Errorf("served %d, want 1", w.served.Load())
	}

	// The place is free again.
	got := make(chan answer)
	go func() { got <- w.do("GET", "/") }()
	select {
	case a := <-got:
		t.Fatalf("the place was not given back: %d %s", a.StatusCode, a.body)
	case d := <-g.asleep:
		if d != 10*time.Second {
			t.Errorf("waits %v, want 10s", d)
		}
	}
	g.wake <- struct{}{}
	a := <-got
	w.want("ok", a)
	if a.rest(t, "t") != 10 { // 20 s from the decision, 10 of which it has waited
		t.Errorf("%v", a.Header)
	}
}

// By the system's clock a queue lets requests through at its pace.
func TestWaitingRequestsComeAtThePaceOfTheirQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := weirhttp.New(weirhttp.Rule{Name: "queue", Limits: []weir.Limit{{Quota: 1, Window: time.Second, Algorithm: weir.LeakyQueue, Queue: 9}}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		served := make(chan time.Duration, 20)
		h := weirhttp.Middleware(l, weirhttp.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			served <- time.Since(start)
		}))
		codes := make(chan int, 20)
		for range 12 {
			go func() {
				rr := status{bare: bare{http.Header{}}}
				h.ServeHTTP(&rr, newRequest())
				codes <- rr.code
			}()
		}
		refused := 0
		for range 12 {
			if <-codes == 429 {
				refused++
			}
		}
		if refused != 2 || len(served) != 10 {
			t.Fatalf("%d refused and %d served, want 2 and 10", refused, len(served))
		}
		for i := range 10 {
			if at := <-served; at != time.Duration(i)*time.Second {
				t.Errorf("request %d at %v, want %ds", i+1, at, i)
			}
		}
	})
}
