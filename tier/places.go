package tier

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir"
)

// place names a key of a policy by 128 bits, seeded per process, so that nobody outside
// can aim at a place or at a collision.
type place struct{ hi, lo uint64 }

// seeds make places.
type seeds [4]maphash.Seed

func newSeeds() (s seeds) {
	for i := range s {
		s[i] = maphash.MakeSeed()
	}
	return s
}

func (s *seeds) of(p *weir.Policy, key []byte) place {
	id := p.ID()
	return place{
		hi: maphash.Bytes(s[0], key) ^ maphash.String(s[1], id),
		lo: maphash.Bytes(s[2], key) ^ maphash.String(s[3], id),
	}
}

const (
	ways    = 4  // places a refusal may be in
	stripes = 64 // locks of writers, and counters
)

// places hold refusals. Readers take no lock and write nothing but a counter: a key
// that is refused thousands of times a second is looked up by all cores at once.
type places struct {
	seeds  seeds
	slots  []atomic.Pointer[refusal] // ways each
	stripe [stripes]stripe
}

type stripe struct {
	mu      sync.Mutex
	changes atomic.Int64 // of keys, by others than Take
	hits    atomic.Int64
	_       [64 - 24]byte // a cache line each
}

func newPlaces(keys int) *places {
	return &places{seeds: newSeeds(), slots: make([]atomic.Pointer[refusal], max(keys/ways, 1)*ways)}
}

func (p *places) of(a *weir.Ask) place { return p.seeds.of(a.Policy, a.Key) }

// set are the slots a refusal may be in, and the stripe that owns them.
func (p *places) set(id place) ([]atomic.Pointer[refusal], *stripe) {
	at, _ := bits.Mul64(id.hi, uint64(len(p.slots)/ways))
	return p.slots[at*ways:][:ways], &p.stripe[at%stripes]
}

func (p *places) find(id place) *refusal {
	set, _ := p.set(id)
	for i := range set {
		if e := set[i].Load(); e != nil && e.place == id {
			return e
		}
	}
	return nil
}

// remember keeps the refusal of ids[i], unless one of the keys has been changed since
// the changes were counted. It takes a place that is free or dead, or else any.
func (p *places) remember(ids []place, i int, changes, now int64, e *refusal) {
	set, s := p.set(ids[i])
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.changes(ids) != changes {
		return
	}
	victim := int(ids[i].lo % ways)
	for w := range set {
		switch old := set[w].Load(); {
		case old != nil && old.place == ids[i]:
			set[w].Store(e)
			return
		case old == nil || now >= old.until:
			victim = w
		}
	}
	set[victim].Store(e)
}

// forget drops what is remembered of a key.
func (p *places) forget(id place) {
	if p.find(id) == nil {
		return
	}
	set, s := p.set(id)
	s.mu.Lock()
	drop(set, id)
	s.mu.Unlock()
}

// change drops what is remembered of a key, and what takes under way are about to
// remember.
func (p *places) change(id place) {
	set, s := p.set(id)
	s.mu.Lock()
	s.changes.Add(1)
	drop(set, id)
	s.mu.Unlock()
}

func drop(set []atomic.Pointer[refusal], id place) {
	for i := range set {
		if e := set[i].Load(); e != nil && e.place == id {
			set[i].Store(nil)
		}
	}
}

// changes counts the changes of these keys, and of some others.
func (p *places) changes(ids []place) (n int64) {
	for _, id := range ids {
		_, s := p.set(id)
		n += s.changes.Load()
	}
	return n
}

func (p *places) hit(id place) {
	_, s := p.set(id)
	s.hits.Add(1)
}

func (p *places) hits() (n int64) {
	for i := range p.stripe {
		n += p.stripe[i].hits.Load()
	}
	return n
}
