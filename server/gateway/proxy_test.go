package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

const noRules = "\nrules: []\n"

func TestWebSocketsPassThrough(t *testing.T) {
	w := start(t, setup{upstream: echo(), config: base + "rules: [{name: ws, key: ip, limit: 1/h}]\n"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+w.address+"/chat", nil)
	must(t, err)
	conn.SetReadLimit(1 << 20)
	for _, text := range []string{"one", strings.Repeat("long ", 20000)} {
		must(t, conn.Write(ctx, websocket.MessageText, []byte(text)))
		if _, got, err := conn.Read(ctx); err != nil || string(got) != text {
			t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(text))
		}
	}
	if _, resp, err := websocket.Dial(ctx, "ws://"+w.address+"/chat", nil); err == nil || resp.StatusCode != 429 {
		t.Errorf("a second upgrade was not refused: %v", err)
	}
	must(t, conn.Close(websocket.StatusNormalClosure, ""))
	must(t, w.stop())
	if text := scrape(t, w); !strings.Contains(text, `weir_http_requests_total{code="1xx"} 1`) {
		t.Errorf("the upgrade is not counted:\n%s", text)
	}
}

// TestOnlyWebSocketIsUpgraded: with HTTP/2 on the connection, requests would pass
// that no rule sees.
func TestOnlyWebSocketIsUpgraded(t *testing.T) {
	up := new(recording)
	w := start(t, setup{config: base + noRules, upstream: up})
	for _, offer := range []string{"h2c", "websocket, h2c", "TLS/1.2", "h2c\r\nUpgrade: websocket"} {
		a := w.raw("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: " + offer + "\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
		for _, r := range up.take() {
			if a.StatusCode != 200 || r.Header.Get("Upgrade") != "" || r.Header.Get("Connection") != "" || r.Header.Get("Http2-Settings") != "" {
				t.Errorf("Upgrade: %q: %d; the upstream saw %v", offer, a.StatusCode, r.Header)
			}
		}
	}
}

// echo is an upstream that upgrades and sends back what it is sent.
func echo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		conn.SetReadLimit(1 << 20)
		for {
			kind, text, err := conn.Read(r.Context())
			if err != nil || conn.Write(r.Context(), kind, text) != nil {
				return
			}
		}
	})
}

// TestEventsArriveAsTheyAreSent: the second event is sent only when the client has
// the first, so a gateway that held it back would hang here.
func TestEventsArriveAsTheyAreSent(t *testing.T) {
	got := make(chan struct{})
	w := start(t, setup{config: base + noRules, upstream: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-got:
			case <-r.Context().Done():
				return
			}
		}
	})})
	resp, err := w.client("127.0.0.9").Get("http://" + w.address + "/events")
	must(t, err)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		must(t, err)
		if _, err = lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d is %q, %v", i, line, err)
		}
		got <- struct{}{}
	}
}

// TestBodiesStream: the client sends the second half when the upstream has the
// first.
func TestBodiesStream(t *testing.T) {
	const half = 1 << 20
	arrived := make(chan struct{})
	w := start(t, setup{config: base + noRules, upstream: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.CopyN(io.Discard, r.Body, half)
		close(arrived)
		m, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, n+m, err)
	})})
	body, send := io.Pipe()
	go func() {
		_, _ = send.Write(make([]byte, half))
		<-arrived
		_, _ = send.Write(make([]byte, half))
		_ = send.Close()
	}()
	resp, err := w.client("127.0.0.9").Post("http://"+w.address+"/", "", body)
	must(t, err)
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "2097152 <nil>\n" {
		t.Errorf("the upstream read %q, %v", text, err)
	}
}

// TestLengthsThatDisagreeAreRefused: what could be read as two requests by the
// next server is none.
func TestLengthsThatDisagreeAreRefused(t *testing.T) {
	up := new(recording)
	w := start(t, setup{config: base + noRules, upstream: up})
	for request, want := range map[string]int{
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab":                          400,
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na":                                               400,
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n":                              501,
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": 501,
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n":                              400,
		"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n":                                                           400,
		"POST / HTTP/1.1\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": 431,
		"CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\n":                           405,
	} {
		if got := w.raw(request).StatusCode; got != want {
			t.Errorf("%.90q: %d, want %d", request, got, want)
		}
	}
	if seen := up.take(); len(seen) != 0 {
		t.Errorf("%d reached the upstream", len(seen))
	}
	// Both at once mean chunked (RFC 9112 section 6.3), and only that is sent on.
	a := w.raw("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\n\r\n")
	if seen := up.take(); a.StatusCode != 200 || len(seen) != 1 || seen[0].ContentLength != -1 || seen[0].Header.Get("Content-Length") != "" {
		t.Errorf("%d; the upstream saw %v", a.StatusCode, seen)
	}
}

func TestTheFirstRouteThatMatchesIsTaken(t *testing.T) {
	w := start(t, setup{config: `
gateway:
  listen: 127.0.0.1:0
  routes:
    - {match: GET /a/**, upstreams: ["` + named(t, "first") + `"]}
    - {match: "*.example.com/", upstreams: ["` + named(t, "second") + `"]}
    - {match: /a/b, upstreams: ["` + named(t, "third") + `"]}
rules: [{name: all, key: ip, limit: 5/h}]
`})
	for _, c := range []struct {
		method, path, host string
		status             int
		body               string
	}{
		{"GET", "/a/b", "shop.example.com", 200, "first"}, {"POST", "/a/b", "h", 200, "third"},
		{"POST", "/a/b", "shop.EXAMPLE.com:8080", 200, "second"}, {"GET", "/b", "h", 404, ""}, {"POST", "/a/c", "h", 404, ""},
		{"GET", "/b", "h", 429, ""}, // what leads nowhere counts too
	} {
		got := w.do("127.0.0.9", c.method, c.path, "Host: "+c.host)
		if got.StatusCode != c.status || c.body != "" && got.body != c.body {
			t.Errorf("%s %s%s: %d %s, want %d %s", c.method, c.host, c.path, got.StatusCode, got.body, c.status, c.body)
		}
		if got.StatusCode == 404 && got.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("404 is %s", got.Header.Get("Content-Type"))
		}
	}
}

// refused is an address at which nobody listens.
func refused(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, ln.Close())
	return "http://" + ln.Addr().String()
}

func named(t testing.TB, name string) string {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, name)
	}))
	t.Cleanup(up.Close)
	return up.URL
}

func routed(upstreams ...string) string {
	return "gateway: {listen: \"127.0.0.1:0\", routes: [{match: /**, upstreams: [\"" + strings.Join(upstreams, `", "`) + "\"]}]}" + noRules
}

func TestUpstreamsTakeTurns(t *testing.T) {
	w := start(t, setup{config: routed(named(t, "a"), named(t, "b"), named(t, "c"))})
	got := ""
	for range 6 {
		got += w.do("127.0.0.9", "GET", "/").body
	}
	if got != "abcabc" {
		t.Errorf("turns were %s", got)
	}
}

func TestAnUpstreamThatIsGoneIsPassedOver(t *testing.T) {
	w := start(t, setup{config: routed(refused(t), named(t, "b"), named(t, "c"))})
	got := ""
	for range 4 {
		got += w.do("127.0.0.9", "GET", "/").body
	}
	if len(got) != 4 || strings.Trim(got, "bc") != "" {
		t.Errorf("answers were %q", got)
	}
	if text := scrape(t, w); !strings.Contains(text, `weir_upstream_errors_total{kind="connect"} 1`+"\n") {
		t.Errorf("it was tried more than once, or not counted:\n%s", text)
	}
}

func TestABodyIsNotSentTwice(t *testing.T) {
	w := start(t, setup{config: routed(refused(t), named(t, "b"))})
	if a := w.send(w.client("127.0.0.9"), "POST", "/", strings.NewReader("once")); a.StatusCode != 502 {
		t.Errorf("the first attempt: %d, want 502", a.StatusCode)
	}
	if text := scrape(t, w); !strings.Contains(text, `weir_upstream_errors_total{kind="connect"} 1`) || strings.Contains(text, "broken") {
		t.Errorf("it was tried elsewhere:\n%s", text)
	}
	if a := w.send(w.client("127.0.0.9"), "POST", "/", strings.NewReader("once")); a.body != "b" {
		t.Errorf("the next goes to the other: %d %s", a.StatusCode, a.body)
	}
}

func TestUpstreamsThatDoNotAnswerAreProblems(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	must(t, err)
	defer silent.Close()
	torn := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer torn.Close()
	for upstream, want := range map[string]struct {
		status int
		kind   string
	}{
		refused(t):                         {502, "connect"},
		torn.URL:                           {502, "broken"},
		"http://" + silent.Addr().String(): {504, "timeout"},
	} {
		w := start(t, setup{config: strings.Replace(routed(upstream), "routes:", "timeouts: {response: 50ms}, routes:", 1)})
		a := w.do("127.0.0.9", "GET", "/path")
		if a.StatusCode != want.status || a.Header.Get("Content-Type") != "application/problem+json" || strings.Contains(a.body, "127.0.0.1") {
			t.Errorf("%s: %d %s", want.kind, a.StatusCode, a.body)
		}
		if text := scrape(t, w); !strings.Contains(text, `weir_upstream_errors_total{kind="`+want.kind+`"} 1`) {
			t.Errorf("%s is not counted:\n%s", want.kind, text)
		}
		if !strings.Contains(w.log.String(), "an upstream did not answer") {
			t.Errorf("%s is not logged: %s", want.kind, w.log)
		}
	}
}

// TestSlowClientsAreLetGo: a header, and a body, that do not come end the
// connection, also if the request was refused and nobody reads its body.
func TestSlowClientsAreLetGo(t *testing.T) {
	w := start(t, setup{upstream: fine, config: strings.Replace(base, "routes:", "timeouts: {header: 50ms, body: 50ms}\n  routes:", 1) +
		"rules: [{name: none, match: /none, key: ip, limit: 0/m}]\n"})
	for request, status := range map[string]string{
		"GET / HTTP/1.1\r\nHost: h\r\n":                                 "",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab":     "408",
		"POST /none HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab": "429",
	} {
		conn, err := net.Dial("tcp", w.address)
		must(t, err)
		_, err = io.WriteString(conn, request)
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(patience)))
		text, err := io.ReadAll(conn) // ends when the gateway closes
		if errors.As(err, new(net.Error)) || !strings.HasPrefix(string(text), strings.TrimSuffix("HTTP/1.1 "+status, "HTTP/1.1 ")) {
			t.Errorf("%q: %q, %v; want %s and an end", request, text, err, status)
		}
		_ = conn.Close()
	}
}

// TestAClientThatTakesNothingIsLetGo: what it asked for does not wait for it.
func TestAClientThatTakesNothingIsLetGo(t *testing.T) {
	over := make(chan struct{})
	w := start(t, setup{config: strings.Replace(base, "routes:", "timeouts: {send: 50ms}\n  routes:", 1) + noRules,
		upstream: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(over)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})})
	conn, err := net.Dial("tcp", w.address)
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	must(t, err)
	select {
	case <-over:
	case <-time.After(patience):
		t.Error("the upstream still waits for the client")
	}
}

func TestRequestsInFlightFinish(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	w := start(t, setup{config: base + noRules, upstream: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-finish
		fmt.Fprint(w, "finished")
	})})
	answered := make(chan answer, 1)
	go func() { answered <- w.do("127.0.0.9", "GET", "/slow") }()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	for { // no more connections are taken
		conn, err := net.Dial("tcp", w.address)
		if err != nil {
			break
		}
		_ = conn.Close()
		runtime.Gosched()
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a request in flight: %v", err)
	default:
	}
	close(finish)
	if a := <-answered; a.body != "finished" {
		t.Errorf("the request in flight got %d %q", a.StatusCode, a.body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopped with %v", err)
	}
}

// TestWhatDoesNotEndIsCutOff: after the time for it, streams and upgraded
// connections end with the gateway, and never with what looks like a whole answer.
func TestWhatDoesNotEndIsCutOff(t *testing.T) {
	begun := make(chan struct{})
	w := start(t, setup{config: strings.Replace(base, "routes:", "timeouts: {shutdown: 20ms}\n  routes:", 1) + noRules,
		upstream: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			close(begun)
			<-r.Context().Done()
		})})
	resp, err := w.client("127.0.0.9").Get("http://" + w.address + "/")
	must(t, err)
	defer resp.Body.Close()
	<-begun
	if err := w.stop(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stopped with %v, want that time ran out", err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the answer that was cut off looks whole")
	}
}

func TestNoGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("gateway", func(t *testing.T) {
		w := start(t, setup{upstream: echo(), config: base + "rules: [{name: a, key: ip, limit: 100/s}]\n"})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, _, err := websocket.Dial(ctx, "ws://"+w.address+"/", nil)
		must(t, err)
		must(t, conn.Write(ctx, websocket.MessageText, []byte("open until the end")))
		w.statuses(20, "127.0.0.9", "GET", "/")
		must(t, w.stop())
		_, _, err = conn.Read(ctx) // the echo
		must(t, err)
		if _, _, err = conn.Read(ctx); err == nil {
			t.Error("the upgraded connection outlived the gateway")
		}
		_ = conn.CloseNow()
	})
	for range 1000 { // those of the client and the upstream end when the scheduler lets them
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
		runtime.GC()
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
}
