package replay

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// keyCount is what is known of one key of a rule.
type keyCount struct {
	pace    pace
	asked   int64
	refused int64
	watched int64 // would have been refused
	hash    uint64
	key     string
	missing bool // the key stands in for one that the request lacks
}

// keyCounts are the keys of one rule: exact while there are no more than max of
// them. From then on, whenever they are max again, the half that asked least is
// dropped, so that what is left is right to within lost requests a key (lossy
// counting: Manku and Motwani, 2002) and the numbers of keys are estimates.
//
// Keys are told apart by a seeded hash of 64 bits, which spares the look at the key
// itself: that two of two million keys are counted as one happens once in ten
// million runs.
type keyCounts struct {
	max    int
	seed   maphash.Seed
	slots  []slot // a hash table with linear probing, at most three quarters full
	chunks []*[chunkSize]keyCount
	n      int
	trail  trail

	lost    int64 // how many requests a key may have had more than counted; 0 is exact
	gone    [len(windows)]map[uint32]int64
	seen    distinct // fed with every new key
	refused distinct // fed with every key's first refusal
	watched distinct
}

// slot is the place of a key in the chunks, counted from 1; 0 is vacant.
type slot struct {
	hash uint64
	at   uint32
}

// chunkSize is how many keys are allocated at once, so that growing copies nothing.
const chunkSize = 1 << 10

func newKeyCounts(most int) keyCounts {
	return keyCounts{max: most, seed: maphash.MakeSeed(), slots: make([]slot, 64)}
}

func (c *keyCounts) at(i int) *keyCount { return &c.chunks[i/chunkSize][i%chunkSize] }

// find returns the counts of a key, new ones if it has none. The key is copied. A
// stand-in for a missing key is another key than the same bytes.
func (c *keyCounts) find(key []byte, missing bool) *keyCount {
	hash := maphash.Bytes(c.seed, key)
	if missing {
		hash = bits.RotateLeft64(hash, 32)
	}
	mask := uint64(len(c.slots) - 1)
	for i := hash & mask; c.slots[i].at != 0; i = (i + 1) & mask {
		if c.slots[i].hash == hash {
			return c.at(int(c.slots[i].at - 1))
		}
	}
	if c.n == c.max {
		c.purge()
	}
	c.seen.add(hash)
	return c.insert(keyCount{hash: hash, key: string(key), missing: missing})
}

func (c *keyCounts) insert(k keyCount) *keyCount {
	if c.n == len(c.chunks)*chunkSize {
		c.chunks = append(c.chunks, new([chunkSize]keyCount))
	}
	at := c.at(c.n)
	*at = k
	c.n++
	if c.n > len(c.slots)/4*3 {
		c.rehash(2 * len(c.slots))
	} else {
		c.place(k.hash, uint32(c.n))
	}
	return at
}

// place puts a key that is not there into the table.
func (c *keyCounts) place(hash uint64, at uint32) {
	mask := uint64(len(c.slots) - 1)
	i := hash & mask
	for c.slots[i].at != 0 {
		i = (i + 1) & mask
	}
	c.slots[i] = slot{hash, at}
}

// rehash makes a table of so many slots, a power of two, of all keys.
func (c *keyCounts) rehash(slots int) {
	c.slots = make([]slot, slots)
	for i := range c.n {
		c.place(c.at(i).hash, uint32(i+1))
	}
}

// purge drops the half of the keys that asked least.
func (c *keyCounts) purge() {
	asked := make([]int64, 0, c.n)
	for k := range c.all {
		asked = append(asked, k.asked)
	}
	slices.Sort(asked)
	least := asked[len(asked)/2]
	c.lost += least
	old := keyCounts{chunks: c.chunks, n: c.n}
	c.chunks, c.n = nil, 0
	clear(c.slots)
	for k := range old.all {
		if k.asked > least {
			c.insert(*k)
			continue
		}
		for i, peak := range k.pace.peaks {
			if c.gone[i] == nil {
				c.gone[i] = make(map[uint32]int64)
			}
			c.gone[i][peak]++
		}
		c.trail.forget(&k.pace)
	}
}

// all ranges over the keys that are kept.
func (c *keyCounts) all(yield func(*keyCount) bool) {
	for i := range c.n {
		if !yield(c.at(i)) {
			return
		}
	}
}

// totals are the numbers of keys, of those that were refused, and of those that
// would have been.
func (c *keyCounts) totals() (keys, refused, watched int64) {
	if c.lost > 0 {
		return c.seen.estimate(), c.refused.estimate(), c.watched.estimate()
	}
	for k := range c.all {
		if k.refused > 0 {
			refused++
		}
		if k.watched > 0 {
			watched++
		}
	}
	return int64(c.n), refused, watched
}

// top are the n keys that were refused most, and among equals, asked most.
func (c *keyCounts) top(n int) []*keyCount {
	order := func(a, b *keyCount) int {
		return cmp.Or(cmp.Compare(b.refused+b.watched, a.refused+a.watched), cmp.Compare(b.asked, a.asked), strings.Compare(a.key, b.key))
	}
	var best []*keyCount
	for k := range c.all {
		if len(best) == n && (n == 0 || order(best[n-1], k) < 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, k, order)
		if best = slices.Insert(best, at, k); len(best) > n {
			best = best[:n]
		}
	}
	return best
}

// peaks counts for each window how many keys have which peak.
func (c *keyCounts) peaks() (all [len(windows)]Peaks) {
	for i := range windows {
		counts := make(map[uint32]int64)
		for peak, n := range c.gone[i] {
			counts[peak] += n
		}
		for k := range c.all {
			counts[k.pace.peaks[i]]++
		}
		all[i] = newPeaks(counts)
	}
	return all
}
