package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// maxRequestHeader bounds the header of a request, in bytes; net/http answers 431
// beyond.
const maxRequestHeader = 64 << 10

// Serve answers connections of ln, which it closes, until ctx ends. Then it takes
// no more, lets the requests that are being answered go on for Timeouts.Shutdown
// at most, cuts off the rest, and returns when all handlers have: with nil if
// nothing was cut off, and otherwise with context.DeadlineExceeded or the error of
// ln. Connections that were upgraded are no longer requests and are closed at the
// end.
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	running, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	// Connections and handlers: one that was upgraded is no connection of the
	// server's any more while its handler still runs. A handler is added while its
	// connection counts, so never after Wait has begun with nothing to wait for.
	var busy sync.WaitGroup
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			busy.Add(1)
			defer busy.Done()
			g.ServeHTTP(w, r)
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				busy.Add(1)
			case http.StateHijacked, http.StateClosed:
				busy.Done()
			}
		},
		BaseContext:       func(net.Listener) context.Context { return running },
		Protocols:         &http1,
		ReadHeaderTimeout: g.o.Timeouts.Header,
		IdleTimeout:       g.o.Timeouts.Idle,
		MaxHeaderBytes:    maxRequestHeader,
		ErrorLog:          lineLog(g.o.Log, "a connection failed"),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		grace, stop := context.WithTimeout(running, g.o.Timeouts.Shutdown)
		err = server.Shutdown(grace)
		stop()
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	cut()
	if closed := server.Close(); err == nil {
		err = closed
	}
	busy.Wait()
	g.Close()
	return err
}
