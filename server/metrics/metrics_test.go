package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/server/metrics"
)

func scrape(m *metrics.Metrics) string {
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	return rec.Body.String()
}

func expect(t *testing.T, m *metrics.Metrics, want ...string) {
	t.Helper()
	text := scrape(m)
	for _, line := range want {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

func byName(dst []byte, r string) ([]byte, bool) { return append(dst, r...), r != "" }

func rule(name string, mode weir.Mode) weir.Rule[string] {
	return weir.Rule[string]{Name: name, Key: byName, NoKey: weir.SharePartition, Mode: mode, Limits: []weir.Limit{weir.PerHour(1)}}
}

func limiter(t testing.TB, m *metrics.Metrics, s weir.Store, rules ...weir.Rule[string]) *weir.Limiter[string] {
	t.Helper()
	l, err := weir.New(m.Store(s), weir.Ruleset[string]{Rules: rules}, weir.Options[string]{Observer: metrics.Observer[string](m)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestEveryPolicyIsCountedByItsOwnAnswer(t *testing.T) {
	m := metrics.New()
	l := limiter(t, m, weir.NewMemory(weir.MemoryOptions{}), rule("real", weir.Enforce), rule("watched", weir.Shadow))
	for _, who := range []string{"alice", "alice", "", ""} {
		if _, err := l.Take(t.Context(), who); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, m,
		`weir_decisions_total{mode="enforce",outcome="allowed",policy="real"} 2`,
		`weir_decisions_total{mode="enforce",outcome="refused",policy="real"} 2`,
		`weir_decisions_total{mode="shadow",outcome="allowed",policy="watched"} 2`,
		`weir_decisions_total{mode="shadow",outcome="refused",policy="watched"} 2`,
		`weir_missing_key_total{policy="real"} 2`,
		`weir_decision_duration_seconds_count 4`)
	if text := scrape(m); strings.Contains(text, "alice") || strings.Contains(text, `mode="shadow",outcome="allowed",policy="real"`) {
		t.Errorf("a key or a mode that no rule is in is a label:\n%s", text)
	}
}

// TestCountsGoOnOverAReload: a new policy of the same name goes on where the old
// one stopped.
func TestCountsGoOnOverAReload(t *testing.T) {
	m := metrics.New()
	l := limiter(t, m, weir.NewMemory(weir.MemoryOptions{}), rule("a", weir.Enforce))
	for range 2 {
		_, _ = l.Take(t.Context(), "x") // the error is that of the context
		if err := l.Swap(weir.Ruleset[string]{Version: "two", Rules: []weir.Rule[string]{rule("a", weir.Enforce)}}); err != nil {
			t.Fatal(err)
		}
		m.InForce("one")
		m.InForce("two")
	}
	expect(t, m, `weir_decisions_total{mode="enforce",outcome="allowed",policy="a"} 1`,
		`weir_decisions_total{mode="enforce",outcome="refused",policy="a"} 1`, `weir_rules_info{version="two"} 1`)
	if strings.Contains(scrape(m), `version="one"`) {
		t.Error("rules that are gone are still shown")
	}
}

type failing struct{ weir.Store }

func (failing) Take(context.Context, []weir.Ask, []weir.Verdict) (bool, error) {
	return false, weir.ErrUnavailable
}

func TestTroubleIsCounted(t *testing.T) {
	m := metrics.New()
	l := limiter(t, m, failing{weir.NewMemory(weir.MemoryOptions{})}, rule("a", weir.Enforce))
	if d, err := l.Take(t.Context(), "x"); err != nil || !d.Degraded {
		t.Fatalf("%+v, %v", d, err)
	}
	m.Reloaded("rejected")
	m.UpToDate(false)
	m.UpstreamFailed("timeout")
	expect(t, m, "weir_store_errors_total 1", "weir_degraded_decisions_total 1", `weir_rules_reloads_total{result="rejected"} 1`,
		"weir_rules_last_reload_ok 0", `weir_upstream_errors_total{kind="timeout"} 1`)
	m.UpToDate(true)
	expect(t, m, "weir_rules_last_reload_ok 1")
}

func TestStatusesAreCountedByClass(t *testing.T) {
	m := metrics.New()
	running := m.Begin()
	for _, status := range []int{101, 200, 204, 304, 404, 429, 502, 0} {
		m.Begin()(status)
	}
	expect(t, m, `weir_http_requests_total{code="1xx"} 1`, `weir_http_requests_total{code="2xx"} 2`, `weir_http_requests_total{code="3xx"} 1`,
		`weir_http_requests_total{code="4xx"} 1`, `weir_http_requests_total{code="429"} 1`, `weir_http_requests_total{code="5xx"} 1`,
		`weir_http_requests_total{code="aborted"} 1`, "weir_http_requests_in_flight 1")
	running(200)
	expect(t, m, "weir_http_requests_in_flight 0")
}

type choosy struct{ weir.Store }

func (choosy) Supports(*weir.Policy) error { return weir.ErrUnsupported }

func TestATimedStoreKeepsWhatItCannot(t *testing.T) {
	m := metrics.New()
	s := m.Store(choosy{weir.NewMemory(weir.MemoryOptions{})})
	_, err := weir.New(s, weir.Ruleset[string]{Rules: []weir.Rule[string]{rule("a", weir.Enforce)}}, weir.Options[string]{})
	if !errors.Is(err, weir.ErrUnsupported) {
		t.Errorf("a rule that the store does not support: %v", err)
	}
}

type attentive struct {
	weir.Store
	held int64
}

func (a *attentive) Hold(ticks int64) { a.held = ticks }

func TestATimedStoreHearsThatALimitIsSlower(t *testing.T) {
	store := &attentive{Store: weir.NewMemory(weir.MemoryOptions{})}
	r := rule("a", weir.Enforce)
	l := limiter(t, metrics.New(), store, r)
	r.Limits = []weir.Limit{weir.PerDay(1)}
	if err := l.Swap(weir.Ruleset[string]{Rules: []weir.Rule[string]{r}}); err != nil {
		t.Fatal(err)
	}
	if store.held <= 0 {
		t.Error("an hour became a day, and the store was not told to hold what it knows")
	}
}

func TestManyMayCountAtOnce(t *testing.T) {
	m := metrics.New()
	l := limiter(t, m, weir.NewMemory(weir.MemoryOptions{}), rule("a", weir.Enforce))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				_, _ = l.Take(t.Context(), "x") // the error is that of the context
			}
		})
	}
	for range 20 {
		m.InForce("v")
		scrape(m)
	}
	all.Wait()
	expect(t, m, `weir_decisions_total{mode="enforce",outcome="allowed",policy="a"} 1`, `weir_decisions_total{mode="enforce",outcome="refused",policy="a"} 3999`)
}

func BenchmarkDecided(b *testing.B) {
	m := metrics.New()
	l := limiter(b, m, weir.NewMemory(weir.MemoryOptions{}), rule("a", weir.Enforce))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Take(b.Context(), "x") // the error is that of the context
	}
}

func Example() {
	m := metrics.New()
	store := weir.NewMemory(weir.MemoryOptions{})
	m.Memory(store.Stats)
	l, err := weir.New(m.Store(store), weir.Ruleset[string]{Rules: []weir.Rule[string]{
		{Name: "login", Key: byName, Limits: []weir.Limit{weir.PerMinute(5)}},
	}}, weir.Options[string]{Observer: metrics.Observer[string](m)})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = l.Take(context.Background(), "alice") // the error is that of the context
	for line := range strings.Lines(scrape(m)) {
		if strings.HasPrefix(line, "weir_decisions") || strings.HasPrefix(line, "weir_memory_keys") {
			os.Stdout.WriteString(line)
		}
	}
	// Output:
	// weir_decisions_total{mode="enforce",outcome="allowed",policy="login"} 1
	// weir_decisions_total{mode="enforce",outcome="refused",policy="login"} 0
	// weir_memory_keys 1
}

// Case B45: a watched rule counts every refusal it would have made, however often
// the same key comes back.
func TestEveryShadowRefusalIsCounted(t *testing.T) {
	m := metrics.New()
	watched := rule("watched", weir.Shadow)
	watched.Limits = []weir.Limit{{Quota: 2, Window: 24 * time.Hour, Algorithm: weir.FixedWindowFirst}}
	l := limiter(t, m, weir.NewMemory(weir.MemoryOptions{}), watched)
	for range 10 {
		if d, err := l.Take(t.Context(), "alice"); err != nil || !d.Allowed {
			t.Fatalf("%v, %v", d.Allowed, err)
		}
	}
	expect(t, m,
		`weir_decisions_total{mode="shadow",outcome="allowed",policy="watched"} 2`,
		`weir_decisions_total{mode="shadow",outcome="refused",policy="watched"} 8`,
	)
	if strings.Contains(scrape(m), `mode="enforce"`) {
		t.Error("a watched rule is counted as enforced")
	}
}
