package redis

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirrueidis"
)

// A Limit is what every contender keeps for each key: PerSecond units a second, as many
// at once.
type Limit struct{ PerSecond int }

// Plenty is a limit that nothing in a measurement reaches; Scarce is one that all of it
// but the first second's units does.
var (
	Plenty = Limit{PerSecond: 10_000_000}
	Scarce = Limit{PerSecond: 1}
)

// A Taker takes one unit for a key. It is called by many goroutines.
type Taker func(ctx context.Context, key string) (bool, error)

// A Contender is one way to limit. Open starts it against the server at an address.
type Contender struct {
	Name string
	Open func(addr string, l Limit) (Taker, func(), error)
}

// goRedis opens a client of go-redis as it comes, with a connection for every caller
// that a pool of its usual size has.
func goRedis(addr string) *goredis.Client { return goredis.NewClient(&goredis.Options{Addr: addr}) }

// Rivals are the limiters that others have written.
func Rivals() []Contender {
	script := func(text string, keys func(key string) []string, args func(l Limit) []any) func(string, Limit) (Taker, func(), error) {
		return func(addr string, l Limit) (Taker, func(), error) {
			c, s := goRedis(addr), goredis.NewScript(text)
			return func(ctx context.Context, key string) (bool, error) {
				r := s.Run(ctx, c, keys(key), args(l)...)
				if list, err := r.Slice(); err == nil {
					return list[0] == int64(1), nil
				}
				n, err := r.Int()
				return n == 1, err
			}, func() { _ = c.Close() }, nil
		}
	}
	one := func(key string) []string { return []string{key} }
	two := func(key string) []string { return []string{"{" + key + "}.tokens", "{" + key + "}.timestamp"} }
	var unique atomic.Int64
	return []Contender{
		{"redis_rate (go-redis)", func(addr string, l Limit) (Taker, func(), error) {
			c := goRedis(addr)
			r, limit := redis_rate.NewLimiter(c), redis_rate.PerSecond(l.PerSecond)
			return func(ctx context.Context, key string) (bool, error) {
				res, err := r.Allow(ctx, key, limit)
				return err == nil && res.Allowed > 0, err
			}, func() { _ = c.Close() }, nil
		}},
		{"sorted set (go-redis)", script(sortedSet, one, func(l Limit) []any {
			now := time.Now().UnixMilli()
			return []any{1000, l.PerSecond, now, strconv.FormatInt(now, 10) + "-" + strconv.FormatInt(unique.Add(1), 10)}
		})},
		{"two-key bucket (go-redis)", script(twoKeys, two, func(l Limit) []any { return []any{l.PerSecond, l.PerSecond, time.Now().Unix()} })},
		{"Spring Cloud Gateway's way (go-redis)", script(gateway, two, func(l Limit) []any { return []any{l.PerSecond, l.PerSecond, 1} })},
	}
}

// Setup says how Weir is opened.
type Setup struct {
	Batch    int  // how many decisions may travel together; 0 is the default
	Rules    int  // rules that each request is decided by
	Fast     bool // lend units ahead
	Refusals bool // remember refusals
	Breaker  bool // wait 50 ms at most, and not at all while Redis is down
}

// Weir is a contender by that setup.
func Weir(name string, s Setup) Contender {
	return Contender{name, func(addr string, l Limit) (Taker, func(), error) {
		n, err := OpenNode(addr, s)
		if err != nil {
			return nil, nil, err
		}
		policies, err := s.policies(l)
		return n.taker(policies), n.Close, err
	}}
}

// policies are one for each rule.
func (s Setup) policies(l Limit) ([]*weir.Policy, error) {
	var all []*weir.Policy
	for i := range max(s.Rules, 1) {
		p, err := weir.NewPolicy("bench"+strconv.Itoa(i), weir.PerSecond(int64(l.PerSecond)))
		if err != nil {
			return nil, err
		}
		p.Fast = s.Fast
		all = append(all, p)
	}
	return all, nil
}

// Node is what one process has: a client, the store, and its tiers.
type Node struct {
	Store   *weirredis.Store
	client  *weirrueidis.Client
	lease   *tier.Lease
	breaker *tier.Breaker
	top     weir.Store
}

// OpenNode opens one.
func OpenNode(addr string, s Setup) (*Node, error) {
	c, err := weirrueidis.New(weirrueidis.Options{Addresses: []string{addr}})
	if err != nil {
		return nil, err
	}
	o := weirredis.Options{Timeout: 5 * time.Second, Batch: s.Batch}
	if s.Breaker {
		o.Timeout = 50 * time.Millisecond
	}
	n := &Node{client: c, Store: weirredis.New(c, o)}
	var store weir.Lender = n.Store
	if s.Breaker {
		n.breaker = tier.NewBreaker(n.Store, tier.BreakerOptions{})
		store = n.breaker
	}
	n.top = store
	if s.Fast {
		n.lease = tier.NewLease(store, tier.LeaseOptions{})
		n.top = n.lease
	}
	if s.Refusals {
		n.top = tier.NewRefusals(n.top, tier.RefusalsOptions{})
	}
	return n, nil
}

// Close gives back what is lent and disconnects.
func (n *Node) Close() {
	if n.lease != nil {
		_ = n.lease.Close(context.Background()) // what is lost, Redis forgets
	}
	if n.breaker != nil {
		n.breaker.Close()
	}
	n.client.Close()
}

// most is how many rules a request is decided by at most.
const most = 3

func (n *Node) taker(policies []*weir.Policy) Taker {
	if len(policies) == 1 {
		p := policies[0]
		return func(ctx context.Context, key string) (bool, error) {
			asks := [1]weir.Ask{{Policy: p, Key: []byte(key), Cost: 1}}
			var out [1]weir.Verdict
			return n.top.Take(ctx, asks[:], out[:])
		}
	}
	return func(ctx context.Context, key string) (bool, error) {
		var asks [most]weir.Ask
		var out [most]weir.Verdict
		for i, p := range policies {
			asks[i] = weir.Ask{Policy: p, Key: []byte(key), Cost: 1}
		}
		return n.top.Take(ctx, asks[:len(policies)], out[:len(policies)])
	}
}

// InMemory is the memory store through the same door.
func InMemory() Contender {
	return Contender{"weir in memory, no Redis", func(_ string, l Limit) (Taker, func(), error) {
		policies, err := Setup{}.policies(l)
		n := &Node{top: weir.NewMemory(weir.MemoryOptions{})}
		return n.taker(policies), func() {}, err
	}}
}
