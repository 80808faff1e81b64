package urlpath_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weirhq/weir/urlpath"
)

// asNginx is the normalisation that nginx documents for matching locations
// (ngx_http_core_module, "location"): escapes decoded, `.` and `..` resolved,
// adjacent slashes merged. It reports false where nginx answers 400: malformed
// escapes, NUL, `..` above the root.
func asNginx(path string) (string, bool) {
	decoded, err := url.PathUnescape(path)
	if err != nil || strings.Contains(decoded, "\x00") || !strings.HasPrefix(path, "/") {
		return "", false
	}
	var kept []string
	segments := strings.Split(decoded[1:], "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case "", ".":
		case "..":
			if len(kept) == 0 {
				return "", false
			}
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/"), true
}

// asServletContainer cuts parameters off before it decodes and resolves, as
// Tomcat and Jetty do.
func asServletContainer(path string) (string, bool) {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return asNginx(strings.Join(segments, "/"))
}

// asMux asks a real net/http.ServeMux which literal path it serves the request
// as: the path itself, or "-> " and where it redirects to.
func asMux(t *testing.T, path string) string {
	t.Helper()
	u, err := url.Parse("http://weir.test" + path)
	if err != nil {
		return "400"
	}
	var seen string
	mux := http.NewServeMux()
	mux.HandleFunc("/{rest...}", func(_ http.ResponseWriter, r *http.Request) { seen = "/" + r.PathValue("rest") })
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, &http.Request{Method: "GET", URL: u, Host: u.Host, RequestURI: path})
	if to := w.Header().Get("Location"); to != "" {
		return "-> " + to
	}
	return seen
}

// What three kinds of servers make of odd spellings, and what we make of them.
// Where they differ, so would a limiter that matches the raw path.
func TestOddSpellingsBesideOtherServers(t *testing.T) {
	for _, c := range []struct{ path, ours, mux, nginx string }{
		{"/login", "/login", "/login", "/login"},
		{"//login", "/login", "-> /login", "/login"},
		{"/./login", "/login", "-> /login", "/login"},
		{"/x/../login", "/login", "-> /login", "/login"},
		{"/%6Cogin", "/login", "/login", "/login"},
		{"/x/%2e%2e/login", "/login", "/x/../login", "/login"}, // the mux hands the escaped dots on
		{"/../login", "/login", "-> /login", "400"},
		{"/a//../b", "/b", "-> /b", "/b"},
		{"/a/b/..", "/a/", "-> /a", "/a/"}, // the mux drops the slash
		{"/a/b/.", "/a/b/", "-> /a/b", "/a/b/"},
		{"/a/", "/a/", "/a/", "/a/"},
		{"/a;x=1", "/a;x=1", "/a;x=1", "/a;x=1"},
		{"/a/..;/b", "refused", "/a/..;/b", "/a/..;/b"}, // a servlet container reads /b
		{"/a%2Fb", "refused", "/a/b", "/a/b"},
		{"/a%5Cb", "refused", `/a\b`, `/a\b`}, // Windows file servers read /a/b
		{"/a%00", "refused", "/a\x00", "400"},
		{"/a%zz", "refused", "400", "400"},
		{"/%252e%252e/a", "/%252e%252e/a", "/%2e%2e/a", "/%2e%2e/a"},
		{"/caf%c3%a9", "/caf%C3%A9", "/café", "/café"},
		{"/a%3ab", "/a%3Ab", "/a:b", "/a:b"},
	} {
		ours, err := urlpath.Clean(c.path)
		if err != nil {
			ours = "refused"
		}
		nginx, ok := asNginx(c.path)
		if !ok {
			nginx = "400"
		}
		if mux := asMux(t, c.path); ours != c.ours || mux != c.mux || nginx != c.nginx {
			t.Errorf("%s: ours %q, mux %q, nginx %q; want %q, %q, %q", c.path, ours, mux, nginx, c.ours, c.mux, c.nginx)
		}
	}
}

// The point of the normal form: whoever reads the forwarded path reads what was
// matched, and nobody resolves or redirects it further.
func FuzzEveryServerReadsACleanPathAlike(f *testing.F) {
	for _, s := range oddPaths {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean, err := urlpath.Clean(s)
		if err != nil || clean == "*" {
			return
		}
		want := urlpath.Decode(clean)
		if got, ok := asNginx(clean); !ok || got != want {
			t.Errorf("nginx reads %q as %q, %v, we as %q", clean, got, ok, want)
		}
		if got := asMux(t, clean); got != want {
			t.Errorf("ServeMux reads %q as %q, we as %q", clean, got, want)
		}
		if got, ok := asServletContainer(clean); !ok || got != urlpath.Decode(urlpath.WithoutParams(clean)) {
			t.Errorf("a servlet container reads %q as %q, %v, we as %q", clean, got, ok, urlpath.WithoutParams(clean))
		}
		u, err := url.Parse("http://weir.test" + clean)
		if err != nil {
			t.Errorf("net/url does not parse %q: %v", clean, err)
		} else if u.EscapedPath() != clean {
			t.Errorf("net/url writes %q as %q", clean, u.EscapedPath())
		}
	})
}
