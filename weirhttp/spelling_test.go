package weirhttp_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirhttp"
)

// TestDraftSpellingIsOnTheWire reads the bytes, since every Go client hides them.
func TestDraftSpellingIsOnTheWire(t *testing.T) {
	l, err := weirhttp.New(weirhttp.Rule{Name: "login", Limits: []weir.Limit{weir.PerMinute(1)}, Key: weirhttp.ByIP})
	if err != nil {
		t.Fatal(err)
	}
	handler := weirhttp.Middleware(l, weirhttp.Options{DraftSpelling: true, Headers: weirhttp.IETFAndX})(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	server := httptest.NewServer(handler)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for _, status := range []string{"200", "429"} {
		if _, err := conn.Write([]byte("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		var head []string
		for lines.Scan() && lines.Text() != "" {
			head = append(head, lines.Text())
		}
		all := strings.Join(head, "\n")
		for _, want := range []string{" " + status + " ", "\nRateLimit: ", "\nRateLimit-Policy: ", "\nX-RateLimit-Remaining: 0"} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in\n%s", want, all)
			}
		}
	}
}
