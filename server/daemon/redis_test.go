package daemon_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/daemon"
)

// shared is a configuration on Redis at addr, with a rule for each way of outages.
func shared(addr string, more string) string {
	return fmt.Sprintf(`
gateway: {listen: "127.0.0.1:0", routes: [{match: /**, upstreams: ["http://127.0.0.1:1"]}]}
admin: {listen: "127.0.0.1:0"}
store: {redis: {addresses: [%q]%s}}
rules:
  - {name: login, match: POST /api/auth/login, key: ip, final: true, limit: {quota: 100, window: 1h, algorithm: sliding_log}}
  - {name: closed, match: GET /api/closed, key: ip, final: true, limit: 1000/s, on_store_error: closed}
  - {name: open, match: GET /api/open, key: ip, final: true, limit: 1000/s, on_store_error: open}
  - {name: fast, match: GET /api/items, key: global, final: true, limit: 100000/h, store: fast}
`, addr, more)
}

// nodes runs daemons on one Redis.
func nodes(t *testing.T, n int, text string) []*running {
	var all []*running
	for range n {
		path := filepath.Join(t.TempDir(), "weir.yaml")
		write(t, path, text)
		all = append(all, run(t, path, daemon.Options{Demo: true}))
	}
	return all
}

// figure is a figure of the metrics.
func (r *running) figure(name string) float64 {
	r.t.Helper()
	for line := range strings.Lines(r.metrics()) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			must(r.t, err)
			return v
		}
	}
	r.t.Fatalf("no figure %s", name)
	return 0
}

// TestNodesShareALimitExactly: whichever node is asked.
func TestNodesShareALimitExactly(t *testing.T) {
	s := redistest.Single(t)
	all := nodes(t, 2, shared(s.Addr, ""))
	var allowed, refused, other atomic.Int64
	var done sync.WaitGroup
	for i := range 16 {
		done.Go(func() {
			for range 20 {
				switch status, _, _ := all[i%2].do("POST", "/api/auth/login"); status {
				case http.StatusUnauthorized: // by the demo, which was asked
					allowed.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					other.Add(1)
				}
			}
		})
	}
	done.Wait()
	if a, r, o := allowed.Load(), refused.Load(), other.Load(); a != 100 || r != 220 || o != 0 {
		t.Errorf("%d allowed, %d refused, %d otherwise, of 320; the limit is 100", a, r, o)
	}
	if d := all[0].figure("weir_degraded_decisions_total") + all[1].figure("weir_degraded_decisions_total"); d != 0 {
		t.Errorf("%v degraded decisions", d)
	}
	if n := all[0].figure("weir_refusals_remembered_total"); n == 0 {
		t.Error("no refusal was remembered")
	}
	redistest.Until(t, "both nodes see both", func() bool { return all[0].figure("weir_redis_nodes") == 2 })
}

// TestRedisIsKilledUnderLoad: every request is answered, as its rule says; and when
// Redis is back, all is as before without a restart of anything.
func TestRedisIsKilledUnderLoad(t *testing.T) {
	s := redistest.Single(t)
	all := nodes(t, 2, shared(s.Addr, ""))
	var stop atomic.Bool
	var served atomic.Int64
	var mu sync.Mutex
	seen := make(map[string]int) // path and status
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n := i; !stop.Load(); n++ {
				path := []string{"/api/closed", "/api/open", "/api/items"}[n%3]
				resp, err := client.Get("http://" + all[i%2].d.Gateway().String() + path)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				served.Add(1)
				mu.Lock()
				seen[fmt.Sprint(path, " ", resp.StatusCode)]++
				mu.Unlock()
			}
		})
	}
	more := func(n int64) { // so many requests more
		t.Helper()
		at := served.Load() + n
		redistest.Until(t, "requests are answered", func() bool { return served.Load() >= at })
	}
	more(300)
	s.Kill()
	all[0].await("redis does not answer")
	all[1].await("redis does not answer")
	more(300)
	mu.Lock()
	if seen["/api/closed 503"] == 0 {
		t.Errorf("rule closed refused nobody while redis was gone: %v", seen)
	}
	for _, never := range []string{"/api/open 503", "/api/open 429", "/api/items 503", "/api/closed 502"} {
		if seen[never] > 0 {
			t.Errorf("%s: %d", never, seen[never])
		}
	}
	mu.Unlock()
	if all[0].figure("weir_degraded_decisions_total") == 0 || all[0].figure("weir_redis_breaker_open") != 1 {
		t.Error("the figures do not show it")
	}
	s.Restart()
	all[0].await("redis answers again")
	all[1].await("redis answers again")
	redistest.Until(t, "one of the nodes finds that redis is empty", func() bool {
		return all[0].figure("weir_redis_losses_total")+all[1].figure("weir_redis_losses_total") > 0
	})
	degraded := all[0].figure("weir_degraded_decisions_total")
	more(300)
	if d := all[0].figure("weir_degraded_decisions_total"); d != degraded {
		t.Errorf("%v degraded decisions after redis came back", d-degraded)
	}
	stop.Store(true)
	done.Wait()
}

// TestRedisMayComeLater: a daemon starts without it.
func TestRedisMayComeLater(t *testing.T) {
	s := redistest.Single(t)
	s.Kill()
	r := nodes(t, 1, shared(s.Addr, ""))[0]
	if got := r.statuses(1, "GET", "/api/open"); got != "200" {
		t.Errorf("rule open without redis: %s", got)
	}
	if got := r.statuses(1, "GET", "/api/closed"); got != "503" {
		t.Errorf("rule closed without redis: %s", got)
	}
	s.Restart()
	redistest.Until(t, "redis decides", func() bool { return r.statuses(1, "GET", "/api/closed") == "200" })
}

func TestAWrongPasswordIsSaid(t *testing.T) {
	s := redistest.Single(t, "--requirepass", "right")
	r := nodes(t, 1, shared(s.Addr, ", password: wrong"))[0]
	if got := r.statuses(1, "GET", "/api/closed"); got != "503" {
		t.Errorf("with a wrong password: %s", got)
	}
	r.await("WRONGPASS")
	right := nodes(t, 1, shared(s.Addr, ", password: right"))[0]
	if got := right.statuses(1, "GET", "/api/closed"); got != "200" {
		t.Errorf("with the right password: %s", got)
	}
}

// TestWhatRedisCannotRunIsRefused, at the start and by a reload.
func TestWhatRedisCannotRunIsRefused(t *testing.T) {
	s := redistest.Single(t)
	warm := shared(s.Addr, "") + `  - {name: slow-start, match: /slow, key: ip, limit: {quota: 10, window: 1s, algorithm: warm_up, warm_up: 3s}}` + "\n"
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, warm)
	_, err := daemon.New(t.Context(), daemon.Options{Config: path, Demo: true})
	var problems rules.Problems
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), "redis does not run warm_up") || problems[0].Line != 10 {
		t.Errorf("%v", err)
	}
	r := nodes(t, 1, shared(s.Addr, ""))[0]
	write(t, r.path, warm)
	r.await("file rejected: the old rules stay in force")
	r.await("redis does not run warm_up")
}

// TestStoppingGivesLoansBack: what a node has borrowed and not used is not lost when it
// is stopped.
func TestStoppingGivesLoansBack(t *testing.T) {
	s := redistest.Single(t)
	all := nodes(t, 2, shared(s.Addr, ""))
	a, b := all[0], all[1]
	redistest.Until(t, "units are lent", func() bool {
		a.statuses(20, "GET", "/api/items")
		return a.figure("weir_lease_units_total") > 0
	})
	must(t, a.stop())
	_, _, h := b.do("GET", "/api/items")
	field := h.Get("RateLimit")
	_, after, _ := strings.Cut(field, ";r=")
	number, _, _ := strings.Cut(after, ";")
	left, err := strconv.Atoi(number)
	used := 100_000 - left
	if err != nil || used > 5000 {
		t.Errorf("%s after a node that had asked for few was stopped", field)
	}
}
