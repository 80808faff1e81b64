package accesslog_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/accesslog"
)

// at reads an instant of the tables.
func at(t *testing.T, s string) int64 {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v.UnixMicro()
}

// seen is what the tables compare; at is RFC 3339.
type seen struct {
	at, client, addr, method, host, target, path, query string
	status                                              int
	bytes                                               int64
	referer, agent, user, forwarded                     string
}

func check(t *testing.T, line string, want seen) {
	t.Helper()
	var r accesslog.Record
	if err := r.Parse(line, accesslog.Auto); err != nil {
		t.Fatalf("%s\n%v", line, err)
	}
	got := seen{
		want.at, r.Client, "", r.Method, r.Host, r.Target, r.Path, r.Query, r.Status, r.Bytes,
		r.Referer, r.UserAgent, r.User, r.Header("X-Forwarded-For"),
	}
	if r.Addr.IsValid() {
		got.addr = r.Addr.String()
	}
	if got != want {
		t.Errorf("%s\n got %+v\nwant %+v", line, got, want)
	}
	if wantAt := at(t, want.at); r.At != wantAt {
		t.Errorf("%s\nat %v, want %s", line, r.Time(), want.at)
	}
}

func TestTextFormats(t *testing.T) {
	const ip = "192.0.2.7"
	for name, c := range map[string]struct {
		line string
		want seen
	}{
		"common": {
			`192.0.2.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326`,
			seen{at: "2000-10-10T20:55:36Z", client: ip, addr: ip, method: "GET", target: "/apache_pb.gif", path: "/apache_pb.gif", status: 200, bytes: 2326, user: "frank"},
		},
		"combined": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "POST /a/b?x=1&y=%20 HTTP/1.1" 404 - "http://www.example.com/start" "Mozilla/4.08 [en] (Win98; I ;Nav)"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "POST", target: "/a/b?x=1&y=%20", path: "/a/b", query: "x=1&y=%20", status: 404, referer: "http://www.example.com/start", agent: "Mozilla/4.08 [en] (Win98; I ;Nav)"},
		},
		"nginx main with X-Forwarded-For": {
			`2001:db8::1 - - [01/Mar/2024:00:00:00 +0530] "GET / HTTP/2.0" 499 0 "-" "curl/8.5.0" "198.51.100.9, 192.0.2.1"`,
			seen{at: "2024-02-29T18:30:00Z", client: "2001:db8::1", addr: "2001:db8::1", method: "GET", target: "/", path: "/", status: 499, agent: "curl/8.5.0", forwarded: "198.51.100.9, 192.0.2.1"},
		},
		"request time before X-Forwarded-For": {
			`192.0.2.7 - - [29/Feb/2024:23:59:59 +0000] "GET / HTTP/1.1" 200 5 "-" "-" 0.003 "-" "198.51.100.9"`,
			seen{at: "2024-02-29T23:59:59Z", client: ip, addr: ip, method: "GET", target: "/", path: "/", status: 200, bytes: 5, forwarded: "198.51.100.9"},
		},
		"virtual host and port": {
			`www.example.com:443 192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /x HTTP/1.1" 200 1 "-" "a"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, host: "www.example.com", method: "GET", target: "/x", path: "/x", status: 200, bytes: 1, agent: "a"},
		},
		"address with port as virtual host": {
			`198.51.100.1:443 192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /x HTTP/1.1" 200 1`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, host: "198.51.100.1", method: "GET", target: "/x", path: "/x", status: 200, bytes: 1},
		},
		"host name for a client": {
			`crawl-1.example.net - - [10/Oct/2000:13:55:36 +0000] "GET /x HTTP/1.1" 200 1`,
			seen{at: "2000-10-10T13:55:36Z", client: "crawl-1.example.net", method: "GET", target: "/x", path: "/x", status: 200, bytes: 1},
		},
		"traefik": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /x HTTP/1.1" 200 12 "-" "curl/8" 31 "web@docker" "http://10.0.0.2:80" 4ms`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/x", path: "/x", status: 200, bytes: 12, agent: "curl/8"},
		},
		"escapes of nginx": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /\xE4\xBD\xA0 HTTP/1.1" 200 1 "-" "say \x22hi\x22 \x5C"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/你", path: "/你", status: 200, bytes: 1, agent: `say "hi" \`},
		},
		"escapes of Apache": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "\\" "say \"hi\"\n\t\xe4"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/", path: "/", status: 200, bytes: 1, referer: `\`, agent: "say \"hi\"\n\t\xe4"},
		},
		"an escaped quote before a space, and a backslash before the last quote": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "a\" "b \" c\\"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/", path: "/", status: 200, bytes: 1, referer: `a" "b " c\`},
		},
		"TLS greeting": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "\x16\x03\x01\x00\xEE" 400 150 "-" "-"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, target: "\x16\x03\x01\x00\xee", status: 400, bytes: 150},
		},
		"no request": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "-" 408 0 "-" "-"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, status: 408},
		},
		"empty request": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "" 400 0 "-" "-"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, status: 400},
		},
		"garbage for a request": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "hello wide world" 400 0 "-" "-"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, target: "hello wide world", status: 400},
		},
		"odd method": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "VERSION-CONTROL / HTTP/1.1" 405 0 "-" "-"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "VERSION-CONTROL", target: "/", path: "/", status: 405},
		},
		"raw spaces in the target": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /a b?c d HTTP/1.1" 400 0 "-" "-"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/a b?c d", path: "/a b", query: "c d", status: 400},
		},
		"raw spaces and no protocol": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /a b" 400 0 "-" "-"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/a b", path: "/a b", status: 400},
		},
		"HTTP/0.9": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /" 200 0`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/", path: "/", status: 200},
		},
		"absolute target": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET http://example.com:8080?q HTTP/1.1" 200 0`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", host: "example.com:8080", target: "http://example.com:8080?q", path: "/", query: "q", status: 200},
		},
		"absolute target in a query is none": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /go?to=http://example.com/ HTTP/1.1" 200 0`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/go?to=http://example.com/", path: "/go", query: "to=http://example.com/", status: 200},
		},
		"CONNECT": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "CONNECT example.com:443 HTTP/1.1" 405 0`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "CONNECT", host: "example.com:443", target: "example.com:443", status: 405},
		},
		"OPTIONS *": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "OPTIONS * HTTP/1.1" 200 0`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "OPTIONS", target: "*", path: "*", status: 200},
		},
		"a user who forges a time": {
			`192.0.2.7 - x [01/Jan/1999:00:00:00 +0000] \x22GET / [10/Oct/2000:13:55:36 +0000] "GET /a HTTP/1.1" 401 0 "-" "-"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/a", path: "/a", status: 401, user: `x [01/Jan/1999:00:00:00 +0000] "GET /`},
		},
		"a user agent who forges a line": {
			`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /a HTTP/1.1" 200 0 "-" "x\x22\x0A198.51.100.1 - - [11/Oct/2000:13:55:36 +0000] \x22GET /b HTTP/1.1\x22 200 0"`,
			seen{at: "2000-10-10T13:55:36Z", client: ip, addr: ip, method: "GET", target: "/a", path: "/a", status: 200, agent: "x\"\n198.51.100.1 - - [11/Oct/2000:13:55:36 +0000] \"GET /b HTTP/1.1\" 200 0"},
		},
		"envoy": {
			`[2016-04-15T20:17:00.310Z] "POST /api/v1/locations?x HTTP/2" 204 - 154 7 226 100 "198.51.100.2, 192.0.2.7" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.0.9:80"`,
			seen{at: "2016-04-15T20:17:00.310Z", client: ip, addr: ip, method: "POST", host: "locations", target: "/api/v1/locations?x", path: "/api/v1/locations", query: "x", status: 204, bytes: 7, agent: "nsq2http", forwarded: "198.51.100.2, 192.0.2.7"},
		},
		"istio": {
			`[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 4 4 "-" "curl/7.73.0-DEV" "84961386-6d84-929d-98bd-c5aee93b5c88" "httpbin:8000" "10.44.1.27:80" outbound|8000||httpbin.foo.svc.cluster.local 10.44.1.23:37652 10.0.45.184:8000 192.0.2.7:46520 - default`,
			seen{at: "2020-11-25T21:26:18.409Z", client: "192.0.2.7:46520", addr: ip, method: "GET", host: "httpbin:8000", target: "/status/418", path: "/status/418", status: 418, bytes: 135, agent: "curl/7.73.0-DEV"},
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.line, c.want) })
	}
}

func TestBrokenLinesSayWhy(t *testing.T) {
	for line, want := range map[string]accesslog.Reason{
		``:      accesslog.NoTime,
		`hello`: accesslog.NoTime,
		`192.0.2.7 - - [31/Feb/2024:00:00:00 +0000] "GET / HTTP/1.1" 200 1`: accesslog.NoTime,
		`192.0.2.7 - - [29/Feb/2023:00:00:00 +0000] "GET / HTTP/1.1" 200 1`: accesslog.NoTime,
		`192.0.2.7 - - [29/Feb/2100:00:00:00 +0000] "GET / HTTP/1.1" 200 1`: accesslog.NoTime,
		`192.0.2.7 - - [01/Feb/2023:24:00:00 +0000] "GET / HTTP/1.1" 200 1`: accesslog.NoTime,
		`192.0.2.7 - - [01/Feb/2023:00:00:00 0000] "GET / HTTP/1.1" 200 1`:  accesslog.NoTime,
		`[01/Feb/2023:00:00:00 +0000] "GET / HTTP/1.1" 200 1`:               accesslog.NoClient,
		`192.0.2.7 - - [01/Feb/2023:00:00:00 +0000] GET / HTTP/1.1 200 1`:   accesslog.NoRequest,
		`192.0.2.7 - - [01/Feb/2023:00:00:00 +0000] "GET / HT`:              accesslog.NoRequest,
		`192.0.2.7 - - [01/Feb/2023:00:00:00 +0000] "GET / HTTP/1.1"`:       accesslog.NoStatus,
		`192.0.2.7 - - [01/Feb/2023:00:00:00 +0000] "GET / HTTP/1.1" ok 1`:  accesslog.NoStatus,
		`{"time":"2024-01-01T00:00:00Z","method":"GET"`:                     accesslog.BadJSON,
		`{"time":"2024-01-01T00:00:00Z","method":"GET"} x`:                  accesslog.BadJSON,
		`{"time":"yesterday","method":"GET","path":"/"}`:                    accesslog.NoTime,
		`{"level":"info","ts":1646861401.52,"msg":"server running"}`:        accesslog.NoRequest,
	} {
		var r accesslog.Record
		if err := r.Parse(line, accesslog.Auto); err != want {
			t.Errorf("%s\n got %v\nwant %v", line, err, want)
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	var r accesslog.Record
	for _, line := range []string{
		`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /a?b HTTP/1.1" 200 1 "-" "Mozilla/5.0"`,
		`www.example.com:443 192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /a?b HTTP/1.1" 200 1 "-" "Mozilla/5.0"`,
		`{"time":"2024-01-01T00:00:00Z","ip":"192.0.2.7","method":"GET","path":"/a","status":200,"headers":{"User-Agent":"x"}}`,
	} {
		if n := testing.AllocsPerRun(100, func() { _ = r.Parse(line, accesslog.Auto) }); n != 0 {
			t.Errorf("%v allocations for %s", n, line)
		}
	}
}

func TestCloneSharesNoMemory(t *testing.T) {
	b := []byte(strings.Repeat("x", 10))
	r := accesslog.Record{Client: string(b), Addr: netip.MustParseAddr("192.0.2.1"), Path: "/a"}
	if c := r.Clone(); *c != r {
		t.Errorf("got %+v, want %+v", *c, r)
	}
}
