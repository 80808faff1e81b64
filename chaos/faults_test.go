package chaos

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/collectors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirrueidis"
)

const nodes = 3

func single(addr string) weirrueidis.Options { return weirrueidis.Options{Addresses: []string{addr}} }

// strike lets a fault happen under load, waits until all is well without a restart of
// anything, and judges.
func strike(t *testing.T, name string, o weirrueidis.Options, p promise, fault func(w *world)) {
	t.Helper()
	w := newWorld(t, nodes, o)
	lasts()
	start := time.Now()
	fault(w)
	w.sound()
	p.during = time.Since(start)
	lasts()
	w.judge(name, p)
}

func TestNothingHappens(t *testing.T) {
	s := redistest.Single(t)
	strike(t, "none", single(s.Addr), promise{}, func(w *world) { lasts() })
}

func TestRedisIsKilled(t *testing.T) {
	s := redistest.Single(t)
	strike(t, "kill -9, empty restart", single(s.Addr), promise{losses: 1, nodes: nodes}, func(w *world) {
		s.Kill()
		lasts()
		s.Restart()
	})
}

func TestRedisIsKilledAndBackAtOnce(t *testing.T) {
	s := redistest.Single(t)
	strike(t, "kill -9, empty restart at once", single(s.Addr), promise{losses: 1, nodes: nodes, cut: nodes - 1}, func(w *world) {
		s.Kill()
		s.Restart()
	})
}

func TestRedisStandsStill(t *testing.T) {
	s := redistest.Single(t)
	strike(t, "SIGSTOP 2 s", single(s.Addr), promise{nodes: nodes}, func(w *world) {
		s.Stop()
		time.Sleep(max(2*time.Second, *span))
		s.Continue()
	})
}

func TestRedisIsBusyForAMoment(t *testing.T) {
	s := redistest.Single(t)
	strike(t, "SIGSTOP 30 ms, again and again", single(s.Addr), promise{nodes: nodes, cut: nodes - 1}, func(w *world) {
		for end := time.Now().Add(*span); time.Now().Before(end); time.Sleep(70 * time.Millisecond) {
			s.Stop()
			time.Sleep(30 * time.Millisecond)
			s.Continue()
		}
	})
}

// proxied starts a proxy in front of a server.
func proxied(t *testing.T, upstream string) *toxiproxy.Proxy {
	t.Helper()
	metrics := toxiproxy.NewMetricsContainer(prometheus.NewRegistry())
	metrics.ProxyMetrics = collectors.NewProxyMetricCollectors()
	p := toxiproxy.NewProxy(toxiproxy.NewServer(metrics, zerolog.Nop()), "redis", "127.0.0.1:0", upstream)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func TestTheWayToRedisIsBad(t *testing.T) {
	for _, test := range []struct {
		name  string
		toxic string
		cut   int // nodes that it may hit while it spares others
	}{
		{"answers 40 ± 40 ms late", `{"type": "latency", "stream": "downstream", "attributes": {"latency": 40, "jitter": 40}}`, nodes - 1},
		{"answers swallowed", `{"type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`, 0},
		{"calls swallowed", `{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`, 0},
		{"half of all connections swallow answers", `{"type": "timeout", "stream": "downstream", "toxicity": 0.5, "attributes": {"timeout": 0}}`, nodes - 1},
		{"reset after 100 ms", `{"type": "reset_peer", "stream": "downstream", "attributes": {"timeout": 100}}`, nodes - 1},
		{"answers end after 5 kB", `{"type": "limit_data", "stream": "downstream", "attributes": {"bytes": 5000}}`, nodes - 1},
		{"10 kB/s", `{"type": "bandwidth", "stream": "downstream", "attributes": {"rate": 10}}`, nodes - 1},
		{"in pieces", `{"type": "slicer", "stream": "downstream", "attributes": {"average_size": 20, "size_variation": 10, "delay": 10}}`, nodes - 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := proxied(t, redistest.Single(t).Addr)
			strike(t, test.name, single(p.Listen), promise{nodes: nodes, cut: test.cut}, func(w *world) {
				toxic, err := p.Toxics.AddToxicJson(strings.NewReader(test.toxic))
				if err != nil {
					t.Fatal(err)
				}
				lasts()
				if err := p.Toxics.RemoveToxic(t.Context(), toxic.Name); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestThePortIsShut(t *testing.T) {
	p := proxied(t, redistest.Single(t).Addr)
	listen := p.Listen
	strike(t, "connections closed, and refused", single(listen), promise{nodes: nodes}, func(w *world) {
		p.Stop()
		lasts()
		p.Listen = listen
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

// again does something again and again for a span.
func again(every time.Duration, do func()) {
	for end := time.Now().Add(*span); time.Now().Before(end); time.Sleep(every) {
		do()
	}
}

func TestScriptsAreForgotten(t *testing.T) {
	s := redistest.Single(t)
	strike(t, "SCRIPT FLUSH, again and again", single(s.Addr), promise{}, func(w *world) {
		again(2*time.Millisecond, func() { s.Must("SCRIPT", "FLUSH") })
	})
}

func TestClientsAreKilled(t *testing.T) {
	s := redistest.Single(t)
	strike(t, "CLIENT KILL, again and again", single(s.Addr), promise{nodes: nodes, cut: nodes - 1}, func(w *world) {
		again(20*time.Millisecond, func() { s.Must("CLIENT", "KILL", "TYPE", "normal") })
	})
}

func TestMemoryIsFull(t *testing.T) {
	s := redistest.Single(t)
	strike(t, "maxmemory, noeviction", single(s.Addr), promise{nodes: nodes}, func(w *world) {
		s.Must("CONFIG", "SET", "maxmemory-policy", "noeviction")
		s.Must("CONFIG", "SET", "maxmemory", "1")
		lasts()
		s.Must("CONFIG", "SET", "maxmemory", "0")
	})
}

func TestThePasswordChanges(t *testing.T) {
	s := redistest.Single(t)
	password := func(p string) { s.Must("ACL", "SETUSER", "weir", "on", "resetpass", ">"+p, "~*", "+@all") }
	password("right")
	o := single(s.Addr)
	o.Username, o.Password = "weir", "right"
	strike(t, "a wrong password", o, promise{nodes: nodes}, func(w *world) {
		password("other")
		s.Must("CLIENT", "KILL", "USER", "weir")
		lasts()
		password("right")
	})
}

func TestAReplicaTakesOver(t *testing.T) {
	s := redistest.Sentinel(t)
	strike(t, "failover by Sentinels", weirrueidis.Options{Addresses: s.Addrs, Master: s.Name}, promise{losses: 1, nodes: nodes}, func(w *world) {
		first := s.Master()
		first.Kill()
		redistest.Until(t, "a replica takes over", func() bool { m := s.Master(); return m != nil && m != first })
		lasts()
		first.Restart()
	})
}

func TestSlotsMove(t *testing.T) {
	c := redistest.Cluster(t, 3)
	strike(t, "slots move", weirrueidis.Options{Addresses: c.Addrs, Cluster: true}, promise{nodes: nodes}, func(w *world) {
		slot := slotOfEverybody(t, c)
		var moves atomic.Int64
		again(50*time.Millisecond, func() {
			c.MoveSlot(slot, int(moves.Add(1))%3)
		})
		if moves.Load() < 2 {
			t.Errorf("the slot moved %d times", moves.Load())
		}
	})
}

// slotOfEverybody is the slot of the key that all rules have.
func slotOfEverybody(t *testing.T, c *redistest.ClusterNodes) int {
	t.Helper()
	for _, n := range c.Nodes {
		for key := range strings.Lines(n.Must("KEYS", "weir:{*")) {
			if key = strings.TrimSpace(key); key != "" && !strings.HasPrefix(key, "weir:{nodes}") {
				return redistest.Slot(key)
			}
		}
	}
	t.Fatal("there is no key of a rule")
	return 0
}

func TestANodeOfTheClusterIsKilled(t *testing.T) {
	c := redistest.Cluster(t, 3)
	strike(t, "a node of the Cluster is killed", weirrueidis.Options{Addresses: c.Addrs, Cluster: true}, promise{losses: 1, nodes: nodes}, func(w *world) {
		n := c.Nodes[c.Owner(slotOfEverybody(t, c))]
		n.Kill()
		lasts()
		n.Restart()
		redistest.Until(t, "the Cluster is whole", func() bool {
			for _, s := range c.Nodes {
				if text, err := s.Do("CLUSTER", "INFO"); err != nil || !strings.Contains(text, "cluster_slots_ok:16384") || !strings.Contains(text, "cluster_state:ok") {
					return false
				}
			}
			return true
		})
	})
}
