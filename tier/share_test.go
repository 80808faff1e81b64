package tier_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
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

// stage is a Share on a clock that tests move.
type stage struct {
	*testing.T
	clock *weirtest.Clock
	share *tier.Share
	down  bool
	n     int64 // outages
}

func newStage(t *testing.T, nodes int) *stage {
	s := &stage{T: t, clock: new(weirtest.Clock), down: true, n: 1}
	s.share = tier.NewShare(tier.ShareOptions{Live: func() int { return nodes }, Outage: func() (int64, bool) { return s.n, s.down }, MaxKeys: 100, Clock: s.clock})
	return s
}

// takes asks so often, and returns how often it was allowed.
func (s *stage) takes(p *weir.Policy, key string, times int) (n int) {
	s.Helper()
	for range times {
		if ok, err := s.share.Take(s.Context(), []weir.Ask{{Policy: p, Key: []byte(key), Cost: 1}}, make([]weir.Verdict, 1)); err != nil {
			s.Fatal(err)
		} else if ok {
			n++
		}
	}
	return n
}

func (s *stage) want(p *weir.Policy, key string, times, want int) {
	s.Helper()
	if got := s.takes(p, key, times); got != want {
		s.Errorf("%v after %v: %d of %d allowed, want %d", p.Limit, s.clock.Since(), got, times, want)
	}
}

func TestAShareIsAPartOfEachLimit(t *testing.T) {
	limit := func(quota int64, a weir.Algorithm) *weir.Policy {
		return must(weir.NewPolicy(a.String(), weir.Limit{Quota: quota, Window: time.Minute, Algorithm: a}))
	}
	s := newStage(t, 4)
	s.clock.Advance(10 * time.Second) // into a window
	all := []*weir.Policy{limit(40, weir.TokenBucket), limit(41, weir.FixedWindow), limit(43, weir.FixedWindowFirst), limit(42, weir.SlidingLog), limit(40, weir.SlidingWindow)}
	for _, p := range all {
		s.want(p, "k", 50, 0) // it starts empty
	}
	s.clock.Advance(3 * time.Second)
	s.want(all[0], "k", 50, 0)
	s.want(all[0], "late", 50, 0) // whenever a key is first seen
	s.clock.Advance(3 * time.Second)
	s.want(all[0], "k", 50, 1) // 10 in a minute
	s.want(all[0], "late", 50, 1)
	s.clock.Advance(44 * time.Second) // the window's end
	s.want(all[1], "k", 50, 10)
	s.clock.Advance(10 * time.Second) // a minute after the beginning
	s.want(all[1], "k", 50, 0)
	s.want(all[2], "k", 50, 10)
	s.want(all[3], "k", 50, 10)
	s.want(all[0], "new", 50, 10)
	s.want(limit(3, weir.FixedWindow), "small", 50, 1) // at least one
	s.want(limit(0, weir.FixedWindow), "none", 50, 0)
	s.clock.Advance(time.Hour)
	for i, n := range []int{10, 10, 10, 10, 10} {
		s.want(all[i], "k", 50, n)
	}
}

// TestAMishapFindsNoShare: a call that fails while the store is not given up is refused,
// and an outage begins when it is.
func TestAMishapFindsNoShare(t *testing.T) {
	s := newStage(t, 2)
	p := must(weir.NewPolicy("p", weir.PerSecond(100)))
	s.takes(p, "k", 1)
	s.clock.Advance(time.Minute)
	s.want(p, "k", 100, 50)
	s.down = false
	s.clock.Advance(time.Minute)
	s.want(p, "k", 100, 0)
	s.clock.Advance(500 * time.Millisecond)
	s.want(p, "k", 100, 0)
	s.n, s.down = 2, true
	s.want(p, "k", 100, 0)
	s.clock.Advance(500 * time.Millisecond)
	s.want(p, "k", 100, 25)
	s.clock.Advance(time.Minute)
	s.want(p, "k", 100, 50)
}

// TestNothingIsAllowedBetweenSettlingAndTheStore: it would not be settled.
func TestNothingIsAllowedBetweenSettlingAndTheStore(t *testing.T) {
	s := newStage(t, 2)
	p := must(weir.NewPolicy("p", weir.PerSecond(100)))
	s.takes(p, "k", 1)
	s.clock.Advance(time.Minute)
	s.want(p, "k", 10, 10)
	if err := s.share.Settle(t.Context(), newBank(s.clock)); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(time.Minute)
	s.want(p, "k", 10, 0)
	s.n++ // it failed again
	s.want(p, "k", 10, 0)
	s.clock.Advance(time.Minute)
	s.want(p, "k", 10, 10)
}

// TestMishapsDoNotFillAShare: however long calls failed now and then, a share is empty
// when the outage begins.
func TestMishapsDoNotFillAShare(t *testing.T) {
	s := newStage(t, 2)
	s.down = false
	p := must(weir.NewPolicy("p", weir.PerSecond(100)))
	for range 600 {
		s.want(p, "k", 1, 0)
		s.clock.Advance(time.Second)
	}
	s.down = true
	s.want(p, "k", 100, 0)
}

// TestOnlyATakeBeginsAnOutage: what people do between outages must not fill the next.
func TestOnlyATakeBeginsAnOutage(t *testing.T) {
	s := newStage(t, 1)
	share := tier.NewShare(tier.ShareOptions{Clock: s.clock})
	s.share = share
	p := must(weir.NewPolicy("p", weir.PerSecond(100)))
	ask := []weir.Ask{{Policy: p, Key: []byte("k"), Cost: 1, At: s.clock.Now().UnixMicro()}}
	if ok, _ := share.Peek(t.Context(), ask, make([]weir.Verdict, 1)); ok {
		t.Error("a share is not empty")
	}
	_, _ = share.Adjust(t.Context(), ask), share.Reset(t.Context(), ask)
	s.clock.Advance(time.Hour)
	s.want(p, "k", 100, 0)
	s.clock.Advance(time.Second)
	s.want(p, "k", 200, 100)
}

// TestAMishapFindsNoPlaceAheadOfTime: a limit that may make one wait is no exception.
func TestAMishapFindsNoPlaceAheadOfTime(t *testing.T) {
	s := newStage(t, 2)
	s.down = false
	for _, l := range []weir.Limit{weir.PerSecond(100), {Quota: 100, Window: time.Second, Algorithm: weir.FixedWindow},
		{Quota: 100, Window: time.Second, Algorithm: weir.LeakyQueue, Queue: 10}} {
		p := must(weir.NewPolicy("p", l))
		out := make([]weir.Verdict, 1)
		if ok, _ := s.share.Take(t.Context(), []weir.Ask{{Policy: p, Key: []byte("k"), Cost: 1, Slack: 1 << 40}}, out); ok {
			t.Errorf("%v: a call that failed alone was allowed: %+v", l.Algorithm, out[0])
		}
	}
}

// TestARefundOfAnEarlierOutageGivesNothing of what others have used since.
func TestARefundOfAnEarlierOutageGivesNothing(t *testing.T) {
	s := newStage(t, 1)
	p := must(weir.NewPolicy("p", weir.PerHour(3)))
	s.takes(p, "k", 1)
	s.clock.Advance(time.Hour)
	s.want(p, "k", 1, 1)
	charged := s.clock.Now().UnixMicro()
	if err := s.share.Settle(t.Context(), newBank(s.clock)); err != nil {
		t.Fatal(err)
	}
	s.n++
	s.clock.Advance(time.Second)
	s.takes(p, "k", 1)
	s.clock.Advance(time.Hour)
	s.want(p, "k", 4, 3)
	if err := s.share.Adjust(t.Context(), []weir.Ask{{Policy: p, Key: []byte("k"), Cost: -1, At: charged}}); err != nil {
		t.Fatal(err)
	}
	s.want(p, "k", 1, 0)
}

// TestKeysThatHaveDrainedMakeRoom: a long outage sees more keys than it has places for.
func TestKeysThatHaveDrainedMakeRoom(t *testing.T) {
	s := newStage(t, 1) // 100 keys
	p := must(weir.NewPolicy("p", weir.PerSecond(1)))
	s.takes(p, "k", 1)
	s.clock.Advance(time.Minute)
	for round := range 5 {
		for i := range 100 {
			s.want(p, fmt.Sprint(round, "-", i), 2, 1)
		}
		if n := s.share.Stats().Keys; n > 100 {
			t.Errorf("round %d: %d keys", round, n)
		}
		s.clock.Advance(2 * time.Second)
	}
}

// TestRefusedKeysTakeNoPlace: who is refused anyway cannot take the place of others.
func TestRefusedKeysTakeNoPlace(t *testing.T) {
	s := newStage(t, 1)
	p := must(weir.NewPolicy("p", weir.PerSecond(1)))
	for i := range 10_000 {
		s.takes(p, fmt.Sprint(i), 1)
	}
	if n := s.share.Stats().Keys; n != 0 {
		t.Errorf("%d keys that were never allowed anything are kept", n)
	}
}

// TestOutageAfterOutageAllowsNoMore: what is lost by dividing a limit does not add up
// over many outages.
func TestOutageAfterOutageAllowsNoMore(t *testing.T) {
	const nodes = 10
	for _, l := range []weir.Limit{{Quota: 190, Window: time.Second, Burst: 19}, {Quota: 190, Window: time.Second, Burst: 21},
		{Quota: 190, Window: time.Second, Burst: 7}, {Quota: 19, Window: time.Second, Algorithm: weir.SlidingLog},
		{Quota: 19, Window: time.Second, Algorithm: weir.FixedWindow}} {
		t.Run(fmt.Sprint(l.Algorithm, l.Burst), func(t *testing.T) {
			clock := new(weirtest.Clock)
			bank := newBank(clock)
			p := must(weir.NewPolicy("p", l))
			var shares [nodes]*tier.Share
			for i := range shares {
				shares[i] = tier.NewShare(tier.ShareOptions{Live: func() int { return nodes }, Clock: clock})
			}
			more := *p.Params()
			more.Cap += nodes
			over, state, log := 0, algo.State{}, []algo.Entry(nil)
			drain := func(s weir.Store) {
				for {
					ok, err := s.Take(t.Context(), []weir.Ask{{Policy: p, Key: []byte("k"), Cost: 1}}, make([]weir.Verdict, 1))
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						return
					}
					now := clock.Now().UnixMicro()
					var next algo.State
					var v algo.Verdict
					if more.Kind == algo.SlidingLog {
						if next, v = algo.DecideLog(&more, state, log, now, 1); v.OK {
							next, log = algo.Record(&more, next, log, 1)
						}
					} else {
						next, v = algo.Decide(&more, state, now, 1, 0)
					}
					if state = next; !v.OK {
						over++
					}
				}
			}
			// The worst instants: an outage begins when all has been used, and ends when each
			// node has just been allowed a unit.
			unit := (l.Window*nodes/time.Duration(l.Quota) + time.Microsecond).Truncate(time.Microsecond)
			random := rand.New(rand.NewPCG(11, 13))
			for range 100 {
				drain(bank)
				for range 1 + random.IntN(4) {
					for _, s := range shares {
						drain(s)
					}
					clock.Advance(unit)
				}
				for _, s := range shares {
					drain(s)
				}
				for _, s := range shares {
					if err := s.Settle(t.Context(), bank); err != nil {
						t.Fatal(err)
					}
				}
			}
			if over > 0 {
				t.Errorf("%d units above the limit and one for each node", over)
			}
		})
	}
}

func TestSettleChargesWhatStillCounts(t *testing.T) {
	s := newStage(t, 2)
	bank := newBank(s.clock)
	bucket := must(weir.NewPolicy("bucket", weir.PerMinute(60)))
	window := must(weir.NewPolicy("window", weir.Limit{Quota: 60, Window: time.Minute, Algorithm: weir.FixedWindow}))
	s.takes(bucket, "k", 1)
	s.clock.Advance(time.Hour)
	s.want(bucket, "k", 50, 30)
	s.want(window, "k", 50, 30)
	if err := s.share.Adjust(t.Context(), []weir.Ask{{Policy: bucket, Key: []byte("k"), Cost: -5, At: s.clock.Now().UnixMicro()}}); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(10 * time.Second) // 5 of the bucket are forgiven at the node's rate
	if err := s.share.Settle(t.Context(), bank); err != nil {
		t.Fatal(err)
	}
	left := func(p *weir.Policy) int64 {
		out := make([]weir.Verdict, 1)
		_, _ = bank.Peek(t.Context(), []weir.Ask{{Policy: p, Key: []byte("k"), Cost: 1}}, out)
		return out[0].Remaining
	}
	if got := left(bucket); got != 60-20 {
		t.Errorf("%d left of the bucket, want 40", got)
	}
	if got := left(window); got != 60-30 {
		t.Errorf("%d left of the window, want 30", got)
	}
	if st := s.share.Stats(); st.Settled != 50 || st.Keys != 0 || st.Allowed != 60 {
		t.Errorf("%+v", st)
	}
	// A second time there is nothing to settle.
	if err := s.share.Settle(t.Context(), bank); err != nil || left(bucket) != 40 {
		t.Errorf("settled twice: %v, %d left", err, left(bucket))
	}
}

func TestKeysOfAShareAreBounded(t *testing.T) {
	s := newStage(t, 1)
	p := must(weir.NewPolicy("p", weir.PerSecond(1)))
	for i := range 10_000 {
		s.takes(p, fmt.Sprint(i), 1)
	}
	s.clock.Advance(time.Minute)
	got := 0
	for i := range 10_000 {
		got += s.takes(p, fmt.Sprint(i), 1)
	}
	if n := s.share.Stats().Keys; n > 100+1024 {
		t.Errorf("%d keys", n)
	}
	if got > 100+1024 {
		t.Errorf("%d keys of 10,000 were allowed one each, and have no more than 1124 places", got)
	}
	out := make([]weir.Verdict, 1)
	if _, err := s.share.Peek(t.Context(), []weir.Ask{{Policy: p, Key: []byte("one more"), Cost: 1}}, out); err != nil || !out[0].Spilled {
		t.Errorf("a key beyond the bound: %+v, %v; it is to say that it shares a place", out[0], err)
	}
}

func TestRulesOfAShareAreAllOrNothing(t *testing.T) {
	s := newStage(t, 1)
	one, two := must(weir.NewPolicy("one", weir.PerMinute(1))), must(weir.NewPolicy("two", weir.PerMinute(2)))
	s.takes(one, "k", 1)
	s.clock.Advance(time.Hour)
	for i, want := range []string{"true true true", "false false true", "false false true"} {
		out := make([]weir.Verdict, 2)
		ok, _ := s.share.Take(t.Context(), []weir.Ask{{Policy: one, Key: []byte("k"), Cost: 1}, {Policy: two, Key: []byte("k"), Cost: 1}}, out)
		if got := fmt.Sprint(ok, out[0].OK, out[1].OK); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
}

// TestAnOutageAllowsTheLimitAndOneOfEachNode: whatever the limit, the nodes and the
// outages, what all nodes allow together, before, during and after, is within the limit
// and as many units more as there are nodes.
func TestAnOutageAllowsTheLimitAndOneOfEachNode(t *testing.T) {
	for _, limit := range []weir.Limit{
		weir.PerSecond(200), weir.PerSecond(7), {Quota: 100, Window: time.Second, Burst: 10},
		{Quota: 100, Window: time.Second, Algorithm: weir.FixedWindow},
		{Quota: 5, Window: 2 * time.Second, Algorithm: weir.FixedWindow},
		{Quota: 100, Window: time.Second, Algorithm: weir.SlidingLog},
	} {
		for _, nodes := range []int{1, 2, 10} {
			t.Run(fmt.Sprint(limit.Algorithm, limit.Quota, nodes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { outageOf(t, limit, nodes) })
			})
		}
	}
}

func outageOf(t *testing.T, limit weir.Limit, nodes int) {
	bank := newBank(weir.SystemClock())
	policy := must(weir.NewPolicy("p", limit))
	var down atomic.Bool
	shares := make([]*tier.Share, nodes)
	for i := range shares {
		shares[i] = tier.NewShare(tier.ShareOptions{Live: func() int { return nodes }})
	}
	var mu sync.Mutex
	var admitted []admission
	rate := float64(limit.Quota) / limit.Window.Seconds()
	var all sync.WaitGroup
	const span = 30 * time.Second
	for i := range nodes {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for end := time.Now().Add(span); time.Now().Before(end); {
				time.Sleep(time.Duration(random.ExpFloat64() / rate / 3 * float64(nodes) * float64(time.Second)))
				ask, out := []weir.Ask{{Policy: policy, Key: []byte("k"), Cost: 1}}, make([]weir.Verdict, 1)
				var store weir.Store = bank
				if down.Load() {
					store = shares[i]
				}
				if ok, err := store.Take(t.Context(), ask, out); err != nil {
					t.Error(err)
				} else if ok {
					mu.Lock()
					admitted = append(admitted, admission{time.Now().UnixMicro(), 1})
					mu.Unlock()
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(3, 5))
	for end := time.Now().Add(span); time.Now().Before(end); {
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		down.Store(true)
		time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
		for _, s := range shares {
			if err := s.Settle(context.Background(), bank); err != nil {
				t.Error(err)
			}
		}
		down.Store(false)
	}
	all.Wait()
	slices.SortFunc(admitted, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	more := *policy.Params()
	more.Cap += int64(nodes)
	var state algo.State
	var log []algo.Entry
	over := 0
	for _, a := range admitted {
		if more.Kind == algo.SlidingLog {
			s, v := algo.DecideLog(&more, state, log, a.at, 1)
			if !v.OK {
				over++
				continue
			}
			state, log = algo.Record(&more, s, log, 1)
			continue
		}
		s, v := algo.Decide(&more, state, a.at, 1, 0)
		if !v.OK {
			over++
			continue
		}
		state = s
	}
	ideal := rate * span.Seconds()
	t.Logf("%d allowed of %.0f", len(admitted), ideal)
	if over > 0 {
		t.Errorf("%d of %d units above the limit and one for each of %d nodes", over, len(admitted), nodes)
	}
	if float64(len(admitted)) < ideal/4 {
		t.Errorf("only %d of %.0f were allowed", len(admitted), ideal)
	}
}
