//go:build !race

package weir_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weirhq/weir"
)

// TestADecisionAllocatesNothing is a promise of the README. Under the race
// detector sync.Pool drops items at random, so it is not built there.
func TestADecisionAllocatesNothing(t *testing.T) {
	for _, rules := range []int{1, 3, 4} {
		rs := weir.Ruleset[string]{}
		for i := range rules {
			rs.Rules = append(rs.Rules, weir.Rule[string]{Name: fmt.Sprint("rule", i), Limits: []weir.Limit{weir.PerSecond(10)}, Key: byString})
		}
		l, err := weir.New(weir.NewMemory(weir.MemoryOptions{}), rs, weir.Options[string]{Observer: silent{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		for name, verb := range map[string]func(context.Context, string) (weir.Decision, error){"Take": l.Take, "Peek": l.Peek} {
			if got := testing.AllocsPerRun(1000, func() { _, _ = verb(ctx, "203.0.113.9") }); got != 0 {
				t.Errorf("%s with %d rules: %v allocations", name, rules, got)
			}
		}
	}
}

func byString(dst []byte, r string) ([]byte, bool) { return append(dst, r...), true }

type silent struct{}

func (silent) Decided(context.Context, string, *weir.Decision) {}
func (silent) StoreFailed(context.Context, string, error)      {}

func BenchmarkMemoryTake(b *testing.B) {
	p, _ := weir.NewPolicy("rule", weir.PerSecond(1_000_000_000))
	m := weir.NewMemory(weir.MemoryOptions{})
	asks, out := []weir.Ask{{Policy: p, Key: []byte("rule:203.0.113.7"), Cost: 1}}, make([]weir.Verdict, 1)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = m.Take(ctx, asks, out)
	}
}

func BenchmarkLimiterTake(b *testing.B) {
	l, err := weir.New(weir.NewMemory(weir.MemoryOptions{}), weir.Ruleset[string]{Rules: []weir.Rule[string]{
		{Name: "rule", Limits: []weir.Limit{weir.PerSecond(1_000_000_000)}, Key: byString}}}, weir.Options[string]{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Take(ctx, "rule:203.0.113.7")
	}
}
