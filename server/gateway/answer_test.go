package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/weirhq/weir"
)

// TestRefusalsCountDown is case B31 (b), and S56: a refusal says when to come back,
// and the next one says less.
func TestRefusalsCountDown(t *testing.T) {
	w := start(t, setup{config: loginByIP + "headers: [ietf, x]\n", upstream: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "999") // of the upstream's own, which must not stand beside ours
	})})
	for _, c := range []struct {
		at                              time.Duration
		status                          int
		remaining, reset, retry, limits string
	}{
		{0, 200, "1", "60", "", `"login";r=1;t=60`},
		{10 * time.Second, 200, "0", "50", "", `"login";r=0;t=50`},
		{20 * time.Second, 429, "0", "40", "40", `"login";r=0;t=40`},
		{59999 * time.Millisecond, 429, "0", "1", "1", `"login";r=0;t=1`},
		{60 * time.Second, 200, "1", "60", "", `"login";r=1;t=60`},
	} {
		w.clock.Set(c.at)
		a := w.do("127.0.0.9", "POST", "/login")
		h := a.Header
		if a.StatusCode != c.status || len(h["X-Ratelimit-Remaining"]) != 1 || h.Get("X-RateLimit-Remaining") != c.remaining ||
			h.Get("X-RateLimit-Reset") != c.reset || h.Get("Retry-After") != c.retry || h.Get("RateLimit") != c.limits {
			t.Errorf("at %v: %d %v, want %+v", c.at, a.StatusCode, h, c)
		}
		if got := h.Get("RateLimit-Policy"); got != `"login";q=2;w=60` {
			t.Errorf("at %v: RateLimit-Policy %s", c.at, got)
		}
	}
}

// TestRefusalNamesThePolicy: the problem document is one, and names who refused.
func TestRefusalNamesThePolicy(t *testing.T) {
	w := start(t, setup{config: loginByIP, upstream: fine})
	w.statuses(2, "127.0.0.9", "POST", "/login")
	a := w.do("127.0.0.9", "POST", "/login")
	var p struct {
		Type     string   `json:"type"`
		Status   int      `json:"status"`
		Violated []string `json:"violated-policies"`
	}
	must(t, json.Unmarshal([]byte(a.body), &p))
	if a.Header.Get("Content-Type") != "application/problem+json" || p.Status != 429 ||
		!strings.HasSuffix(p.Type, "#quota-exceeded") || !reflect.DeepEqual(p.Violated, []string{"login"}) {
		t.Errorf("%s: %s", a.Header.Get("Content-Type"), a.body)
	}
}

// TestAnIndependentParserReadsTheFields parses live answers, and the golden fields
// that all clients of weir are tested with, by the rules of RFC 9651.
func TestAnIndependentParserReadsTheFields(t *testing.T) {
	w := start(t, setup{config: loginByIP, upstream: fine})
	a := w.do("127.0.0.9", "POST", "/login")
	for field, want := range map[string]map[string]int64{
		"RateLimit":        {"r": 1, "t": 60},
		"RateLimit-Policy": {"q": 2, "w": 60},
	} {
		list, err := httpsfv.UnmarshalList(a.Header.Values(field))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", field, list, err)
		}
		item := list[0].(httpsfv.Item)
		for name, n := range want {
			if got, ok := item.Params.Get(name); !ok || got != n || item.Value != "login" {
				t.Errorf("%s: %v with %s=%v, want %d", field, item.Value, name, got, n)
			}
		}
	}
	text, err := os.ReadFile("../../testdata/headers/answers.json")
	must(t, err)
	var golden []struct {
		Name   string            `json:"name"`
		Fields map[string]string `json:"fields"`
	}
	must(t, json.Unmarshal(text, &golden))
	parsed := 0
	for _, g := range golden {
		for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
			if value, ok := g.Fields[field]; ok {
				list, err := httpsfv.UnmarshalList([]string{value})
				if err != nil || len(list) == 0 {
					t.Errorf("%s: %s: %s: %v", g.Name, field, value, err)
				}
				parsed++
			}
		}
	}
	if parsed < 10 {
		t.Errorf("only %d golden fields were read", parsed)
	}
}

// TestRefusedSpendsNothing is case B43 in both orders: what the tight rule refuses
// the wide rule does not count.
func TestRefusedSpendsNothing(t *testing.T) {
	m := "  - {name: m, key: ip, limit: {quota: 10, window: 1m, algorithm: sliding_log}}\n"
	s := "  - {name: s, key: ip, limit: {quota: 1, window: 1s, algorithm: sliding_log}}\n"
	for _, order := range []string{m + s, s + m} {
		w := start(t, setup{config: base + "rules:\n" + order, upstream: fine})
		c := w.client("127.0.0.9")
		step := func(at time.Duration, status int, retry, by string) {
			t.Helper()
			w.clock.Set(at)
			a := w.send(c, "GET", "/", nil)
			if a.StatusCode != status || a.Header.Get("Retry-After") != retry || status == 429 && !strings.Contains(a.body, `"violated-policies":["`+by+`"]`) {
				t.Errorf("at %v: %d retry %q %s, want %d retry %q by %s", at, a.StatusCode, a.Header.Get("Retry-After"), a.body, status, retry, by)
			}
		}
		step(0, 200, "", "")
		for i := 1; i <= 9; i++ {
			step(time.Duration(i)*100*time.Millisecond, 429, "1", "s")
		}
		for i := 1; i <= 9; i++ {
			step(time.Duration(i)*time.Second, 200, "", "")
		}
		step(10*time.Second, 429, "50", "m")
		step(59900*time.Millisecond, 429, "1", "m")
		step(time.Minute, 200, "", "")
	}
}

// TestQuotaZeroRefusesEverything is case B38: and there is no use in waiting.
func TestQuotaZeroRefusesEverything(t *testing.T) {
	w := start(t, setup{config: base + "rules: [{name: none, key: ip, limit: 0/m}]\n", upstream: fine})
	a := w.do("127.0.0.9", "GET", "/")
	if _, retry := a.Header["Retry-After"]; a.StatusCode != 429 || retry || !strings.HasPrefix(a.Header.Get("RateLimit"), `"none";r=0`) {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

// broken is a store that cannot be asked.
type broken struct{ weir.Store }

func (broken) Take(context.Context, []weir.Ask, []weir.Verdict) (bool, error) {
	return false, fmt.Errorf("%w: no such store", weir.ErrUnavailable)
}

// TestAStoreThatFailsIsDecidedByTheRule is case S52: no request hangs or gets a
// 500, and it is counted.
func TestAStoreThatFailsIsDecidedByTheRule(t *testing.T) {
	for policy, want := range map[string]string{"open": "200 200", "closed": "503 503", "local": "200 429"} {
		w := start(t, setup{store: broken{weir.NewMemory(weir.MemoryOptions{})}, upstream: fine,
			config: base + "rules: [{name: a, key: ip, limit: 1/m, on_store_error: " + policy + "}]\n"})
		if got := w.statuses(2, "127.0.0.9", "GET", "/"); got != want {
			t.Errorf("on_store_error: %s: %s, want %s", policy, got, want)
		}
		if text := scrape(t, w); !strings.Contains(text, "weir_store_errors_total 2\n") || !strings.Contains(text, "weir_degraded_decisions_total 2\n") {
			t.Errorf("on_store_error: %s is not counted:\n%s", policy, text)
		}
	}
}

func TestAnswersAreCountedByClass(t *testing.T) {
	w := start(t, setup{config: loginByIP, upstream: http.NotFoundHandler()})
	w.statuses(3, "127.0.0.9", "POST", "/login")
	w.do("127.0.0.9", "GET", "/a%2fb")
	must(t, w.stop()) // every answer is counted by then
	text := scrape(t, w)
	for _, line := range []string{`weir_http_requests_total{code="4xx"} 3`, `weir_http_requests_total{code="429"} 1`, `weir_http_requests_in_flight 0`,
		`weir_decisions_total{mode="enforce",outcome="allowed",policy="login"} 2`, `weir_decisions_total{mode="enforce",outcome="refused",policy="login"} 1`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, "127.0.0.9") {
		t.Error("an address is a label")
	}
}
