package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// wholeSite is a gateway that has one upstream for everything; rules follow.
const wholeSite = `
gateway:
  listen: 127.0.0.1:0
  routes: [{match: /**, upstreams: ["UPSTREAM"]}]`

// TestAMethodInSmallLettersReachesNobody: some servers read post as POST, and the
// rule of POST would not have counted it.
func TestAMethodInSmallLettersReachesNobody(t *testing.T) {
	up := new(recording)
	w := start(t, setup{upstream: up, config: wholeSite + `
rules:
  - {name: login, match: POST /login, key: ip, limit: 1/h}
`})
	for _, method := range []string{"post", "Post", "posT"} {
		got := w.raw(method + " /login HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		if got.StatusCode != http.StatusNotImplemented {
			t.Errorf("%s: %d", method, got.StatusCode)
		}
	}
	if got := w.raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); got.StatusCode != http.StatusHTTPVersionNotSupported {
		t.Errorf("the preface of HTTP/2: %d", got.StatusCode)
	}
	if seen := up.take(); len(seen) != 0 {
		t.Errorf("the upstream was asked %d times", len(seen))
	}
}

// TestAFieldThatTheUpstreamWillNotSeeIsNoKey: what Connection names is dropped on the
// way, so a client must not be somebody by it here and nobody there.
func TestAFieldThatTheUpstreamWillNotSeeIsNoKey(t *testing.T) {
	up := new(recording)
	w := start(t, setup{upstream: up, config: wholeSite + `
rules:
  - {name: key, key: "header:X-Api-Key", limit: 2/h}
`})
	var got []string
	for i := range 4 {
		got = append(got, fmt.Sprint(w.raw(fmt.Sprintf("GET / HTTP/1.1\r\nHost: x\r\nX-Api-Key: made-up-%d\r\nConnection: X-Api-Key, close\r\n\r\n", i)).StatusCode))
	}
	if all := strings.Join(got, " "); all != "200 200 429 429" {
		t.Errorf("got %s, want the limit of the address", all)
	}
	for _, r := range up.take() {
		if r.Header.Get("X-Api-Key") != "" {
			t.Error("the upstream sees the field after all")
		}
	}
}

// TestClaimsOfOtherProxiesAreDropped, by whatever name and spelling.
func TestClaimsOfOtherProxiesAreDropped(t *testing.T) {
	up := new(recording)
	w := start(t, setup{upstream: up, config: wholeSite + `
rules: [{name: all, key: ip, limit: 100/s}]
`})
	claims := []string{"Proxy-Client-IP", "WL-Proxy-Client-IP", "HTTP_CLIENT_IP", "HTTP_X_FORWARDED_FOR", "HTTP-X-Forwarded-For",
		"Fly-Client-IP", "DO-Connecting-IP", "Ali-CDN-Real-IP", "Incap-Client-IP", "X-Forwarded.For", "X-Original-URI"}
	var header []string
	for _, name := range claims {
		header = append(header, name+": 192.0.2.66")
	}
	w.do("127.0.0.9", "GET", "/", append(header, "X-Kept: 192.0.2.66")...)
	seen := up.take()
	if len(seen) != 1 || seen[0].Header.Get("X-Kept") == "" {
		t.Fatalf("%d requests", len(seen))
	}
	for name, values := range seen[0].Header {
		if name != "X-Kept" && strings.Contains(strings.Join(values, ","), "192.0.2.66") {
			t.Errorf("the upstream was told %s: %s", name, values)
		}
	}
}
