package accesslog_test

import (
	"testing"

	"github.com/weirhq/weir/accesslog"
)

func TestJSONFormats(t *testing.T) {
	const ip = "192.0.2.7"
	for name, c := range map[string]struct {
		line string
		want seen
	}{
		"our own": {
			`{"time":"2024-02-29T23:59:59.25+02:00","ip":"192.0.2.7","method":"POST","host":"example.com","path":"/a?b=c","status":429,"headers":{"User-Agent":"curl","X-Forwarded-For":"198.51.100.1"}}`,
			seen{at: "2024-02-29T21:59:59.25Z", client: ip, addr: ip, method: "POST", host: "example.com", target: "/a?b=c", path: "/a", query: "b=c", status: 429, agent: "curl", forwarded: "198.51.100.1"},
		},
		"our own with the query apart": {
			`{"time":"2024-02-29T23:59:59Z","ip":"::ffff:192.0.2.7","method":"GET","path":"/a","query":"b=c"}`,
			seen{at: "2024-02-29T23:59:59Z", client: "::ffff:192.0.2.7", addr: ip, method: "GET", target: "/a", path: "/a", query: "b=c"},
		},
		"nginx with a request line": {
			`{"time_local":"10/Oct/2000:13:55:36 -0700","remote_addr":"192.0.2.7","remote_user":"","request":"GET /a?b HTTP/1.1","status": "200","body_bytes_sent":"12","request_time":"0.003","http_referrer":"http://example.com/","http_user_agent":"say \"hi\" \u4f60\ud83d\ude00"}`,
			seen{at: "2000-10-10T20:55:36Z", client: ip, addr: ip, method: "GET", target: "/a?b", path: "/a", query: "b", status: 200, bytes: 12, referer: "http://example.com/", agent: "say \"hi\" 你😀"},
		},
		"nginx with msec and fields": {
			`{"msec": "1709251199.123", "time_iso8601":"2024-03-01T00:59:59+01:00", "remote_addr":"2001:db8::1","request_method":"GET","request_uri":"/x?y=1","uri":"/index.php","args":"q=/x&y=1","host":"example.com","status":301,"bytes_sent":200,"http_x_forwarded_for":"198.51.100.9"}`,
			seen{at: "2024-02-29T23:59:59.123Z", client: "2001:db8::1", addr: "2001:db8::1", method: "GET", host: "example.com", target: "/x?y=1", path: "/x", query: "y=1", status: 301, bytes: 200, forwarded: "198.51.100.9"},
		},
		"nginx with escapes of its text format": {
			`{"time_iso8601":"2024-03-01T00:00:00+00:00","remote_addr":"192.0.2.7","request":"GET / HTTP/1.1","status":200,"http_user_agent":"a\x22b"}`,
			seen{at: "2024-03-01T00:00:00Z", client: ip, addr: ip, method: "GET", target: "/", path: "/", status: 200, agent: `a"b`},
		},
		"caddy": {
			`{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"198.51.100.1","remote_port":"41342","client_ip":"192.0.2.7","proto":"HTTP/2.0","method":"GET","host":"localhost:8080","uri":"/a?b","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"],"X-Forwarded-For":["192.0.2.7","198.51.100.1"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"ann","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}`,
			seen{at: "2022-03-09T21:30:01.524102Z", client: ip, addr: ip, method: "GET", host: "localhost:8080", target: "/a?b", path: "/a", query: "b", status: 200, bytes: 10900, agent: "curl/7.82.0", user: "ann", forwarded: "192.0.2.7, 198.51.100.1"},
		},
		"caddy, older, with a wall clock": {
			`{"ts":"2022/03/09 21:30:01.524","request":{"remote_addr":"192.0.2.7:4000","method":"GET","host":"localhost","uri":"/"},"status":200,"size":1}`,
			seen{at: "2022-03-09T21:30:01.524Z", client: "192.0.2.7:4000", addr: ip, method: "GET", host: "localhost", target: "/", path: "/", status: 200, bytes: 1},
		},
		"caddy in scientific notation": {
			`{"ts":1.646861401524e+09,"request":{"remote_ip":"192.0.2.7","method":"GET","uri":"/"},"status":200}`,
			seen{at: "2022-03-09T21:30:01.524Z", client: ip, addr: ip, method: "GET", target: "/", path: "/", status: 200},
		},
		"traefik": {
			`{"ClientAddr":"192.0.2.7:52916","ClientHost":"192.0.2.7","ClientPort":"52916","ClientUsername":"-","DownstreamContentSize":19,"DownstreamStatus":404,"Duration":65500,"OriginStatus":0,"RequestAddr":"whoami.example.com","RequestContentSize":0,"RequestHost":"whoami.example.com","RequestMethod":"GET","RequestPath":"/a?b","RequestPort":"-","RequestProtocol":"HTTP/1.1","RequestScheme":"http","StartLocal":"2024-03-01T01:00:00.5+01:00","StartUTC":"2024-03-01T00:00:00.123456789Z","entryPointName":"web","level":"info","msg":"","request_User-Agent":"curl/8","request_X-Forwarded-For":"198.51.100.3","time":"2024-03-01T00:00:02Z"}`,
			seen{at: "2024-03-01T00:00:00.123456Z", client: ip, addr: ip, method: "GET", host: "whoami.example.com", target: "/a?b", path: "/a", query: "b", status: 404, bytes: 19, agent: "curl/8", forwarded: "198.51.100.3"},
		},
		"envoy": {
			`{"start_time":"2020-11-25T21:26:18.409Z","method":"GET","path":"/rewritten","x_envoy_original_path":"/status/418","protocol":"HTTP/1.1","response_code":418,"bytes_sent":135,"x_forwarded_for":"198.51.100.4","user_agent":"curl","authority":"httpbin:8000","downstream_remote_address":"[2001:db8::7]:46520","upstream_host":null}`,
			seen{at: "2020-11-25T21:26:18.409Z", client: "[2001:db8::7]:46520", addr: "2001:db8::7", method: "GET", host: "httpbin:8000", target: "/status/418", path: "/status/418", status: 418, bytes: 135, agent: "curl", forwarded: "198.51.100.4"},
		},
		"garbage for a request": {
			`{"time_iso8601":"2024-03-01T00:00:00+00:00","remote_addr":"192.0.2.7","request":"\u0016\u0003\u0001","request_method":"","request_uri":"","status":400}`,
			seen{at: "2024-03-01T00:00:00Z", client: ip, addr: ip, target: "\x16\x03\x01", status: 400},
		},
		"nothing for a request": {
			`{"time_iso8601":"2024-03-01T00:00:00+00:00","remote_addr":"192.0.2.7","request":"","status":400}`,
			seen{at: "2024-03-01T00:00:00Z", client: ip, addr: ip, status: 400},
		},
		"spaces, milliseconds, and a deep value nobody asks for": {
			` { "x" : [[[{"}":"]"}]]] , "timestamp" : 1709251199123 , "ip" : "192.0.2.7" , "method" : "GET" , "path" : "/" } `,
			seen{at: "2024-02-29T23:59:59.123Z", client: ip, addr: ip, method: "GET", target: "/", path: "/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r accesslog.Record
			if err := r.Parse(c.line, accesslog.JSON); err != nil {
				t.Fatalf("%s\n%v", c.line, err)
			}
			if c.line[0] == '{' {
				check(t, c.line, c.want)
			}
		})
	}
}

func TestHeaderIsFoundHoweverItIsSpelled(t *testing.T) {
	const begin = `{"time":"2024-03-01T00:00:00Z","ip":"192.0.2.7","method":"GET","path":"/","status":200,`
	for _, c := range []struct{ line, name, want string }{
		{begin + `"headers":{"X-Api-Key":"k1"}}`, "X-API-Key", "k1"},
		{begin + `"headers":{"x-api-key":["k1","k2"]}}`, "X-Api-Key", "k1, k2"},
		{begin + `"headers":{"x-api-key":[]}}`, "X-Api-Key", ""},
		{begin + `"headers":{"x-api-key":null},"http_x_api_key":"k3"}`, "X-Api-Key", ""},
		{begin + `"http_x_api_key":"k\u00e9"}`, "X-Api-Key", "ké"},
		{begin + `"http_cookie":"a=b"}`, "Cookie", "a=b"},
		{begin + `"request_X-Api-Key":"k4"}`, "x-api-key", "k4"},
		{begin + `"x_request_id":"id"}`, "X-Request-Id", "id"},
		{begin + `"headers":{"A":"1"}}`, "Status", ""},
		{begin + `"headers":{"A":"1"}}`, "", ""},
		{begin + `"headers":{"Host":"h"}}`, "Host", "h"},
		{begin + `"host":"h","headers":{"Host":"forged"}}`, "Host", "h"},
		{`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "r" "a"`, "referer", "r"},
		{`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "r" "a"`, "user-agent", "a"},
		{`192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "r" "a"`, "X-Forwarded-For", ""},
	} {
		var r accesslog.Record
		if err := r.Parse(c.line, accesslog.Auto); err != nil {
			t.Fatal(err)
		}
		if got := r.Header(c.name); got != c.want {
			t.Errorf("%s\n%s is %q, want %q", c.line, c.name, got, c.want)
		}
	}
}
