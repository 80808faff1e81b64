package accesslog_test

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirhq/weir/accesslog"
)

// TestSamplesOfEveryServer reads testdata, which was written after the formats'
// descriptions: the combined and common logs of nginx and Apache, and what
// Caddy, Traefik, Envoy and Istio write.
func TestSamplesOfEveryServer(t *testing.T) {
	samples := map[string][]string{
		"combined.log": {
			"10:00:00 192.0.2.1 GET  /index.html  200 612",
			"10:00:01 2001:db8::7 POST  /login next=%2F 302 0",
			"10:00:02 192.0.2.3     400 157",
			"10:00:03 192.0.2.3     408 0",
		},
		"common.log": {
			"20:55:36 192.0.2.1 GET  /apache_pb.gif  200 2326",
			"20:55:37 192.0.2.1 GET www.example.com /vhost  200 0",
			"20:55:38 192.0.2.2 GET other.example.com /absolute  200 17",
		},
		"nginx.jsonl": {
			"10:00:00 192.0.2.1 GET www.example.com /a b=1 200 612",
			"10:00:01 192.0.2.10 GET www.example.com /docs page=3 200 10901",
			"10:00:01.25 2001:db8::7 DELETE api.example.com /items/7  204 0",
			"10:00:02 192.0.2.3     400 0",
		},
		"caddy.jsonl": {
			"10:00:00.123456 192.0.2.1 GET www.example.com /a b=1 200 10900",
			"10:00:00.2 2001:db8::7 GET www.example.com /down  502 0",
			"10:00:01.25 2001:db8::a POST www.example.com /login  401 17",
		},
		"traefik.log": {
			"10:00:00 192.0.2.1 GET  /whoami  200 412",
			"10:00:01 192.0.2.2 GET  /none  404 19",
		},
		"traefik.jsonl": {
			"10:00:00.776374 192.0.2.1 GET www.example.com /a b=1&c=2 200 28247",
		},
		"envoy.log": {
			"10:00:00.31 192.0.2.1 POST locations /api/v1/locations  204 0",
			"10:00:01.409 192.0.2.2 GET httpbin:8000 /status/418  418 135",
			"10:00:02 192.0.2.3     0 0",
		},
		"envoy.jsonl": {
			"10:00:00.31 192.0.2.1 POST locations /api/v1/locations  204 0",
			"10:00:01.409 2001:db8::7 GET httpbin:8000 /status/418  418 135",
		},
		// The clocks go forward in March and back in October.
		"nginx.log": {
			"00:59:58 192.0.2.10 GET  /  200 612",
			"01:00:01 192.0.2.10 GET  /favicon.ico  404 153",
			"01:00:02 2001:db8::a POST  /api/v1/orders dry=1 201 88",
			"01:00:03 198.51.100.4     400 157",
			"01:00:04 198.51.100.4     400 0",
		},
		"apache-vhost.log": {
			"00:59:59 192.0.2.10 GET www.example.com /caf%C3%A9 q=a+b 200 5123",
			"01:00:00 2001:db8::a HEAD www.example.com /  304 0",
			"01:00:01 198.51.100.4  api.example.com   408 0",
		},
		"weir.jsonl": {
			"10:00:00.5 192.0.2.1 GET api.example.com /users page=2 200 0",
			"10:00:01 2001:db8::7 POST  /login  0 0",
		},
	}
	// Lines of Caddy and Traefik that are of no request.
	skipped := map[string]int64{"caddy.jsonl": 2, "traefik.jsonl": 1}

	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(samples) {
		t.Errorf("testdata has %d samples, the table %d", len(files), len(samples))
	}
	for name, want := range samples {
		t.Run(name, func(t *testing.T) {
			r := open(t, []string{filepath.Join("testdata", name)}, nil, accesslog.Options{})
			var got []string
			for {
				rec, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintln(rec.Time().Format("15:04:05.999999"), rec.Addr, rec.Method, rec.Host, rec.Path, rec.Query, rec.Status, rec.Bytes))
			}
			for i := range want {
				want[i] += "\n"
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
			s := r.Stats()
			if s.Skipped != skipped[name] || s.Reasons[accesslog.NoRequest] != skipped[name] {
				t.Errorf("skipped %+v", s.Examples)
			}
		})
	}
}
