package weirhttp_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/weirhttp"
)

const fixedTwo = `[{"name": "fw", "key": "ip", "limit": {"quota": 2, "window": "1m", "algorithm": "fixed_window"}}]`

// Cases B31 (b), S31, S56: the fields count down, also on allowed answers.
func TestAllowedAnswersCountDown(t *testing.T) {
	w := start(t, setup{rules: fixedTwo})
	for _, c := range []struct {
		at                       float64
		status, remaining, reset int
		retry                    string
	}{{0, 200, 1, 60, ""}, {10, 200, 0, 50, ""}, {20, 429, 0, 40, "40"}, {59.999, 429, 0, 1, "1"}, {60, 200, 1, 60, ""}} {
		w.clock.set(c.at)
		a := w.do("GET", "/")
		if a.StatusCode != c.status || a.rest(t, "r") != int64(c.remaining) || a.rest(t, "t") != int64(c.reset) || a.Header.Get("Retry-After") != c.retry {
			t.Errorf("at %vs: %d %v, want %+v", c.at, a.StatusCode, a.Header, c)
		}
		if p := a.items(t, "RateLimit-Policy")[0]; p.Value != "fw" || p.Params["q"] != int64(2) || p.Params["w"] != int64(60) {
			t.Errorf("policy %v", p)
		}
	}
}

// Case B31 (a).
func TestRetryAfterIsWhatIsLeftOfTheWindow(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "fw", "key": "ip", "limit": {"quota": 10, "window": "1m", "algorithm": "fixed_window"}}]`})
	w.clock.set(55)
	for range 10 {
		w.want("ok", w.do("GET", "/"))
	}
	for _, c := range []struct {
		at    float64
		retry string
	}{{58, "2"}, {59.999, "1"}} {
		w.clock.set(c.at)
		if a := w.do("GET", "/"); a.StatusCode != 429 || a.Header.Get("Retry-After") != c.retry {
			t.Errorf("at %vs: %d, Retry-After %q, want %s", c.at, a.StatusCode, a.Header.Get("Retry-After"), c.retry)
		}
	}
	w.clock.set(60)
	if a := w.do("GET", "/"); a.StatusCode != 200 || a.rest(t, "r") != 9 {
		t.Errorf("at 60s: %d %v", a.StatusCode, a.Header)
	}
}

// Case B32: waits are rounded up, and waiting as told is enough.
func TestWaitingAsToldIsEnough(t *testing.T) {
	whole := regexp.MustCompile(`^[1-9][0-9]*$`)
	for name, c := range map[string]struct {
		limit string
		steps string // instant, then ok or Retry-After
	}{
		"a": {`{"quota": 6, "window": "1m", "burst": 1}`, "0 ok 0.5 10 8.6 2 9.6 1 10 ok"},
		"b": {`{"quota": 5, "window": "1s", "burst": 1}`, "0 ok 0.01 1 0.19 1 0.2 ok"},
		"c": {`{"quota": 1, "window": "1s", "burst": 1}`, "0 ok 0.2 1"},
		"d": {`{"quota": 1, "window": "1s", "burst": 5}`, "0 ok 0 ok 0 ok 0 ok 0 ok 0 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, setup{rules: `[{"name": "tb", "key": "ip", "limit": ` + c.limit + `}]`})
			words := strings.Fields(c.steps)
			for i := 0; i < len(words); i += 2 {
				var at float64
				if _, err := fmt.Sscan(words[i], &at); err != nil {
					t.Fatal(err)
				}
				w.clock.set(at)
				a := w.do("GET", "/")
				if got := map[bool]string{true: "ok", false: a.Header.Get("Retry-After")}[a.StatusCode == 200]; got != words[i+1] {
					t.Errorf("at %v: got %s, want %s", at, got, words[i+1])
				}
				if retry := a.Header.Get("Retry-After"); a.StatusCode == 429 && !whole.MatchString(retry) {
					t.Errorf("at %v: Retry-After %q", at, retry)
				}
			}
		})
	}
}

// Case S12: login is free after its own wait, registration after its own.
func TestRetryAfterIsTheRealWait(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "login", "match": "/login", "key": "ip", "limit": "5/m"}, {"name": "register", "match": "/register", "key": "ip", "limit": "10/h"}]`})
	for path, want := range map[string]string{"/login": "12", "/register": "360"} {
		var last answer
		for range 11 {
			last = w.do("POST", path)
		}
		if last.StatusCode != 429 || last.Header.Get("Retry-After") != want {
			t.Errorf("%s: %d, Retry-After %q, want %s", path, last.StatusCode, last.Header.Get("Retry-After"), want)
		}
	}
}

// Case B34: telling what is left takes nothing.
func TestLookingTakesNothing(t *testing.T) {
	for _, limit := range []string{`"10/m"`, `{"quota": 10, "window": "1m", "algorithm": "sliding_log"}`} {
		w := start(t, setup{rules: `[{"name": "each", "key": "ip", "limit": ` + limit + `}]`})
		hr, _ := http.NewRequest("GET", w.url, nil)
		hr.RemoteAddr = "127.0.0.1:1"
		r, err := weirhttp.NewRequest(hr, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if _, err := w.limit.Peek(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			a := w.do("GET", "/")
			if want := max(9-i, 0); a.rest(t, "r") != int64(want) || (a.StatusCode == 200) != (i < 10) {
				t.Errorf("request %d: %d, r=%d, want %d", i+1, a.StatusCode, a.rest(t, "r"), want)
			}
		}
	}
}

// Case B43: a request that one rule refuses is charged to none, in both orders.
func TestARefusedRequestIsChargedToNone(t *testing.T) {
	m := `{"name": "M", "key": "ip", "limit": {"quota": 10, "window": "1m", "algorithm": "sliding_log"}}`
	s := `{"name": "S", "key": "ip", "limit": {"quota": 1, "window": "1s", "algorithm": "sliding_log"}}`
	for _, list := range []string{"[" + m + "," + s + "]", "[" + s + "," + m + "]"} {
		w := start(t, setup{rules: list})
		at := func(seconds float64) answer {
			w.clock.set(seconds)
			a := w.do("GET", "/")
			if n := len(a.items(t, "RateLimit")); n != 2 { // all enforced ones are listed
				t.Errorf("at %v: %d policies", seconds, n)
			}
			return a
		}
		w.want("ok", at(0))
		for i := 1; i <= 9; i++ {
			w.want("429", at(float64(i)/10))
		}
		for i := 1; i <= 9; i++ {
			w.want("ok", at(float64(i)))
		}
		for _, c := range []struct {
			at    float64
			retry string
		}{{10, "50"}, {59.9, "1"}} {
			a := at(c.at)
			w.want("429", a)
			if a.Header.Get("Retry-After") != c.retry || !strings.Contains(a.body, `"violated-policies":["M"]`) {
				t.Errorf("at %v: Retry-After %q, %s", c.at, a.Header.Get("Retry-After"), a.body)
			}
		}
		w.want("ok", at(60))
	}
}

func TestFieldsAreAChoice(t *testing.T) {
	for which, want := range map[weirhttp.Headers]string{
		weirhttp.IETF:      `"fw";q=2;w=60|"fw";r=1;t=60|||`,
		weirhttp.IETFAndX:  `"fw";q=2;w=60|"fw";r=1;t=60|2|1|60`,
		weirhttp.OnlyX:     `||2|1|60`,
		weirhttp.NoHeaders: `||||`,
	} {
		w := start(t, setup{rules: fixedTwo, options: weirhttp.Options{Headers: which}})
		a := w.do("GET", "/")
		var got []string
		for _, name := range []string{headers.PolicyField, headers.RateLimitField, headers.XLimitField, headers.XRemainingField, headers.XResetField} {
			got = append(got, a.Header.Get(name))
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%d: got %s, want %s", which, s, want)
		}
		w.do("GET", "/")
		if a := w.do("GET", "/"); a.Header.Get("Retry-After") != "60" { // whatever the choice
			t.Errorf("%d: Retry-After %q", which, a.Header.Get("Retry-After"))
		}
	}
}

// The single-value fields speak of the tightest policy, whatever the order.
func TestXFieldsSpeakOfTheTightest(t *testing.T) {
	w := start(t, setup{options: weirhttp.Options{Headers: weirhttp.IETFAndX},
		rules: `[{"name": "hour", "key": "ip", "limit": "100/h"}, {"name": "minute", "key": "ip", "limit": "3/m"}, {"name": "day", "key": "ip", "limit": "1000/d"}]`})
	if a := w.do("GET", "/"); a.Header.Get("X-RateLimit-Limit") != "3" || a.Header.Get("X-RateLimit-Remaining") != "2" || len(a.items(t, "RateLimit")) != 3 {
		t.Errorf("%v", a.Header)
	}
}

func TestShadowsAreNotTold(t *testing.T) {
	const list = `[{"name": "dark", "key": "ip", "limit": "1/m", "mode": "shadow"}, {"name": "lit", "key": "ip", "limit": "5/m"}, {"name": "off", "key": "ip", "limit": "1/m", "mode": "off"}]`
	w := start(t, setup{rules: list})
	w.do("GET", "/")
	a := w.do("GET", "/") // dark would have refused
	w.want("ok", a)
	if list := a.items(t, "RateLimit"); len(list) != 1 || list[0].Value != "lit" || a.Header.Get("Retry-After") != "" {
		t.Errorf("%v", a.Header)
	}
	w = start(t, setup{rules: list, options: weirhttp.Options{ShowShadow: true}})
	w.do("GET", "/")
	a = w.do("GET", "/")
	if list := a.items(t, "RateLimit"); a.StatusCode != 200 || len(list) != 2 || list[0].Value != "dark" || list[0].Params["r"] != int64(0) {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

func TestPartitionKeysAreDigests(t *testing.T) {
	heard := new(recording)
	w := start(t, setup{observer: weirhttp.PartitionKeys(heard),
		rules: `[{"name": "all", "key": "global", "limit": "100/s"}, {"name": "user", "key": "header:X-User", "limit": "5/m", "on_missing_key": "refuse"}]`})
	a := w.do("GET", "/", "X-User: alice")
	for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
		list := a.items(t, field)
		if _, sent := list[0].Params["pk"]; sent {
			t.Errorf("%s: a limit that all share has a pk: %v", field, list[0])
		}
		pk, _ := list[1].Params["pk"].([]byte)
		if want := weirhttp.Digest([]byte("alice")); string(pk) != string(want[:]) || hex.EncodeToString(pk) != "2bd806c97f0e00af" {
			t.Errorf("%s: pk %x, want %x", field, pk, want)
		}
	}
	a = w.do("GET", "/")
	for _, i := range a.items(t, "RateLimit") {
		if _, sent := i.Params["pk"]; a.StatusCode != 429 || sent {
			t.Errorf("without a key: %d %v", a.StatusCode, i)
		}
	}
	if heard.decided.Load() != 2 {
		t.Errorf("the next observer heard %d decisions, want 2", heard.decided.Load())
	}
}

// Handlers have the last word, and what they add does not write over ours.
func TestHandlersHaveTheLastWord(t *testing.T) {
	w := start(t, setup{rules: fixedTwo, handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/set" {
			rw.Header().Set("RateLimit", `"mine";r=1`)
		}
		rw.Header().Add("RateLimit-Policy", `"mine";q=1`)
		_, _ = io.WriteString(rw, "ok")
	})})
	for path, want := range map[string]string{"/set": `"mine";r=1`, "/add": `"fw";r=1;t=60`} {
		a := w.do("GET", path, peerField+": "+map[string]string{"/set": "192.0.2.1", "/add": "192.0.2.2"}[path])
		if got := a.Header.Values("RateLimit"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: RateLimit %q, want %q", path, got, want)
		}
		if got := a.Header.Values("RateLimit-Policy"); len(got) != 2 || got[0] != `"fw";q=2;w=60` {
			t.Errorf("%s: RateLimit-Policy %q", path, got)
		}
	}
}

func TestRequestsWithoutRulesGetNoFields(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "free", "match": "/free", "limit": "unlimited", "final": true}, {"name": "all", "key": "ip", "limit": "1/m"}]`})
	if a := w.do("GET", "/free"); a.Header.Get("RateLimit") != "" || a.Header.Get("RateLimit-Policy") != "" {
		t.Errorf("%v", a.Header)
	}
}

// http.Header's spelling decides whether Set replaces what the middleware set.
func TestFieldNamesAreCanonical(t *testing.T) {
	rr := http.Header{}
	l, err := weirhttp.New(weirhttp.Rule{Name: "a", Key: weirhttp.ByIP, Limits: []weir.Limit{weir.PerMinute(1)}})
	if err != nil {
		t.Fatal(err)
	}
	serve(weirhttp.Middleware(l, weirhttp.Options{Headers: weirhttp.IETFAndX}), rr)
	if len(rr) != 5 {
		t.Errorf("%v", rr)
	}
	for name := range rr {
		if name != http.CanonicalHeaderKey(name) {
			t.Errorf("%s is not how http.Header spells it", name)
		}
	}
}
