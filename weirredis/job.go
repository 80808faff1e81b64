package weirredis

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// verb is what a job does to its keys. The numbers are those of take.lua.
type verb uint8

const (
	take verb = iota + 1
	peek
	adjust
	reset
	lend
)

// ask is a weir.Ask, or a weir.Loan, under the name of its key.
type ask struct {
	policy      *weir.Policy
	key         string
	cost, slack int64 // of an adjustment, the delta; never out of what the script can read
	at          int64
	shadow      bool
	loan        algo.Loan
}

// answer is what became of an ask.
type answer struct {
	weir.Verdict
	// without is what a refund leaves: the Remaining and Reset without the charge.
	without algo.Verdict
	grant   weir.Grant
}

// job is one call of the store on its way to Redis and back. It holds copies of all that
// it needs, since its caller may leave before it is done.
type job struct {
	verb    verb
	asks    []ask
	answers []answer
	allowed bool
	err     error
	born    time.Time

	state atomic.Uint32
	done  chan struct{} // of one place; filled once, when state becomes finished
	next  *job          // in the same run of a batch
}

// The life of a job. Who moves it on to left or finished first, gives it up; the other
// puts it back into the pool.
const (
	waiting uint32 = iota // in the queue
	taken                 // in a batch
	left                  // by its caller
	finished
)

type pool struct{ jobs sync.Pool }

func (p *pool) get(v verb, n int) *job {
	j, _ := p.jobs.Get().(*job)
	if j == nil {
		j = &job{done: make(chan struct{}, 1)}
	}
	j.verb, j.allowed, j.err, j.next = v, false, nil, nil
	j.state.Store(waiting)
	if cap(j.asks) < n {
		j.asks, j.answers = make([]ask, n), make([]answer, n)
	}
	j.asks, j.answers = j.asks[:n], j.answers[:n]
	return j
}

// put takes a job back that nobody else holds.
func (p *pool) put(j *job) {
	clear(j.asks)
	clear(j.answers)
	p.jobs.Put(j)
}

// finish tells the caller, if there still is one.
func (p *pool) finish(j *job, err error) {
	j.err = err
	if j.state.Swap(finished) == left {
		p.put(j)
		return
	}
	j.done <- struct{}{}
}

// leave is called by a caller who waits no longer. It returns false if the job is
// finished after all.
func (j *job) leave() bool {
	for {
		s := j.state.Load()
		if s == finished {
			return false
		}
		if j.state.CompareAndSwap(s, left) {
			return true
		}
	}
}
