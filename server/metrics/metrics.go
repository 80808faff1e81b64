// Package metrics counts for Prometheus what a limiter decides, what its store
// holds and costs, what became of its rules, and what the gateway answers.
//
// Labels are policies, modes, outcomes, methods of failure and classes of status:
// sets that the operator's files bound. A partition key or an address is never one.
package metrics

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirhq/weir"
)

// Metrics are the figures of one process. Several may live beside each other, each
// with a registry of its own. All methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry

	decisions   *prometheus.CounterVec
	missing     *prometheus.CounterVec
	degraded    prometheus.Counter
	storeErrors prometheus.Counter
	took        prometheus.Histogram

	reloads  *prometheus.CounterVec
	reloadOK prometheus.Gauge
	info     *prometheus.GaugeVec

	requests *prometheus.CounterVec
	upstream *prometheus.CounterVec
	inFlight prometheus.Gauge

	// policies holds the counters of every policy that has decided, so that a
	// decision looks no label up. It is emptied when the rules change.
	policies sync.Map // *weir.Policy → *policy
}

// New returns figures that are all zero, with those of the Go runtime and of the
// process beside them.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		decisions: counters("weir_decisions_total",
			"What policies said of requests. A request is refused if one in mode enforce says refused; in mode shadow, it would have been.",
			"policy", "mode", "outcome"),
		missing: counters("weir_missing_key_total",
			"Requests without the key of the policy's rule; on_missing_key decided how they count.", "policy"),
		degraded: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_degraded_decisions_total",
			Help: "Requests decided by on_store_error, since the store failed."}),
		storeErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_store_errors_total",
			Help: "Calls of the store that failed."}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_decision_duration_seconds",
			Help:    "How long the store took for the decision of a request.",
			Buckets: []float64{1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 1e-3, 5e-3, 2.5e-2, 1e-1}}),
		reloads: counters("weir_rules_reloads_total",
			"Documents of rules by what became of them: accepted, rejected for problems, or unreadable.", "result"),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_rules_last_reload_ok",
			Help: "1 if the rules in force are those of the file, 0 if that could not be read or has problems."}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_rules_info",
			Help: "1 for the version of the rules in force."}, []string{"version"}),
		requests: counters("weir_http_requests_total",
			"Requests answered by the gateway, by class of status; aborted if the answer broke off.", "code"),
		upstream: counters("weir_upstream_errors_total",
			"Requests that an upstream did not answer: connect, timeout, or broken off.", "kind"),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_http_requests_in_flight",
			Help: "Requests that the gateway is answering."}),
	}
	m.registry.MustRegister(m.decisions, m.missing, m.degraded, m.storeErrors, m.took,
		m.reloads, m.reloadOK, m.info, m.requests, m.upstream, m.inFlight,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Reloaded counts a document of rules by its result: "accepted", "rejected" or
// "unreadable".
func (m *Metrics) Reloaded(result string) { m.reloads.WithLabelValues(result).Inc() }

// UpToDate says whether the rules in force are those on disk.
func (m *Metrics) UpToDate(ok bool) {
	if ok {
		m.reloadOK.Set(1)
	} else {
		m.reloadOK.Set(0)
	}
}

// InForce says which rules decide from now on.
func (m *Metrics) InForce(version string) {
	m.info.Reset()
	m.info.WithLabelValues(version).Set(1)
	m.policies.Clear()
}

// Observer counts decisions. R is the limiter's kind of request, which is not
// looked at.
func Observer[R any](m *Metrics) weir.Observer[R] { return observer[R]{m} }

type observer[R any] struct{ m *Metrics }

// Decided implements weir.Observer.
func (o observer[R]) Decided(_ context.Context, _ R, d *weir.Decision) {
	for s := range d.Limits() {
		o.m.count(&s)
	}
	if d.Degraded {
		o.m.degraded.Inc()
	}
}

// StoreFailed implements weir.Observer.
func (o observer[R]) StoreFailed(context.Context, R, error) { o.m.storeErrors.Inc() }

// policy are the counters of one policy. Those of a mode are made when it is first
// seen, lest every rule show a mode that it is not in.
type policy struct {
	modes   [2]atomic.Pointer[outcomes] // enforce, shadow
	missing prometheus.Counter
}

type outcomes struct{ allowed, refused prometheus.Counter }

// policy returns the counters of a policy.
func (m *Metrics) policy(of *weir.Policy) *policy {
	if p, ok := m.policies.Load(of); ok {
		return p.(*policy)
	}
	p, _ := m.policies.LoadOrStore(of, &policy{missing: m.missing.WithLabelValues(of.Name)})
	return p.(*policy)
}

// count counts what a policy said.
func (m *Metrics) count(s *weir.ServiceLimit) {
	p := m.policy(s.Policy)
	at, mode := &p.modes[0], weir.Enforce
	if s.Shadow {
		at, mode = &p.modes[1], weir.Shadow
	}
	o := at.Load()
	if o == nil { // two that meet here make the same counters
		o = &outcomes{
			allowed: m.decisions.WithLabelValues(s.Policy.Name, mode.String(), "allowed"),
			refused: m.decisions.WithLabelValues(s.Policy.Name, mode.String(), "refused"),
		}
		at.Store(o)
	}
	if s.OK {
		o.allowed.Inc()
	} else {
		o.refused.Inc()
	}
	if s.Missing {
		p.missing.Inc()
	}
}

// Memory shows the figures of a store in memory, read at each scrape. It is called
// once.
func (m *Metrics) Memory(stats func() weir.MemoryStats) {
	m.registry.MustRegister(memory(stats))
}

type memory func() weir.MemoryStats

// The figures of a memory store.
func memoryDescs() (keys, most, overflow, refused *prometheus.Desc) {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return desc("weir_memory_keys", "Keys held, those not yet forgotten included."),
		desc("weir_memory_max_keys", "Keys that the store may hold."),
		desc("weir_memory_overflow_total", "Limits asked of an overflow partition, since the store was full of live keys."),
		desc("weir_memory_refused_total", "Limits refused since not even an overflow partition had a place.")
}

// Describe implements prometheus.Collector.
func (memory) Describe(ch chan<- *prometheus.Desc) {
	keys, most, overflow, refused := memoryDescs()
	for _, d := range []*prometheus.Desc{keys, most, overflow, refused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f memory) Collect(ch chan<- prometheus.Metric) {
	keys, most, overflow, refused := memoryDescs()
	s := f()
	ch <- prometheus.MustNewConstMetric(keys, prometheus.GaugeValue, float64(s.Keys))
	ch <- prometheus.MustNewConstMetric(most, prometheus.GaugeValue, float64(s.MaxKeys))
	ch <- prometheus.MustNewConstMetric(overflow, prometheus.CounterValue, float64(s.Overflow))
	ch <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(s.Refused))
}

// Store returns s with its decisions timed. It passes on what s can do beside: a
// store that holds what slower rules still need, or says which policies it supports,
// still does.
func (m *Metrics) Store(s weir.Store) weir.Store { return timed{Store: s, took: m.took} }

type timed struct {
	weir.Store
	took prometheus.Histogram
}

// Hold implements weir.Holder.
func (t timed) Hold(ticks int64) {
	if h, ok := t.Store.(weir.Holder); ok {
		h.Hold(ticks)
	}
}

// Supports implements weir.Supporter.
func (t timed) Supports(p *weir.Policy) error {
	if s, ok := t.Store.(weir.Supporter); ok {
		return s.Supports(p)
	}
	return nil
}

// Take implements weir.Store.
func (t timed) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	start := time.Now()
	allowed, err := t.Store.Take(ctx, asks, out)
	t.took.Observe(time.Since(start).Seconds())
	return allowed, err
}
