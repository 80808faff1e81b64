// Package bench measures Weir's memory store beside the limiters people use,
// all in one process and one run, since only ratios mean anything.
//
// Each contender answers one question: may key take one unit now? They differ in
// what they do for it. x/time/rate in a map, throttled and xsync maps never
// forget a key; go-limiter and ulule keep fixed windows; httprate counts in two
// windows under one lock; only otter and Weir are bounded.
package bench

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/go-chi/httprate"
	"github.com/maypok86/otter/v2"
	sethvargo "github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/memory"
	"github.com/weirhq/weir"
	"golang.org/x/time/rate"
)

// Quotas per hour: what every contender keeps for each key. A busy key is allowed
// throughout the loop; one of a million is allowed and stays alive, so that no
// store may forget it.
const (
	BusyQuota = 1_000_000_000
	LiveQuota = 1000
)

// A Taker takes one unit for a key and says whether it was allowed. It belongs to
// one goroutine.
type Taker func(key string) bool

// A Contender is one way to limit. Open makes it empty, with room for keys of
// which each may take quota units an hour, and returns what makes a Taker for each
// goroutine.
type Contender struct {
	Name string
	Weir bool
	Open func(keys int, quota int64) (func() Taker, func())
}

// Contenders are all of them, Weir's last.
func Contenders() []Contender {
	nothing := func() {}
	newRate := func(quota int64) *rate.Limiter { return rate.NewLimiter(rate.Limit(quota)/3600, int(quota)) }
	return []Contender{
		{Name: "x/time/rate in sync.Map", Open: func(_ int, quota int64) (func() Taker, func()) {
			var m sync.Map
			return shared(func(key string) bool {
				l, ok := m.Load(key)
				if !ok {
					l, _ = m.LoadOrStore(key, newRate(quota))
				}
				return l.(*rate.Limiter).Allow()
			}), nothing
		}},
		{Name: "x/time/rate in otter", Open: func(keys int, quota int64) (func() Taker, func()) {
			c := otter.Must(&otter.Options[string, *rate.Limiter]{MaximumSize: 2 * keys})
			return shared(func(key string) bool {
				l, ok := c.GetIfPresent(key)
				if !ok {
					l, _ = c.SetIfAbsent(key, newRate(quota))
				}
				return l.Allow()
			}), func() { c.StopAllGoroutines() }
		}},
		{Name: "sethvargo/go-limiter", Open: func(_ int, quota int64) (func() Taker, func()) {
			s, err := sethvargo.New(&sethvargo.Config{Tokens: uint64(quota), Interval: time.Hour})
			if err != nil {
				panic(err)
			}
			ctx := context.Background()
			return shared(func(key string) bool {
				_, _, _, ok, _ := s.Take(ctx, key)
				return ok
			}), func() { _ = s.Close(ctx) }
		}},
		{Name: "ulule/limiter", Open: func(_ int, quota int64) (func() Taker, func()) {
			l := limiter.New(ulule.NewStore(), limiter.Rate{Period: time.Hour, Limit: quota})
			ctx := context.Background()
			return shared(func(key string) bool {
				c, err := l.Get(ctx, key)
				return err == nil && !c.Reached
			}), nothing
		}},
		{Name: "throttled", Open: func(_ int, quota int64) (func() Taker, func()) {
			s, err := memstore.NewCtx(0)
			if err != nil {
				panic(err)
			}
			l, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{MaxRate: throttled.PerHour(int(quota)), MaxBurst: int(quota) - 1})
			if err != nil {
				panic(err)
			}
			ctx := context.Background()
			return shared(func(key string) bool {
				limited, _, err := l.RateLimitCtx(ctx, key, 1)
				return err == nil && !limited
			}), nothing
		}},
		{Name: "go-chi/httprate counter", Open: func(_ int, quota int64) (func() Taker, func()) {
			l := httprate.NewRateLimiter(int(quota), time.Hour)
			c := l.Counter()
			return shared(func(key string) bool {
				now := time.Now().UTC()
				window := now.Truncate(time.Hour)
				curr, prev, err := c.Get(key, window, window.Add(-time.Hour))
				if err != nil || int64(curr+prev) >= quota {
					return false
				}
				return c.Increment(key, window) == nil
			}), nothing
		}},
		{Name: "weir Memory.Take", Weir: true, Open: func(keys int, quota int64) (func() Taker, func()) {
			m := weir.NewMemory(weir.MemoryOptions{MaxKeys: room(keys)})
			p, err := weir.NewPolicy("rule", weir.PerHour(quota))
			if err != nil {
				panic(err)
			}
			ctx := context.Background()
			return func() Taker {
				asks, out, buf := make([]weir.Ask, 1), make([]weir.Verdict, 1), make([]byte, 0, 64)
				asks[0] = weir.Ask{Policy: p, Cost: 1}
				return func(key string) bool {
					buf = append(buf[:0], key...)
					asks[0].Key = buf
					ok, _ := m.Take(ctx, asks, out)
					return ok
				}
			}, nothing
		}},
		limiterOf("weir Limiter, 1 rule", 1),
		limiterOf("weir Limiter, 3 rules", 3),
	}
}

// shared is a Taker that all goroutines may share.
func shared(t Taker) func() Taker { return func() Taker { return t } }

func limiterOf(name string, rules int) Contender {
	return Contender{Name: name, Weir: true, Open: func(keys int, quota int64) (func() Taker, func()) {
		var rs weir.Ruleset[string]
		for i := range rules {
			rs.Rules = append(rs.Rules, weir.Rule[string]{
				Name:   "rule" + strconv.Itoa(i),
				Limits: []weir.Limit{weir.PerHour(quota)},
				Key:    func(dst []byte, key string) ([]byte, bool) { return append(dst, key...), true },
			})
		}
		l, err := weir.New(weir.NewMemory(weir.MemoryOptions{MaxKeys: room(keys * rules)}), rs, weir.Options[string]{})
		if err != nil {
			panic(err)
		}
		ctx := context.Background()
		return shared(func(key string) bool {
			d, err := l.Take(ctx, key)
			return err == nil && d.Allowed
		}), func() {}
	}}
}

// room is the MaxKeys that holds keys without an overflow, since shards fill
// unevenly; the default if that is enough.
func room(keys int) int { return max(keys+keys/17, weir.DefaultMaxKeys) }
