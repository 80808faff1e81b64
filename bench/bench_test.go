package bench_test

import (
	"testing"

	"github.com/weirhq/weir/bench"
)

// BenchmarkTake is the table's measurement for one contender and scenario:
// go test -bench 'Take/1_key/weir'.
func BenchmarkTake(b *testing.B) {
	for _, s := range bench.Scenarios() {
		b.Run(s.Name, func(b *testing.B) {
			stream := s.Stream()
			for _, c := range bench.Contenders() {
				b.Run(c.Name, func(b *testing.B) {
					maker, closeIt := c.Open(s.Keys, s.Quota)
					defer closeIt()
					bench.Fill(maker(), s.Keys)
					b.Run("seq", func(b *testing.B) { bench.Sequential(b, maker, stream) })
					b.Run("par", func(b *testing.B) { bench.Parallel(b, maker, stream) })
				})
			}
		})
	}
}

// TestContendersLimit: who does not limit wins every race.
func TestContendersLimit(t *testing.T) {
	const quota = 1000
	for _, c := range bench.Contenders() {
		maker, closeIt := c.Open(10, quota)
		take := maker()
		allowed := 0
		for range 2 * quota {
			if take("key") {
				allowed++
			}
		}
		closeIt()
		// One more may drain while the loop runs: a unit every 3.6 seconds.
		if allowed < quota || allowed > quota+1 {
			t.Errorf("%s allowed %d of a quota of %d", c.Name, allowed, quota)
		}
	}
}
