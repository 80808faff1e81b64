package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/server/gateway"
	"github.com/weirhq/weir/server/metrics"
	"github.com/weirhq/weir/weirhttp"
	"github.com/weirhq/weir/weirtest"
)

// world is a gateway on a real port, with the clock of its limits in hand.
type world struct {
	t       testing.TB
	address string
	clock   *weirtest.Clock
	stop    func() error // ends the gateway and waits for it
	log     *lockedBuffer
	metrics *metrics.Metrics
}

// setup is what a world is made of.
type setup struct {
	// config is the YAML of a whole configuration; "UPSTREAM" stands for upstream.
	config   string
	upstream http.Handler
	store    weir.Store // nil: Memory
}

func start(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, clock: new(weirtest.Clock), log: new(lockedBuffer), metrics: metrics.New()}
	if s.upstream != nil {
		up := httptest.NewServer(s.upstream)
		t.Cleanup(up.Close)
		s.config = strings.ReplaceAll(s.config, "UPSTREAM", up.URL)
	}
	c, problems := config.Load("weir.yaml", []byte(s.config))
	must(t, problems.Err())
	program, err := rules.Compile(c.Rules, weirhttp.Binding())
	must(t, err)
	if s.store == nil {
		s.store = weir.NewMemory(weir.MemoryOptions{Clock: w.clock})
	}
	limiter, err := weir.New(s.store, program.Ruleset, weir.Options[*weirhttp.Request]{
		Clock: w.clock, Observer: metrics.Observer[*weirhttp.Request](w.metrics)})
	must(t, err)
	resolver, err := c.ClientIP.Resolver()
	must(t, err)
	fields := weirhttp.IETF
	if c.Headers.X {
		fields = weirhttp.IETFAndX
	}
	g, err := gateway.New(gateway.Options{Routes: c.Gateway.Routes, Timeouts: c.Gateway.Timeouts.Fill(), Limiter: limiter,
		Headers: fields, Resolver: resolver, Metrics: w.metrics, Log: slog.New(slog.NewTextHandler(w.log, nil))})
	must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.address = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, ln) }()
	w.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = w.stop() }) // who cares what it returns has asked
	return w
}

// base is a configuration that sends everything to the upstream.
const base = `
gateway:
  listen: 127.0.0.1:0
  routes: [{match: /**, upstreams: ["UPSTREAM"]}]
`

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client is a client with an address of its own, one of 127.0.0.0/8.
func (w *world) client(from string) *http.Client {
	dialer := &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableCompression: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type answer struct {
	*http.Response
	body string
}

// do sends a request from an address, with headers "Name: value".
func (w *world) do(from, method, path string, header ...string) answer {
	w.t.Helper()
	return w.send(w.client(from), method, path, nil, header...)
}

func (w *world) send(c *http.Client, method, path string, body io.Reader, header ...string) answer {
	w.t.Helper()
	r, err := http.NewRequest(method, "http://"+w.address+"/", body)
	must(w.t, err)
	path, query, _ := strings.Cut(path, "?")
	decoded, err := url.PathUnescape(path)
	must(w.t, err)
	r.URL = &url.URL{Scheme: "http", Host: w.address, Path: decoded, RawPath: path, RawQuery: query} // sent as given
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header[name] = append(r.Header[name], value) // spelled as given
	}
	resp, err := c.Do(r)
	must(w.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return answer{resp, string(text)}
}

// statuses sends a request n times and returns "200 200 429".
func (w *world) statuses(n int, from, method, path string, header ...string) string {
	w.t.Helper()
	var all []string
	for range n {
		all = append(all, fmt.Sprint(w.do(from, method, path, header...).StatusCode))
	}
	return strings.Join(all, " ")
}

// raw writes bytes as they are and returns the answer.
func (w *world) raw(request string) answer {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	must(w.t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, request)
	must(w.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(w.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return answer{resp, string(text)}
}

// recording is an upstream that remembers what it was asked.
type recording struct {
	mu   sync.Mutex
	seen []*http.Request
}

func (u *recording) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen = append(u.seen, r)
}

// take returns what was asked since the last call.
func (u *recording) take() []*http.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen
	u.seen = nil
	return seen
}

// fine is an upstream that says ok.
var fine = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// patience bounds how long a test that is about to fail waits.
const patience = 20 * time.Second

// scrape returns the figures that begin with weir_.
func scrape(t testing.TB, w *world) string {
	t.Helper()
	rec := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	var lines strings.Builder
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "weir_") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}
