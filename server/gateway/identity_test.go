package gateway_test

import (
	"strings"
	"testing"
)

const loginByIP = base + `
client_ip: {trusted_proxies: [127.1.0.0/16]}
rules:
  - {name: login, match: POST /login, key: ip, limit: {quota: 2, window: 1m, algorithm: fixed_window}}
`

// TestSpellingsOfAPathAreOnePath is case B29 (and S11): however the path is
// spelled, it is counted, and the upstream sees the spelling that was matched.
func TestSpellingsOfAPathAreOnePath(t *testing.T) {
	up := new(recording)
	w := start(t, setup{config: loginByIP, upstream: up})
	for i, path := range []string{"/login", "//login", "/%6Cogin", "/./login", "/x/../login", "/x/%2e%2e/login?next=%2f"} {
		want := 200
		if i >= 2 {
			want = 429
		}
		if got := w.do("127.0.0.9", "POST", path).StatusCode; got != want {
			t.Errorf("POST %s: %d, want %d", path, got, want)
		}
	}
	for _, r := range up.take() {
		if r.RequestURI != "/login" {
			t.Errorf("the upstream was sent %s, want /login", r.RequestURI)
		}
	}
	w.do("127.0.0.9", "GET", "/a%20b/%E4%BD%A0;v=1/c%2B?q=a%20b&x=1")
	if r := up.take(); len(r) != 1 || r[0].RequestURI != "/a%20b/%E4%BD%A0;v=1/c%2B?q=a%20b&x=1" {
		t.Errorf("the upstream was sent %v", r[0].RequestURI)
	}
}

func TestAPathOfTwoMeaningsIsRefused(t *testing.T) {
	up := new(recording)
	w := start(t, setup{config: loginByIP, upstream: up})
	for _, path := range []string{"/a%2flogin", "/a%5clogin", "/a%00", "/login%0a", "/%zz", "/..;/login"} {
		if got := w.raw("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"); got.StatusCode != 400 {
			t.Errorf("POST %s: %d, want 400", path, got.StatusCode)
		}
	}
	if seen := up.take(); len(seen) != 0 {
		t.Errorf("%d reached the upstream", len(seen))
	}
}

// TestForgedAddressesDoNotHelp is case S03, and the end of B24 and B46 (c): who is
// not trusted cannot say who it is.
func TestForgedAddressesDoNotHelp(t *testing.T) {
	w := start(t, setup{config: loginByIP, upstream: fine})
	for i, forged := range []string{"1.2.3.4", "1.2.3.5", "1.2.3.6", "127.1.0.9", "::1", "unknown", "", "1.2.3.4, 127.1.0.1"} {
		want := 200
		if i >= 2 {
			want = 429
		}
		a := w.do("127.0.0.9", "POST", "/login", "X-Forwarded-For: "+forged, "Forwarded: for="+forged, "X-Real-IP: "+forged,
			"Connection: X-Forwarded-For")
		if a.StatusCode != want {
			t.Errorf("X-Forwarded-For: %s: %d, want %d", forged, a.StatusCode, want)
		}
	}
}

// TestTrustedProxiesAreReadFromTheRight is cases B24, B25 and B27.
func TestTrustedProxiesAreReadFromTheRight(t *testing.T) {
	for name, c := range map[string]struct {
		lines [][]string
		want  string
	}{
		"B24 several lines": {[][]string{
			{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 203.0.113.7"},
			{"X-Forwarded-For: 198.51.100.2", "X-Forwarded-For: 203.0.113.7"},
			{"X-Forwarded-For: 192.0.2.3, 203.0.113.7, 127.1.0.9"}}, "200 200 429"},
		"B25 ports": {[][]string{
			{"X-Forwarded-For: 203.0.113.7:51034"}, {"X-Forwarded-For: 203.0.113.7:51077"}, {"X-Forwarded-For: 203.0.113.7"}}, "200 200 429"},
		"B25 ports of IPv6": {[][]string{
			{"X-Forwarded-For: [2001:db8::5]:443"}, {"X-Forwarded-For: 2001:db8::5"}, {"X-Forwarded-For: [2001:db8::5]"}}, "200 200 429"},
		"B27 only trusted hops": {[][]string{
			{"X-Forwarded-For: 127.1.0.5"}, {"X-Forwarded-For: 127.1.0.5"}, {"X-Forwarded-For: 127.1.0.6"}, {"X-Forwarded-For: 127.1.0.5"}}, "200 200 200 429"},
		"B27 no header": {[][]string{nil, nil, nil}, "200 200 429"},
	} {
		w := start(t, setup{config: loginByIP, upstream: fine})
		var got []string
		for _, lines := range c.lines {
			got = append(got, w.statuses(1, "127.1.0.1", "POST", "/login", lines...))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), c.want)
		}
	}
}

// TestConnectionsDoNotMatter is case S49: the port of a connection is no part of
// the key, and other clients have their own.
func TestConnectionsDoNotMatter(t *testing.T) {
	w := start(t, setup{config: loginByIP, upstream: fine})
	if got := w.statuses(3, "127.0.0.9", "POST", "/login"); got != "200 200 429" {
		t.Errorf("three connections of one client: %s", got)
	}
	if got := w.statuses(1, "127.0.0.10", "POST", "/login"); got != "200" {
		t.Errorf("another client: %s", got)
	}
}

// TestUpstreamSeesTheClientOnce is case B46.
func TestUpstreamSeesTheClientOnce(t *testing.T) {
	for name, c := range map[string]struct {
		from   string
		header []string
		want   string
		proto  string
	}{
		"a: no header":          {"127.0.0.9", nil, "127.0.0.9", "http"},
		"b: of a trusted proxy": {"127.1.0.1", []string{"X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https"}, "203.0.113.7, 127.1.0.1", "https"},
		"c: forged, and removed by Connection": {"127.0.0.9",
			[]string{"X-Forwarded-For: 1.2.3.4", "Connection: X-Forwarded-For, X-Forwarded-Proto", "X-Forwarded-Proto: https"}, "127.0.0.9", "http"},
		"d: other spellings": {"127.0.0.9", []string{"x_forwarded_for: 1.2.3.4", "X_Real_IP: 1.2.3.4", "Forwarded: for=1.2.3.4",
			"True-Client-IP: 1.2.3.4", "X-Forwarded-Server: h", "X-Original-URL: /admin"}, "127.0.0.9", "http"},
	} {
		up := new(recording)
		w := start(t, setup{config: loginByIP, upstream: up})
		w.do(c.from, "GET", "/", append(c.header, "Host: shop.example")...)
		r := up.take()[0]
		if got := r.Header["X-Forwarded-For"]; len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: the upstream saw X-Forwarded-For %q, want %q", name, got, c.want)
		}
		if r.Host != "shop.example" || r.Header.Get("X-Forwarded-Host") != "shop.example" || r.Header.Get("X-Forwarded-Proto") != c.proto {
			t.Errorf("%s: host %s, forwarded as %s and %s", name, r.Host, r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Proto"))
		}
		for field, values := range r.Header {
			if field != "X-Forwarded-For" && strings.Contains(strings.Join(values, ","), "1.2.3.4") || field == "X-Original-Url" {
				t.Errorf("%s: the upstream saw the claim %s: %q", name, field, values)
			}
		}
	}
}

// TestTheConfiguredHeaderIsTheOneThatIsSent: with another header, X-Forwarded-For
// is neither read nor sent on.
func TestTheConfiguredHeaderIsTheOneThatIsSent(t *testing.T) {
	up := new(recording)
	w := start(t, setup{upstream: up, config: base + `
client_ip: {trusted_proxies: [127.1.0.0/16], header: Forwarded}
rules: []
`})
	w.do("127.1.0.1", "GET", "/", "X-Forwarded-For: 1.2.3.4", "Forwarded: for=203.0.113.7;proto=https")
	r := up.take()[0]
	if r.Header.Get("Forwarded") != "for=203.0.113.7, for=127.1.0.1" || len(r.Header["X-Forwarded-For"]) != 0 {
		t.Errorf("the upstream saw Forwarded %q and X-Forwarded-For %q", r.Header["Forwarded"], r.Header["X-Forwarded-For"])
	}
}

// TestRequestsWithoutTheHeaderShareNothing is case S28: who lacks the key is
// counted by address, not together with everybody who lacks it.
func TestRequestsWithoutTheHeaderShareNothing(t *testing.T) {
	w := start(t, setup{upstream: fine, config: base + `
rules: [{name: user, key: "header:X-User", limit: 1/m}]
`})
	got := w.statuses(2, "127.0.0.9", "GET", "/") + " " + w.statuses(1, "127.0.0.10", "GET", "/") + " " +
		w.statuses(2, "127.0.0.9", "GET", "/", "X-User: null")
	if got != "200 429 200 200 429" {
		t.Errorf("got %s", got)
	}
}

// TestRulesOfTwoRoutesNeverShare is case S50.
func TestRulesOfTwoRoutesNeverShare(t *testing.T) {
	w := start(t, setup{upstream: fine, config: `
gateway:
  listen: 127.0.0.1:0
  routes: [{match: /a/**, upstreams: ["UPSTREAM"]}, {match: /b/**, upstreams: ["UPSTREAM"]}]
rules:
  - {name: a, match: /a/**, key: ip, limit: 1/m}
  - {name: b, match: /b/**, key: ip, limit: 1/m}
`})
	got := w.statuses(2, "127.0.0.9", "GET", "/a/1") + " " + w.statuses(2, "127.0.0.9", "GET", "/b/1")
	if got != "200 429 200 429" {
		t.Errorf("got %s", got)
	}
}
