package tier

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

const (
	// together is how many loans are asked for by one call.
	together = 256
	// worth is the least number of units that are asked for: fewer would save no calls.
	worth = 3
	// pace is how often idle keys are looked for when nothing else is to be done, and
	// rounds how many times: all loans are dead by then.
	pace   = 100 * time.Millisecond
	rounds = 20
)

// loans asks for the loans of a Lease, many by one call and one call at a time. Its
// goroutine runs while accounts are waiting or loans are alive. Locks are taken in the
// order of shard, then loans.
type loans struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	due    []*account
	done   chan struct{} // of the goroutine, nil if none runs
	wake   chan struct{} // there is something to do
	closed bool

	trip  atomic.Int64 // the mean time of a call in ticks
	asked atomic.Int64
	calls atomic.Int64
	lent  atomic.Int64
	back  atomic.Int64

	// Of the goroutine, and of Close after it:
	batch   []*account
	flights []flight
	asks    []weir.Loan
	grants  []weir.Grant
}

// A flight is a loan on its way.
type flight struct {
	account *account
	epoch   int
	changes int
}

// add makes an account due, and returns whether it will be served. It is called with the
// lock of its shard.
func (q *loans) add(l *Lease, c *account) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.due = append(q.due, c)
	if q.done == nil {
		q.done = make(chan struct{})
		go l.lend()
	}
	q.rouse()
	return true
}

func (q *loans) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next moves the accounts to be served into the batch. If there are none it may end the
// goroutine.
func (q *loans) next(end bool) (some, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.due), together)
	if q.closed || n == 0 && end {
		close(q.done)
		q.done = nil
		return false, true
	}
	q.batch = append(q.batch[:0], q.due[:n]...)
	rest := copy(q.due, q.due[n:])
	clear(q.due[rest:])
	q.due = q.due[:rest]
	return n > 0, false
}

// lend is the goroutine of loans.
func (l *Lease) lend() {
	q := &l.loans
	timer := time.NewTimer(pace)
	defer timer.Stop()
	for quiet := 0; ; {
		some, ended := q.next(quiet > rounds)
		switch {
		case ended:
			return
		case some:
			quiet = 0
			_ = l.exchange(q.ctx, q.batch, true) // who gets no loan asks the store
			l.sweepAll(together / shards)
			continue
		}
		timer.Reset(pace)
		select {
		case <-q.wake:
		case <-timer.C:
			quiet++
			if !l.sweepAll(l.limit) {
				quiet = rounds + 1
			}
		}
	}
}

// sweepAll sweeps all shards, and tells whether loans may be alive.
func (l *Lease) sweepAll(n int) (alive bool) {
	now := l.now()
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		alive = l.sweep(s, now, n) || alive
		s.mu.Unlock()
	}
	return alive
}

// exchange reports on loans of the accounts and asks for others, if it is to borrow.
func (l *Lease) exchange(ctx context.Context, batch []*account, borrow bool) error {
	q := &l.loans
	q.flights, q.asks = q.flights[:0], q.asks[:0]
	now := l.now()
	for _, c := range batch {
		s := l.shard(c.place)
		s.mu.Lock()
		loan, ok := l.loan(c, now, borrow)
		if ok {
			q.flights = append(q.flights, flight{c, c.epoch, c.changes})
			q.asks = append(q.asks, loan)
		} else {
			c.flying = false
		}
		s.mu.Unlock()
	}
	if len(q.asks) == 0 {
		return nil
	}
	q.grants = append(q.grants[:0], make([]weir.Grant, len(q.asks))...)
	q.calls.Add(1)
	sent := l.now()
	err := l.inner.Lend(ctx, q.asks, q.grants)
	now = l.now()
	if err == nil {
		q.trip.Store(q.trip.Load() + (now-sent-q.trip.Load())/4)
	}
	for i := range q.flights {
		s := l.shard(q.flights[i].account.place)
		s.mu.Lock()
		l.land(&q.flights[i], &q.asks[i], &q.grants[i], sent, now, err)
		s.mu.Unlock()
	}
	clear(q.flights)
	clear(q.asks)
	return err
}

// loan is the loan to ask for.
func (l *Lease) loan(c *account, now int64, borrow bool) (weir.Loan, bool) {
	r := l.rules.of(c.policy)
	if r.changes != c.changes { // and the key has not been asked for since
		c.void(r)
		borrow = false
	}
	q := weir.Loan{Policy: r.policy, Key: c.key}
	idle := c.idle(now)
	if borrow && !idle && c.lending.Life > 0 {
		q.Want = c.want(now, l.loans.trip.Load())
	}
	// What was used is told along with the next loan, or when there will be none.
	if q.Want < worth && borrow && !idle && !c.overdue(now) {
		return q, false
	}
	want := q.Want
	q.Loan = c.report(now)
	if want >= worth && c.n < len(c.slots) {
		q.Want = want
		l.loans.asked.Add(1)
	}
	return q, q.Want > 0 || q.Used > 0 || q.Back > 0
}

// land takes the grant of a flight. If the call failed then its report is lost, and must
// be: nobody knows whether it has been taken.
func (l *Lease) land(f *flight, asked *weir.Loan, g *weir.Grant, sent, now int64, err error) {
	c := f.account
	c.flying = false
	if err != nil {
		c.patient = now + c.lending.Short/2
		return
	}
	l.loans.lent.Add(g.Units)
	l.loans.back.Add(asked.Back)
	if f.epoch != c.epoch {
		return
	}
	c.hear(now, g.At, g.Remaining)
	current := f.changes == c.changes
	if g.Units > 0 {
		s := c.borrow(g, sent)
		if !current || !s.alive(now, c.instant(now)) {
			s.left, s.back, s.until = 0, s.left, 0
		}
	}
	if g.Units < asked.Want && current {
		c.patient = now + c.lending.Short/2
		if g.Remaining < asked.Want {
			c.scarce(now, g.Reset)
		}
	}
	if c.overdue(now) {
		c.flying = l.loans.add(l, c)
	}
}

// Close gives back all units that have not been used, and reports those that have. From
// then on the store decides all. It waits for the goroutine and gives up when ctx ends,
// or at the first error of the store; what was not given back is lost until the loans
// end. Close may be called again.
func (l *Lease) Close(ctx context.Context) error {
	q := &l.loans
	q.mu.Lock()
	q.closed = true
	q.rouse()
	done := q.done
	q.mu.Unlock()
	defer q.cancel()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			q.cancel()
			<-done
		}
	}
	var all []*account
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for _, c := range s.ring {
			if c.retire(); c.n > 0 {
				all = append(all, c)
			}
		}
		s.closed, s.accounts, s.ring = true, nil, nil
		s.mu.Unlock()
	}
	for len(all) > 0 {
		n := min(len(all), together)
		if err := l.exchange(ctx, all[:n], false); err != nil {
			return err
		}
		rest := all[n:]
		for _, c := range all[:n] {
			if c.n > 0 { // a loan of another name
				rest = append(rest, c)
			}
		}
		all = rest
	}
	return nil
}
