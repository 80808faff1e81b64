package weirhttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/weirhttp"
)

const browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"

// refused is the answer to the second request of a world that allows one.
func (w *world) refused(method string, fields ...string) answer {
	w.t.Helper()
	w.do("GET", "/")
	return w.do(method, "/", fields...)
}

func oneWith(more string) setup {
	return setup{rules: `[{"name": "login", "key": "ip", "limit": "1/m"` + more + `}]`}
}

// Cases S24, S42, S56: a refusal is a refusal, with all its fields, and the handler
// does not run.
func TestARefusalSaysEverything(t *testing.T) {
	w := start(t, oneWith(""))
	a := w.refused("GET")
	w.want("429", a)
	if w.served.Load() != 1 {
		t.Errorf("the handler ran %d times, want once", w.served.Load())
	}
	for name, want := range map[string]string{
		"Retry-After": "60", "Ratelimit": `"login";r=0;t=60`, "Ratelimit-Policy": `"login";q=1;w=60`, "Cache-Control": "no-store",
		"Content-Type": "application/problem+json", "Content-Language": "en", "Vary": "Accept, Accept-Language",
		"X-Content-Type-Options": "nosniff", "Content-Length": fmt.Sprint(len(a.body)), "Connection": "",
	} {
		if got := strings.Join(a.Header.Values(name), "|"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	a.items(t, "RateLimit")
	a.items(t, "RateLimit-Policy")
	var got map[string]any
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Too many requests", "status": 429.,
		"detail":            `Too many requests: the limit "login" allows 1 per minute. Try again in 60 seconds.`,
		"violated-policies": []any{"login"}, "retry-after": 60.,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestRefusalsSpeakTheClientsLanguage(t *testing.T) {
	w := start(t, oneWith(""))
	w.do("GET", "/")
	for _, c := range []struct{ accept, fields, want, lang string }{
		{"*/*", "zh-CN,zh;q=0.9,en;q=0.8", "请求过于频繁：限制“login”每分钟允许 1 次。请在 60 秒后重试。", "zh"},
		{"*/*", "en;q=0.5, zh;q=0.1", "the limit \\\"login\\\" allows 1 per minute", "en"},
		{"*/*", "fr", "Too many requests", "en"},
		{"text/html", "zh", "<html lang=\"zh\">", "zh"},
		{"text/html", "zh", "每分钟允许 1 次", "zh"},
	} {
		a := w.do("GET", "/", "Accept: "+c.accept, "Accept-Language: "+c.fields)
		if a.StatusCode != 429 || !strings.Contains(a.body, c.want) || a.Header.Get("Content-Language") != c.lang {
			t.Errorf("%s: %d %s %s, want %s", c.fields, a.StatusCode, a.Header.Get("Content-Language"), a.body, c.want)
		}
	}
	// Several lines are one list (RFC 9110 section 5.3).
	if a := w.do("GET", "/", "Accept-Language: en;q=0.1", "Accept-Language: zh"); a.Header.Get("Content-Language") != "zh" {
		t.Errorf("%v", a.Header)
	}
}

func TestBrowsersGetAPage(t *testing.T) {
	w := start(t, oneWith(""))
	a := w.refused("GET", browser)
	w.want("429", a)
	if a.Header.Get("Content-Type") != headers.HTMLType || a.Header.Get("Content-Security-Policy") != headers.PageCSP ||
		!strings.Contains(a.body, `data-seconds="60"`) || !strings.Contains(a.body, `data-reload`) || a.Header.Get("Retry-After") != "60" {
		t.Errorf("%v\n%s", a.Header, a.body)
	}
	if a := w.do("POST", "/", browser); strings.Contains(a.body, `data-reload="`) {
		t.Error("the page would send a form again by itself")
	}
}

func TestHeadHasNoBody(t *testing.T) {
	w := start(t, oneWith(""))
	get, head := w.refused("GET"), w.do("HEAD", "/")
	w.want("429 429", get, head)
	get.Header.Del("Date")
	head.Header.Del("Date")
	if head.body != "" || !reflect.DeepEqual(get.Header, head.Header) {
		t.Errorf("HEAD %q %v\nGET %v", head.body, head.Header, get.Header)
	}
	rr := httptest.NewRecorder() // which, unlike the server, keeps a body it is given
	r := httptest.NewRequest("HEAD", "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	weirhttp.Middleware(w.limit, weirhttp.Options{})(http.NotFoundHandler()).ServeHTTP(rr, r)
	if rr.Code != 429 || rr.Body.Len() != 0 {
		t.Errorf("%d %s", rr.Code, rr.Body)
	}
}

func TestRulesHaveTheirOwnWords(t *testing.T) {
	for _, c := range []struct{ more, fields, want, lang string }{
		{`, "message": "Slow down."`, "*", `"detail":"Slow down."`, ""},
		{`, "message": "Slow <down>."`, "html", `<p>Slow &lt;down&gt;.</p>`, ""},
		{`, "message": {"en": "Slow down.", "zh": "慢一点。"}`, "zh-CN", `"detail":"慢一点。"`, "zh"},
		{`, "message": {"en": "Slow down.", "zh": "慢一点。"}`, "fr", `"detail":"Slow down."`, "en"},
		{`, "message": {"fr": "Doucement.", "de": "Langsam."}`, "fr-CA", `"detail":"Doucement."`, "fr"},
	} {
		w := start(t, oneWith(c.more))
		accept := []string{"Accept-Language: " + c.fields}
		if c.fields == "html" {
			accept = []string{browser}
		}
		a := w.refused("GET", accept...)
		if a.StatusCode != 429 || !strings.Contains(a.body, c.want) || a.Header.Get("Content-Language") != c.lang {
			t.Errorf("%s for %s: %d %q %s", c.more, c.fields, a.StatusCode, a.Header.Get("Content-Language"), a.body)
		}
	}
}

func TestRulesHaveTheirOwnStatusAndBody(t *testing.T) {
	w := start(t, oneWith(`, "status": 403, "body": "{\"no\":1}", "content_type": "application/json"`))
	a := w.refused("GET", browser)
	w.want("403", a)
	if a.body != `{"no":1}` || a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Vary") != "" || a.Header.Get("Retry-After") != "60" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	w = start(t, oneWith(`, "body": "no"`))
	if a := w.refused("GET"); a.StatusCode != 429 || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" || a.body != "no" {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	w = start(t, oneWith(`, "status": 403`))
	if a := w.refused("GET"); a.StatusCode != 403 || !strings.Contains(a.body, `"status":403`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// Of several rules that refuse, the one that is waited for longest answers.
func TestTheLongestWaitAnswers(t *testing.T) {
	for _, list := range []string{
		`[{"name": "a", "key": "ip", "limit": "1/m", "status": 403}, {"name": "b", "key": "ip", "limit": "1/h", "status": 503}]`,
		`[{"name": "b", "key": "ip", "limit": "1/h", "status": 503}, {"name": "a", "key": "ip", "limit": "1/m", "status": 403}]`,
	} {
		w := start(t, setup{rules: list})
		if a := w.refused("GET"); a.StatusCode != 503 || a.Header.Get("Retry-After") != "3600" || !strings.Contains(a.body, `"a"`) || !strings.Contains(a.body, `"b"`) {
			t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
		}
	}
}

// Case B38: what can never be allowed promises no wait.
func TestNoWaitIsPromisedWhereNoneHelps(t *testing.T) {
	for name, list := range map[string]string{
		"quota 0": `[{"name": "shut", "key": "ip", "limit": "0/m"}]`,
		"cost":    `[{"name": "large", "key": "ip", "limits": ["5/m", "100/h"]}]`,
		"no key":  `[{"name": "user", "key": "header:X-User", "limit": "5/m", "on_missing_key": "refuse"}]`,
	} {
		w := start(t, setup{rules: list})
		if name == "cost" { // which a rule file may not say
			set := compile(t, list)
			set.Rules[0].Cost = func(*weirhttp.Request) int64 { return 6 }
			if err := w.limit.Swap(set); err != nil {
				t.Fatal(err)
			}
		}
		a := w.do("GET", "/")
		w.want("429", a)
		if _, sent := a.Header["Retry-After"]; sent || strings.Contains(a.body, "retry-after") || strings.Contains(a.body, "Try again in") {
			t.Errorf("%s: %v %s", name, a.Header, a.body)
		}
		if name == "no key" && !strings.Contains(a.body, `lacks the key that the limit \"user\" counts by`) {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

// Cases S24, S42: a hook writes the body, not the status.
func TestHooksWriteBodies(t *testing.T) {
	s := oneWith("")
	s.options.OnRefuse = func(h http.Header, r *weirhttp.Request, f weirhttp.Refusal) []byte {
		if r.Method == "PUT" {
			return nil
		}
		h.Set("Content-Type", "application/json")
		return fmt.Appendf(nil, `{"code":%d,"wait":%q,"lang":%q,"message":%q,"limits":%d,"path":%q}`,
			f.Status, f.RetryAfter, f.Lang, f.Message, f.Decision.Len(), r.Path)
	}
	w := start(t, s)
	a := w.refused("GET")
	w.want("429", a)
	const want = `{"code":429,"wait":"1m0s","lang":"en","message":"Too many requests: the limit \"login\" allows 1 per minute. Try again in 60 seconds.","limits":1,"path":"/"}`
	if a.body != want || a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Retry-After") != "60" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	if a := w.do("PUT", "/"); a.Header.Get("Content-Type") != headers.ProblemType {
		t.Errorf("%v %s", a.Header, a.body)
	}
}

// Case S24: not even a rule written in Go makes a refusal look like success.
func TestAStatusOfSuccessIsNotSent(t *testing.T) {
	for _, tag := range []any{&rules.Answer{Status: 200}, (*rules.Answer)(nil), "something else"} {
		l, err := weirhttp.New(weirhttp.Rule{Name: "a", Limits: []weir.Limit{weir.PerMinute(0)}, Tag: tag})
		if err != nil {
			t.Fatal(err)
		}
		rr := status{bare: bare{http.Header{}}}
		weirhttp.Middleware(l, weirhttp.Options{})(http.NotFoundHandler()).ServeHTTP(&rr, newRequest())
		if rr.code != 429 {
			t.Errorf("%v: got %d", tag, rr.code)
		}
	}
}

// A refused upload is answered at once, and its connection kept only if that
// costs little.
func TestRefusedUploads(t *testing.T) {
	w := start(t, oneWith(""))
	w.do("GET", "/")
	for _, c := range []struct {
		size  int
		known bool
		keep  bool
	}{{0, true, true}, {1000, true, true}, {64 << 10, true, true}, {64<<10 + 1, true, false}, {20 << 20, true, false}, {1000, false, true}, {20 << 20, false, false}} {
		var body io.Reader = bytes.NewReader(make([]byte, c.size))
		if !c.known {
			body = io.MultiReader(body) // hides its length
		}
		a := w.send(w.http, "POST", "/", body)
		w.want("429", a)
		if a.Close == c.keep || a.Header.Get("Retry-After") != "60" {
			t.Errorf("%+v: close %v, %v", c, a.Close, a.Header)
		}
	}
	if a := w.do("GET", "/"); a.StatusCode != 429 {
		t.Errorf("the next request got %d", a.StatusCode)
	}
}

// What a rule is called forges no field and no markup.
func TestNamesAreEscapedEverywhere(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "<b>\"登录", "key": "ip", "limit": "1/m"}]`})
	a := w.refused("GET")
	if got := a.items(t, "RateLimit")[0].Value; got != `<b>"%E7%99%BB%E5%BD%95` || strings.Contains(a.body, "<b>") {
		t.Errorf("%q %s", got, a.body)
	}
	if page := w.do("GET", "/", browser); strings.Contains(page.body, "<b>\"") {
		t.Errorf("%s", page.body)
	}
}
