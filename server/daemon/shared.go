package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/server/metrics"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirrueidis"
)

// shared is the store in Redis, what stands before it, and what decides without it.
type shared struct {
	log      *slog.Logger
	client   *weirrueidis.Client
	redis    *weirredis.Store
	breaker  *tier.Breaker
	lease    *tier.Lease
	refusals *tier.Refusals
	share    *tier.Share
	nodes    *weirredis.Nodes
}

// newShared connects to nothing yet: Redis may come later.
func newShared(c config.Store, log *slog.Logger) (*shared, error) {
	r := c.Redis
	o := weirrueidis.Options{
		Username: r.Username, Database: r.Database, Master: r.Master,
		SentinelUsername: r.SentinelUsername, SentinelPassword: r.SentinelPassword,
		Cluster: r.Cluster, DialTimeout: r.DialTimeout, Connections: r.Connections,
	}
	for _, a := range r.Addresses {
		o.Addresses = append(o.Addresses, string(a))
	}
	var err error
	if o.Password, err = r.Secret(); err != nil {
		return nil, err
	}
	if o.TLS, err = r.TLS.Config(); err != nil {
		return nil, err
	}
	s := &shared{log: log}
	if s.client, err = weirrueidis.New(o); err != nil {
		return nil, fmt.Errorf("daemon: store.redis: %w", err)
	}
	s.redis = weirredis.New(s.client, weirredis.Options{Prefix: r.Prefix, Timeout: r.Timeout, Queue: r.Queue})
	s.nodes = weirredis.NewNodes(s.client, weirredis.NodesOptions{Prefix: r.Prefix, Asks: s.asks, OnLoss: s.lost})
	s.share = tier.NewShare(tier.ShareOptions{Live: s.nodes.Live, Outage: s.outage})
	b := tier.BreakerOptions{Gather: s.nodes.Gather, Settle: s.settle, Rest: weirredis.GatherSpread, OnChange: s.changed}
	if r.Cluster { // a part of it that is down must not take the rest with it
		b.Failures, b.Percent = 20, 90
	}
	s.breaker = tier.NewBreaker(s.redis, b)
	s.lease = tier.NewLease(s.breaker, tier.LeaseOptions{})
	s.refusals = tier.NewRefusals(s.lease, tier.RefusalsOptions{})
	return s, nil
}

// figures are those of all parts.
func (s *shared) figures() metrics.SharedStats {
	return metrics.SharedStats{
		Redis: s.redis.Stats(), Breaker: s.breaker.Stats(), Lease: s.lease.Stats(), Refusals: s.refusals.Stats(),
		Share: s.share.Stats(), Nodes: s.nodes.Live(), Losses: s.nodes.Losses(),
	}
}

// store is what decides while Redis can.
func (s *shared) store() weir.Store { return s.refusals }

// asks is whether this node asks Redis now.
func (s *shared) asks() bool { return !s.breaker.Stats().Open }

// outage numbers the outages, and says whether there is one.
func (s *shared) outage() (int64, bool) {
	st := s.breaker.Stats()
	return st.Opened, st.Open
}

// settle charges to Redis what was allowed without it.
func (s *shared) settle(ctx context.Context) {
	if err := s.share.Settle(ctx, s.redis); err != nil {
		s.log.Warn("not all that was allowed without redis could be charged to it: up to a limit more may be allowed once", "error", err)
	}
}

// changed tells that Redis went or came.
func (s *shared) changed(open bool) {
	if open {
		s.log.Error("redis does not answer: on_store_error decides until it does", "nodes", s.nodes.Live())
	} else {
		s.log.Info("redis answers again")
	}
}

// lost tells that Redis came back without what it held.
func (s *shared) lost() {
	s.log.Warn("redis has lost its state, and every limit has started afresh in it")
}

// run tells the other nodes that this one lives, until ctx ends; then it gives back
// what was lent, and disconnects.
func (s *shared) run(ctx context.Context) error {
	s.nodes.Run(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.lease.Close(ctx); err != nil {
		s.log.Warn("what was lent could not be given back; it is lost to the others for at most a few seconds", "error", err)
	}
	s.close()
	return nil
}

func (s *shared) close() {
	s.breaker.Close()
	s.client.Close()
}
