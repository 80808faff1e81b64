package weirhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/internal/sf"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/weirhttp"
)

// handClock is moved by hand. It starts aligned with every window the tests use.
type handClock struct{ micros atomic.Int64 }

func (c *handClock) Now() time.Time {
	const epoch = 1_700_006_400_000_000 / 3_600_000_000 * 3_600_000_000
	return time.UnixMicro(epoch + c.micros.Load())
}
func (c *handClock) Sleep(ctx context.Context, d time.Duration) error {
	c.micros.Add(d.Microseconds())
	return ctx.Err()
}
func (c *handClock) set(seconds float64) { c.micros.Store(int64(seconds*1e6 + 0.5)) }

// world is a server with the middleware, reached over real connections.
type world struct {
	t     *testing.T
	clock *handClock
	limit *weirhttp.Limiter
	url   string
	http  *http.Client
	// served counts the requests that reached the handler.
	served atomic.Int64
}

// peerField is how a test says which address a connection comes from, since all
// of its connections come from 127.0.0.1. It is gone when the middleware looks.
const peerField = "Test-Peer"

// setup are the parts of a world; all may be zero but the rules.
type setup struct {
	rules    string // the list of rules, as JSON
	options  weirhttp.Options
	trusted  []string
	header   string
	store    weir.Store
	observer weir.Observer[*weirhttp.Request]
	handler  http.Handler
}

// resolver trusts some proxies.
func resolver(t testing.TB, header string, trusted ...string) *clientip.Resolver {
	t.Helper()
	o := clientip.Options{Header: header}
	for _, p := range trusted {
		o.TrustedProxies = append(o.TrustedProxies, netip.MustParsePrefix(p))
	}
	r, err := clientip.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compile reads rules as a rule file would have them.
func compile(t testing.TB, list string) weirhttp.Ruleset {
	t.Helper()
	doc, problems := rules.LoadJSON("rules.json", []byte(`{"rules": `+list+`}`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(doc, weirhttp.Binding())
	if err != nil {
		t.Fatal(err)
	}
	return p.Ruleset
}

func start(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, clock: new(handClock)}
	if s.store == nil {
		s.store = weir.NewMemory(weir.MemoryOptions{Clock: w.clock})
	}
	var err error
	if w.limit, err = weir.New(s.store, compile(t, s.rules), weir.Options[*weirhttp.Request]{Clock: w.clock, Observer: s.observer}); err != nil {
		t.Fatal(err)
	}
	if s.options.Resolver == nil {
		s.options.Resolver = resolver(t, s.header, s.trusted...)
	}
	if s.handler == nil {
		s.handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(rw, "served")
		})
	}
	counted := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.served.Add(1)
		s.handler.ServeHTTP(rw, r)
	})
	limited := weirhttp.Middleware(w.limit, s.options)(counted)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if peer := r.Header.Get(peerField); peer != "" {
			r.RemoteAddr = peer
			r.Header.Del(peerField)
		}
		limited.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url, w.http = server.URL, server.Client()
	w.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return w
}

// answer is what a client got.
type answer struct {
	*http.Response
	body string
}

// do sends a request; fields are "Name: value", each a line of its own.
func (w *world) do(method, target string, fields ...string) answer {
	w.t.Helper()
	return w.send(w.http, method, target, nil, fields...)
}

func (w *world) send(c *http.Client, method, target string, body io.Reader, fields ...string) answer {
	w.t.Helper()
	r, err := http.NewRequest(method, w.url, body)
	if err != nil {
		w.t.Fatal(err)
	}
	path, query, _ := strings.Cut(target, "?")
	r.URL.Opaque, r.URL.RawQuery = path, query // sent as it is, not cleaned
	if strings.HasPrefix(path, "//") {         // which URL takes for a host
		r.URL.Opaque = "//" + r.URL.Host + path
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	res, err := c.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{res, string(text)}
}

// want checks statuses, written as in the cases: "ok ok 429".
func (w *world) want(statuses string, answers ...answer) {
	w.t.Helper()
	var got []string
	for _, a := range answers {
		got = append(got, map[int]string{200: "ok", 400: "400", 403: "403", 429: "429", 503: "503"}[a.StatusCode])
	}
	if s := strings.Join(got, " "); s != statuses {
		w.t.Errorf("got %s, want %s", s, statuses)
	}
}

// items parses a field strictly: one line, one List.
func (a answer) items(t *testing.T, name string) []sf.Item {
	t.Helper()
	lines := a.Header.Values(name)
	if len(lines) != 1 {
		t.Fatalf("%s has %d lines: %q", name, len(lines), lines)
	}
	list, err := sf.ParseList(lines[0])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return list
}

// field is a parameter of the only item of RateLimit.
func (a answer) rest(t *testing.T, param string) int64 {
	t.Helper()
	list := a.items(t, "RateLimit")
	if len(list) != 1 {
		t.Fatalf("RateLimit has %d items, want 1", len(list))
	}
	n, ok := list[0].Params[param].(int64)
	if !ok {
		t.Fatalf("RateLimit has no %s: %v", param, list[0])
	}
	return n
}

// broken is a store that cannot be asked.
type broken struct{}

func (broken) Take(context.Context, []weir.Ask, []weir.Verdict) (bool, error) {
	return false, weir.ErrUnavailable
}
func (broken) Peek(context.Context, []weir.Ask, []weir.Verdict) (bool, error) {
	return false, weir.ErrUnavailable
}
func (broken) Adjust(context.Context, []weir.Ask) error { return weir.ErrUnavailable }
func (broken) Reset(context.Context, []weir.Ask) error  { return weir.ErrUnavailable }
