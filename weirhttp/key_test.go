package weirhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weirhq/weir/weirhttp"
)

// keyOf is the key of a request with these fields.
func keyOf(t *testing.T, name, target string, fields ...string) (key string, ok bool) {
	t.Helper()
	f, err := weirhttp.Binding().Key(name)
	if err != nil {
		t.Fatal(err)
	}
	hr := httptest.NewRequest("GET", "/", nil)
	_, hr.URL.RawQuery, _ = strings.Cut(target, "?")
	for _, line := range fields {
		name, value, _ := strings.Cut(line, ": ")
		hr.Header.Add(name, value)
	}
	r, err := weirhttp.NewRequest(hr, nil)
	if err != nil {
		t.Fatal(err)
	}
	const before = "before" // keys are appended
	dst, ok := f([]byte(before), r)
	return strings.TrimPrefix(string(dst), before), ok
}

func TestKeysOfFields(t *testing.T) {
	const none = "\x00none"
	for _, c := range []struct {
		name, target string
		fields       []string
		want         string
	}{
		{"header:x-api-KEY", "/", []string{"X-Api-Key: a"}, "a"},
		{"header:X-Api-Key", "/", []string{"x-api-key: first", "X-Api-Key: second"}, "first"},
		{"header:X-Api-Key", "/", []string{"X-Api-Key: "}, none},
		{"header:X-Api-Key", "/", []string{"X-Api-Key: ", "X-Api-Key: second"}, none},
		{"header:X-Api-Key", "/", []string{"X-Api_Key: a"}, none},
		{"header:X-Api-Key", "/", []string{"X-Api-Key: null"}, "null"},
		{"query:id", "/?id=7", nil, "7"},
		{"query:id", "/?x=1&id=7&id=8", nil, "7"},
		{"query:id", "/?%69d=%37%20+", nil, "7  "},
		{"query:id", "/?ID=7", nil, none},
		{"query:id", "/?id", nil, none},
		{"query:id", "/?id=&id=8", nil, none},
		{"query:id", "/?id=%zz&id=8", nil, "8"},
		{"query:id", "/?id=1;2&id=8", nil, "8"},
		{"query:id", "/?idx=1&xid=2", nil, none},
		{"query:id", "/", nil, none},
		{"cookie:sid", "/", []string{"Cookie: a=b; sid=c; sid=d"}, "c"},
		{"cookie:sid", "/", []string{"Cookie: a=b", "Cookie: sid=\"c d\""}, "c d"},
		{"cookie:sid", "/", []string{"Cookie: sid=a\"b; sid=c"}, "c"},
		{"cookie:sid", "/", []string{"Cookie: SID=a"}, none},
		{"cookie:sid", "/", []string{"Cookie: sid="}, none},
		{"cookie:sid", "/", nil, none},
		{"ip", "/", nil, "192.0.2.1"}, // httptest's peer
		{"ip/56", "/", nil, "192.0.2.1"},
	} {
		got, ok := keyOf(t, c.name, c.target, c.fields...)
		if !ok {
			got = none
		}
		if got != c.want {
			t.Errorf("%s of %q %q: got %q, want %q", c.name, c.target, c.fields, got, c.want)
		}
	}
}

// Case B40: a name that does not exist is an error when rules load.
func TestUnknownKeysAreErrors(t *testing.T) {
	for name, want := range map[string]string{
		"user":        `unknown key "user"`,
		"ip/0":        "1 to 128",
		"ip/129":      "1 to 128",
		"ip/x":        "1 to 128",
		"header:":     "not the name of a header",
		"header:a b":  "not the name of a header",
		"header:host": "write host",
		"cookie:a=b":  "not the name of a cookie",
		"heder:X":     "known: ",
	} {
		if f, err := weirhttp.Binding().Key(name); f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, want)
		}
	}
}

// Keys are bounded, different values stay different, and padding makes no new key.
func TestLongValuesMakeBoundedKeys(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	keys := map[string]string{}
	for what, value := range map[string]string{
		"short": long[:1024], "long": long[:1025], "longer": long, "other": long[:1<<20-1] + "y",
	} {
		key, ok := keyOf(t, "header:X-Api-Key", "/", "X-Api-Key: "+value)
		if !ok || len(key) > 2048 {
			t.Errorf("%s: %v, %d bytes", what, ok, len(key))
		}
		if twin, twice := keys[key]; twice {
			t.Errorf("%s and %s meet", what, twin)
		}
		keys[key] = what
	}
	name, _ := keyOf(t, "query:user", "/?user=alice")
	for _, pad := range []string{"+", "%20", "%C2%A0", "%09"} {
		padded, ok := keyOf(t, "query:user", "/?user="+strings.Repeat(pad, 2000)+"alice"+strings.Repeat(pad, 2000))
		if !ok || padded != name {
			t.Errorf("%q: got %.20q…, want %q", pad, padded, name)
		}
		if key, ok := keyOf(t, "query:user", "/?user="+strings.Repeat(pad, 2000)); ok {
			t.Errorf("only %q: got %.20q…, want none", pad, key)
		}
	}
}

// Case S29, with padding beyond the bound: spellings of one name are one.
func TestSpellingsOfAUserAreOne(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "login", "key": "lower(trim(query:user))", "limit": "5/m"}]`})
	var got []answer
	for _, user := range []string{"zhangsan", "ZhangSan", "zhangsan+", "%20ZHANGSAN", "zhangsan" + strings.Repeat("%C2%A0", 3000), "ZhangSan%20"} {
		got = append(got, w.do("POST", "/?user="+user))
	}
	w.want("ok ok ok ok ok 429", got...)
}

// Case B28, S27: the parts of a composite key do not run together.
func TestPartsOfACompositeKeyStayApart(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "pair", "key": ["header:X-A", "header:X-B"], "limit": "1/m", "on_missing_key": "skip"}]`})
	for _, p := range [][2]string{{"aa", "b"}, {"a", "ab"}, {"a:b", "c"}, {"a", "b:c"}} {
		a, b := "X-A: "+p[0], "X-B: "+p[1]
		w.want("ok 429", w.do("GET", "/", a, b), w.do("GET", "/", a, b))
	}
	// An empty part is a missing one, so the rule's on_missing_key decides.
	w.want("ok ok", w.do("GET", "/", "X-A: ", "X-B: ab"), w.do("GET", "/", "X-A: ", "X-B: ab"))
}

// Cases B40, S28: a request without the key is counted by address by default, apart
// from every value, also the ones that look like a missing one.
func TestAMissingHeaderIsNotTheWordMissing(t *testing.T) {
	const rule = `[{"name": "user", "key": "header:X-User", "limit": "1/m" %s}]`
	w := start(t, setup{rules: fmt.Sprintf(rule, "")})
	one, two := peerField+": 198.51.100.1:1", peerField+": 198.51.100.2:1"
	w.want("ok 429 ok ok ok ok 429", w.do("GET", "/", one), w.do("GET", "/", one), w.do("GET", "/", two),
		w.do("GET", "/", one, "X-User: null"), w.do("GET", "/", one, "X-User: missing"), w.do("GET", "/", one, "X-User: 198.51.100.1"),
		w.do("GET", "/", two, "X-User: null"))
	w = start(t, setup{rules: fmt.Sprintf(rule, `, "on_missing_key": "shared"`)})
	w.want("ok 429 ok", w.do("GET", "/", one), w.do("GET", "/", two), w.do("GET", "/", two, "X-User: null"))
}

// The query and cookies are those that handlers read with net/http: a client
// cannot show the limit another value than the handler.
func FuzzQueryIsTheHandlers(f *testing.F) {
	for _, q := range []string{"id=7", "a=1&id=%37+x", "id=%zz&id=8", "id=1;2&id=3", "id&id=2", "%69%64=x", "=&&id==", "id=%e4%b8%ad"} {
		f.Add(q, "id")
	}
	f.Fuzz(func(t *testing.T, query, name string) {
		if name == "" || len(query) > 5000 { // net/http gives up above 10,000 parameters
			return
		}
		hr := &http.Request{URL: &url.URL{Path: "/", RawQuery: query}, RemoteAddr: "192.0.2.1:1"}
		r, _ := weirhttp.NewRequest(hr, nil)
		key, ok := weirhttp.ByQuery(name)(nil, r)
		want := hr.URL.Query().Get(name)
		if len(want) <= 1024 && (ok != (want != "") || ok && string(key) != want) {
			t.Errorf("%q of %q: got %q, %v, the handler reads %q", name, query, key, ok, want)
		}
	})
}

func FuzzCookieIsTheHandlers(f *testing.F) {
	for _, c := range []string{"sid=a", "a=b; sid=\"c\"", "sid=a\"b; sid=c", " sid = d ", ";;sid", "sid=\"", "\tsid=x\t;sid=y"} {
		f.Add(c, "sid=z")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		hr := &http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{"Cookie": {one, two}}, RemoteAddr: "192.0.2.1:1"}
		if strings.Count(one+two, ";") > 2000 { // net/http gives up above 3,000 cookies
			return
		}
		r, _ := weirhttp.NewRequest(hr, nil)
		key, ok := weirhttp.ByCookie("sid")(nil, r)
		want := ""
		if c, err := hr.Cookie("sid"); err == nil {
			want = c.Value
		}
		if len(want) <= 1024 && (ok != (want != "") || ok && string(key) != want) {
			t.Errorf("of %q, %q: got %q, %v, the handler reads %q", one, two, key, ok, want)
		}
	})
}
