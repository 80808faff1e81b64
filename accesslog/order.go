package accesslog

import "math"

// maxWaitingBytes bounds the text of records that wait for their turn.
const maxWaitingBytes = 256 << 20

const recordsPerBlock = 64

// A pool hands out zero records, and bounds how many are out. It belongs to one
// Reader. Records are known by number while they wait, so that sorting them moves
// no pointers, which would cost the garbage collector's barriers.
type pool struct {
	maxOut int
	out    int
	bytes  int // length of the lines of those out
	blocks [][]Record
	free   []int32
}

func (p *pool) at(slot int32) *Record {
	return &p.blocks[slot/recordsPerBlock][slot%recordsPerBlock]
}

func (p *pool) get() int32 {
	if len(p.free) == 0 {
		first := int32(len(p.blocks) * recordsPerBlock)
		p.blocks = append(p.blocks, make([]Record, recordsPerBlock))
		for i := range int32(recordsPerBlock) {
			p.free = append(p.free, first+i)
		}
	}
	last := len(p.free) - 1
	slot := p.free[last]
	p.free = p.free[:last]
	return slot
}

// put takes a record back. Its text is let go.
func (p *pool) put(slot int32) {
	*p.at(slot) = Record{}
	p.free = append(p.free, slot)
}

func (p *pool) full() bool { return p.out >= p.maxOut || p.bytes >= maxWaitingBytes }

// A waiting record waits for those that come after it in the file and before it
// in time.
type waiting struct {
	at, line int64
	bytes    int32
	slot     int32
}

func (w waiting) before(v waiting) bool {
	return w.at < v.at || w.at == v.at && w.line < v.line
}

// An order puts the records of one file in the order of time. Most come in order
// already and only pass through a queue; those that are older than the last of
// the queue go to a heap. What is next is the lesser of the two heads.
type order struct {
	pool       *pool
	window     int64 // µs
	newest     int64 // latest time so far
	queue      []waiting
	head       int // of queue
	stragglers heap[waiting]
}

func newOrder(p *pool, window int64) *order {
	return &order{pool: p, window: window, newest: math.MinInt64, stragglers: heap[waiting]{before: waiting.before}}
}

// add takes a record that was read from a line of so many bytes.
func (o *order) add(slot int32, bytes int) {
	o.pool.out++
	o.pool.bytes += bytes
	r := o.pool.at(slot)
	o.newest = max(o.newest, r.At)
	w := waiting{r.At, r.Line, int32(bytes), slot}
	if o.head < len(o.queue) && w.before(o.queue[len(o.queue)-1]) {
		o.stragglers.push(w)
		return
	}
	o.queue = append(o.queue, w)
}

// next takes the earliest record out if it need not wait any longer: nothing of
// its window can still come, the pool is full, or all was read.
func (o *order) next(all bool) (slot int32, ok bool) {
	queued, strays := o.head < len(o.queue), len(o.stragglers.items) > 0
	if !queued && !strays {
		return 0, false
	}
	fromQueue := queued && (!strays || o.queue[o.head].before(o.stragglers.items[0]))
	var first waiting
	if fromQueue {
		first = o.queue[o.head]
	} else {
		first = o.stragglers.items[0]
	}
	if !all && first.at > o.newest-o.window && !o.pool.full() {
		return 0, false
	}
	if fromQueue {
		o.advance()
	} else {
		o.stragglers.pop()
	}
	o.pool.out--
	o.pool.bytes -= int(first.bytes)
	return first.slot, true
}

// advance drops the head of the queue. The dropped part is given back once it is
// the larger one, so that each record is moved once on average.
func (o *order) advance() {
	o.head++
	if o.head < len(o.queue)/2 {
		return
	}
	n := copy(o.queue, o.queue[o.head:])
	o.queue, o.head = o.queue[:n], 0
}
