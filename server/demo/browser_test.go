package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/server/daemon"
	"github.com/weirhq/weir/server/internal/realtest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience bounds how long a test that is about to fail waits.
const patience = 20 * time.Second

// tab is a tab of a real browser, spoken to in the DevTools protocol over a pair of
// pipes: https://chromedevtools.github.io/devtools-protocol/.
type tab struct {
	t       *testing.T
	to      *os.File
	in      chan message
	session string
	id      int
	events  []message // not yet awaited
	loaded  []string  // "STATUS URL" of each document

	retryAfter string // of the last refused document
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// watch runs before any script of a page. It tells the test of each text of the
// element that counts down, and of whatever the policy of the page forbids; and it
// takes the chance out of the moment at which a refused page loads again: it is
// the earliest.
const watch = `
Math.random = () => 0
document.addEventListener('securitypolicyviolation', e => tell('forbidden: ' + e.violatedDirective + ' ' + e.blockedURI))
let last
new MutationObserver(() => {
  const e = document.querySelector('#left, #answer .no:not(.status)')
  if (e && e.textContent && e.textContent !== last) tell('counts: ' + (last = e.textContent))
}).observe(document, { subtree: true, childList: true, characterData: true })
`

// open starts a browser with an empty tab.
func open(t *testing.T) *tab {
	t.Helper()
	program := realtest.Need(t, "chromium")
	fromTest, to, err := os.Pipe()
	must(t, err)
	from, fromBrowser, err := os.Pipe()
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--no-proxy-server",
		"--lang=en-US", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	var said bytes.Buffer
	c.Stderr = &said
	c.ExtraFiles = []*os.File{fromTest, fromBrowser} // it reads from 3 and writes to 4
	c.WaitDelay = 5 * time.Second
	must(t, c.Start())
	_ = fromTest.Close() // the browser has copies
	_ = fromBrowser.Close()

	b := &tab{t: t, to: to, in: make(chan message, 1<<12)}
	go b.read(from)
	t.Cleanup(func() {
		b.session = "" // Browser.close is for all of it
		b.send("Browser.close", nil)
		for range b.in { // until it has closed its end
		}
		_ = c.Wait() // how it ends is not what is tested
		cancel()
		_, _ = to.Close(), from.Close()
		if t.Failed() {
			t.Logf("the browser said\n%s", &said)
		}
	})
	var made struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	b.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	b.session = made.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	b.call("Runtime.addBinding", map[string]any{"name": "tell"}, nil)
	b.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": watch}, nil)
	return b
}

// read passes on what the browser writes, each message up to a NUL, until it ends.
func (b *tab) read(from *os.File) {
	defer close(b.in)
	for r := bufio.NewReader(from); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) == nil {
			b.in <- m
		}
	}
}

func (b *tab) send(method string, params any) {
	b.id++
	m := message{ID: b.id, Method: method, Session: b.session}
	if params != nil {
		m.Params, _ = json.Marshal(params) // strings and numbers always marshal
	}
	text, _ := json.Marshal(m)
	_, _ = b.to.Write(append(text, 0)) // who waits for the answer finds out
}

// next waits for a message. One that tells of trouble ends the test.
func (b *tab) next(waitingFor string) message {
	b.t.Helper()
	m, ok := <-b.in
	if !ok {
		b.t.Fatalf("the browser has ended, or took longer than %v, while the test waited for %s; it loaded %q", patience, waitingFor, b.loaded)
	}
	var p struct {
		Entry    struct{ Source, Level, Text, URL string }
		Type     string
		Response struct {
			Status  int
			URL     string
			Headers map[string]string
		}
		Payload string
	}
	_ = json.Unmarshal(m.Params, &p) // other messages have other fields of these names
	switch m.Method {
	case "Runtime.exceptionThrown":
		b.red(string(m.Params))
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
			b.red(string(m.Params))
		}
	case "Log.entryAdded": // a 429 is an error of the network to a browser
		if p.Entry.Source != "network" || !strings.Contains(p.Entry.Text, "the server responded with a status of 4") {
			b.red(fmt.Sprint(p.Entry))
		}
	case "Network.responseReceived":
		if p.Type == "Document" {
			b.loaded = append(b.loaded, fmt.Sprint(p.Response.Status, " ", p.Response.URL))
			if wait := p.Response.Headers["Retry-After"]; wait != "" {
				b.retryAfter = wait
			}
		}
	case "Runtime.bindingCalled":
		if strings.HasPrefix(p.Payload, "forbidden: ") {
			b.red(p.Payload)
		}
	}
	return m
}

// call asks the browser to do something.
func (b *tab) call(method string, params, result any) {
	b.t.Helper()
	b.send(method, params)
	for id := b.id; ; {
		m := b.next(method)
		if m.ID != id {
			b.events = append(b.events, m)
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error)
		}
		if result != nil {
			must(b.t, json.Unmarshal(m.Result, result))
		}
		return
	}
}

// await waits for an event, and returns its params. Other events stay.
func (b *tab) await(method string) json.RawMessage {
	b.t.Helper()
	for i := 0; ; i++ {
		if i == len(b.events) {
			b.events = append(b.events, b.next(method))
		}
		if m := b.events[i]; m.Method == method {
			b.events = slices.Delete(b.events, i, i+1)
			return m.Params
		}
	}
}

// counts waits for the next number that the countdown shows.
func (b *tab) counts() int {
	b.t.Helper()
	for {
		var p struct{ Payload string }
		must(b.t, json.Unmarshal(b.await("Runtime.bindingCalled"), &p))
		if text, ok := strings.CutPrefix(p.Payload, "counts: "); ok {
			n, _ := strconv.Atoi(strings.TrimFunc(text, func(c rune) bool { return c < '0' || c > '9' }))
			return n
		}
	}
}

// visit loads a page, and waits until it has.
func (b *tab) visit(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil) // returns when it is that page's turn
	b.eval(`new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))`, nil)
}

// eval evaluates an expression in the page, and waits for it if it is a promise.
func (b *tab) eval(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if result != nil {
		must(b.t, json.Unmarshal(r.Result.Value, result))
	}
}

// press clicks with the mouse on the middle of an element.
func (b *tab) press(selector string) {
	b.t.Helper()
	var at [2]float64
	b.eval(fmt.Sprintf(`(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector(%q).getBoundingClientRect())`, selector), &at)
	for _, what := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": what, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

// red is for what a developer would see in red. Nothing may be.
func (b *tab) red(text string) {
	b.t.Helper()
	b.t.Fatalf("the console says: %s", text)
}

// quiet waits until all that the browser has said so far is heard.
func (b *tab) quiet() {
	b.t.Helper()
	b.eval("0", nil)
}

// site starts weir in front of the demo, and returns its address.
func site(t *testing.T, rules string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	must(t, os.WriteFile(path, []byte(rules), 0o644))
	ctx, cancel := context.WithCancel(context.Background())
	d, err := daemon.New(ctx, daemon.Options{Config: path, Listen: "127.0.0.1:0", Demo: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("weir ended with %v", err)
		}
	})
	return "http://" + d.Gateway().String()
}

// TestPeopleSeeTheSixthLoginRefused is the demo as a person tries it.
func TestPeopleSeeTheSixthLoginRefused(t *testing.T) {
	at := site(t, `rules: [{name: login, match: POST /api/auth/login, key: ip, limit: 5/m}]`)
	b := open(t)
	b.visit(at + "/")
	var got []string
	for range 6 {
		b.eval(`answered = new Promise(done => new MutationObserver((_, o) => { o.disconnect(); done() }).observe(document.getElementById('answer'), { childList: true })), 0`, nil)
		b.press("#login button")
		var status string
		b.eval(`answered.then(() => document.querySelector('#answer .status').firstChild.textContent)`, &status)
		got = append(got, status)
	}
	if s := strings.Join(got, " "); s != "401 401 401 401 401 429" {
		t.Errorf("six logins: %s", s)
	}
	var retryAfter string
	b.eval(`[...document.querySelectorAll('#answer dt')].find(e => e.textContent === 'Retry-After').nextSibling.textContent`, &retryAfter)
	first, second := b.counts(), b.counts()
	if retryAfter != fmt.Sprint(first) || second < 1 || second >= first {
		t.Errorf("Retry-After is %s, and the page counted %d, %d", retryAfter, first, second)
	}
	var words []string
	b.eval(`new Promise(done => {
		const list = document.getElementById('list')
		const look = () => { const w = [...list.querySelectorAll('.word')].map(e => e.textContent); if (w.length === 6) done(w) }
		new MutationObserver(look).observe(list, { childList: true })
		look()
	})`, &words)
	if want := []string{"refused", "allowed", "allowed", "allowed", "allowed", "allowed"}; !slices.Equal(words, want) {
		t.Errorf("the list says %q, the newest first", words)
	}
	b.quiet()
}

// TestTheRefusedPageComesBackInTime: the page that a browser gets in place of a
// refused one counts down, under its strict policy, and loads again when it has. It
// does so not a moment before the server allows it, or it would be refused again.
func TestTheRefusedPageComesBackInTime(t *testing.T) {
	at := site(t, `rules: [{name: items, match: GET /api/items, key: ip, limit: {quota: 1, window: 3s}}]`) + "/api/items"
	b := open(t)
	b.visit(at)
	b.visit(at)
	refused := b.counts()
	counted := []int{refused}
	for n := refused; n > 1; {
		n = b.counts()
		counted = append(counted, n)
	}
	for len(b.loaded) < 3 { // the page loads itself again
		b.await("Page.loadEventFired")
	}
	if !slices.IsSortedFunc(counted, func(x, y int) int { return y - x }) || fmt.Sprint(refused) != b.retryAfter {
		t.Errorf("Retry-After was %s, and the page counted %v", b.retryAfter, counted)
	}
	if want := []string{"200 " + at, "429 " + at, "200 " + at}; !slices.Equal(b.loaded, want) {
		t.Errorf("loaded %q, want %q", b.loaded, want)
	}
	var text string
	b.eval(`document.body.textContent`, &text)
	if !strings.Contains(text, "spillway") {
		t.Errorf("in the end the browser shows %q", text)
	}
	b.quiet()
}
