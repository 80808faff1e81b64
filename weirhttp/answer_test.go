package weirhttp_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/sf"
	"github.com/weirhq/weir/weirhttp"
)

// watched makes the middleware wrap the ResponseWriter.
var watched = weirhttp.Options{RefundOn: func(int) bool { return false }}

// Only failed logins count: the others give back what they took.
func TestOnlyFailedLoginsCount(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "login", "key": "ip", "limit": "2/m"}]`,
		options: weirhttp.Options{RefundOn: func(status int) bool { return status < 300 }},
		handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("password") != "right" {
				http.Error(rw, "wrong", http.StatusForbidden)
			}
		})})
	right, wrong := "/?password=right", "/?password=wrong"
	var got []answer
	for _, target := range []string{right, right, right, wrong, right, wrong, right, wrong} {
		got = append(got, w.do("POST", target))
	}
	w.want("ok ok ok 403 ok 403 429 429", got...)
}

// Bytes, or tokens, are settled when they are known.
func TestCostsAreSettledByTheAnswer(t *testing.T) {
	w := start(t, setup{
		rules: `[{"name": "bytes", "key": "ip", "limit": "1000/m", "unit": "content-bytes", "cost": 100}, {"name": "calls", "key": "ip", "limit": "10/m"}]`,
		options: weirhttp.Options{Settle: weirhttp.Settlement{Unit: "content-bytes", Cost: func(r *weirhttp.Request, a weirhttp.Answer) (int64, bool) {
			if a.Header.Get("Content-Type") != "text/test" || a.Status != 200 && a.Status != 203 {
				t.Errorf("answer %+v", a)
			}
			return a.Bytes, r.URL.RawQuery != "keep"
		}}},
		handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/test")
			switch r.URL.RawQuery {
			case "write":
				rw.WriteHeader(203)
				_, _ = rw.Write(make([]byte, 300))
			case "string":
				_, _ = io.WriteString(rw, strings.Repeat("x", 200))
			case "copy":
				_, _ = io.Copy(rw, io.LimitReader(zeros{}, 250))
			}
		})})
	remaining := func(a answer) int64 { n, _ := a.items(t, "RateLimit")[0].Params["r"].(int64); return n }
	for _, c := range []struct {
		query string
		want  int64 // at the estimate, after what was settled before
	}{{"write", 900}, {"string", 600}, {"copy", 400}, {"nothing", 150}, {"keep", 150}} {
		if a := w.do("GET", "/?"+c.query); remaining(a) != c.want {
			t.Errorf("%s: %d left, want %d", c.query, remaining(a), c.want)
		}
	}
	w.do("GET", "/?write") // 50 are left at the estimate, and 300 are written
	a := w.do("GET", "/")
	w.want("429", a)
	if n := a.items(t, "RateLimit")[1].Params["r"]; n != int64(4) {
		t.Errorf("%v calls left, want 4: they have another unit", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A refund that fails is told.
func TestFailedRefundsAreHeard(t *testing.T) {
	var heard []error
	done := make(chan struct{}, 1)
	store := &flaky{Store: weir.NewMemory(weir.MemoryOptions{})}
	w := start(t, setup{rules: threePerMinute, store: store, options: weirhttp.Options{
		RefundOn: func(int) bool { return true },
		OnError:  func(_ *weirhttp.Request, err error) { heard = append(heard, err); done <- struct{}{} },
	}})
	w.do("GET", "/")
	<-done
	if len(heard) != 1 || !errors.Is(heard[0], weir.ErrUnavailable) {
		t.Errorf("heard %v", heard)
	}
}

// Whether or not the answer is watched, handlers stream, take connections over
// and send files.
func TestHandlersKeepTheServersAbilities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := make(chan int, 10)
	seeing := weirhttp.Options{RefundOn: func(status int) bool { seen <- status; return false }}
	for name, o := range map[string]weirhttp.Options{"plain": {}, "watched": seeing} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			w := start(t, setup{rules: `[{"name": "all", "key": "ip", "limit": "100/m"}]`, options: o,
				handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/events":
						rw.Header().Set("Content-Type", "text/event-stream")
						_, _ = io.WriteString(rw, "data: 1\n\n")
						rw.(http.Flusher).Flush()
						<-r.Context().Done() // nothing more comes
						close(gone)
					case "/controller":
						c := http.NewResponseController(rw)
						if err := errors.Join(c.SetWriteDeadline(time.Time{}), c.EnableFullDuplex(), c.Flush()); err != nil {
							t.Error(err)
						}
					case "/file":
						if _, ok := rw.(io.ReaderFrom); !ok {
							t.Error("files are copied")
						}
						http.ServeFile(rw, r, file)
					case "/hints":
						rw.WriteHeader(http.StatusEarlyHints)
						rw.WriteHeader(http.StatusTeapot)
					}
				})})
			if a := w.do("GET", "/file"); len(a.body) != 100_000 {
				t.Errorf("%d bytes", len(a.body))
			}
			w.want("ok", w.do("GET", "/controller"))
			if a := w.do("GET", "/hints"); a.StatusCode != http.StatusTeapot {
				t.Errorf("%d", a.StatusCode)
			}
			if name == "watched" {
				if got := [3]int{<-seen, <-seen, <-seen}; got != [3]int{200, 200, http.StatusTeapot} {
					t.Errorf("watched %v", got)
				}
			}
			res, err := w.http.Get(w.url + "/events")
			if err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(res.Body).ReadString('\n')
			if err != nil || line != "data: 1\n" || res.Header.Get("RateLimit") == "" {
				t.Errorf("%q %v %v", line, err, res.Header)
			}
			res.Body.Close()
			<-gone
		})
	}
}

// An upgrade, as WebSockets do it, passes through; and is counted.
func TestUpgradesPassThrough(t *testing.T) {
	for name, o := range map[string]weirhttp.Options{"plain": {}, "watched": watched} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan int, 3)
			if o.RefundOn != nil {
				o.RefundOn = func(status int) bool { seen <- status; return false }
			}
			w := start(t, setup{rules: `[{"name": "all", "key": "ip", "limit": "1/m"}]`, options: o,
				handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					c, buf, err := rw.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					_, _ = buf.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
					_ = buf.Flush()
					line, _ := buf.ReadString('\n')
					_, _ = buf.WriteString("you said " + line)
					_ = buf.Flush()
				})})
			for _, want := range []string{"101 Switching", "429 Too Many"} {
				c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello\n")
				in := bufio.NewReader(c)
				res, err := http.ReadResponse(in, nil)
				if err != nil || !strings.HasPrefix(res.Status, want) {
					t.Fatalf("%v %v, want %s", res, err, want)
				}
				if res.StatusCode == 101 {
					if line, _ := in.ReadString('\n'); line != "you said hello\n" {
						t.Errorf("%q", line)
					}
				}
			}
			if o.RefundOn != nil {
				if s := <-seen; s != 101 {
					t.Errorf("watched a %d, want 101", s)
				}
			}
		})
	}
}

// A handler that panics does not leave its request in the pool.
func TestPanicsPassThrough(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "all", "key": "ip", "limit": "3/m"}]`, options: watched,
		handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
		})})
	if _, err := w.http.Get(w.url + "/panic"); err == nil {
		t.Error("the connection was not aborted")
	}
	w.want("ok ok 429", w.do("GET", "/"), w.do("GET", "/"), w.do("GET", "/"))
}

// Case B15 at the door: of many requests at once exactly the quota is served, each
// by its own key, while the rules are swapped.
func TestConcurrentRequests(t *testing.T) {
	list := `[{"name": "user", "key": "header:X-User", "limit": {"quota": 5, "window": "1h", "algorithm": "sliding_log"}}]`
	w := start(t, setup{rules: list, observer: weirhttp.PartitionKeys(nil)})
	set := compile(t, list)
	h := weirhttp.Middleware(w.limit, weirhttp.Options{RefundOn: func(int) bool { return false }})(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.served.Add(1)
	}))
	var wg sync.WaitGroup
	for user := range 8 {
		for range 20 {
			wg.Go(func() {
				r := newRequest()
				r.Header.Set("X-User", string(rune('a'+user)))
				rr := status{bare: bare{http.Header{}}}
				h.ServeHTTP(&rr, r)
				pk := weirhttp.Digest([]byte(r.Header.Get("X-User")))
				if list, err := sf.ParseList(rr.h.Get("RateLimit")); err != nil || string(list[0].Params["pk"].([]byte)) != string(pk[:]) {
					t.Errorf("%v %v: another client's answer", rr.h, err)
				}
			})
		}
		wg.Go(func() {
			if err := w.limit.Swap(set); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.served.Load(); n != 8*5 {
		t.Errorf("served %d, want 40", n)
	}
}
