package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirrueidis"
)

// budget is what a decision may wait for Redis.
const budget = 50 * time.Millisecond

// The rules of all nodes. A request is the number of the rule that decides it.
var ruleset = weir.Ruleset[int]{Rules: []weir.Rule[int]{
	{Name: "bucket", Limits: []weir.Limit{weir.PerSecond(200)}},
	{Name: "login", Limits: []weir.Limit{{Quota: 5, Window: 2 * time.Second, Algorithm: weir.FixedWindow}}},
	{Name: "log", Limits: []weir.Limit{{Quota: 50, Window: time.Second, Algorithm: weir.SlidingLog}}},
	{Name: "fast", Limits: []weir.Limit{weir.PerSecond(5000)}, Fast: true},
	{Name: "fast-window", Limits: []weir.Limit{{Quota: 2000, Window: time.Second, Algorithm: weir.FixedWindow}}, Fast: true},
	{Name: "closed", Limits: []weir.Limit{weir.PerSecond(100)}, OnOutage: weir.FailClosed},
	{Name: "open", Limits: []weir.Limit{weir.PerSecond(100)}, OnOutage: weir.FailOpen},
}}

// rules are those of ruleset, each for the requests that are its number.
func rules() weir.Ruleset[int] {
	rs := weir.Ruleset[int]{}
	for i, r := range ruleset.Rules {
		r.Match = func(n int) bool { return n == i }
		r.Key = weir.Constant[int]("everybody")
		rs.Rules = append(rs.Rules, r)
	}
	rs.Select = func(dst []int, n int) []int { return append(dst, n) }
	return rs
}

// admission is a unit that went on: the rule's name and the instant by the clock of
// whoever decided. All clocks are those of one machine.
type admission struct {
	rule string
	at   int64
}

// notes are what a node has allowed.
type notes struct {
	mu  sync.Mutex
	all []admission
}

// noting is a store of which every unit that it lets go is noted.
type noting struct {
	weir.Store
	*notes
}

func (n noting) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	ok, err := n.Store.Take(ctx, asks, out)
	if ok && err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		for i := range asks {
			n.all = append(n.all, admission{asks[i].Policy.Name, out[i].At})
		}
	}
	return ok, err
}

// node is what a process of weir serve has between its doors and Redis.
type node struct {
	notes   notes
	client  *weirrueidis.Client
	store   *weirredis.Store
	nodes   *weirredis.Nodes
	breaker *tier.Breaker
	lease   *tier.Lease
	share   *tier.Share
	limiter *weir.Limiter[int]
	leave   func()
}

func newNode(o weirrueidis.Options) (*node, error) {
	n := new(node)
	var err error
	if n.client, err = weirrueidis.New(o); err != nil {
		return nil, err
	}
	n.store = weirredis.New(n.client, weirredis.Options{Timeout: budget})
	n.nodes = weirredis.NewNodes(n.client, weirredis.NodesOptions{Every: 200 * time.Millisecond,
		Asks: func() bool { return !n.breaker.Stats().Open }})
	n.share = tier.NewShare(tier.ShareOptions{Live: n.nodes.Live, Outage: func() (int64, bool) { s := n.breaker.Stats(); return s.Opened, s.Open }})
	b := tier.BreakerOptions{Gather: n.nodes.Gather, Rest: weirredis.GatherSpread, Settle: func(ctx context.Context) { _ = n.share.Settle(ctx, n.store) }}
	if o.Cluster {
		b.Failures, b.Percent = 20, 90
	}
	n.breaker = tier.NewBreaker(n.store, b)
	n.lease = tier.NewLease(n.breaker, tier.LeaseOptions{})
	n.limiter, err = weir.New(noting{tier.NewRefusals(n.lease, tier.RefusalsOptions{}), &n.notes}, rules(),
		weir.Options[int]{Local: noting{n.share, &n.notes}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.nodes.Run(ctx); close(done) }()
	n.leave = sync.OnceFunc(func() {
		cancel()
		<-done
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = n.lease.Close(ctx) // Redis may be gone
		n.breaker.Close()
		n.client.Close()
	})
	return n, nil
}
