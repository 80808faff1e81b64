package weir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

// request is what the limiters of these tests decide.
type request struct {
	user string // empty: the request has none
	ip   string
	path string
	cost int64
}

func byUser(dst []byte, r request) ([]byte, bool) { return append(dst, r.user...), r.user != "" }
func byIP(dst []byte, r request) ([]byte, bool)   { return append(dst, r.ip...), r.ip != "" }

// scene is a limiter on a Memory, with a clock moved by hand.
type scene struct {
	*weir.Limiter[request]
	testing.TB
	clock *weirtest.Clock
	heard *weirtest.Recorder[request]
}

func newScene(t testing.TB, rules ...weir.Rule[request]) *scene {
	t.Helper()
	c := new(weirtest.Clock)
	return newSceneOn(t, c, weir.NewMemory(weir.MemoryOptions{Clock: c}), rules...)
}

func newSceneOn(t testing.TB, c *weirtest.Clock, store weir.Store, rules ...weir.Rule[request]) *scene {
	t.Helper()
	s := &scene{TB: t, clock: c, heard: new(weirtest.Recorder[request])}
	var err error
	s.Limiter, err = weir.New(store, weir.Ruleset[request]{Rules: rules}, weir.Options[request]{Clock: c, Observer: s.heard})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) take(r request) weir.Decision {
	s.Helper()
	d, err := s.Take(context.Background(), r)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// takes says how many of n equal requests are allowed.
func (s *scene) takes(n int, r request) (allowed int) {
	s.Helper()
	for range n {
		if d := s.take(r); d.Allowed {
			allowed++
		}
	}
	return allowed
}

// left is what each service limit has left for r.
func (s *scene) left(r request) (left []int64) {
	s.Helper()
	d, err := s.Peek(context.Background(), r)
	if err != nil {
		s.Fatal(err)
	}
	for l := range d.Limits() {
		left = append(left, l.Remaining)
	}
	return left
}

func (s *scene) wantLeft(r request, want ...int64) {
	s.Helper()
	if got := s.left(r); !slices.Equal(got, want) {
		s.Errorf("left %v, want %v", got, want)
	}
}

func hourly(n int64) []weir.Limit { return []weir.Limit{weir.PerHour(n)} }

func TestRulesAreDecidedAllOrNothing(t *testing.T) {
	a := weir.Rule[request]{Name: "user", Limits: []weir.Limit{weir.PerHour(10), {Quota: 3, Window: time.Minute, Algorithm: weir.SlidingLog}}, Key: byUser}
	b := weir.Rule[request]{Name: "ip", Limits: hourly(5), Key: byIP}
	for _, rules := range [][]weir.Rule[request]{{a, b}, {b, a}} {
		s := newScene(t, rules...)
		alice := request{user: "alice", ip: "192.0.2.1"}
		if got := s.takes(20, alice); got != 3 {
			t.Fatalf("%d were allowed, want 3", got)
		}
		d := s.take(alice)
		if d.Allowed || d.RetryAfter != time.Minute || d.Len() != 3 {
			t.Errorf("%v, retry %v, %d limits", d.Allowed, d.RetryAfter, d.Len())
		}
		var refusing []string
		for l := range d.Limits() {
			if !l.OK {
				refusing = append(refusing, l.Policy.Name)
			}
			if want := map[string]int64{"user": 7, "user#2": 0, "ip": 2}[l.Policy.Name]; l.Remaining != want {
				t.Errorf("%s has %d left, want %d", l.Policy.Name, l.Remaining, want)
			}
		}
		if !slices.Equal(refusing, []string{"user#2"}) {
			t.Errorf("refused by %q", refusing)
		}
		if got := s.takes(20, request{user: "bob", ip: "192.0.2.1"}); got != 2 {
			t.Errorf("%d of bob were allowed, want what the address has left, 2", got)
		}
	}
}

func TestRetryAfterIsTheLongestOfThoseThatRefused(t *testing.T) {
	s := newScene(t,
		weir.Rule[request]{Name: "short", Limits: []weir.Limit{weir.PerMinute(1)}},
		weir.Rule[request]{Name: "long", Limits: hourly(1)},
		weir.Rule[request]{Name: "watched", Limits: []weir.Limit{weir.PerDay(1)}, Mode: weir.Shadow},
		weir.Rule[request]{Name: "wide", Limits: hourly(1000)})
	if d := s.take(request{}); !d.Allowed || d.RetryAfter != 0 {
		t.Fatalf("%+v", d)
	}
	if d := s.take(request{}); d.Allowed || d.RetryAfter != time.Hour {
		t.Errorf("retry %v, want 1h", d.RetryAfter)
	}
	never := newScene(t,
		weir.Rule[request]{Name: "small", Limits: hourly(1), Cost: func(r request) int64 { return r.cost }},
		weir.Rule[request]{Name: "spent", Limits: hourly(5), Cost: func(r request) int64 { return r.cost }})
	if d := never.take(request{cost: 2}); d.Allowed || d.RetryAfter != -1 {
		t.Errorf("retry %v, want never", d.RetryAfter)
	}
}

// TestShadowCountsAsIfAlone: a watched rule sees what an instance that enforces
// only that rule would see, whatever the live rules refuse.
func TestShadowCountsAsIfAlone(t *testing.T) {
	trial := weir.Rule[request]{Name: "trial", Limits: []weir.Limit{{Quota: 7, Window: time.Minute, Algorithm: weir.SlidingWindow}}, Key: byUser}
	for _, live := range []weir.Limit{weir.PerMinute(3), weir.PerMinute(12)} {
		trial.Mode = weir.Enforce
		alone := newScene(t, trial)
		trial.Mode = weir.Shadow
		s := newScene(t, weir.Rule[request]{Name: "live", Limits: []weir.Limit{live}, Key: byIP}, trial)
		refused, over := 0, 0
		for i := range 300 {
			d := time.Duration(i*i%5) * time.Second
			s.clock.Advance(d)
			alone.clock.Advance(d)
			r := request{user: fmt.Sprint("user-", i%2), ip: "192.0.2.1"}
			got, want := s.take(r), alone.take(r)
			if got.Allowed != got.Limit(0).OK {
				t.Fatalf("request %d: allowed %v, the live rule says %v", i, got.Allowed, got.Limit(0).OK)
			}
			if !got.Allowed {
				refused++
			}
			if !want.Allowed {
				over++
			}
			watched, enforced := got.Limit(1), want.Limit(0)
			enforced.Shadow, enforced.Policy = true, watched.Policy
			if watched != enforced {
				t.Fatalf("request %d:\nwatched %+v\nalone   %+v", i, watched, enforced)
			}
		}
		if refused == 0 || refused == 300 || over == 0 || over == refused {
			t.Fatalf("%d refused, %d over: the test does not test", refused, over)
		}
	}
}

func TestOffAndFinal(t *testing.T) {
	is := func(path string) func(request) bool { return func(r request) bool { return r.path == path } }
	s := newScene(t,
		weir.Rule[request]{Name: "off", Limits: hourly(0), Mode: weir.Off, Final: true},
		weir.Rule[request]{Name: "health", Match: is("/health"), Final: true}, // unlimited: an exemption
		weir.Rule[request]{Name: "login", Limits: hourly(2), Match: is("/login"), Final: true},
		weir.Rule[request]{Name: "note", Match: is("/note")}, // unlimited, but the search goes on
		weir.Rule[request]{Name: "all", Limits: hourly(3)})
	for _, c := range []struct {
		path    string
		allowed int
		names   string
	}{
		{"/health", 10, ""}, {"/login", 2, "login"}, {"/note", 3, "all"}, {"/other", 0, "all"},
	} {
		if got := s.takes(10, request{path: c.path}); got != c.allowed {
			t.Errorf("%s: %d allowed, want %d", c.path, got, c.allowed)
		}
		d := s.take(request{path: c.path})
		var names []string
		for l := range d.Limits() {
			names = append(names, l.Policy.Name)
		}
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("%s: asked %q, want %q", c.path, got, c.names)
		}
	}
}

func TestSelectOnlySavesTime(t *testing.T) {
	rules := []weir.Rule[request]{
		{Name: "a", Limits: hourly(5), Match: func(r request) bool { return r.path == "/a" }},
		{Name: "b", Limits: hourly(4), Match: func(r request) bool { return r.path == "/b" }},
		{Name: "all", Limits: hourly(9)},
	}
	s := newScene(t)
	if err := s.Swap(weir.Ruleset[request]{Rules: rules, Select: func(dst []int, r request) []int {
		if r.path == "/a" {
			return append(dst, 0, 1, 2) // b does not match, whatever Select says
		}
		return append(dst, 1, 2)
	}}); err != nil {
		t.Fatal(err)
	}
	s.take(request{path: "/a"})
	s.wantLeft(request{path: "/a"}, 4, 8)
	s.wantLeft(request{path: "/b"}, 4, 8)
}

func TestRolloutIsStableAndNearItsShare(t *testing.T) {
	rule := weir.Rule[request]{Name: "new-rule", Limits: hourly(0), Key: byUser}
	enforced := func(share int) (users []int) {
		rule.Rollout = share
		s := newScene(t, rule) // a new limiter on a new store: another node
		for u := range 20_000 {
			d := s.take(request{user: fmt.Sprint("user-", u)})
			if d.Allowed != d.Limit(0).Shadow || d.Limit(0).OK {
				t.Fatalf("%+v", d.Limit(0))
			}
			if !d.Allowed {
				users = append(users, u)
			}
		}
		return users
	}
	quarter := enforced(2500)
	if n := len(quarter); n < 4700 || n > 5300 {
		t.Errorf("a rollout of 25%% enforces for %d of 20000", n)
	}
	if !slices.Equal(quarter, enforced(2500)) {
		t.Error("another node chooses other keys")
	}
	half := enforced(5000)
	for _, u := range quarter {
		if _, found := slices.BinarySearch(half, u); !found {
			t.Fatalf("user %d was in the quarter and is not in the half", u)
		}
	}
	if n := len(enforced(1)); n > 10 {
		t.Errorf("a rollout of 0.01%% enforces for %d of 20000", n)
	}
	for _, all := range []int{0, 10_000} {
		if n := len(enforced(all)); n != 20_000 {
			t.Errorf("rollout %d enforces for %d of 20000", all, n)
		}
	}
	rule.Name = "other-rule"
	if slices.Equal(quarter, enforced(2500)) {
		t.Error("every rule picks the same unlucky keys")
	}
}

// Case B40, S28: no key is not the key of anybody.
func TestAMissingKeyIsNobodysKey(t *testing.T) {
	rule := weir.Rule[request]{Name: "user", Limits: hourly(2), Key: byUser, Fallback: byIP}
	for _, c := range []struct {
		noKey   weir.NoKey
		first   int // of 5 without a user, from one address
		second  int // of 5 more from another address
		missing bool
	}{
		{weir.SkipRule, 5, 5, false},
		{weir.SharePartition, 2, 0, true},
		{weir.FallbackKey, 2, 2, true},
		{weir.RefuseRequest, 0, 0, true},
	} {
		rule.NoKey = c.noKey
		s := newScene(t, rule)
		// Real values that look like a missing one, or like an address.
		for _, user := range []string{"null", "missing", "192.0.2.1", "\x00", "\x00no key"} {
			if got := s.takes(5, request{user: user}); got != 2 {
				t.Errorf("%d: %d of %q were allowed, want 2", c.noKey, got, user)
			}
		}
		if got := s.takes(5, request{ip: "192.0.2.1"}); got != c.first {
			t.Errorf("%d: %d without a user were allowed, want %d", c.noKey, got, c.first)
		}
		if got := s.takes(5, request{ip: "192.0.2.2"}); got != c.second {
			t.Errorf("%d: %d from another address were allowed, want %d", c.noKey, got, c.second)
		}
		if d := s.take(request{ip: "192.0.2.1"}); c.missing != (d.Len() == 1) || c.missing && !d.Limit(0).Missing {
			t.Errorf("%d: missing is not said: %+v", c.noKey, d.Limit(0))
		}
		if got := s.takes(5, request{user: "alice"}); got != 2 {
			t.Errorf("%d: %d of alice were allowed, want 2", c.noKey, got)
		}
	}
	rule.NoKey = weir.FallbackKey
	if got := newScene(t, rule).takes(5, request{}); got != 5 {
		t.Errorf("without key and fallback the rule does not apply, but %d of 5 were allowed", got)
	}
}

// TestARefusalWithoutAskingChargesNothing: RefuseRequest knows the answer before
// the store is asked; the other rules are only looked at, the watched ones count.
func TestARefusalWithoutAskingChargesNothing(t *testing.T) {
	s := newScene(t,
		weir.Rule[request]{Name: "ip", Limits: hourly(5), Key: byIP},
		weir.Rule[request]{Name: "user", Limits: hourly(5), Key: byUser, NoKey: weir.RefuseRequest},
		weir.Rule[request]{Name: "watch", Limits: hourly(5), Mode: weir.Shadow})
	d := s.take(request{ip: "192.0.2.1"})
	if d.Allowed || d.RetryAfter != -1 || d.Len() != 3 {
		t.Fatalf("%+v", d)
	}
	s.wantLeft(request{ip: "192.0.2.1", user: "alice"}, 5, 5, 4)
	shadow := newScene(t, weir.Rule[request]{Name: "user", Limits: hourly(5), Key: byUser, NoKey: weir.RefuseRequest, Mode: weir.Shadow})
	if d := shadow.take(request{}); !d.Allowed || d.Len() != 1 || d.Limit(0).OK || !d.Limit(0).Shadow {
		t.Errorf("a watched rule without a key: %+v", d.Limit(0))
	}
}

func TestCostIsAskedOfTheRule(t *testing.T) {
	cost := func(r request) int64 { return r.cost }
	s := newScene(t, weir.Rule[request]{Name: "units", Limits: hourly(10), Cost: cost}, weir.Rule[request]{Name: "requests", Limits: hourly(10)})
	for _, c := range []struct {
		cost    int64
		allowed bool
		units   int64
	}{{4, true, 6}, {7, false, 6}, {0, true, 6}, {-5, true, 6}, {6, true, 0}, {1, false, 0}, {0, true, 0}} {
		if d := s.take(request{cost: c.cost}); d.Allowed != c.allowed || d.Limit(0).Remaining != c.units {
			t.Errorf("cost %d: allowed %v, %d left; want %v, %d", c.cost, d.Allowed, d.Limit(0).Remaining, c.allowed, c.units)
		}
	}
	s.wantLeft(request{}, 0, 5)
}

// Case B34.
func TestPeekChangesNothing(t *testing.T) {
	s := newScene(t, weir.Rule[request]{Name: "rule", Limits: hourly(2)}, weir.Rule[request]{Name: "watch", Limits: hourly(9), Mode: weir.Shadow})
	for range 5 {
		s.wantLeft(request{}, 2, 9)
	}
	if got := s.takes(5, request{}); got != 2 {
		t.Errorf("%d were allowed, want 2", got)
	}
	d, err := s.Peek(context.Background(), request{})
	if err != nil || d.Allowed || d.RetryAfter != 30*time.Minute {
		t.Errorf("%v, %v, retry %v", err, d.Allowed, d.RetryAfter)
	}
	if n := len(s.heard.Events()); n != 5 {
		t.Errorf("%d decisions were observed, want 5: looks are not", n)
	}
}

func TestObserverSeesKeysInTheOrderOfTheRules(t *testing.T) {
	s := newScene(t,
		weir.Rule[request]{Name: "ip", Limits: []weir.Limit{weir.PerHour(9), weir.PerMinute(9)}, Key: byIP},
		weir.Rule[request]{Name: "blocked", Limits: hourly(1), Key: func(dst []byte, _ request) ([]byte, bool) { return dst, false }, NoKey: weir.RefuseRequest},
		weir.Rule[request]{Name: "pair", Limits: hourly(9), Key: weir.Keys(byUser, byIP), Mode: weir.Shadow},
		weir.Rule[request]{Name: "all", Limits: hourly(9)},
		weir.Rule[request]{Name: "user", Limits: hourly(9), Key: byUser})
	d := s.take(request{user: "alice", ip: "192.0.2.1"})
	if d.Key(0) != nil {
		t.Error("a returned decision still lends its keys")
	}
	e := s.heard.Events()
	pair := "\x00\x00\x00\x05alice\x00\x00\x00\x09192.0.2.1"
	if want := []string{"192.0.2.1", "192.0.2.1", "", pair, "", "alice"}; len(e) != 1 || !slices.Equal(e[0].Keys, want) {
		t.Fatalf("got  %+v\nwant %q", e, want)
	}
	var names []string
	for _, l := range e[0].Limits {
		names = append(names, l.Policy.Name)
	}
	if want := []string{"ip", "ip#2", "blocked", "pair", "all", "user"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestALimiterWithoutRulesAllows(t *testing.T) {
	s := newScene(t)
	if d := s.take(request{}); !d.Allowed || d.Len() != 0 || d.Degraded {
		t.Errorf("%+v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(ctx, request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}

// patientStore answers with times that no Duration holds.
type patientStore struct{ weir.Store }

func (patientStore) Take(_ context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	for i := range out {
		out[i] = weir.Verdict{Retry: 1 << 62, Reset: 1 << 62}
	}
	return false, nil
}

func TestTimesSaturate(t *testing.T) {
	c := new(weirtest.Clock)
	d := newSceneOn(t, c, patientStore{}, weir.Rule[request]{Name: "rule", Limits: hourly(1)}).take(request{})
	if century := 100 * 365 * 24 * time.Hour; d.RetryAfter < century || d.Limit(0).Reset < century || d.Limit(0).RetryAfter < century {
		t.Errorf("retry %v, %+v", d.RetryAfter, d.Limit(0))
	}
}

// picky supports token buckets only.
type picky struct{ weir.Store }

func (picky) Supports(p *weir.Policy) error {
	if p.Limit.Algorithm != weir.TokenBucket {
		return fmt.Errorf("%w: %v", weir.ErrUnsupported, p.Limit.Algorithm)
	}
	return nil
}

func TestConfigErrorsComeAllAtOnce(t *testing.T) {
	rules := []weir.Rule[request]{
		{Name: "fine", Limits: hourly(1)},
		{Name: "burst", Limits: []weir.Limit{weir.PerHour(1), {Quota: 1, Window: time.Hour, Burst: -1}}},
		{Limits: hourly(1)},
		{Name: "fine", Limits: hourly(1)},
		{Name: "a b"},
		{Name: "rollout", Rollout: 10_001},
		{Name: "fallback", NoKey: weir.FallbackKey},
		{Name: "log", Limits: []weir.Limit{{Quota: 1, Window: time.Hour, Algorithm: weir.SlidingLog}}},
		{Name: "window", Limits: []weir.Limit{{Quota: 1}}},
		{Name: "quota", Limits: []weir.Limit{{Quota: 1 << 52, Window: time.Hour}}},
		{Name: "newline\n", Limits: hourly(1)},
	}
	_, err := weir.New[request](picky{weir.NewMemory(weir.MemoryOptions{})}, weir.Ruleset[request]{Rules: rules}, weir.Options[request]{})
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Fatalf("%v, want several errors", err)
	}
	var names []string
	for _, e := range joined.Unwrap() {
		var c *weir.ConfigError
		if !errors.As(e, &c) || !strings.HasPrefix(e.Error(), "weir: rule ") {
			t.Errorf("%v is no ConfigError", e)
			continue
		}
		names = append(names, c.Rule)
	}
	want := []string{"burst#2", "#3", "fine", "a b", "rollout", "fallback", "log", "window", "quota", "newline\n"}
	if !slices.Equal(names, want) {
		t.Errorf("got  %q\nwant %q", names, want)
	}
	if !errors.Is(err, weir.ErrUnsupported) {
		t.Error("what the store cannot run is not among them")
	}
}

// Case B38, S45, B13: what cannot be a limit is refused, and why is said.
func TestWhatIsNoLimit(t *testing.T) {
	for _, c := range []struct {
		limit weir.Limit
		want  string
	}{
		{weir.Limit{Quota: -1, Window: time.Second}, "quota -1"},
		{weir.Limit{Quota: 5}, "window 0s"},
		{weir.Limit{Quota: 5, Window: -5 * time.Second}, "window -5s"},
		{weir.Limit{Quota: 5, Window: 1500}, "window 1.5µs"},
		{weir.Limit{Quota: 1 << 62, Window: time.Second}, "quota 4611686018427387904"},
		{weir.Limit{Quota: 5, Window: time.Second, Burst: -1}, "burst -1"},
		{weir.Limit{Quota: 5, Window: time.Second, Queue: 3}, "queue belongs to leaky_queue"},
		{weir.Limit{Quota: 5, Window: time.Second, Algorithm: weir.LeakyQueue, Queue: -3}, "queue -3"},
		{weir.Limit{Quota: 5, Window: time.Second, MaxWait: -1}, "max_wait -1ns"},
		{weir.Limit{Quota: 5, Window: time.Second, MaxWait: time.Microsecond, Algorithm: weir.FixedWindow}, "max_wait belongs to"},
		{weir.Limit{Quota: 5, Window: time.Second, Slices: 3}, "slices belongs to"},
		{weir.Limit{Quota: 5, Window: time.Second, Slices: 3, Algorithm: weir.SlidingSlices}, "slices 3"},
		{weir.Limit{Quota: 5, Window: time.Second, Slices: -2, Algorithm: weir.SlidingSlices}, "slices -2"},
		{weir.Limit{Quota: 5000, Window: time.Second, Algorithm: weir.SlidingLog}, "quota 5000 is above 4096"},
		{weir.Limit{Quota: 5, Window: time.Second, WarmUp: time.Second}, "warm_up belongs to"},
		{weir.Limit{Quota: 5, Window: time.Second, Algorithm: weir.WarmUp}, "warm_up 0s"},
		{weir.Limit{Quota: 5, Window: time.Second, Algorithm: 99}, "unknown algorithm"},
		{weir.Limit{Quota: 1, Window: 24 * time.Hour, Burst: 1_000_000}, "more than 142 years"},
	} {
		p, err := weir.NewPolicy("p", c.limit)
		if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.limit, err, c.want)
		}
	}
	if _, err := weir.NewPolicy("p", weir.Limit{Quota: 3, Window: 1_000_000_000 * time.Second}); err != nil {
		t.Errorf("31.7 years: %v", err)
	}
}
