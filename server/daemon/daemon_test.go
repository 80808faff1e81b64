package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/daemon"
	"github.com/weirhq/weir/source"
)

// patience bounds how long a test that is about to fail waits.
const patience = 20 * time.Second

// running is a daemon in this process.
type running struct {
	t    *testing.T
	d    *daemon.Daemon
	path string // of the configuration
	log  *lines
	stop func() error
}

func run(t *testing.T, path string, o daemon.Options) *running {
	t.Helper()
	r := &running{t: t, path: path, log: &lines{news: make(chan struct{}, 1)}}
	o.Config, o.Log = path, slog.New(slog.NewTextHandler(r.log, nil))
	o.Watch = source.Options{Quiet: 5 * time.Millisecond, Poll: 50 * time.Millisecond}
	d, err := daemon.New(t.Context(), o)
	must(t, err)
	r.d = d
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { must(t, r.stop()) })
	r.await("file in force")
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lines is a log that can be waited on.
type lines struct {
	mu   sync.Mutex
	text string
	read int // up to here it was awaited
	news chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	select {
	case l.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// await waits until the log says something after what was awaited before.
func (r *running) await(what string) {
	r.t.Helper()
	late := time.After(patience)
	for {
		r.log.mu.Lock()
		fresh := r.log.text[r.log.read:]
		if at := strings.Index(fresh, what); at >= 0 {
			r.log.read += at + len(what)
			r.log.mu.Unlock()
			return
		}
		r.log.mu.Unlock()
		select {
		case <-r.log.news:
		case <-late:
			r.t.Fatalf("the log never said %q:\n%s", what, r.log.all())
		}
	}
}

// do sends a request to the gateway over a connection of its own.
func (r *running) do(method, path string, header ...string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.d.Gateway().String()+path, nil)
	must(r.t, err)
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return r.send(req)
}

func (r *running) send(req *http.Request) (int, string, http.Header) {
	r.t.Helper()
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	must(r.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(r.t, err)
	return resp.StatusCode, string(body), resp.Header
}

func (r *running) statuses(n int, method, path string) string {
	r.t.Helper()
	var all []string
	for range n {
		status, _, _ := r.do(method, path)
		all = append(all, fmt.Sprint(status))
	}
	return strings.Join(all, " ")
}

func (r *running) metrics() string {
	r.t.Helper()
	req, err := http.NewRequest("GET", "http://"+r.d.Admin().String()+"/metrics", nil)
	must(r.t, err)
	_, body, _ := r.send(req)
	return body
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// conf is a configuration whose login allows so many in an hour, by a log, so that
// no time that passes in a test gives anything back.
func conf(quota int) string {
	return fmt.Sprintf(`
gateway: {listen: "127.0.0.1:0", routes: [{match: /**, upstreams: ["http://127.0.0.1:1"]}]}
admin: {listen: "127.0.0.1:0"}
rules:
  - {name: login, match: POST /api/auth/login, key: ip, final: true, limit: {quota: %d, window: 1h, algorithm: sliding_log}}
  - {name: everything-else, match: /api/**, key: ip, limit: 100000/s}
`, quota)
}

// TestAChangedLimitKeepsUse is cases B42 and S14: the new limit applies at once, to
// what was used already.
func TestAChangedLimitKeepsUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, conf(2))
	r := run(t, path, daemon.Options{Demo: true})
	if got := r.statuses(3, "POST", "/api/auth/login"); got != "401 401 429" {
		t.Fatalf("before the change: %s", got)
	}
	write(t, path, conf(4))
	r.await("rules changed")
	r.await("file in force")
	if got := r.statuses(3, "POST", "/api/auth/login"); got != "401 401 429" {
		t.Errorf("raised from 2 to 4: %s; two were used", got)
	}
	write(t, path, conf(1))
	r.await("file in force")
	_, _, h := r.do("POST", "/api/auth/login")
	if got := h.Get("RateLimit"); !strings.HasPrefix(got, `"login";r=0;`) {
		t.Errorf("lowered below what was used: RateLimit %s", got)
	}
	if got := r.statuses(1, "GET", "/api/items"); got != "200" {
		t.Errorf("GET /api/items: %s", got)
	}
}

// TestABrokenFileChangesNothing is case B37 as a reload, and case B23: reading the
// same rules again, by whatever way, forgets nothing.
func TestABrokenFileChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, conf(2))
	r := run(t, path, daemon.Options{Demo: true})
	if got := r.statuses(1, "POST", "/api/auth/login"); got != "401" {
		t.Fatalf("the first: %s", got)
	}
	for _, broken := range []string{
		strings.Replace(conf(9), "window:", "windw:", 1), "rules: [", conf(9) + conf(9),
		strings.Replace(conf(9), "key: ip", "key: nobody", 1), strings.Replace(conf(9), "quota: 9", "quota: -9", 1),
	} {
		write(t, path, broken)
		r.await("file rejected: the old rules stay in force")
		r.await("weir.yaml:") // with the position of the problem
	}
	text := r.metrics()
	for _, line := range []string{`weir_rules_reloads_total{result="rejected"} 5`, "weir_rules_last_reload_ok 0"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	must(t, os.Remove(path))
	r.await("file unreadable")
	write(t, path, conf(2))
	r.await("file in force")
	r.d.Reload()
	r.await("file in force")
	if got := r.statuses(2, "POST", "/api/auth/login"); got != "401 429" {
		t.Errorf("after all that: %s; one was used before", got)
	}
	if text := r.metrics(); !strings.Contains(text, "weir_rules_last_reload_ok 1\n") {
		t.Error("the good file is not seen as one")
	}
}

func TestWhatCannotReloadIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, conf(2))
	r := run(t, path, daemon.Options{Demo: true})
	write(t, path, "headers: [x]\n"+conf(3))
	r.await(`take effect when weir starts again" changed=[headers]`)
	r.await("rules changed")
}

func TestRulesMayHaveFilesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "rules"), 0o755))
	one := filepath.Join(dir, "rules", "1.yaml")
	write(t, one, "rules: [{name: a, match: /api/a, key: ip, limit: 1/h}]")
	write(t, filepath.Join(dir, "rules", "2.yaml"), "rules: [{name: b, match: /api/b, key: ip, limit: 1/h}]")
	path := filepath.Join(dir, "weir.yaml")
	write(t, path, "gateway: {listen: \"127.0.0.1:0\", routes: [{match: /**, upstreams: [\"http://h\"]}]}\nrules_file: rules\n")
	r := run(t, path, daemon.Options{Demo: true})
	r.await("file in force") // of both
	if got := r.statuses(2, "GET", "/api/a") + " " + r.statuses(2, "GET", "/api/b"); got != "200 429 200 429" {
		t.Errorf("got %s", got)
	}
	write(t, one, "rules: [{name: a, match: /api/a, key: ip, limit: {quota: 3, window: 1h, algorithm: sliding_log}}]")
	r.await("rules changed")
	r.await("file in force")
	if got := r.statuses(4, "GET", "/api/a"); got != "200 200 200 429" { // another algorithm starts afresh
		t.Errorf("after the change: %s", got)
	}
	write(t, one, "rules: [{name: b, match: /api/a, key: ip, limit: 3/h}]")
	r.await("file rejected")
	r.await("2.yaml:1:")
}

// TestAFloodDoesNotFillTheLog is case S13: lines are sampled, and what a client
// wrote cannot make a line of its own.
func TestAFloodDoesNotFillTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, "gateway: {listen: \"127.0.0.1:0\", routes: [{match: /**, upstreams: [\"http://h\"]}]}\nrules: [{name: none, key: ip, limit: 0/h}]\n")
	r := run(t, path, daemon.Options{Demo: true})
	for range 500 {
		r.do("GET", "/x%20level=ERROR%22msg=forged")
	}
	must(t, r.stop())
	text := r.log.all()
	refused := strings.Count(text, "msg=refused")
	left := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, "lines left out") {
			var n int
			_, after, _ := strings.Cut(line, "count=")
			_, err := fmt.Sscan(after, &n)
			must(t, err)
			left += n
		}
		if strings.Contains(line, "refused") && strings.Contains(line, "path=") && !strings.Contains(line, `path="/x%20level=ERROR%22msg=forged"`) {
			t.Errorf("not quoted: %s", line)
		}
	}
	if refused+left != 500 || left == 0 {
		t.Errorf("%d lines and %d left out; want 500 in all, most of them left out", refused, left)
	}
}

func TestAdminShowsHealth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, conf(2))
	r := run(t, path, daemon.Options{Demo: true})
	for what, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/": 200, "/": 200, "/api": 404} {
		req, err := http.NewRequest("GET", "http://"+r.d.Admin().String()+what, nil)
		must(t, err)
		if got, _, _ := r.send(req); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
		// Not on the gateway's port.
		if _, body, _ := r.do("GET", what); strings.Contains(body, "goroutine") || strings.Contains(body, "weir_") {
			t.Errorf("the gateway answers %s itself", what)
		}
	}
	for _, line := range []string{"weir_memory_keys ", "weir_memory_overflow_total 0", "weir_rules_info{version=", "weir_decision_duration_seconds_count", "weir_rules_last_reload_ok 1"} {
		if text := r.metrics(); !strings.Contains(text, "\n"+line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
}

func TestNothingStartsWithProblems(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.yaml")
	if _, err := daemon.New(t.Context(), daemon.Options{Config: path}); err == nil || !strings.Contains(err.Error(), "weir.yaml") {
		t.Errorf("no file: %v", err)
	}
	write(t, path, "rules: [{name: a, key: ip, limit: 5/m}]")
	if _, err := daemon.New(t.Context(), daemon.Options{Config: path}); !errors.Is(err, daemon.ErrNoDoor) {
		t.Errorf("no door: %v", err)
	}
	write(t, path, "rules: [{name: a, limit: 5/m}]")
	var problems rules.Problems
	if _, err := daemon.New(t.Context(), daemon.Options{Config: path, Demo: true}); !errors.As(err, &problems) {
		t.Errorf("a rule without a key: %v", err)
	}
	if _, err := daemon.New(t.Context(), daemon.Options{Config: dir, Demo: true}); err == nil {
		t.Error("a directory is no configuration")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	write(t, path, conf(2))
	if _, err := daemon.New(t.Context(), daemon.Options{Config: path, Demo: true, Listen: taken.Addr().String()}); err == nil {
		t.Error("a port that is taken")
	}
}

// TestStoppingLosesNoAnswer: requests that run while weir stops are answered, and a
// list of the demo that is being read does not hold it up.
func TestStoppingLosesNoAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, conf(1000))
	r := run(t, path, daemon.Options{Demo: true})
	resp, err := http.Get("http://" + r.d.Gateway().String() + "/decisions")
	must(t, err)
	defer resp.Body.Close()
	buf := make([]byte, 64)
	if got := r.statuses(1, "GET", "/api/x"); got != "200" {
		t.Fatal(got)
	}
	_, err = resp.Body.Read(buf) // the list is live
	must(t, err)
	must(t, r.stop())
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the list broke off: %v", err)
	}
}

// TestReloadsUnderLoadLoseNothing: while the rules are replaced again and again, no
// request fails and exactly the quota is allowed.
func TestReloadsUnderLoadLoseNothing(t *testing.T) {
	const clients, each, quota = 4, 100, 150
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, conf(quota))
	r := run(t, path, daemon.Options{Demo: true})
	var mu sync.Mutex
	answers := make(map[int]int)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			client := &http.Client{Transport: new(http.Transport)} // one connection, kept
			defer client.CloseIdleConnections()
			for range each {
				resp, err := client.Post("http://"+r.d.Gateway().String()+"/api/auth/login", "", nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				mu.Lock()
				answers[resp.StatusCode]++
				mu.Unlock()
			}
		})
	}
	for i := range 10 {
		write(t, path, strings.Replace(conf(quota), "limit: 100000/s", fmt.Sprintf("limit: %d/s", 200000+i), 1))
		r.await("rules changed")
		r.await("file in force")
	}
	all.Wait()
	if answers[401] != quota || answers[429] != clients*each-quota {
		t.Errorf("answers were %v; want %d of 401 and the rest of 429", answers, quota)
	}
}
