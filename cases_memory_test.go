package weir_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestALogIsFreedWithItsKey: a log lives beside the table; whoever forgets the
// key must free it too, be it Reset or a sweep.
func TestALogIsFreedWithItsKey(t *testing.T) {
	p := policy(t, weir.Limit{Quota: 64, Window: time.Second, Algorithm: weir.SlidingLog})
	asks := []weir.Ask{{Policy: p, Key: []byte("key")}}
	for name, forget := range map[string]func(m *weir.Memory, c *handClock, round int){
		"Reset": func(m *weir.Memory, _ *handClock, _ int) { _ = m.Reset(t.Context(), asks) },
		"Sweep": func(m *weir.Memory, c *handClock, round int) {
			c.set(float64(10 * round))
			m.Sweep()
		},
	} {
		clock := newClock()
		m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 1000})
		// Another key keeps the shard from being let go as a whole.
		takeOne(t, m, policy(t, weir.Limit{Quota: 1, Window: 365 * 24 * time.Hour}), "other", 1)
		before := heap()
		for round := range 20_000 {
			takeOne(t, m, p, "key", 3)
			forget(m, clock, round+1)
		}
		if after := heap(); after > before+200_000 {
			t.Errorf("%s: 20000 forgotten logs hold %d bytes", name, after-before)
		}
		runtime.KeepAlive(m)
	}
}

// TestGivingBackToNobodyHoldsNothing: a refund to a key that is gone, or was
// never there, is no reason to remember it.
func TestGivingBackToNobodyHoldsNothing(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{Clock: newClock()})
	for _, l := range []weir.Limit{weir.PerHour(5), {Quota: 5, Window: time.Hour, Algorithm: weir.SlidingLog}} {
		asks := []weir.Ask{{Policy: policy(t, l), Key: []byte("key"), Cost: -3}}
		if err := m.Adjust(t.Context(), asks); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Take(t.Context(), []weir.Ask{{Policy: asks[0].Policy, Key: []byte("key")}}, make([]weir.Verdict, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if st := m.Stats(); st.Keys != 0 {
		t.Errorf("%d keys are held", st.Keys)
	}
}

// TestAnEntryIsForgottenAtItsEndAndNotBefore: one tick decides.
func TestAnEntryIsForgottenAtItsEndAndNotBefore(t *testing.T) {
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	p := policy(t, weir.Limit{Quota: 1, Window: 100 * time.Microsecond, Algorithm: weir.FixedWindow})
	takeOne(t, m, p, "key", 1)
	clock.micros.Add(99)
	if n := m.Sweep(); n != 0 || takeOne(t, m, p, "key", 1).OK {
		t.Errorf("%d entries were forgotten a tick before their end", n)
	}
	clock.micros.Add(1)
	if n := m.Sweep(); n != 1 {
		t.Errorf("%d entries were forgotten at their end, want 1", n)
	}
}

// TestAlmostFullIsNotFull: keys have places of their own up to the share that is
// kept for overflow partitions, also if two come at once.
func TestAlmostFullIsNotFull(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{Clock: newClock(), MaxKeys: 1000})
	p := policy(t, weir.PerHour(1))
	for i := range 465 {
		asks := []weir.Ask{{Policy: p, Key: fmt.Append(nil, "a", i), Cost: 1}, {Policy: p, Key: fmt.Append(nil, "b", i), Cost: 1}}
		if ok, err := m.Take(t.Context(), asks, make([]weir.Verdict, 2)); !ok || err != nil {
			t.Fatalf("pair %d is refused, %v", i, err)
		}
	}
	if st := m.Stats(); st.Keys != 930 || st.Overflow != 0 || st.Refused != 0 {
		t.Errorf("%+v", st)
	}
}

// TestAFullStoreRefuses: a key that finds not even an overflow partition is not
// let through, and is told to come back.
func TestAFullStoreRefuses(t *testing.T) {
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 16})
	for i := range 16 {
		p, err := weir.NewPolicy(fmt.Sprint("policy", i), weir.PerHour(2))
		if err != nil {
			t.Fatal(err)
		}
		takeOne(t, m, p, "key", 1)
	}
	p := policy(t, weir.PerHour(2))
	v := takeOne(t, m, p, "key", 1)
	if st := m.Stats(); v.OK || v.Retry < 1 || v.Retry > time.Hour.Microseconds() || st.Keys != 16 || st.Refused != 1 {
		t.Errorf("%+v, %+v", v, st)
	}
	if err := m.Adjust(t.Context(), []weir.Ask{{Policy: p, Key: []byte("key"), Cost: 1}}); err != nil || m.Stats().Keys != 16 {
		t.Errorf("%v, %+v", err, m.Stats())
	}
	clock.set(3600)
	if v := takeOne(t, m, p, "key", 1); !v.OK {
		t.Errorf("%+v after all others have expired", v)
	}
}

// TestEveryPolicyFindsAnOverflowPartition in a store that one policy has filled.
func TestEveryPolicyFindsAnOverflowPartition(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{Clock: newClock(), MaxKeys: 1000})
	for i := range 2000 {
		takeOne(t, m, policy(t, weir.PerHour(2)), fmt.Sprint(i), 1)
	}
	refused := m.Stats().Refused
	for i := range 40 {
		p, err := weir.NewPolicy(fmt.Sprint("policy", i), weir.PerHour(2))
		if err != nil {
			t.Fatal(err)
		}
		for n, key := range []string{"a", "b", "c"} { // they share one limit of 2
			if v := takeOne(t, m, p, key, 1); v.OK != (n < 2) {
				t.Errorf("%s, key %s: %+v", p.Name, key, v)
			}
		}
	}
	if st := m.Stats(); st.Refused != refused || st.Keys > 1000 {
		t.Errorf("%+v, %d refused for want of a place before", st, refused)
	}
}
