package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/server/internal/realtest"
	"github.com/weirhq/weir/urlpath"
)

// nginx starts an nginx with one server block.
func nginx(t *testing.T, server string) (address string) {
	t.Helper()
	address, _ = realtest.Nginx(t, t.TempDir(), "access_log off;\n  default_type text/plain;\n  server { "+server+" }")
	return address
}

// ask sends a request line as it stands from an address, with Host: shop.example and
// header lines, and returns the answer.
func ask(t *testing.T, from, to, line string, header ...string) answer {
	t.Helper()
	local := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := (&net.Dialer{LocalAddr: local}).DialContext(ctx, "tcp", to)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, line+" HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nContent-Length: 0\r\n"+
		strings.Join(append(header, "\r\n"), "\r\n"))
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return answer{resp, string(text)}
}

// site is an nginx that tells which location a request came to, and what it was.
// It reads fields with underscores too, as some are told to.
const site = `LISTEN
underscores_in_headers on;
location = /login { return 200 "login\n$request_uri\n$http_x_forwarded_for\n$http_x_real_ip\n$http_forwarded\n$host\n$remote_addr\n$uri"; }
location /        { return 200 "other\n$request_uri\n$http_x_forwarded_for\n$http_x_real_ip\n$http_forwarded\n$host\n$remote_addr\n$uri"; }
`

// received is what the site tells.
type received struct {
	location, requestURI                              string
	forwardedFor, realIP, forwarded, host, remoteAddr string
	uri                                               string
}

func readSite(t *testing.T, body string) received {
	t.Helper()
	f := strings.SplitN(body, "\n", 8) // the last may hold line breaks
	if len(f) != 8 {
		t.Fatalf("nginx said %q", body)
	}
	return received{f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]}
}

// spellings are targets that some server might take for /login, and some others:
// those that people thought of, and many more put together by chance.
func spellings(t *testing.T) []string {
	all := []string{
		"/login", "//login", "///login", "/%6Cogin", "/%6cogin", "/%6C%6F%67%69%6E", "/./login", "/x/../login", "/x/%2e%2e/login", "/x/.%2E/login",
		"/%2e/login", "/%2E%2e/login", "/../login", "/login/.", "/login/..", "/x/..//login", "/login/x/..", "/%2flogin", "/%2Flogin", "/x%2f..%2flogin",
		"/x/..%2flogin", "/%5clogin", `/\login`, `/x\..\login`, "/x/..%5clogin", "/login%00", "/login%00.html", "/%00/../login", "/login%20", "/login%0a",
		"/login#", "/login#x", "/x#/../login", "/login%23x", "/login?", "/login??", "/login?next=/x/../y", "/login%3F", "/login%3fnext", "/login;x=1",
		"/login;", "/;x/login", "/..;/login", "/x/..;/login", "/login/", "/login//", "/LOGIN", "/Login", "/%256Cogin", "/%25%36Cogin", "/%u006cogin",
		"/%6", "/%", "/login%", "/lo%gin", "/l%c3%b6gin", "/l\xc3\xb6gin", "/%ff", "/\xff", "/%c0%afx/../login", "/login.", "/.login", "/...//login", "/x/.../login",
		"http://shop.example/login", "http://shop.example//login", "http://shop.example/x/../login", "HTTP://shop.example/%6cogin", "http://shop.example",
		"http://shop.example?/login", "http://other.example/login", "https://shop.example/login", "//shop.example/login", "/login:80", "/:/../login",
		"/~/../login", "/a/b/../../login", "/a/b/%2e%2e/../login", "/a//../login", "/a//../../login", "/login%2f", "/login%2f..", "/login/%2e", "/login/%2e%2e",
		"/login\"", "/login'", "/login|", "/login^", "/login`", "/{login}", "/<login>", "/login,", "/login+", "/login&x", "/login=", "/login@x", "/login!", "/login*", "/login$",
	}
	pieces := []string{"login", "login", "%6cogin", "lo%67in", "x", "/", "/", "//", ".", "..", "%2e", "%2E%2e", "%2f", "%5c", `\`, ";", ";x=1", "?", "#", "%23", "%3f", "%25", "%00", "%", "%c3%b6", "+", ":"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		s := "/"
		for range 1 + r.IntN(7) {
			s += pieces[r.IntN(len(pieces))]
		}
		if r.IntN(2) == 0 {
			s += "/../login"
		}
		all = append(all, s)
	}
	return all
}

// TestNoSpellingReachesNginxUncounted is cases B29 and S11 with a real server as
// the judge: whatever nginx takes for /login by itself, it either does not get
// from the gateway, or the rule of /login has counted it.
func TestNoSpellingReachesNginxUncounted(t *testing.T) {
	up := nginx(t, site)
	w := start(t, setup{config: strings.ReplaceAll(base, "UPSTREAM", "http://"+up) + `
rules:
  - {name: login, match: /login, key: ip, limit: {quota: 1, window: 1h, algorithm: fixed_window}}
`})
	logins, counted := 0, 0
	for i, target := range spellings(t) {
		from := fmt.Sprintf("127.2.%d.%d", i/250, 1+i%250) // a client of its own, that has one request
		first := ask(t, from, w.address, "POST "+target)
		switch first.StatusCode {
		case 200:
		case 400: // a path of two meanings, or none
			if first.Header.Get("Content-Type") == "text/plain" {
				t.Errorf("POST %s: 400 from nginx: %s", target, first.body)
			}
			first.body = ""
		default:
			t.Errorf("POST %s: %d, want 200 or 400", target, first.StatusCode)
			continue
		}
		left := ask(t, from, w.address, "POST /login").StatusCode

		// What nginx says by itself is what an attacker may hope for.
		alone := ask(t, from, up, "POST "+target)
		meantLogin := alone.StatusCode == 200 && readSite(t, alone.body).location == "login"
		if meantLogin {
			logins++
		}
		if first.body == "" {
			if left != 200 {
				t.Errorf("POST %s: 400, and yet counted: then POST /login: %d", target, left)
			}
			continue
		}
		got := readSite(t, first.body)
		if (got.location == "login") != (left == 429) {
			t.Errorf("POST %s came to %s as %s; then POST /login: %d", target, got.location, got.requestURI, left)
		}
		if left == 429 {
			counted++
		}
		path, _, _ := strings.Cut(got.requestURI, "?")
		if clean, err := urlpath.Clean(path); err != nil || clean != path {
			t.Errorf("POST %s reached nginx as %s, whose normal form is %s, %v", target, got.requestURI, clean, err)
		}
		if got.uri != urlpath.Decode(path) {
			t.Errorf("POST %s: nginx takes %s for %q, the gateway for %q", target, got.requestURI, got.uri, urlpath.Decode(path))
		}
		if lower := strings.ToLower(path); strings.Contains(lower, "%2f") || strings.Contains(lower, "%5c") || strings.Contains(lower, "%00") {
			t.Errorf("POST %s reached nginx as %s", target, got.requestURI)
		}
	}
	if logins < 50 || counted < 50 {
		t.Errorf("%d spellings of /login by nginx and %d by the gateway: too few to say anything", logins, counted)
	}
}

// TestNginxBehindSeesOnlyWhatTheGatewayVouchesFor is case B46.
func TestNginxBehindSeesOnlyWhatTheGatewayVouchesFor(t *testing.T) {
	w := start(t, setup{config: strings.ReplaceAll(base, "UPSTREAM", "http://"+nginx(t, site)) + "rules: []\n"})
	for name, forged := range map[string][]string{
		"nothing forged": nil,
		"usual":          {"X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.1", "Forwarded: for=192.0.2.1"},
		"underscores":    {"X_Forwarded_For: 192.0.2.1", "X_Real_IP: 192.0.2.1", "x_forwarded-for: 192.0.2.1"},
		"hop by hop":     {"Connection: X-Forwarded-For", "X-Forwarded-For: 192.0.2.1"},
		"several":        {"x-forwarded-for: 192.0.2.1", "X-FORWARDED-FOR: 192.0.2.2, 127.0.0.1"},
	} {
		got := readSite(t, ask(t, "127.0.0.9", w.address, "GET /a", forged...).body)
		want := received{"other", "/a", "127.0.0.9", "", "", "shop.example", "127.0.0.1", "/a"}
		if got != want {
			t.Errorf("%s: nginx received\n%+v, want\n%+v", name, got, want)
		}
	}
}

// front is an nginx in front of the gateway, whose own address there is 127.1.0.1.
func front(t *testing.T, gateway string) string {
	return nginx(t, `LISTEN
location / {
  proxy_pass http://`+gateway+`;
  proxy_bind 127.1.0.1;
  proxy_set_header Host $host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
}`)
}

// forgeries are the header lines of six requests by a client that would like to be
// somebody else each time.
var forgeries = [][]string{
	nil,
	{"X-Forwarded-For: 192.0.2.1"},
	{"X-Forwarded-For: 192.0.2.2, 127.1.0.1", "Forwarded: for=192.0.2.2"},
	{"X-Forwarded-For: 192.0.2.3", "X-Forwarded-For: 192.0.2.4", "X-Real-IP: 192.0.2.3"},
	{"X-Forwarded-For: unknown, ,", "X_Forwarded_For: 192.0.2.5"},
	{"X-Forwarded-For: 127.1.0.1", "Connection: X-Forwarded-For"},
}

// throughFront sends the forgeries through nginx and returns "200 200 … 429".
func throughFront(t *testing.T, from, address string) string {
	t.Helper()
	var all []string
	for _, header := range forgeries {
		all = append(all, fmt.Sprint(ask(t, from, address, "GET /", header...).StatusCode))
	}
	return strings.Join(all, " ")
}

const fivePerMinute = "rules: [{name: all, key: ip, limit: 5/m}]\n"

// TestBehindATrustedNginxTheClientIsTheKey is cases B24 and S26.
func TestBehindATrustedNginxTheClientIsTheKey(t *testing.T) {
	up := new(recording)
	w := start(t, setup{upstream: up, config: base + "client_ip: {trusted_proxies: [127.1.0.1/32]}\n" + fivePerMinute})
	address := front(t, w.address)
	for _, from := range []string{"127.0.0.9", "127.0.0.10"} { // each has five of its own
		if got := throughFront(t, from, address); got != "200 200 200 200 200 429" {
			t.Errorf("%s: %s", from, got)
		}
		for _, r := range up.take() {
			if got := r.Header["X-Forwarded-For"]; len(got) != 1 || got[0] != from+", 127.1.0.1" {
				t.Errorf("%s: the upstream saw X-Forwarded-For %q", from, got)
			}
		}
	}
}

// TestBehindAnUntrustedNginxAllAreOneKey: without the configuration that says so,
// nobody is a proxy (S03), however politely it speaks for others.
func TestBehindAnUntrustedNginxAllAreOneKey(t *testing.T) {
	up := new(recording)
	w := start(t, setup{upstream: up, config: base + fivePerMinute})
	address := front(t, w.address)
	if got := throughFront(t, "127.0.0.9", address); got != "200 200 200 200 200 429" {
		t.Errorf("the first client: %s", got)
	}
	if got := throughFront(t, "127.0.0.10", address); got != "429 429 429 429 429 429" {
		t.Errorf("the second client: %s", got)
	}
	for _, r := range up.take() {
		if got := r.Header["X-Forwarded-For"]; len(got) != 1 || got[0] != "127.1.0.1" {
			t.Errorf("the upstream saw X-Forwarded-For %q", got)
		}
	}
}
