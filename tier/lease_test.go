package tier_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirtest"
)

func leaseOverBank(t testing.TB, c weir.Clock) weir.Store {
	l := tier.NewLease(newBank(c), tier.LeaseOptions{Clock: c})
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func TestLeaseKeepsEveryPromiseOfAStore(t *testing.T) { weirtest.TestStore(t, leaseOverBank) }

func TestScriptsOnLease(t *testing.T) {
	weirtest.RunScripts(t, os.DirFS("../testdata/decisions"), leaseOverBank)
}

// fast is a policy whose units are lent.
func fast(name string, l weir.Limit) *weir.Policy {
	p := must(weir.NewPolicy(name, l))
	p.Fast = true
	return p
}

// distant is a bank that is some way off, and may lose what is said.
type distant struct {
	*bank
	trip time.Duration // there and back
	lost float64       // how many answers do not arrive, after all has been done
	rand *rand.Rand
	mu   sync.Mutex

	calls atomic.Int64
}

func (d *distant) travel(do func() error) error {
	d.calls.Add(1)
	time.Sleep(d.trip / 2)
	err := do()
	time.Sleep(d.trip / 2)
	if err == nil && d.lost > 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.rand.Float64() < d.lost {
			return errDown
		}
	}
	return err
}

func (d *distant) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (ok bool, err error) {
	err = d.travel(func() error { ok, err = d.bank.Take(ctx, asks, out); return err })
	return ok && err == nil, err
}

func (d *distant) Adjust(ctx context.Context, asks []weir.Ask) error {
	return d.travel(func() error { return d.bank.Adjust(ctx, asks) })
}

func (d *distant) Lend(ctx context.Context, loans []weir.Loan, out []weir.Grant) error {
	return d.travel(func() error { return d.bank.Lend(ctx, loans, out) })
}

// admission is what went on.
type admission struct{ at, cost int64 }

// region is several nodes, each with a Lease, in front of a bank.
type region struct {
	t      *testing.T
	bank   *distant
	nodes  []*tier.Lease
	policy *weir.Policy

	mu       sync.Mutex
	admitted []admission
	asked    int64
}

func newRegion(t *testing.T, nodes int, trip time.Duration, l weir.Limit) *region {
	r := &region{t: t, policy: fast("p", l)}
	r.bank = &distant{bank: newBank(weir.SystemClock()), trip: trip, rand: rand.New(rand.NewPCG(1, 2))}
	for range nodes {
		r.nodes = append(r.nodes, r.node())
	}
	return r
}

func (r *region) node() *tier.Lease {
	l := tier.NewLease(r.bank, tier.LeaseOptions{})
	r.t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// take asks a node for units of the hot key, and notes what goes on.
func (r *region) take(node *tier.Lease, p *weir.Policy, cost int64) (at int64, ok bool) {
	var out [1]weir.Verdict
	start := time.Now()
	ok, err := node.Take(context.Background(), []weir.Ask{{Policy: p, Key: []byte("hot"), Cost: cost}}, out[:])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if err != nil && !errors.Is(err, errDown) {
		r.t.Error(err)
	}
	if err != nil || !ok {
		return 0, false
	}
	at = out[0].At
	if now := time.Now(); now.Equal(start) { // decided here, now; else when the bank says
		at = now.UnixMicro()
	}
	r.admitted = append(r.admitted, admission{at, cost})
	return at, true
}

// load asks from a node at random instants, so often in a second, for a while.
func (r *region) load(node *tier.Lease, seed uint64, perSecond float64, span time.Duration, policy func() *weir.Policy) {
	random := rand.New(rand.NewPCG(seed, seed))
	var under sync.WaitGroup
	for end := time.Now().Add(span); ; {
		time.Sleep(time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)))
		if !time.Now().Before(end) {
			break
		}
		p := r.policy
		if policy != nil {
			p = policy()
		}
		under.Go(func() { r.take(node, p, 1) })
	}
	under.Wait()
}

// exceeds returns how much went on that the limit forbids, by the arithmetic itself.
func (r *region) exceeds(p *weir.Policy) (over, all int64) {
	slices.SortStableFunc(r.admitted, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	var s algo.State
	for _, a := range r.admitted {
		all += a.cost
		next, v := algo.Decide(p.Params(), s, a.at, a.cost, 0)
		if !v.OK {
			over += a.cost
			continue
		}
		s = next
	}
	return over, all
}

// TestNodesTogetherNeverAllowTooMuch: whatever the limit and however many nodes borrow
// of it, all that they allow is within the limit, in every span of time; little is left
// unused, and few calls are made.
func TestNodesTogetherNeverAllowTooMuch(t *testing.T) {
	second := func(n int64) weir.Limit { return weir.PerSecond(n) }
	for _, test := range []struct {
		name   string
		limit  weir.Limit
		nodes  int
		load   float64 // asked for, of what the limit lets through
		least  float64 // allowed, of what could have been
		calls  float64 // at most, per decision
		lost   float64
		around time.Duration
	}{
		{name: "busy bucket", limit: second(10_000), nodes: 10, load: 1.5, least: .95, calls: .05},
		{name: "busy bucket of two nodes", limit: second(10_000), nodes: 2, load: 1.5, least: .97, calls: .02},
		{name: "easy bucket", limit: second(10_000), nodes: 10, load: .8, least: .999, calls: .05},
		{name: "little burst", limit: weir.Limit{Quota: 10_000, Window: time.Second, Burst: 1000}, nodes: 10, load: 1.5, least: .93, calls: .2},
		{name: "far away", limit: second(10_000), nodes: 10, load: 1.2, least: .93, calls: .2, around: 20 * time.Millisecond},
		{name: "lost answers", limit: second(10_000), nodes: 10, load: 1.5, least: .85, calls: .06, lost: .02},
		{name: "fixed window", limit: weir.Limit{Quota: 10_000, Window: time.Second, Algorithm: weir.FixedWindow}, nodes: 10, load: 1.5, least: .95, calls: .06},
		{name: "sliding window", limit: weir.Limit{Quota: 10_000, Window: time.Second, Algorithm: weir.SlidingWindow}, nodes: 10, load: 1.5, least: .90, calls: .10},
		{name: "medium", limit: second(100), nodes: 10, load: 1.5, least: .95, calls: 1.2},
		{name: "small", limit: second(10), nodes: 10, load: 3, least: .95, calls: 1},
		{name: "not lent", limit: weir.PerMinute(5), nodes: 10, load: 30, least: .8, calls: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const span = 6 * time.Second
				if test.around == 0 {
					test.around = 500 * time.Microsecond
				}
				r := newRegion(t, test.nodes, test.around, test.limit)
				r.bank.lost = test.lost
				rate := float64(test.limit.Quota) / test.limit.Window.Seconds()
				var all sync.WaitGroup
				for i, n := range r.nodes {
					all.Go(func() { r.load(n, uint64(i+1), test.load*rate/float64(test.nodes), span, nil) })
				}
				all.Wait()
				over, got := r.exceeds(r.policy)
				ideal := min(float64(r.asked), rate*span.Seconds()+float64(test.limit.Capacity()))
				if r.policy.Params().Kind != algo.Bucket {
					ideal = min(float64(r.asked), rate*span.Seconds())
				}
				calls := float64(r.bank.calls.Load()) / float64(r.asked)
				t.Logf("asked %d, allowed %d (%.3f of %.0f), over %d, calls %.4f", r.asked, got, float64(got)/ideal, ideal, over, calls)
				if over != 0 {
					t.Errorf("%d units too many", over)
				}
				if float64(got) < test.least*ideal {
					t.Errorf("only %d of %.0f were allowed", got, ideal)
				}
				if calls > test.calls {
					t.Errorf("%.4f calls per decision", calls)
				}
			})
		})
	}
}

// TestNodesThatCrashLoseOnlyWhatTheyBorrowed: nodes vanish with what was lent to them, and
// others come.
func TestNodesThatCrashLoseOnlyWhatTheyBorrowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, 0, 500*time.Microsecond, weir.PerSecond(5000))
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				for life := range 8 {
					n := tier.NewLease(r.bank, tier.LeaseOptions{})
					r.load(n, uint64(100*i+life), 800, time.Duration(300+70*i)*time.Millisecond, nil)
					defer n.Close(context.Background()) // not before all is over: it has crashed
				}
			})
		}
		all.Wait()
		over, got := r.exceeds(r.policy)
		if over != 0 {
			t.Errorf("%d of %d units too many", over, got)
		}
	})
}

// TestAReloadVoidsLoans: under new numbers nothing lent under old ones is used.
func TestAReloadVoidsLoans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, 4, 500*time.Microsecond, weir.PerSecond(10_000))
		var now atomic.Pointer[weir.Policy]
		now.Store(r.policy)
		var all sync.WaitGroup
		for i, n := range r.nodes {
			all.Go(func() { r.load(n, uint64(i+1), 4000, 3*time.Second, now.Load) })
		}
		time.Sleep(time.Second)
		slow := fast("p", weir.PerSecond(100))
		now.Store(slow)
		synctest.Wait()
		changed := time.Now().UnixMicro()
		all.Wait()
		if over, _ := r.exceeds(r.policy); over != 0 {
			t.Errorf("%d units above the larger limit", over)
		}
		var after int64
		for _, a := range r.admitted {
			if a.at > changed+1000 { // those on their way then had asked under the old numbers
				after += a.cost
			}
		}
		if after > 200 {
			t.Errorf("%d units in two seconds after the limit became 100 per second", after)
		}
	})
}

// TestGivingBackAllowsNoMore: what is given back may be used again, once.
func TestGivingBackAllowsNoMore(t *testing.T) {
	for _, limit := range []weir.Limit{weir.PerSecond(1000),
		{Quota: 1000, Window: time.Second, Algorithm: weir.FixedWindow},
		{Quota: 1000, Window: time.Second, Algorithm: weir.SlidingWindow}} {
		t.Run(limit.Algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRegion(t, 3, 500*time.Microsecond, limit)
				var given atomic.Int64
				var all sync.WaitGroup
				for i, n := range r.nodes {
					all.Go(func() {
						random := rand.New(rand.NewPCG(uint64(i), 9))
						for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
							time.Sleep(time.Duration(random.Int64N(1_000_000)))
							if at, ok := r.take(n, r.policy, 1); ok && random.IntN(4) == 0 {
								if n.Adjust(t.Context(), []weir.Ask{{Policy: r.policy, Key: []byte("hot"), Cost: -1, At: at}}) == nil {
									given.Add(1)
								}
							}
						}
					})
				}
				all.Wait()
				var net int64
				for _, a := range r.admitted {
					net += a.cost
				}
				net -= given.Load()
				most := int64(3*1000 + 1000)
				if net > most {
					t.Errorf("%d were used and not given back, of %d at most", net, most)
				}
				if given.Load() < 100 || len(r.admitted) < 3000 {
					t.Errorf("%d were given back, %d went on", given.Load(), len(r.admitted))
				}
			})
		})
	}
}

// TestCloseGivesAllBack, and then everything is decided by the store.
func TestCloseGivesAllBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, 1, 500*time.Microsecond, weir.PerHour(100_000))
		n := r.nodes[0]
		for range 1000 {
			r.take(n, r.policy, 1)
			time.Sleep(100 * time.Microsecond)
		}
		ask, out := []weir.Ask{{Policy: r.policy, Key: []byte("hot"), Cost: 1}}, make([]weir.Verdict, 1)
		left := func() int64 { _, _ = r.bank.Peek(t.Context(), ask, out); return out[0].Remaining }
		if s := n.Stats(); s.Lent == 0 || s.Local < 800 || left() >= 99_000 {
			t.Fatalf("%+v, %d left", s, left())
		}
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := 100_000 - int64(len(r.admitted))
		if got := left(); got < back || got > back+10 {
			t.Errorf("%d left after %d went on", got, len(r.admitted))
		}
		before := r.bank.calls.Load()
		for range 10 {
			r.take(n, r.policy, 1)
		}
		if got := r.bank.calls.Load() - before; got != 10 {
			t.Errorf("a closed Lease made %d calls for 10 decisions", got)
		}
	})
}

// TestWhatNobodyUsesIsGivenBack before it is dead.
func TestWhatNobodyUsesIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, 1, 500*time.Microsecond, weir.PerHour(100_000))
		for range 1000 {
			r.take(r.nodes[0], r.policy, 1)
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if s := r.nodes[0].Stats(); s.Back == 0 {
			t.Errorf("%+v", s)
		}
		ask, out := []weir.Ask{{Policy: r.policy, Key: []byte("hot"), Cost: 1}}, make([]weir.Verdict, 1)
		_, _ = r.bank.Peek(t.Context(), ask, out)
		if want := 100_000 - int64(len(r.admitted)); out[0].Remaining < want {
			t.Errorf("%d left of %d", out[0].Remaining, want)
		}
	})
}

// TestRequestsOfSeveralRules are decided all or nothing, whoever knows of which.
func TestRequestsOfSeveralRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, 1, 500*time.Microsecond, weir.Limit{Quota: 100_000, Window: 1000 * time.Hour})
		n := r.nodes[0]
		for range 300 {
			r.take(n, r.policy, 1)
			time.Sleep(100 * time.Microsecond)
		}
		strict := must(weir.NewPolicy("strict", weir.PerHour(3)))
		other := fast("other", weir.PerHour(4))
		left := func() int64 {
			out := make([]weir.Verdict, 1)
			if _, err := n.Peek(t.Context(), []weir.Ask{{Policy: r.policy, Key: []byte("hot"), Cost: 1}}, out); err != nil {
				t.Fatal(err)
			}
			return out[0].Remaining
		}
		before := left()
		var oks int
		for i := range 6 {
			out := make([]weir.Verdict, 3)
			ok, err := n.Take(t.Context(), []weir.Ask{
				{Policy: r.policy, Key: []byte("hot"), Cost: 1},
				{Policy: strict, Key: []byte("k"), Cost: 1},
				{Policy: other, Key: []byte("k"), Cost: 1, Shadow: true},
			}, out)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				oks++
			}
			if !out[0].OK || out[1].OK != (i < 3) || out[2].OK != (i < 4) {
				t.Errorf("request %d: %+v", i, out)
			}
		}
		if got := before - left(); oks != 3 || got != 3 {
			t.Errorf("%d requests were allowed, and %d units charged for them", oks, got)
		}
	})
}

func TestKeysOfALeaseAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(weir.SystemClock())
		l := tier.NewLease(b, tier.LeaseOptions{MaxKeys: 640})
		defer l.Close(t.Context())
		p := fast("p", weir.PerSecond(100))
		take := func(key string) {
			if ok, err := l.Take(t.Context(), []weir.Ask{{Policy: p, Key: []byte(key), Cost: 1}}, make([]weir.Verdict, 1)); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		for i := range 5000 {
			take(fmt.Sprint(i))
		}
		if n := l.Stats().Keys; n > 640 || n < 600 {
			t.Errorf("%d keys are known, of 640 at most", n)
		}
		time.Sleep(time.Minute)
		for i := range 5000 {
			take(fmt.Sprint("later ", i))
		}
		for range 400 { // there is room for one that is busy, since the old ones are idle
			take("busy")
			time.Sleep(20 * time.Millisecond)
		}
		if l.Stats().Lent == 0 {
			t.Error("a busy key is not lent")
		}
	})
}
