//go:build !race

package weirhttp_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirhttp"
)

// limiter has n rules by address, header and path that never refuse.
func limiter(t testing.TB, n int) *weirhttp.Limiter {
	list := ""
	for i := range n {
		key := []string{`"ip"`, `"header:X-Api-Key"`, `["path", "ip"]`, `"query:id"`, `"cookie:sid"`, `"ip/56"`, `["host", "method"]`, `"path:id"`}[i%8]
		list += fmt.Sprintf(`,{"name": "rule%d", "match": "GET /items/{id}", "key": %s, "limit": "1000000000/s"}`, i, key)
	}
	l, err := weir.New(weir.NewMemory(weir.MemoryOptions{}), compile(t, "["+list[1:]+"]"), weir.Options[*weirhttp.Request]{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func typical() *http.Request {
	r := newRequest()
	r.URL.Path, r.URL.RawQuery = "/items/7", "id=7"
	r.RemoteAddr = "[2001:db8::1]:4000"
	r.Header.Set("X-Api-Key", "secret")
	r.Header.Set("Cookie", "sid=abc")
	return r
}

// TestAnAllowedRequestAllocatesItsFields is a promise of Middleware's comment: one
// string and one array for the values of all fields. Whatever rules there are, they
// add nothing but, from the fifth limit on, the Decision's slices. Under the race
// detector sync.Pool drops items at random, so it is not built there.
func TestAnAllowedRequestAllocatesItsFields(t *testing.T) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	proxies := resolver(t, "X-Forwarded-For", "2001:db8::/32")
	for _, c := range []struct {
		name  string
		rules int
		o     weirhttp.Options
		want  float64
	}{
		{"one rule", 1, weirhttp.Options{}, 2},
		{"four rules", 4, weirhttp.Options{}, 2},
		{"behind a proxy, all fields", 3, weirhttp.Options{Resolver: proxies, Headers: weirhttp.IETFAndX}, 2},
		{"no fields", 4, weirhttp.Options{Headers: weirhttp.NoHeaders}, 0},
		{"watched", 1, watched, 3},
	} {
		h := weirhttp.Middleware(limiter(t, c.rules), c.o)(nothing)
		r, w := typical(), bare{http.Header{}}
		r.Header.Set("X-Forwarded-For", "203.0.113.7, 2001:db8::9")
		if got := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); got != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
		if _, told := w.h["Ratelimit"]; told == (c.o.Headers == weirhttp.NoHeaders) {
			t.Errorf("%s: %v", c.name, w.h)
		}
	}
}

// Keys and digests allocate nothing.
func TestKeysAllocateNothing(t *testing.T) {
	r, err := weirhttp.NewRequest(typical(), nil)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, 256)
	for _, name := range []string{"ip", "ip/56", "header:X-Api-Key", "query:id", "cookie:sid"} {
		f, err := weirhttp.Binding().Key(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(100, func() { f(dst, r) }); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func BenchmarkMiddleware(b *testing.B) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, rules := range []int{1, 3} {
		h := weirhttp.Middleware(limiter(b, rules), weirhttp.Options{})(nothing)
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			r, w := typical(), bare{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
	l, err := weirhttp.New(weirhttp.Rule{Name: "shut", Limits: []weir.Limit{weir.PerMinute(0)}})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("refused", func(b *testing.B) {
		h := weirhttp.Middleware(l, weirhttp.Options{})(nothing)
		r, w := typical(), bare{http.Header{}}
		b.ReportAllocs()
		for b.Loop() {
			clear(w.h)
			h.ServeHTTP(w, r)
		}
	})
}
