//go:build !race

package tier_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirtest"
)

func TestALocalDecisionAllocatesNothing(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		l := tier.NewLease(newBank(new(weirtest.Clock)), tier.LeaseOptions{})
		var asks []weir.Ask
		for i := range n {
			asks = append(asks, ask(fast(fmt.Sprint("p", i), weir.PerHour(1_000_000_000)), "203.0.113.9", 1))
		}
		out := make([]weir.Verdict, n)
		take := func() {
			if ok, err := l.Take(t.Context(), asks, out); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		// Loans grow with what is asked for, so there comes a time without one.
		for {
			before := l.Stats()
			got := testing.AllocsPerRun(1000, take)
			if after := l.Stats(); after.Calls > before.Calls || after.Local-before.Local < 1001 {
				continue
			}
			if got != 0 {
				t.Errorf("%d asks: %v allocations", n, got)
			}
			break
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkALocalDecision(b *testing.B) {
	l := tier.NewLease(newBank(weir.SystemClock()), tier.LeaseOptions{})
	defer l.Close(b.Context())
	asks := []weir.Ask{ask(fast("p", weir.PerHour(1_000_000_000_000)), "rule:203.0.113.7", 1)}
	b.Run("serial", func(b *testing.B) {
		out := make([]weir.Verdict, 1)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = l.Take(b.Context(), asks, out)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			out := make([]weir.Verdict, 1)
			for pb.Next() {
				_, _ = l.Take(b.Context(), asks, out)
			}
		})
	})
}
