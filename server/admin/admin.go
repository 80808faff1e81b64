// Package admin is the operator's door: metrics, health and profiles.
//
//	/healthz       200 while the process answers
//	/readyz        200 while it takes requests, 503 before and while it stops
//	/metrics       for Prometheus
//	/debug/pprof/  profiles of the Go runtime
//
// It asks for no credential, so it listens on loopback addresses only, and answers
// only requests that are addressed to one: a web page that the operator has open
// could otherwise read it under a host name of its own (DNS rebinding).
package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"

	"github.com/weirhq/weir/server/config"
)

// Options are what the door shows.
type Options struct {
	// Metrics answers a scrape.
	Metrics http.Handler
	// Ready is nil while requests are taken, and otherwise says why not.
	Ready func() error
}

// Handler answers requests at the door.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, "weir: /healthz /readyz /metrics /debug/pprof/")
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Ready(); err != nil {
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		say(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /metrics", o.Metrics)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r.Host) {
			say(w, http.StatusMisdirectedRequest, "this door answers only to 127.0.0.1, [::1] and localhost")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// say answers with a line of text.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// local is whether a Host field names this machine itself.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}

// Listen opens the door at an address, which has to be one that only this machine
// can reach, whatever its name resolves to.
func Listen(a config.Address) (net.Listener, error) {
	ln, err := net.Listen("tcp", string(a))
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	if t, ok := ln.Addr().(*net.TCPAddr); !ok || !t.IP.IsLoopback() {
		_ = ln.Close() // nobody was served
		return nil, fmt.Errorf("admin: %s can be reached from outside, and this door asks for no credential; listen on 127.0.0.1 or [::1]", ln.Addr())
	}
	return ln, nil
}
