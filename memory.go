package weir

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/weirhq/weir/algo"
)

// DefaultMaxKeys is how many keys a [Memory] holds unless told otherwise. They
// take about 64 bytes each when the store is full, so 64 MB.
const DefaultMaxKeys = 1_000_000

// MemoryOptions configure a [Memory]. The zero value is usable.
type MemoryOptions struct {
	// MaxKeys bounds the entries held, counted over all policies: 0 means
	// DefaultMaxKeys, at most 1<<32. It is divided evenly among the store's shards,
	// and keys are not, so single shards are full from about 90 % on.
	MaxKeys int
	// Clock tells the time; nil is the system's.
	Clock Clock
}

// Memory is a [Store] in the memory of one process. It may be called from
// thousands of goroutines: keys are spread over shards, each with its own lock,
// and a call holds only the locks of its own asks, taken in ascending order.
//
// It keeps a 128-bit hash of each key, seeded per process, and never the key.
// Its size is bounded. An entry that equals a fresh one is forgotten, by the
// calls that come along or by [Memory.Sweep]; no goroutine runs. When a shard is
// full of entries that still matter, a new key does not push one out, which
// would hand an attacker a fresh start, nor go unchecked: it shares an overflow
// partition, one per policy and shard, whose limit holds for all who share it.
// When even those find no place the ask is refused. [Memory.Stats] counts both.
type Memory struct {
	seeds  [2]maphash.Seed
	shift  uint // identity.hi >> shift is the shard
	shards []shard
	clock  Clock
	system systemClock
	latest atomic.Int64 // of a Clock that may step back
	spills atomic.Int64
	full   atomic.Int64
}

// NewMemory makes an empty store. It takes memory as keys come.
func NewMemory(o MemoryOptions) *Memory {
	keys := o.MaxKeys
	if keys <= 0 {
		keys = DefaultMaxKeys
	}
	keys = min(keys, 1<<32)
	// Some thousand entries a shard keep their shares even to a few percent, and a
	// thousand shards are more than the cores of any machine lock at once.
	lg := min(max(bits.Len(uint(keys/2048)), 1)-1, 10)
	m := &Memory{
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		shift:  uint(64 - lg),
		shards: make([]shard, 1<<lg),
		clock:  o.Clock,
		system: newSystemClock(),
	}
	for i := range m.shards {
		s := &m.shards[i]
		s.index, s.lg, s.earliest = uint64(i), uint(lg), algo.Max
		s.limit = keys >> lg
		if i < keys&(1<<lg-1) {
			s.limit++
		}
	}
	return m
}

// MemoryStats are the figures of a [Memory].
type MemoryStats struct {
	Keys     int   // entries held, expired ones not yet forgotten included
	MaxKeys  int   // the bound
	Overflow int64 // asks decided in an overflow partition since the start
	Refused  int64 // asks refused since not even an overflow partition had a place
}

// Stats counts the store's entries, one shard at a time.
func (m *Memory) Stats() MemoryStats {
	st := MemoryStats{Overflow: m.spills.Load(), Refused: m.full.Load()}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		st.Keys += s.table.n
		st.MaxKeys += s.limit
		s.mu.Unlock()
	}
	return st
}

// Sweep forgets every entry that equals a fresh one and returns how many those
// were. Calls do the same bit by bit; Sweep is for a store that has fallen idle.
func (m *Memory) Sweep() int {
	freed, now := 0, m.now()
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		freed += s.sweep(now)
		s.mu.Unlock()
	}
	return freed
}

// Hold implements [Holder].
func (m *Memory) Hold(ticks int64) {
	now := m.now()
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		s.heldFrom, s.heldUntil = now, max(s.heldUntil, min(now+ticks, algo.Max))
		s.mu.Unlock()
	}
}

// Supports implements [Supporter]: Memory runs every algorithm.
func (m *Memory) Supports(p *Policy) error {
	if p.params.Kind == 0 || p.params.Kind > algo.WarmUp {
		return fmt.Errorf("%w: kind %d", ErrUnsupported, p.params.Kind)
	}
	return nil
}

// now reads the clock once, until the year 2112. Only a clock from outside can
// step back.
func (m *Memory) now() int64 {
	if m.clock == nil {
		return m.system.micros()
	}
	now := min(m.clock.Now().UnixMicro(), algo.Max)
	for {
		latest := m.latest.Load()
		if now <= latest {
			return latest
		}
		if m.latest.CompareAndSwap(latest, now) {
			return now
		}
	}
}

// identity names a key of a policy.
type identity struct{ hi, lo uint64 }

// hash is seeded, so that nobody outside can aim at a bucket or at a collision.
func (m *Memory) hash(key []byte) identity {
	return identity{maphash.Bytes(m.seeds[0], key), maphash.Bytes(m.seeds[1], key)}
}

// of salts the hash of a key with the policy's own number, which spares hashing
// the policy's name each time.
func (id identity) of(p *Policy) identity {
	id.hi ^= p.salt[0]
	id.lo ^= p.salt[1]
	if id.hi == vacant {
		id.hi--
	}
	return id
}

func (m *Memory) shard(id identity) *shard { return &m.shards[id.hi>>m.shift&uint64(len(m.shards)-1)] }

// Take implements [Store]. It does not fail; ctx is not consulted.
func (m *Memory) Take(_ context.Context, asks []Ask, out []Verdict) (bool, error) {
	if len(asks) == 1 {
		return m.takeOne(&asks[0], &out[0]), nil
	}
	return m.takeAll(asks, out, true), nil
}

// Peek implements [Store].
func (m *Memory) Peek(_ context.Context, asks []Ask, out []Verdict) (bool, error) {
	return m.takeAll(asks, out, false), nil
}

// takeOne is takeAll for one ask, with a short way for a key that has an entry and
// is no log.
func (m *Memory) takeOne(a *Ask, v *Verdict) bool {
	id := m.hash(a.Key).of(a.Policy)
	s := m.shard(id)
	now := m.now()
	s.mu.Lock()
	if at := s.table.find(id); at >= 0 && a.Policy.params.Kind != algo.SlidingLog {
		e := &s.table.slots[at]
		next, answer := a.Policy.decide(e.state(), now, a.Cost, a.Slack)
		if answer.OK && a.Cost > 0 {
			s.set(e, next, a.Policy.params.Kind, expiry(next, answer.Reset, now))
		}
		s.mu.Unlock()
		*v = VerdictOf(answer, max(now, next.At))
		return answer.OK || a.Shadow
	}
	var w pending
	s.open(&w, m, id, a, now)
	w.judge(a, now, v)
	if v.OK && a.Cost > 0 {
		w.charge(a, v, now)
	}
	s.promised = 0
	s.mu.Unlock()
	return v.OK || a.Shadow
}

// batch is how many asks are decided without allocating.
const batch = 4

// takeAll decides asks together: all locks, all verdicts, then all charges.
// Locks are taken in ascending order, each once, so that no two calls wait for
// each other.
func (m *Memory) takeAll(asks []Ask, out []Verdict, commit bool) bool {
	var room [batch]pending
	var ids [batch]uint16
	work, order := room[:], ids[:0]
	if len(asks) > batch {
		work, order = make([]pending, len(asks)), make([]uint16, 0, len(asks))
	}
	var key []byte
	var hash identity
	for i := range asks {
		if i == 0 || !bytes.Equal(key, asks[i].Key) { // rules often share their key
			key = asks[i].Key
			hash = m.hash(key)
		}
		w := &work[i]
		w.id = hash.of(asks[i].Policy)
		w.shard = m.shard(w.id)
		order = append(order, uint16(w.shard.index))
	}
	slices.Sort(order)
	order = slices.Compact(order)
	now := m.now()
	for _, i := range order {
		m.shards[i].mu.Lock()
	}
	allowed := true
	for i := range asks {
		a, w := &asks[i], &work[i]
		w.shard.open(w, m, w.id, a, now)
		w.judge(a, now, &out[i])
		allowed = allowed && (out[i].OK || a.Shadow)
	}
	for i := range asks {
		a, w, v := &asks[i], &work[i], &out[i]
		switch {
		case !v.OK || a.Cost == 0:
		case commit && (allowed || a.Shadow):
			w.charge(a, v, now)
		default: // nothing was charged: say what is left without the charge
			look := Ask{Policy: a.Policy}
			var free Verdict
			w.judge(&look, now, &free)
			v.Remaining, v.Reset = free.Remaining, free.Reset
		}
	}
	for _, i := range order {
		m.shards[i].promised = 0
		m.shards[i].mu.Unlock()
	}
	return allowed
}

// Adjust implements [Store].
func (m *Memory) Adjust(_ context.Context, asks []Ask) error {
	now := m.now()
	for i := range asks {
		a := &asks[i]
		id := m.hash(a.Key).of(a.Policy)
		s := m.shard(id)
		s.mu.Lock()
		s.adjust(m, id, a, now)
		s.mu.Unlock()
	}
	return nil
}

// Reset implements [Store].
func (m *Memory) Reset(_ context.Context, asks []Ask) error {
	for i := range asks {
		id := m.hash(asks[i].Key).of(asks[i].Policy)
		s := m.shard(id)
		s.mu.Lock()
		if at := s.table.find(id); at >= 0 {
			s.forget(&s.table.slots[at])
			s.table.remove(at)
		}
		s.mu.Unlock()
	}
	return nil
}
