package weirhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/weirhttp"
)

// Case B35: while the store fails, each rule does as it says; nothing is claimed
// that nobody knows, and the Observer hears of every failure.
func TestAFailingStore(t *testing.T) {
	const rule = `[{"name": "each", "key": "ip", "limit": "2/m", "on_store_error": %q}]`
	for policy, want := range map[string]string{"open": "ok ok ok ok", "closed": "503 503 503 503", "local": "ok ok 429 429"} {
		t.Run(policy, func(t *testing.T) {
			heard := new(recording)
			w := start(t, setup{rules: fmt.Sprintf(rule, policy), store: broken{}, observer: heard})
			var got []answer
			for range 4 {
				got = append(got, w.do("GET", "/"))
			}
			w.want(want, got...)
			if heard.failed.Load() != 4 || heard.decided.Load() != 4 {
				t.Errorf("heard %d failures and %d decisions, want 4 and 4", heard.failed.Load(), heard.decided.Load())
			}
			for _, a := range got {
				_, told := a.Header["Ratelimit"]
				if told != (policy == "local") || strings.Contains(a.Header.Get("RateLimit"), "-") {
					t.Errorf("RateLimit %q", a.Header["Ratelimit"])
				}
			}
			if policy == "closed" {
				a := got[0]
				if a.Header.Get("Retry-After") != "5" || !strings.Contains(a.body, "#temporary-reduced-capacity") ||
					!strings.Contains(a.body, `"violated-policies":[]`) || strings.Contains(a.body, "each") {
					t.Errorf("%v %s", a.Header, a.body)
				}
			}
		})
	}
}

// A closed rule's own words are about its limit, not about an outage; and a limit
// that surely refused is what the client is told.
func TestAClosedRuleAnswersForTheOutage(t *testing.T) {
	w := start(t, setup{store: broken{}, rules: `[{"name": "a", "key": "ip", "limit": "2/m", "on_store_error": "closed", "status": 403, "body": "too many logins"}]`})
	if a := w.do("GET", "/"); a.StatusCode != 503 || a.body == "too many logins" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	w = start(t, setup{store: broken{}, rules: `[{"name": "shut", "key": "ip", "limit": "0/m"}, {"name": "a", "key": "ip", "limit": "2/m", "on_store_error": "closed"}]`})
	if a := w.do("GET", "/"); a.StatusCode != 429 || !strings.Contains(a.body, `"violated-policies":["shut"]`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// A request that is over before it could be decided is not served.
func TestARequestThatIsOverIsNotServed(t *testing.T) {
	w := start(t, setup{rules: threePerMinute, store: silent{}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rr := status{bare: bare{http.Header{}}}
	weirhttp.Middleware(w.limit, weirhttp.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("served")
	})).ServeHTTP(&rr, newRequest().WithContext(ctx))
	if rr.code != 503 || rr.h.Get("RateLimit") != "" || rr.h.Get("Retry-After") != "1" {
		t.Errorf("%d %v", rr.code, rr.h)
	}
}
