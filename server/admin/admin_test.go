package admin_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/server/admin"
	"github.com/weirhq/weir/server/config"
)

func ask(h http.Handler, method, path, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func door(ready error) http.Handler {
	return admin.Handler(admin.Options{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "figures") }),
		Ready:   func() error { return ready },
	})
}

func TestHealthIsNotReadiness(t *testing.T) {
	h := door(errors.New("stopping"))
	if a := ask(h, "GET", "/healthz", "localhost:6070"); a.Code != 200 {
		t.Errorf("/healthz while stopping: %d", a.Code)
	}
	if a := ask(h, "GET", "/readyz", "localhost:6070"); a.Code != 503 || a.Body.String() != "stopping\n" {
		t.Errorf("/readyz while stopping: %d %s", a.Code, a.Body)
	}
	h = door(nil)
	for path, want := range map[string]string{"/readyz": "ready\n", "/metrics": "figures"} {
		if a := ask(h, "GET", path, "localhost:6070"); a.Code != 200 || a.Body.String() != want {
			t.Errorf("%s: %d %s", path, a.Code, a.Body)
		}
	}
	if a := ask(h, "POST", "/metrics", "localhost:6070"); a.Code != 405 {
		t.Errorf("POST /metrics: %d", a.Code)
	}
}

// TestAPageCannotReadTheDoor: a name that an attacker's DNS points at 127.0.0.1 is
// not this machine's.
func TestAPageCannotReadTheDoor(t *testing.T) {
	for host, want := range map[string]int{
		"127.0.0.1:6070": 200, "localhost": 200, "LOCALHOST:6070": 200, "[::1]:6070": 200, "[::1]": 200,
		"evil.example:6070": 421, "127.0.0.1.evil.example": 421, "": 421, "192.0.2.1:6070": 421, "localhost.evil.example": 421,
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/readyz"} {
			if a := ask(door(nil), "GET", path, host); a.Code != want {
				t.Errorf("%s at host %q: %d, want %d", path, host, a.Code, want)
			}
		}
	}
}

func TestTheDoorOpensOnLoopbackOnly(t *testing.T) {
	ln, err := admin.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	for _, address := range []config.Address{":0", "0.0.0.0:0"} {
		if ln, err := admin.Listen(address); err == nil || !strings.Contains(err.Error(), "listen on 127.0.0.1") {
			t.Errorf("%s opened as %v, %v", address, ln, err)
		}
	}
}

func ExampleHandler() {
	h := admin.Handler(admin.Options{Metrics: http.NotFoundHandler(), Ready: func() error { return nil }})
	fmt.Print(ask(h, "GET", "/readyz", "127.0.0.1:6070").Body)
	// Output: ready
}
