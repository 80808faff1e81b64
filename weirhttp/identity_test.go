package weirhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir/weirhttp"
)

const threePerMinute = `[{"name": "each", "key": "ip", "limit": "3/m"}]`

// Case B24, S03: what the client writes itself is never believed.
func TestClientsCannotChooseTheirAddress(t *testing.T) {
	w := start(t, setup{rules: threePerMinute, trusted: []string{"10.0.0.0/8"}})
	var got []answer
	for n := 1; n <= 4; n++ {
		got = append(got, w.do("GET", "/", peerField+": 10.0.0.1:4000",
			fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", n), "X-Forwarded-For: 203.0.113.7"))
	}
	got = append(got, w.do("GET", "/", peerField+": 10.0.0.1:4000", "X-Forwarded-For: 192.0.2.5, 203.0.113.7, 10.0.0.9"))
	got = append(got, w.do("GET", "/", peerField+": 198.51.100.50:4000", "X-Forwarded-For: 203.0.113.7"))
	w.want("ok ok ok 429 429 ok", got...)
}

// Case S03: without a trusted proxy no header is read.
func TestHeadersOfStrangersAreIgnored(t *testing.T) {
	w := start(t, setup{rules: threePerMinute})
	var got []answer
	for n := range 10 {
		got = append(got, w.do("GET", "/", peerField+": 198.51.100.5:4000", fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", n),
			fmt.Sprintf("X-Real-IP: 192.0.2.%d", n), fmt.Sprintf("Forwarded: for=192.0.2.%d", n)))
	}
	w.want("ok ok ok 429 429 429 429 429 429 429", got...)
}

// Case B25: ports, brackets and IPv6 spellings are one client.
func TestPortsOfForwardedAddressesDoNotCount(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "each", "key": "ip", "limit": "2/m"}]`, trusted: []string{"10.0.0.0/8"}})
	var got []answer
	for _, v := range []string{"203.0.113.7:51034", "203.0.113.7:51077", "203.0.113.7", "[2001:db8::5]:443", "2001:db8::5", "[2001:db8::5]"} {
		got = append(got, w.do("GET", "/", peerField+": 10.0.0.1:4000", "X-Forwarded-For: "+v))
	}
	w.want("ok ok 429 ok ok 429", got...)
}

// Cases S05, S06: what is no address is never a key; the walk ends at the peer.
func TestJunkIsNotAClient(t *testing.T) {
	w := start(t, setup{rules: threePerMinute, trusted: []string{"10.0.0.0/8"}})
	var got []answer
	for _, v := range []string{"unknown", "203.0.113.7, _hidden", "203.0.113.7,", "999.1.1.1"} {
		got = append(got, w.do("GET", "/", peerField+": 10.0.0.1:4000", "X-Forwarded-For: "+v))
	}
	w.want("ok ok ok 429", got...) // all are 10.0.0.1
}

// Case B27: there is always an address.
func TestClientsWithoutForwardingHeadersAreApart(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "each", "key": "ip", "limit": "1/m"}]`, trusted: []string{"10.0.0.0/8"}})
	w.want("ok ok 429 ok ok 429",
		w.do("GET", "/", peerField+": 198.51.100.1:1"), w.do("GET", "/", peerField+": 198.51.100.2:1"), w.do("GET", "/", peerField+": 198.51.100.1:2"),
		w.do("GET", "/", peerField+": 10.0.0.1:1", "X-Forwarded-For: 10.0.0.5"), // the leftmost hop, since all are trusted
		w.do("GET", "/", peerField+": 10.0.0.1:1"),
		w.do("GET", "/", peerField+": 10.0.0.7:1", "X-Forwarded-For: 10.0.0.5"))
}

// Cases B27, S28: a connection without addresses is counted, too.
func TestAUnixSocketIsOneClient(t *testing.T) {
	for name, list := range map[string]string{
		"fallback": `[{"name": "each", "key": "ip", "limit": "1/m"}]`,
		"shared":   `[{"name": "each", "key": "ip", "limit": "1/m", "on_missing_key": "shared"}]`,
	} {
		w := start(t, setup{rules: list})
		t.Run(name, func(t *testing.T) {
			w.want("ok 429", w.do("GET", "/", peerField+": @"), w.do("GET", "/", peerField+": @"))
		})
	}
	w := start(t, setup{rules: `[{"name": "each", "key": "ip", "limit": "1/m", "on_missing_key": "skip"}]`})
	w.want("ok ok", w.do("GET", "/", peerField+": @"), w.do("GET", "/", peerField+": @"))
}

// Cases S04, S07, S26: one header, by its exact name in any case.
func TestTheChosenHeaderNamesTheClient(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "each", "key": "ip", "limit": "1/m"}]`, trusted: []string{"10.0.0.0/8"}, header: "x-real-ip"})
	w.want("ok ok 429 429",
		w.do("GET", "/", peerField+": 10.0.0.1:1", "X-Real-IP: 203.0.113.1", "X-Forwarded-For: 192.0.2.1"),
		w.do("GET", "/", peerField+": 10.0.0.1:1", "X-Real-IP: 203.0.113.2", "X-Forwarded-For: 192.0.2.1"),
		w.do("GET", "/", peerField+": 10.0.0.1:1", "X-Real-IP: 203.0.113.1", "X-Forwarded-For: 192.0.2.9"),
		w.do("GET", "/", peerField+": 10.0.0.1:1", "x-real-ip: 203.0.113.2", "X-Real_IP: 192.0.2.7"))
}

// Case S49: the port of a connection is no part of its client.
func TestFourConnectionsOfOneClientAreOne(t *testing.T) {
	w := start(t, setup{rules: threePerMinute})
	ports := map[string]bool{}
	handler := weirhttp.Middleware(w.limit, weirhttp.Options{})(http.NotFoundHandler())
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ports[r.RemoteAddr] = true
		handler.ServeHTTP(rw, r)
	}))
	defer server.Close()
	for _, want := range []int{404, 404, 404, 429} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("got %d, want %d", res.StatusCode, want)
		}
	}
	if len(ports) != 4 {
		t.Errorf("%d connections, want 4: %v", len(ports), ports)
	}
}

// Decision "ip/NN": the rule's own prefix for IPv6; IPv4 stays as the Resolver has it.
func TestARuleHasItsOwnIPv6Prefix(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "wide", "key": "ip/48", "limit": "1/m"}]`})
	get := func(peer string) answer { return w.do("GET", "/", peerField+": "+peer) }
	w.want("ok 429 ok ok ok 429", get("[2001:db8:1:1::1]:1"), get("[2001:db8:1:2::1]:1"), get("[2001:db8:2::1]:1"),
		get("203.0.113.1:1"), get("203.0.113.2:1"), get("[::ffff:203.0.113.1]:1"))
	w = start(t, setup{rules: `[{"name": "each", "key": "ip", "limit": "1/m"}]`})
	w.want("ok 429 ok", get("[2001:db8:1:1::1]:1"), get("[2001:db8:1:1::2]:1"), get("[2001:db8:1:2::1]:1"))
}

// Cases S08, S50: two rules never share a counter, and a rule's name is its own.
func TestRulesDoNotShareCounters(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "a", "match": "/a", "key": "ip", "limit": "1/m"}, {"name": "b", "match": "/b", "key": "ip", "limit": "1/m"}]`})
	w.want("ok ok 429 429", w.do("GET", "/a"), w.do("GET", "/b"), w.do("GET", "/a"), w.do("GET", "/b"))
}

// Case S22: a rule's default is not the raw path, so /user/1 and /user/2 are one.
func TestPathsOfARuleShareItsLimit(t *testing.T) {
	w := start(t, setup{rules: `[{"name": "users", "match": "/user/{id}", "key": "ip", "limit": "1/m"}]`})
	w.want("ok 429", w.do("GET", "/user/1"), w.do("GET", "/user/2"))
}

func TestHostnamesOfOneHostAreOne(t *testing.T) {
	for host, want := range map[string]string{
		"example.com": "example.com", "EXAMPLE.com:8080": "example.com", "example.com.": "example.com", "Example.COM.:80": "example.com",
		"[2001:DB8::1]:80": "2001:db8::1", "[::1]": "::1", "": "", "::1": "::1", ":80": "", "[": "",
	} {
		hr := httptest.NewRequest("GET", "/", nil)
		hr.Host = host
		r, err := weirhttp.NewRequest(hr, nil)
		if err != nil || r.Hostname != want {
			t.Errorf("%q: got %q, %v, want %q", host, r.Hostname, err, want)
		}
	}
	w := start(t, setup{rules: `[{"name": "api", "match": "api.example.com/", "key": "ip", "limit": "1/m"}]`})
	w.want("ok ok 429", w.do("GET", "/", "Host: www.example.com"), w.do("GET", "/", "Host: api.example.com"), w.do("GET", "/", "Host: API.example.com.:80"))
}
