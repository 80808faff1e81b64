package weirtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

func run(t testing.TB, text string) error {
	t.Helper()
	s, err := weirtest.Parse("test.weir", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var c weirtest.Clock
	return weirtest.Run(context.Background(), s, &c, weirtest.OnStore(weir.NewMemory(weir.MemoryOptions{Clock: &c})))
}

// TestTheExampleOfThePackageComment reads it out of doc.go.
func TestTheExampleOfThePackageComment(t *testing.T) {
	data, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "//\treload policy NAME") || strings.HasPrefix(line, "//\tpolicy NAME") {
			break
		}
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			script.WriteString(code)
		}
	}
	if !strings.Contains(script.String(), "reload policy login") {
		t.Fatal("there is no example in doc.go")
	}
	if err := run(t, script.String()); err != nil {
		t.Fatal(err)
	}
}

// TestAWrongAnswerIsFound: every kind of expectation can fail, and says where.
func TestAWrongAnswerIsFound(t *testing.T) {
	const head = "policy p  2 per 10s\npolicy trial  1 per 10s  shadow\nat 0s take a x2 ok\n"
	for _, c := range []struct{ step, want, got string }{
		{"at 0s take b refuse", "refuse", "ok"},
		{"at 0s take a ok", "ok", "refuse by p retry 5s"},
		{"at 0s take b 3 times ok ok ok", "ok", "refuse by p retry 5s (p: remaining 0, reset 10s, over, retry 5s) (trial: remaining 0, reset 10s, over, retry 10s) for request 3 of 3"},
		{"at 0s take b 3 times ok", "ok", "for request 3 of 3"},
		{"at 0s take b 9 times 1 ok 8 refuse", "refuse", "ok (p: remaining 0"},
		{"at 0s take b 9 times every 1s allow 4", "4 allowed of 9", "3"},
		{"at 0s take b ok remaining 2", "remaining 2", "remaining 1"},
		{"at 0s take b ok remaining 1 of trial", "remaining 1 of trial", "(trial: remaining 0"},
		{"at 0s take b ok remaining 1 of other", "remaining 1 of other", "(p: remaining 1"},
		{"at 0s take b ok reset 4s", "reset 4s", "reset 5s"},
		{"at 0s take b ok reset 5s of trial", "reset 5s of trial", "(trial: remaining 0, reset 10s)"},
		{"at 0s take b ok wait 1s", "wait 1s", "ok"},
		{"at 0s take b ok over trial", "over trial", "ok"},
		{"at 0s take b ok retry 1s", "retry 1s", "ok"},
		{"at 0s take a refuse retry 4999999us", "retry 4.999999s", "retry 5s"},
		{"at 0s take a refuse retry 5s of trial", "retry 5s of trial", "(trial: remaining 0, reset 10s)"},
		{"at 0s take a refuse retry never", "retry never", "retry 5s"},
		{"at 0s take a x3 refuse retry 1s", "retry 1s", "retry never"},
		{"at 0s take a refuse by trial", "refuse by trial", "refuse by p"},
		{"at 0s take a refuse by p by trial", "refuse by p by trial", "refuse by p"},
		{"at 0s take b ok by p", "refuse by p", "ok"},
	} {
		err := run(t, head+c.step+"\n")
		var m *weirtest.Mismatch
		if !errors.As(err, &m) {
			t.Errorf("%s: %v, want a Mismatch", c.step, err)
			continue
		}
		if m.File != "test.weir" || m.Line != 4 || m.Step != c.step || m.Want != c.want || !strings.Contains(m.Got, c.got) {
			t.Errorf("%s:\n got %+v\nwant %q, %q", c.step, *m, c.want, c.got)
		}
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"policy", "the policy's name is missing"},
		{"policy p", `a quota is a whole number, not ""`},
		{"policy p 5", "a quota is followed by: per DURATION"},
		{"policy p 5 per minute", `a window is a duration such as 1m30s, not "minute"`},
		{"policy p 5 per 1m brust 3", `a policy has no option "brust"`},
		{"policy p fixed_window 5 per 1m burst 3", "burst belongs to token_bucket"},
		{"policy p slidinglog 5 per 1m", `a quota is a whole number, not "slidinglog"`},
		{"policy p -5 per 1m", "quota -5 is not within"},
		{"policy p 5 per 0s", "window 0s is not"},
		{"policy p 5 per 1000000000000s", "a window is a duration"},
		{"rules", "the name of a rule file is missing"},
		{"rules a b", `"b" is one word too many`},
		{"reload", "reload is followed by"},
		{"reload take a ok", "reload is followed by"},
		{"at", `an instant is a duration such as 1m30s, not ""`},
		{"at 5s", `a step is take, peek`},
		{"at 5s grab a ok", `not "grab"`},
		{"take a", "what must come of it, ok or refuse, is missing"},
		{"take", "the key is missing"},
		{"take a x5", "is missing"},
		{"take a xfive ok", "a cost is written like x5"},
		{"take a ok remaining", `remaining is a whole number, not ""`},
		{"take a ok remaining 3 off p", `not "off"`},
		{"take a ok everywhere", `not "everywhere"`},
		{"take a 'b ok", "has no closing quote"},
		{"take a 3 times ok ok", "2 results for 3 requests"},
		{"take a 2 times ok ok ok", "more results than the 2 requests"},
		{"take a 2 times 3 ok", "3 ok are more results than the 2 requests"},
		{"take a 2 times allow 3", "3 of 2 requests cannot be allowed"},
		{"take a 0 times ok", "0 times is not within 1 and 10000000"},
		{"take a 10000000 times every 100000h ok", "takes too long"},
		{"settle a", "settle says what the last take has cost"},
		{"reset a ok", `"ok" is one word too many`},
		{"GET login from 192.0.2.1 ok", "a path begins with /"},
		{"GET /login ok", "write from ADDRESS"},
		{"GET /login from 192.0.2.1 x6 ok", "write: 6 times"},
		{"GET /login from 192.0.2.1 header User ok", "a header is written like 'X-User: alice'"},
		{"at 5s take a ok\nat 4s take a ok", "4s is before the last request, at 5s"},
		{"at 5s take a 3 times every 1s ok\nat 6s take a ok", "6s is before the last request, at 7s"},
		{"at 5s take a ok\nback to 5s take a ok", "5s is not before the last request"},
		{"at 5s take a ok\nback 4s take a ok", "back to DURATION"},
		{"take a ok\npolicy p 5 per 1m", "reload policy"},
	} {
		_, err := weirtest.Parse("test.weir", []byte(c.line))
		var s *weirtest.SyntaxError
		if !errors.As(err, &s) {
			t.Errorf("%q: %v, want a SyntaxError", c.line, err)
			continue
		}
		if line := strings.Count(c.line, "\n") + 1; s.File != "test.weir" || s.Line != line || !strings.Contains(s.Error(), c.want) {
			t.Errorf("%q: %v, want %q at line %d", c.line, s, c.want, line)
		}
	}
}

// asked is a target that remembers.
type asked struct {
	policies []weirtest.Policy
	files    []string
	requests []weirtest.Request
	clock    *weirtest.Clock
	at       []time.Duration
}

func (a *asked) Policies(_ context.Context, p []weirtest.Policy) error {
	a.policies = p
	return nil
}

func (a *asked) Load(_ context.Context, file string) error {
	a.files = append(a.files, file)
	return nil
}

func (a *asked) Do(_ context.Context, r weirtest.Request) (weirtest.Answer, error) {
	a.requests = append(a.requests, r)
	a.at = append(a.at, a.clock.Since())
	p, _ := weir.NewPolicy("login", weir.PerMinute(5))
	return weirtest.Answer{RetryAfter: 12 * time.Second, Grain: time.Second, Limits: []weir.ServiceLimit{{Policy: p, RetryAfter: 12 * time.Second}}}, nil
}

func TestATargetHearsWhatIsWritten(t *testing.T) {
	s, err := weirtest.Parse("test.weir", []byte(`
rules rules.yaml   # a comment
at 1s  POST /api/auth/login?x=1 host api.example.com from 203.0.113.9:4711 header 'X-User: a b' header "Accept: text/html"  refuse by login retry 11.2s
       GET / from 2001:db8::1 2 times every 500ms  refuse
reload rules other.yaml
at 5s  take '#1 key' x7 slack 2m  refuse
settle a x3 unit content-bytes
`))
	if err != nil {
		t.Fatal(err)
	}
	a := asked{clock: new(weirtest.Clock)}
	a.clock.Set(time.Hour) // a script counts from where the clock stands
	if err := weirtest.Run(t.Context(), s, a.clock, &a); err != nil {
		t.Fatal(err)
	}
	get := weirtest.Request{Verb: weirtest.Send, Method: "GET", Path: "/", From: "2001:db8::1", Slack: -1}
	want := []weirtest.Request{
		{Verb: weirtest.Send, Method: "POST", Path: "/api/auth/login?x=1", Host: "api.example.com", From: "203.0.113.9:4711",
			Header: []string{"X-User: a b", "Accept: text/html"}, Slack: -1},
		get, get,
		{Verb: weirtest.Take, Key: "#1 key", Cost: 7, Slack: 2 * time.Minute},
		{Verb: weirtest.Settle, Key: "a", Cost: 3, Unit: "content-bytes", Slack: -1},
	}
	if got := fmt.Sprintf("%+v", a.requests); got != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %s\nwant %+v", got, want)
	}
	if got := fmt.Sprint(a.files, a.at); got != "[rules.yaml other.yaml] [1h0m1s 1h0m1s 1h0m1.5s 1h0m5s 1h0m5s]" {
		t.Error(got)
	}
}

func TestATargetThatCannotIsSkipped(t *testing.T) {
	files := fstest.MapFS{
		"http.weir":     {Data: []byte("policy p 1 per 1s\nGET / from 192.0.2.1 ok\n")},
		"sub/keys.weir": {Data: []byte("policy p 1 per 1s\ntake a ok\ntake a refuse\n")},
		"notes.txt":     {Data: []byte("not a script")},
	}
	weirtest.RunScripts(t, files, func(_ testing.TB, c weir.Clock) weir.Store {
		return weir.NewMemory(weir.MemoryOptions{Clock: c})
	})
	err := run(t, "rules x.yaml\n")
	if !errors.Is(err, weirtest.ErrCannot) || !strings.HasPrefix(err.Error(), "test.weir:1: ") {
		t.Error(err)
	}
}

func TestACancelledScriptEnds(t *testing.T) {
	s, err := weirtest.Parse("test.weir", []byte("policy p 1 per 1s\ntake a 10000000 times allow 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var c weirtest.Clock
	if err := weirtest.Run(ctx, s, &c, weirtest.OnStore(weir.NewMemory(weir.MemoryOptions{Clock: &c}))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzParse: a script from anywhere is read or refused, quickly, and one that
// was read can be run.
func FuzzParse(f *testing.F) {
	files, err := os.ReadDir("../testdata/decisions")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile("../testdata/decisions/" + file.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := weirtest.Parse("fuzz.weir", []byte(text))
		var syntax *weirtest.SyntaxError
		if err != nil {
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Line > strings.Count(text, "\n")+1 {
				t.Fatal(err)
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var c weirtest.Clock
		err = weirtest.Run(ctx, s, &c, weirtest.OnLimiter(weir.NewMemory(weir.MemoryOptions{Clock: &c, MaxKeys: 100}), &c))
		if err != nil && err.Error() == "" {
			t.Fatal("an error without words")
		}
	})
}
