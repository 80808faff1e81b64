package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirhq/weir/server/cli"
)

// patience bounds how long a test that is about to fail waits.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir": func() {
			os.Exit(cli.Run(context.Background(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits CODE COMMAND…: the command ends with that code.
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				err := ts.Exec(args[1], args[2:]...)
				code := 0
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					code = exit.ExitCode()
				} else {
					ts.Check(err)
				}
				if neg || fmt.Sprint(code) != args[0] {
					ts.Fatalf("exit code %d, want %s", code, args[0])
				}
			},
		},
	})
}

// examples are the files that people start from.
const examples = "../../examples"

// TestExamplesKeepTheirPromises checks every example and runs its script.
func TestExamplesKeepTheirPromises(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		var out, errs bytes.Buffer
		for _, args := range [][]string{{"check", file}, {"test", strings.TrimSuffix(file, ".yaml") + ".weir"}} {
			if code := cli.Run(t.Context(), args, cli.Streams{Out: &out, Err: &errs}); code != 0 {
				t.Errorf("weir %s: %d\n%s%s", strings.Join(args, " "), code, &out, &errs)
			}
		}
	}
}

// TestServe is what a newcomer does with the quick start: five logins, a sixth that
// is refused, forged addresses, an edit, a mistake, SIGHUP and Ctrl-C.
func TestServe(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(examples, "quickstart.yaml"))
	must(t, err)
	conf := string(text)
	for old, now := range map[string]string{
		"listen: 127.0.0.1:6070": "listen: 127.0.0.1:0", // another weir may run
		"limit: 5/m":             "limit: 5/h",          // however slow the test is, nothing comes back
	} {
		if !strings.Contains(conf, old) {
			t.Fatalf("quickstart.yaml has no %q", old)
		}
		conf = strings.Replace(conf, old, now, 1)
	}
	path := filepath.Join(t.TempDir(), "quickstart.yaml")
	must(t, os.WriteFile(path, []byte(conf), 0o644))
	s := serve(t, "serve", "--config", path, "--demo", "--listen", "127.0.0.1:0")
	at := s.await("weir is in front of a demo site: ", "/")
	s.await("file in force", "\n")

	for i := range 5 {
		if resp, _ := do(t, "POST", at+"/api/auth/login"); resp.StatusCode != 401 {
			t.Errorf("login %d: %d", i+1, resp.StatusCode)
		}
	}
	resp, body := do(t, "POST", at+"/api/auth/login")
	var problem struct {
		Violated []string `json:"violated-policies"`
	}
	must(t, json.Unmarshal(body, &problem))
	h := resp.Header
	if resp.StatusCode != 429 || h.Get("Retry-After") == "" || !strings.HasPrefix(h.Get("RateLimit"), `"login";r=0;t=`) ||
		h.Get("RateLimit-Policy") != `"login";q=5;w=3600` || h.Get("Content-Type") != "application/problem+json" ||
		len(problem.Violated) != 1 || problem.Violated[0] != "login" {
		t.Errorf("the sixth: %d %v %s", resp.StatusCode, h, body)
	}
	for i := range 10 {
		if resp, _ := do(t, "POST", at+"/api/auth/login", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i)); resp.StatusCode != 429 {
			t.Errorf("forged address %d: %d", i, resp.StatusCode)
		}
	}
	if resp, body := do(t, "GET", at+"/api/items"); resp.StatusCode != 200 || !bytes.Contains(body, []byte("items")) {
		t.Errorf("GET /api/items: %d %s", resp.StatusCode, body)
	}

	must(t, os.WriteFile(path, []byte(strings.Replace(conf, "limit: 5/h", "limit: 6/h", 1)), 0o644))
	s.await("rules changed", "\n")
	s.await("file in force", "\n")
	var got []int
	for range 2 {
		resp, _ := do(t, "POST", at+"/api/auth/login")
		got = append(got, resp.StatusCode)
	}
	if got[0] != 401 || got[1] != 429 {
		t.Errorf("after 5/h became 6/h, with five used: %v", got)
	}

	must(t, os.WriteFile(path, []byte(strings.Replace(conf, "limit: 5/h", "limti: 900/h", 1)), 0o644))
	if problem := s.await("problem=", "\n"); !strings.Contains(problem, `quickstart.yaml:`) || !strings.Contains(problem, "limti") {
		t.Errorf("the log says %s", problem)
	}
	must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	s.await("SIGHUP", "\n")
	s.await("file rejected", "\n")
	if resp, _ := do(t, "POST", at+"/api/auth/login"); resp.StatusCode != 429 {
		t.Errorf("after a mistake: %d", resp.StatusCode)
	}

	must(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	if code := <-s.code; code != 0 {
		t.Errorf("Ctrl-C ends with %d", code)
	}
}

// TestASecondCtrlCDoesNotWait: not even for a request that never ends.
func TestASecondCtrlCDoesNotWait(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-release
	}))
	defer up.Close()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	must(t, os.WriteFile(path, []byte(`gateway: {listen: "127.0.0.1:0", routes: [{match: /**, upstreams: ["`+up.URL+"\"]}]}\nrules: []\n"), 0o644))
	s := serve(t, "serve", "--config", path)
	at := "http://" + s.await(`msg="gateway open" address=`, " ")
	var request sync.WaitGroup
	request.Go(func() {
		if resp, err := http.Get(at); err == nil {
			_ = resp.Body.Close()
		}
	})
	<-begun
	must(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	s.await("stopping", "\n")
	select {
	case code := <-s.code:
		t.Errorf("one Ctrl-C cut off a request, with %d", code)
	default:
	}
	must(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	if code := <-s.code; code != 1 {
		t.Errorf("a second Ctrl-C ends with %d", code)
	}
	close(release) // in this process the rest ends by itself
	request.Wait()
}

// served is a weir serve in this process.
type served struct {
	t    *testing.T
	code chan int
	news chan struct{}

	mu   sync.Mutex
	text string
}

func serve(t *testing.T, args ...string) *served {
	s := &served{t: t, code: make(chan int, 1), news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.code <- cli.Run(ctx, args, cli.Streams{Out: s, Err: s})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

func (s *served) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += string(p)
	select {
	case s.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

// await waits for something to be printed that begins so, and returns what follows
// up to the end. What is before it is not looked at again.
func (s *served) await(begin, end string) string {
	s.t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		if _, after, ok := strings.Cut(s.text, begin); ok {
			if found, rest, ok := cutAfterScheme(after, end); ok {
				s.text = rest
				s.mu.Unlock()
				return found
			}
		}
		s.mu.Unlock()
		select {
		case <-s.news:
		case <-late:
			s.t.Fatalf("never printed %q:\n%s", begin, s.text)
		}
	}
}

// cutAfterScheme cuts at the end, which is not looked for inside of http://.
func cutAfterScheme(s, end string) (before, after string, ok bool) {
	scheme := ""
	if strings.HasPrefix(s, "http://") {
		scheme, s = s[:len("http://")], s[len("http://"):]
	}
	before, after, ok = strings.Cut(s, end)
	return scheme + before, after, ok
}

func do(t *testing.T, method, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	must(t, err)
	r.Close = true
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, body
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
