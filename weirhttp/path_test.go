package weirhttp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/weirhttp"
)

// Cases B29, S11: however a path is spelled, it is counted where it leads.
func TestSpellingsOfAPathAreOne(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "login", "match": "POST /login", "key": "ip", "limit": "2/m"}]`})
	w.want("ok ok 429 429 429 429 429", w.do("POST", "/login"), w.do("POST", "//login"), w.do("POST", "/%6Cogin"),
		w.do("POST", "/./login"), w.do("POST", "/x/../login"), w.do("POST", "/%2e/login"), w.do("POST", "/login?a=b"))
	w.want("ok ok", w.do("GET", "/login"), w.do("POST", "/Login"))
	if w.served.Load() != 4 {
		t.Errorf("%d requests were served, want 4", w.served.Load())
	}
}

// Case B29: so is a value in a path.
func TestSpellingsOfAPathValueAreOne(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "user", "match": "/users/{id}", "key": "path:id", "limit": "1/m"}]`})
	w.want("ok 429 429 ok", w.do("GET", "/users/a@b"), w.do("GET", "/users/a%40b"), w.do("GET", "/users/%61%40b"), w.do("GET", "/users/a%2540b"))
}

// Case B29: what servers read differently is refused, without an echo.
func TestPathsWithoutANormalFormAreRefused(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "all", "key": "ip", "limit": "1/m"}]`})
	for path, why := range map[string]string{
		"/a%2Flogin": "escaped slash", "/a%5clogin": "backslash", "/login%00": "control character", "/..;x/login": "dot segment",
	} {
		a := w.do("GET", path, "Accept: text/html")
		w.want("400", a)
		var problem struct {
			Type, Title, Detail string
			Status              int
		}
		if err := json.Unmarshal([]byte(a.body), &problem); err != nil {
			t.Fatalf("%s: %v", a.body, err)
		}
		if problem.Status != 400 || !strings.Contains(problem.Detail, why) || strings.Contains(a.body, "login") ||
			a.Header.Get("Content-Type") != "application/problem+json" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v %s", path, a.Header, a.body)
		}
	}
	if w.served.Load() != 0 {
		t.Error("one of them was served")
	}
	w.want("ok 429", w.do("GET", "/"), w.do("GET", "/")) // they took nothing
}

func TestRawPathsAreCountedToo(t *testing.T) {
	seen := ""
	w := start(t, setup{rules: `[{"name": "files", "match": "/files/**", "key": "ip", "limit": "1/m"}]`, options: weirhttp.Options{RawPaths: true},
		handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.URL.EscapedPath() })})
	w.want("ok 429", w.do("GET", "/files/group%2Fproject"), w.do("GET", "/files/group%2Fproject"))
	if seen != "/files/group%2Fproject" {
		t.Errorf("the handler saw %q", seen)
	}
}

func TestSkippedRequestsAreNotCounted(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "all", "key": "ip", "limit": "1/m"}]`,
		options: weirhttp.Options{Skip: func(r *http.Request) bool { return r.URL.Path == "/healthz" }}})
	w.want("ok ok ok 429 ok", w.do("GET", "/healthz"), w.do("GET", "/healthz"), w.do("GET", "/"), w.do("GET", "/"), w.do("GET", "/healthz"))
}
