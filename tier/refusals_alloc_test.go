//go:build !race

package tier_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/tier"
)

func TestALocalRefusalAllocatesNothing(t *testing.T) {
	r := tier.NewRefusals(weir.NewMemory(weir.MemoryOptions{}), tier.RefusalsOptions{Cap: 1 << 40})
	for _, n := range []int{1, 3, 4} {
		var asks []weir.Ask
		for i := range n {
			asks = append(asks, ask(policy(t, fmt.Sprint("p", i), weir.Limit{Window: 1000}), "203.0.113.9", 1))
		}
		out, ctx := make([]weir.Verdict, n), context.Background()
		if _, err := r.Take(ctx, asks, out); err != nil {
			t.Fatal(err)
		}
		before := r.Stats().Local
		if got := testing.AllocsPerRun(1000, func() { _, _ = r.Take(ctx, asks, out) }); got != 0 {
			t.Errorf("%d asks: %v allocations", n, got)
		}
		if r.Stats().Local-before != 1001 {
			t.Errorf("%d asks: %d of 1001 were answered locally", n, r.Stats().Local-before)
		}
	}
}

func BenchmarkALocalRefusal(b *testing.B) {
	r := tier.NewRefusals(weir.NewMemory(weir.MemoryOptions{}), tier.RefusalsOptions{Cap: 1 << 40})
	asks, out := []weir.Ask{ask(policy(b, "p", weir.Limit{Window: 1000}), "rule:203.0.113.7", 1)}, make([]weir.Verdict, 1)
	ctx := context.Background()
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = r.Take(ctx, asks, out)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			out := make([]weir.Verdict, 1)
			for pb.Next() {
				_, _ = r.Take(ctx, asks, out)
			}
		})
	})
	// What an allowed ask pays for the look.
	b.Run("allowed", func(b *testing.B) {
		open := []weir.Ask{ask(policy(b, "q", weir.PerSecond(1_000_000_000)), "rule:203.0.113.7", 1)}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = r.Take(ctx, open, out)
		}
	})
}
