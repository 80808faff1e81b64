package clienttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirtest"
)

// RunStore runs the suite of stores, the scripts of a directory and some disturbances on
// stores whose client is under test.
func RunStore(t *testing.T, open Open, scripts fs.FS) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open Open)
	}{
		{"SlotsMoveUnderLoad", slotsMove},
		{"ScriptsAreFlushedUnderLoad", scriptsFlushed},
		{"ClientsAreKilledUnderLoad", clientsKilled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open) })
	}
	for _, where := range []struct {
		name string
		at   func(t *testing.T) Where
	}{
		{"Single", func(t *testing.T) Where { return Where{Addresses: []string{redistest.Single(t).Addr}} }},
		{"Cluster", func(t *testing.T) Where { return Where{Addresses: redistest.Cluster(t, 3).Addrs, Cluster: true} }},
	} {
		t.Run(where.name, func(t *testing.T) {
			stores := storesOn(t, open, where.at(t))
			weirtest.TestStore(t, stores)
			weirtest.RunScripts(t, scripts, stores)
		})
	}
}

// storesOn makes stores on one client that know nothing of each other's keys.
func storesOn(t testing.TB, open Open, w Where) func(testing.TB, weir.Clock) weir.Store {
	c := open(t, w)
	t.Cleanup(c.Close)
	var n atomic.Int64
	return func(_ testing.TB, clock weir.Clock) weir.Store {
		return weirredis.New(c, weirredis.Options{Prefix: fmt.Sprint(n.Add(1)), Clock: clock, Timeout: time.Minute})
	}
}

// load asks for units of keys from many goroutines while something disturbs the servers,
// and counts what was allowed. Its windows do not end while a test runs.
type load struct {
	*testing.T
	store    *weirredis.Store
	policies []*weir.Policy
	keys     []string
	allowed  []atomic.Int64 // of a key's own policies together
	asked    atomic.Int64
	failed   atomic.Int64
}

// quota is that of each key.
const quota = 300

func newLoad(t *testing.T, open Open, w Where, keys int) *load {
	t.Helper()
	c := open(t, w)
	t.Cleanup(c.Close)
	l := &load{T: t, store: weirredis.New(c, weirredis.Options{Timeout: 250 * time.Millisecond}), allowed: make([]atomic.Int64, keys)}
	for i, limit := range []weir.Limit{
		{Quota: quota, Window: 24 * time.Hour, Algorithm: weir.FixedWindowFirst},
		{Quota: quota * 2, Window: 24 * time.Hour, Algorithm: weir.SlidingLog},
	} {
		p, err := weir.NewPolicy(fmt.Sprint("policy", i), limit)
		if err != nil {
			t.Fatal(err)
		}
		l.policies = append(l.policies, p)
	}
	for i := range keys {
		l.keys = append(l.keys, fmt.Sprint("key", i))
	}
	return l
}

// asks are those of the policies on one key: two keys of Redis that a call has together.
func (l *load) asks(key string, cost int64) []weir.Ask {
	var asks []weir.Ask
	for _, p := range l.policies {
		asks = append(asks, weir.Ask{Policy: p, Key: []byte(key), Cost: cost})
	}
	return asks
}

// run disturbs the servers while goroutines ask, until disturb returns.
func (l *load) run(disturb func()) {
	ctx, cancel := context.WithCancel(l.Context())
	var group sync.WaitGroup
	for g := range 16 {
		group.Go(func() {
			out := make([]weir.Verdict, len(l.policies))
			for i := g; ctx.Err() == nil; i++ {
				k := i % len(l.keys)
				ok, err := l.store.Take(context.Background(), l.asks(l.keys[k], 1), out)
				l.asked.Add(1)
				switch {
				case err == nil && ok:
					l.allowed[k].Add(1)
				case err != nil && !errors.Is(err, weir.ErrUnavailable):
					l.Errorf("an error that does not say that the store is unavailable: %v", err)
				case err != nil:
					l.failed.Add(1)
				}
			}
		})
	}
	redistest.Until(l, "the load has begun", func() bool { return l.asked.Load() > 100 })
	disturb()
	cancel()
	group.Wait()
}

// verify wants that all keys answer again, and that nobody was allowed more than the
// limit.
func (l *load) verify() {
	l.Helper()
	out := make([]weir.Verdict, len(l.policies))
	for i, key := range l.keys {
		redistest.Until(l, key+" answers again", func() bool {
			_, err := l.store.Peek(context.Background(), l.asks(key, 1), out)
			return err == nil
		})
		if n := l.allowed[i].Load(); n > quota || n+out[0].Remaining > quota {
			l.Errorf("%s: %d were allowed of %d, and %d are left", key, n, quota, out[0].Remaining)
		}
	}
	if s := l.store.Stats(); s.Mirror != 0 {
		l.Errorf("%d decisions were not those of the arithmetic: %+v", s.Mirror, s)
	}
	l.Logf("asked %d times, failed %d times, %+v", l.asked.Load(), l.failed.Load(), l.store.Stats())
}

func slotsMove(t *testing.T, open Open) {
	nodes := redistest.Cluster(t, 3)
	l := newLoad(t, open, Where{Addresses: nodes.Addrs, Cluster: true}, 8)
	l.run(func() {
		for round := range 4 {
			moved := 0
			for i, s := range nodes.Nodes {
				for _, slot := range slotsOf(t, s) {
					if nodes.Owner(slot) != i {
						continue // it has just come
					}
					to := (i + 1 + round%2) % 3
					nodes.BeginMove(slot, to)
					nodes.MoveKeys(slot, to, 1) // now one of two is here and one there
					nodes.FinishMove(slot, to)
					moved++
				}
			}
			if moved == 0 {
				t.Fatal("no key stands anywhere")
			}
		}
	})
	l.verify()
	if s := l.store.Stats(); s.Failed > uint64(l.asked.Load())/10 {
		t.Errorf("%d batches failed, though every slot was always somewhere", s.Failed)
	}
}

// slotsOf are the slots of a node that hold a key.
func slotsOf(t *testing.T, s *redistest.Server) (slots []int) {
	t.Helper()
	for key := range strings.SplitSeq(s.Must("KEYS", "*"), "\n") {
		if slot := redistest.Slot(key); key != "" && !slices.Contains(slots, slot) {
			slots = append(slots, slot)
		}
	}
	return slots
}

func scriptsFlushed(t *testing.T, open Open) {
	s := redistest.Single(t)
	l := newLoad(t, open, Where{Addresses: []string{s.Addr}}, 4)
	l.run(func() {
		for range 50 {
			s.Must("SCRIPT", "FLUSH")
			n := l.asked.Load()
			redistest.Until(t, "calls go on", func() bool { return l.asked.Load() > n+20 })
		}
	})
	l.verify()
	if stats := l.store.Stats(); stats.Loads < 2 || stats.Failed+stats.Lost != 0 {
		t.Errorf("a flushed script is loaded again, and nobody notices: %+v", stats)
	}
}

func clientsKilled(t *testing.T, open Open) {
	s := redistest.Single(t)
	l := newLoad(t, open, Where{Addresses: []string{s.Addr}}, 4)
	l.run(func() {
		for range 20 {
			s.Must("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			n := l.asked.Load() - l.failed.Load()
			redistest.Until(t, "calls go on", func() bool { return l.asked.Load()-l.failed.Load() > n+20 })
		}
	})
	l.verify()
}
