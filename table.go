package weir

import (
	"math/bits"

	"github.com/weirhq/weir/algo"
)

// vacant is the hi of a slot without an entry. It sorts behind every identity.
const vacant = ^uint64(0)

// slot is one entry: 48 bytes without a pointer, which the garbage collector
// never looks at.
//
// The instant, and the Unit of a state, are below 2^52. The 12 bits above them
// hold the algorithm and the entry's lifetime: after its instant the entry matters
// for mantissa << exponent ticks, rounded up by at most one part in 128.
type slot struct {
	hi, lo uint64
	at     uint64 // instant | mantissa (8 bits) << 52 | kind (4 bits) << 60
	used   int64
	prev   int64
	unit   uint64 // unit | exponent (6 bits) << 52
}

const (
	word         = 52 // bits of an instant or a Unit; what lies above is packed
	low52        = 1<<word - 1
	mantissaBits = 8
	kindShift    = word + mantissaBits
)

func (e *slot) is(id identity) bool { return e.hi == id.hi && e.lo == id.lo }

func (e *slot) state() algo.State {
	return algo.State{At: int64(e.at & low52), Used: e.used, Prev: e.prev, Unit: int64(e.unit & low52)}
}

func (e *slot) kind() algo.Kind { return algo.Kind(e.at >> kindShift) }

// expires is the tick from which the entry equals a fresh one, or a little later.
func (e *slot) expires() int64 {
	return int64(e.at&low52) + int64(e.at>>word&(1<<mantissaBits-1))<<(e.unit>>word&63)
}

func (e *slot) set(s algo.State, kind algo.Kind, expires int64) {
	life := uint64(max(expires-s.At, 0))
	exponent := max(bits.Len64(life)-mantissaBits, 0)
	m := (life + 1<<exponent - 1) >> exponent
	if m == 1<<mantissaBits {
		m, exponent = m>>1, exponent+1
	}
	e.at = uint64(s.At)&low52 | m<<word | uint64(kind)<<kindShift
	e.used, e.prev = s.Used, s.Prev
	e.unit = uint64(s.Unit)&low52 | uint64(exponent)<<word
}

// table is a hash table with linear probing whose entries are kept in the order
// of their hashes: the home of an entry is its hash scaled to the table's length,
// so homes ascend, a search ends at the first greater hash, a removal closes its
// gap, and growing is one pass from left to right. The slots behind the last home
// take what the homes before them cannot; the last one is always vacant.
type table struct {
	slots []slot
	homes uint64
	lg    uint // hash bits that choose the shard, the same for all entries
	n     int
}

// tail is the number of slots behind the last home of a table.
const tail = 24

func (t *table) home(hi uint64) int {
	at, _ := bits.Mul64(hi<<t.lg, t.homes)
	return int(at)
}

// find returns the slot of an entry, or -1.
func (t *table) find(id identity) int {
	if t.n == 0 {
		return -1
	}
	for i := t.home(id.hi); ; i++ {
		switch e := &t.slots[i]; {
		case e.hi == id.hi && e.lo == id.lo:
			return i
		case e.hi > id.hi:
			return -1
		}
	}
}

// insert returns the slot of an entry, a zero one if it is new. It fails if there
// is no vacant slot to its right but the last.
func (t *table) insert(id identity) (e *slot, fresh, ok bool) {
	i := t.home(id.hi)
	for t.slots[i].hi < id.hi || t.slots[i].hi == id.hi && t.slots[i].lo < id.lo {
		i++
	}
	if t.slots[i].is(id) {
		return &t.slots[i], false, true
	}
	j := i
	for t.slots[j].hi != vacant {
		j++
	}
	if j == len(t.slots)-1 {
		return nil, false, false
	}
	copy(t.slots[i+1:j+1], t.slots[i:j])
	t.slots[i] = slot{hi: id.hi, lo: id.lo}
	t.n++
	return &t.slots[i], true, true
}

// remove closes the gap of slot i with the entries that are right of their homes.
func (t *table) remove(i int) {
	j := i + 1
	for t.slots[j].hi != vacant && t.home(t.slots[j].hi) < j {
		j++
	}
	copy(t.slots[i:j-1], t.slots[i+1:j])
	t.slots[j-1] = slot{hi: vacant}
	t.n--
}

// retain removes all entries but those that keep says, in one pass from left to
// right: an entry never moves to the right.
func (t *table) retain(keep func(e *slot) bool) {
	next := 0
	for i := range t.slots {
		e := &t.slots[i]
		switch {
		case e.hi == vacant:
		case !keep(e):
			e.hi = vacant
			t.n--
		default:
			at := max(next, t.home(e.hi))
			if next = at + 1; at < i {
				t.slots[at] = *e
				e.hi = vacant
			}
		}
	}
}

// full is whether the table has to grow before it takes another entry.
func (t *table) full() bool { return uint64(t.n) >= t.homes-t.homes/5 }

// grow doubles the homes along the row full, full/2, full/4…, so that a table
// that has reached its limit wastes no more than was planned; past full, which
// only a run of unlucky hashes needs, it grows by an eighth.
func (t *table) grow(limit int, lg uint) {
	full := uint64(limit) + uint64(limit)/4 + 1
	homes := full
	for homes/2 > t.homes && homes > 7 {
		homes /= 2
	}
	if homes <= t.homes {
		homes = t.homes + t.homes/8 + 1
	}
	for !t.rebuild(homes, lg) {
		homes += homes/8 + 1
	}
}

func (t *table) rebuild(homes uint64, lg uint) bool {
	bigger := table{slots: make([]slot, int(homes)+tail), homes: homes, lg: lg, n: t.n}
	for i := range bigger.slots {
		bigger.slots[i].hi = vacant
	}
	next := 0
	for i := range t.slots {
		e := &t.slots[i]
		if e.hi == vacant {
			continue
		}
		next = max(next, bigger.home(e.hi))
		if next == len(bigger.slots)-1 {
			return false
		}
		bigger.slots[next] = *e
		next++
	}
	*t = bigger
	return true
}
