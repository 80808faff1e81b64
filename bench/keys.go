package bench

import (
	"fmt"
	"math/rand/v2"
)

// A Scenario is a stream of keys. The stream is longer than the loop needs to
// forget its beginning, and lies in memory in the order in which it is read, so
// that fetching a key costs a contender nothing.
type Scenario struct {
	Name  string
	Keys  int
	Quota int64
	draw  func(r *rand.Rand, keys int) func() int
}

// Scenarios are the streams of the table.
func Scenarios() []Scenario {
	uniform := func(r *rand.Rand, keys int) func() int { return func() int { return r.IntN(keys) } }
	return []Scenario{
		{"1 key", 1, BusyQuota, uniform},
		{"1,000 keys", 1000, BusyQuota, uniform},
		{"1M keys, Zipf 1.1", 1_000_000, LiveQuota, func(r *rand.Rand, keys int) func() int {
			z := rand.NewZipf(r, 1.1, 1, uint64(keys-1))
			return func() int { return int(z.Uint64()) }
		}},
		{"1M keys, uniform", 1_000_000, LiveQuota, uniform},
	}
}

// Key is the text of key number i.
func Key(i int) string { return fmt.Sprintf("rule:10.%d.%d.%d", i>>16&255, i>>8&255, i&255) }

// Stream draws the keys of a scenario: a power of two of them.
func (s Scenario) Stream() []string {
	n := 1 << 21
	if s.Keys < 1<<16 {
		n = 1 << 16
	}
	r := rand.New(rand.NewPCG(1, 2))
	next := s.draw(r, s.Keys)
	stream := make([]string, n)
	for i := range stream {
		stream[i] = Key(next())
	}
	return stream
}
