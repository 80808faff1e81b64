package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirredis"
)

// SharedStats are the figures of a store in Redis and of what stands before it.
type SharedStats struct {
	Redis    weirredis.Stats
	Breaker  tier.BreakerStats
	Lease    tier.LeaseStats
	Refusals tier.RefusalsStats
	Share    tier.ShareStats
	Nodes    int    // that share it, this one included
	Losses   uint64 // how often it was found without its state
}

// Shared shows the figures of a store that nodes share, read at each scrape. It is
// called once.
func (m *Metrics) Shared(stats func() SharedStats) { m.registry.MustRegister(shared(stats)) }

type shared func() SharedStats

// sharedFigures are the figures and where they come from.
func sharedFigures() []figure {
	count := func(name, help string, of func(*SharedStats) float64) figure {
		return figure{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, of}
	}
	gauge := func(name, help string, of func(*SharedStats) float64) figure {
		return figure{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, of}
	}
	return []figure{
		gauge("weir_redis_nodes", "Nodes that share Redis: the most of the last minute in which it answered.",
			func(s *SharedStats) float64 { return float64(s.Nodes) }),
		gauge("weir_redis_breaker_open", "1 while Redis is not asked since it failed, and on_store_error decides.",
			func(s *SharedStats) float64 { return truth(s.Breaker.Open) }),
		count("weir_redis_breaker_opened_total", "How often Redis was given up.",
			func(s *SharedStats) float64 { return float64(s.Breaker.Opened) }),
		count("weir_redis_losses_total", "How often Redis was found without its state: restarted empty, or wiped. Limits started afresh.",
			func(s *SharedStats) float64 { return float64(s.Losses) }),
		count("weir_redis_calls_total", "Scripts run in Redis. A call decides for many requests.",
			func(s *SharedStats) float64 { return float64(s.Redis.Calls) }),
		count("weir_redis_calls_failed_total", "Calls that Redis refused or a connection broke under.",
			func(s *SharedStats) float64 { return float64(s.Redis.Failed) }),
		count("weir_redis_calls_lost_total", "Calls not answered in time. They may have charged.",
			func(s *SharedStats) float64 { return float64(s.Redis.Lost) }),
		count("weir_redis_mirror_total", "Calls whose answer was not that of the arithmetic: a fault of weir, or something else writes to its keys.",
			func(s *SharedStats) float64 { return float64(s.Redis.Mirror) }),
		count("weir_redis_script_loads_total", "Calls that sent the script, since Redis did not know it.",
			func(s *SharedStats) float64 { return float64(s.Redis.Loads) }),
		count("weir_redis_try_again_total", "Calls sent again, since a slot of the Cluster was on its way.",
			func(s *SharedStats) float64 { return float64(s.Redis.TryAgain) }),
		count("weir_redis_queue_full_total", "Decisions that found too many others waiting for Redis.",
			func(s *SharedStats) float64 { return float64(s.Redis.Full) }),
		count("weir_redis_queue_left_total", "Decisions that waited for Redis in vain.",
			func(s *SharedStats) float64 { return float64(s.Redis.Left) }),
		gauge("weir_redis_queue", "Decisions that wait for Redis.",
			func(s *SharedStats) float64 { return float64(s.Redis.Waiting) }),
		count("weir_redis_refunds_total", "Reservations in one slot of a Cluster given back, since another refused.",
			func(s *SharedStats) float64 { return float64(s.Redis.Refunds) }),
		count("weir_redis_refunds_lost_total", "Of them, those that may have failed: they stay charged.",
			func(s *SharedStats) float64 { return float64(s.Redis.RefundsLost) }),
		count("weir_refusals_remembered_total", "Requests refused without a call, since the refusal was known.",
			func(s *SharedStats) float64 { return float64(s.Refusals.Local) }),
		count("weir_lease_decisions_total", "Decisions on lent units, without a call.",
			func(s *SharedStats) float64 { return float64(s.Lease.Local) }),
		count("weir_lease_loans_total", "Loans asked for.",
			func(s *SharedStats) float64 { return float64(s.Lease.Loans) }),
		count("weir_lease_units_total", "Units lent.",
			func(s *SharedStats) float64 { return float64(s.Lease.Lent) }),
		count("weir_lease_units_back_total", "Of them, those given back unused.",
			func(s *SharedStats) float64 { return float64(s.Lease.Back) }),
		gauge("weir_lease_keys", "Keys of fast rules that are known.",
			func(s *SharedStats) float64 { return float64(s.Lease.Keys) }),
		count("weir_share_allowed_total", "Limits that allowed a request by this node's share, without Redis.",
			func(s *SharedStats) float64 { return float64(s.Share.Allowed) }),
		count("weir_share_refused_total", "Limits that refused a request by this node's share, without Redis.",
			func(s *SharedStats) float64 { return float64(s.Share.Refused) }),
	}
}

type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*SharedStats) float64
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector.
func (shared) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range sharedFigures() {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (s shared) Collect(ch chan<- prometheus.Metric) {
	stats := s()
	for _, f := range sharedFigures() {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.of(&stats))
	}
}
