package chaos

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirrueidis"
)

var (
	span   = flag.Duration("span", 800*time.Millisecond, "how long each fault lasts, and how long load goes on before and after it")
	report = flag.String("report", "", "the file that the table of all faults is written to")
	rows   []string // of the report; tests run one after the other
)

func TestMain(m *testing.M) {
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy's
	if work := os.Getenv(workerVariable); work != "" {
		os.Exit(worker(work))
	}
	code := m.Run()
	if *report != "" && code == 0 {
		var b bytes.Buffer
		fmt.Fprintf(&b, "| fault | decisions | degraded | most above a limit | allowed above it | longest wait | 99.9 %% | allowed |\n| --- | --: | --: | --- | --: | --: | --: | --- |\n")
		for _, r := range rows {
			fmt.Fprintln(&b, r)
		}
		if err := os.WriteFile(*report, b.Bytes(), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// world is nodes under load.
type world struct {
	testing.TB
	nodes []*node

	stop  atomic.Bool
	load  sync.WaitGroup
	mu    sync.Mutex
	waits []time.Duration
	// decisions and those made without Redis; of closed, those of them that were allowed.
	decided, degraded, wrong int64
}

// hang is how long a decision may never take; budget is what it should.
const hang = 10 * time.Second

// newWorld starts nodes with load of several times the limits.
func newWorld(t *testing.T, nodes int, o weirrueidis.Options) *world {
	w := &world{TB: t}
	for range nodes {
		n, err := newNode(o)
		if err != nil {
			t.Fatal(err)
		}
		w.nodes = append(w.nodes, n)
	}
	t.Cleanup(w.end)
	redistest.Until(t, "the nodes see each other", func() bool {
		return !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.nodes.Live() < nodes })
	})
	w.start(nodes)
	return w
}

// start lets every node be asked for its part of twice of each limit.
func (w *world) start(nodes int) {
	for i, n := range w.nodes {
		for rule, r := range ruleset.Rules {
			l := r.Limits[0]
			rate := 2 * float64(l.Quota) / l.Window.Seconds() / float64(nodes)
			const askers = 4
			for k := range askers {
				w.load.Go(func() { w.ask(n, rule, rate/askers, uint64(100*i+10*rule+k)) })
			}
		}
	}
}

// ask asks a node for a rule so often in a second, at random instants, and after a late
// answer catches up.
func (w *world) ask(n *node, rule int, perSecond float64, seed uint64) {
	random := rand.New(rand.NewPCG(seed, seed))
	var waits []time.Duration
	var degraded, wrong int64
	next := time.Now()
	for !w.stop.Load() {
		next = next.Add(time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)))
		if late := time.Since(next); late > time.Second {
			next = next.Add(late)
		}
		if pause := time.Until(next); pause > 0 {
			time.Sleep(min(pause, 100*time.Millisecond))
			if pause > 100*time.Millisecond {
				next = time.Now()
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), hang)
		start := time.Now()
		d, err := n.limiter.Take(ctx, rule)
		waits = append(waits, time.Since(start))
		cancel()
		if err != nil {
			w.Errorf("rule %s: %v", ruleset.Rules[rule].Name, err)
		}
		if d.Degraded {
			degraded++
			if ruleset.Rules[rule].OnOutage == weir.FailClosed && d.Allowed || ruleset.Rules[rule].OnOutage == weir.FailOpen && !d.Allowed {
				wrong++
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, waits...)
	w.decided += int64(len(waits))
	w.degraded += degraded
	w.wrong += wrong
}

// sound waits until every node asks Redis again.
func (w *world) sound() {
	w.Helper()
	redistest.Until(w, "every node asks Redis again", func() bool {
		for _, n := range w.nodes {
			if n.breaker.Stats().Open {
				return false
			}
			d, err := n.limiter.Peek(context.Background(), 0)
			degraded := err != nil || d.Degraded
			if degraded {
				return false
			}
		}
		return true
	})
}

// end ends the load and the nodes.
func (w *world) end() {
	w.stop.Store(true)
	w.load.Wait()
	for _, n := range w.nodes {
		n.leave()
	}
}

// excess is how many units of a window were allowed above the limit, at most, wherever a
// window begins that the limit knows.
func excess(l weir.Limit, at []int64) (most float64) {
	slices.Sort(at)
	most = -float64(l.Quota)
	switch window := l.Window.Microseconds(); l.Algorithm {
	case weir.TokenBucket:
		rate := float64(l.Quota) / float64(window)
		level, last := 0.0, int64(0)
		for _, t := range at {
			level = max(0, level-float64(t-last)*rate) + 1
			last = t
			most = max(most, level-float64(l.Capacity()))
		}
	case weir.FixedWindow:
		counts := make(map[int64]int64)
		for _, t := range at {
			counts[t/window]++
			most = max(most, float64(counts[t/window]-l.Quota))
		}
	case weir.SlidingLog:
		first := 0
		for i, t := range at {
			for t-at[first] >= window {
				first++
			}
			most = max(most, float64(int64(i-first+1)-l.Quota))
		}
	}
	return most
}

// promise is what a fault may add to a limit.
type promise struct {
	losses int // how often Redis may have lost its state: a burst more, each
	nodes  int // that decide by shares: a unit more, each
	cut    int // of all nodes, that decide by shares while the others ask Redis
	during time.Duration
}

// judge ends the load and compares what was allowed with what was promised.
func (w *world) judge(name string, p promise) {
	w.Helper()
	w.end()
	var admitted []admission
	for _, n := range w.nodes {
		admitted = append(admitted, n.notes.all...)
	}
	w.verdict(name, p, admitted)
	redistest.Until(w, "no goroutine of the nodes is left", func() bool { return ours() == 0 })
}

// ours is how many goroutines there are of Weir and its client, those of the test and of
// proxies aside.
func ours() (n int) {
	text := make([]byte, 4<<20)
	text = text[:runtime.Stack(text, true)]
	for g := range bytes.SplitSeq(text, []byte("\n\n")) {
		for _, room := range []string{"weirredis.", "weirrueidis.", "/tier.", "redis/rueidis."} {
			if bytes.Contains(g, []byte(room)) {
				n++
				break
			}
		}
	}
	return n
}

func (w *world) verdict(name string, p promise, admitted []admission) {
	w.Helper()
	worst, allowance, which := -1e18, 0.0, ""
	counts := ""
	for _, r := range ruleset.Rules {
		if r.OnOutage == weir.FailOpen {
			continue // without Redis it has no limit
		}
		var at []int64
		for _, a := range admitted {
			if a.rule == r.Name {
				at = append(at, a.at)
			}
		}
		l := r.Limits[0]
		more := float64(p.losses) * float64(l.Capacity())
		if r.OnOutage == weir.FailLocal {
			more += float64(p.nodes)
			if p.cut > 0 {
				windows := 1.0
				if l.Algorithm == weir.TokenBucket { // which sums up what comes too fast
					windows = p.during.Seconds() / l.Window.Seconds()
				}
				more += float64(l.Quota) * windows * float64(p.cut) / float64(p.nodes)
			}
		}
		over := excess(l, at)
		if len(at) == 0 {
			w.Errorf("%s: rule %s allowed nothing", name, r.Name)
		}
		// A bucket is compared in whole units; its level is a fraction.
		if over >= more+1 || l.Algorithm != weir.TokenBucket && over > more {
			w.Errorf("%s: rule %s allowed %.1f more than its limit in a window, %.0f are promised at most", name, r.Name, over, more)
		}
		if over-more > worst-allowance || which == "" {
			worst, allowance, which = over, more, r.Name
		}
		counts += fmt.Sprintf("%s %d, ", r.Name, len(at))
	}
	if w.wrong > 0 {
		w.Errorf("%s: %d decisions without Redis were not what the rule says", name, w.wrong)
	}
	slices.SortFunc(w.waits, cmp.Compare[time.Duration])
	longest, p999 := w.waits[len(w.waits)-1], w.waits[len(w.waits)*999/1000]
	row := fmt.Sprintf("| %s | %d | %d | %s %+.1f | %.0f | %.1f ms | %.1f ms | %s |", name, w.decided, w.degraded,
		which, worst, allowance, ms(longest), ms(p999), counts[:len(counts)-2])
	w.Log(row)
	rows = append(rows, row)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// lasts lets the load go on for a span.
func lasts() { time.Sleep(*span) }
