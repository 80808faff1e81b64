package weirredis

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

// TestTheShortWayKnowsItsBounds: single units of buckets have a way of their own through
// the script, which must leave to the long one whatever it does not know: a rate that a
// reload has changed, and numbers of which a product is no whole double any more.
func TestTheShortWayKnowsItsBounds(t *testing.T) {
	c := dial(t, server(t))
	for name, limits := range map[string][]weir.Limit{
		"a rate that changes": {weir.PerSecond(3), weir.PerSecond(7), {Quota: 11, Window: 13 * time.Second}, weir.PerMinute(7)},
		"long and many":       {{Quota: 1 << 51, Window: 100 * 365 * 24 * time.Hour, Burst: 2}, {Quota: 1<<51 - 1, Window: 99 * 365 * 24 * time.Hour, Burst: 3}},
		"long and few":        {{Quota: 3, Window: 140 * 365 * 24 * time.Hour}, {Quota: 5, Window: 141 * 365 * 24 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := new(weirtest.Clock)
			redis := New(c, Options{Prefix: t.Name(), Clock: clock, Timeout: time.Minute})
			memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
			var policies []*weir.Policy
			for _, l := range limits {
				p, err := weir.NewPolicy("p", l)
				if err != nil {
					t.Fatal(err)
				}
				policies = append(policies, p)
			}
			random := rand.New(rand.NewPCG(1, 2))
			memory.Hold(1 << 52) // as a limiter does whose limits slow down
			for n := range 2000 {
				ask := []weir.Ask{{Policy: policies[random.IntN(len(policies))], Key: []byte{byte(random.IntN(3))}, Cost: 1}}
				var got, want [1]weir.Verdict
				ok1, err1 := redis.Take(context.Background(), ask, got[:])
				ok2, err2 := memory.Take(context.Background(), ask, want[:])
				if err1 != nil || err2 != nil || ok1 != ok2 || got != want {
					t.Fatalf("step %d, %v: redis %+v, %v, memory %+v, %v", n, ask[0].Policy.Limit, got[0], err1, want[0], err2)
				}
				clock.Advance(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
			}
		})
	}
}
