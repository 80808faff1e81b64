package weirredis

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

//go:embed take.lua
var script string

// scriptSHA is the name that EVALSHA knows the script by.
var scriptSHA = hash(script)

// hash is the name of any script.
func hash(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

var (
	// ErrTimeout is the error of a call that was not answered within Options.Timeout.
	// It is also ErrUnavailable.
	ErrTimeout = fmt.Errorf("%w: redis did not answer in time", weir.ErrUnavailable)
	// ErrQueue is the error of a call that found Options.Queue others waiting. It is
	// also ErrUnavailable.
	ErrQueue = fmt.Errorf("%w: too many decisions wait for redis", weir.ErrUnavailable)
)

// Options are those of a Store.
type Options struct {
	// Prefix begins all keys, and so keeps apart what shares a Redis; "weir" if empty.
	Prefix string
	// Timeout is how long a call may wait for its answer, in the queue and on the way
	// together; 50 ms if 0. A context that ends earlier wins.
	Timeout time.Duration
	// Queue is how many calls may wait while Redis is busy; 4096 if 0. One more is
	// refused at once with ErrQueue.
	Queue int
	// Batch is how many of them travel together; 128 if 0.
	Batch int
	// Calls is how many such batches may be under way at most, 16 if 0. There are only
	// as many as the distance to Redis asks for, and 2 at least.
	Calls int
	// Clock, if not nil, decides in place of Redis' own: for tests, and for services
	// that do not let a script ask for the TIME. Then the clocks of all nodes must
	// agree, and a limit is exact up to their difference.
	Clock weir.Clock
}

// Store keeps the state of keys in Redis. It is a [weir.Store] and a [weir.Lender] that
// decides by Redis' clock, bit for bit as package algo does, and so as weir.Memory does.
// It runs all algorithms but weir.WarmUp.
//
// A call is one round trip. Calls of many goroutines travel together in one script,
// without waiting for each other. No call is ever repeated that may have been carried
// out: a call whose answer is lost is an error, and may have charged.
//
// In a Cluster, asks of one partition key are decided together. Those of several are
// reserved at the same time and given back if one refuses: a refused request leaves
// nothing charged once Take returns, unless giving back failed (see Stats), and for that
// moment others may be refused too early.
type Store struct {
	client  Client
	clock   weir.Clock
	timeout time.Duration
	batch   int
	names   *namer
	tag     func(key string) string // of a Cluster, else nil
	queue   queue
	pool    pool
	runners sync.Pool
	stats   counters
}

type counters struct {
	calls, loads, tryAgain, failed, lost, mirror, full, left, refunds, refundsLost atomic.Uint64
}

// Stats are counts since the store was made.
type Stats struct {
	Calls       uint64 // scripts sent
	Loads       uint64 // of them, the text because Redis did not know the hash
	TryAgain    uint64 // of them, again because a slot was on its way
	Failed      uint64 // batches that Redis refused or a connection broke under
	Lost        uint64 // batches that were not answered in time
	Mirror      uint64 // batches whose answer was not that of the arithmetic: ErrMirror
	Full        uint64 // calls refused because the queue was full
	Left        uint64 // jobs that left the queue undone: their caller did, or their time was over
	Refunds     uint64 // reservations given back, in a Cluster
	RefundsLost uint64 // of them, those that may have failed: they stay charged
	Waiting     int    // calls in the queue now
}

// New makes a store on a client, which it does not close.
func New(c Client, o Options) *Store {
	if o.Timeout <= 0 {
		o.Timeout = 50 * time.Millisecond
	}
	if o.Queue <= 0 {
		o.Queue = 4096
	}
	if o.Batch <= 0 {
		o.Batch = 128
	}
	if o.Calls <= 0 {
		o.Calls = 16
	}
	s := &Store{
		client:  c,
		clock:   o.Clock,
		timeout: o.Timeout,
		batch:   min(o.Batch, maxTimes),
		names:   newNamer(o.Prefix),
		queue:   queue{ring: make([]*job, o.Queue), trip: trips{most: max(o.Calls, 2)}},
		runners: sync.Pool{New: func() any { return newRunner() }},
	}
	if c.Cluster() {
		s.tag = s.names.tag
	}
	return s
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	c := &s.stats
	return Stats{
		Calls: c.calls.Load(), Loads: c.loads.Load(), TryAgain: c.tryAgain.Load(),
		Failed: c.failed.Load(), Lost: c.lost.Load(), Mirror: c.mirror.Load(),
		Full: c.full.Load(), Left: c.left.Load(),
		Refunds: c.refunds.Load(), RefundsLost: c.refundsLost.Load(),
		Waiting: s.queue.waiting(),
	}
}

// Supports implements [weir.Supporter].
func (s *Store) Supports(p *weir.Policy) error { return Supports(p) }

// Supports refuses weir.WarmUp, whose state has more to it than the script mirrors. The
// error wraps weir.ErrUnsupported.
func Supports(p *weir.Policy) error {
	if p.Params().Kind == algo.WarmUp {
		return fmt.Errorf("%w: redis does not run warm_up; use token_bucket, or the memory store", weir.ErrUnsupported)
	}
	return nil
}

// Take implements [weir.Store].
func (s *Store) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return s.decide(ctx, take, asks, out)
}

// Peek implements [weir.Store].
func (s *Store) Peek(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return s.decide(ctx, peek, asks, out)
}

func (s *Store) decide(ctx context.Context, v verb, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	if len(asks) == 0 {
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if parts := s.parts(len(asks), func(i int) []byte { return asks[i].Key }); parts != nil {
		return s.spread(ctx, v, asks, out, parts)
	}
	j := s.job(v, asks, nil)
	if err := s.submit(ctx, j); err != nil {
		if len(asks) > 1 && refusal(err, "TRYAGAIN") {
			return s.spread(ctx, v, asks, out, apart(len(asks)))
		}
		return false, err
	}
	for i := range asks {
		out[i] = j.answers[i].Verdict
	}
	allowed := j.allowed
	s.pool.put(j)
	return allowed, nil
}

// job copies asks, or the part of them that is named.
func (s *Store) job(v verb, asks []weir.Ask, part []int) *job {
	n := len(asks)
	if part != nil {
		n = len(part)
	}
	j := s.pool.get(v, n)
	for i := range j.asks {
		from := &asks[i]
		if part != nil {
			from = &asks[part[i]]
		}
		to := &j.asks[i]
		*to = ask{
			policy: from.Policy,
			key:    s.names.name(from.Policy.ID(), from.Key),
		}
		switch v {
		case take, peek:
			to.cost, to.slack, to.shadow = within(from.Cost), within(from.Slack), from.Shadow
		case adjust:
			to.cost, to.at = min(max(from.Cost, -algo.Max-1), algo.Max+1), within(from.At)
		}
	}
	return j
}

// Adjust implements [weir.Store].
func (s *Store) Adjust(ctx context.Context, asks []weir.Ask) error {
	return s.change(ctx, adjust, asks)
}

// Reset implements [weir.Store].
func (s *Store) Reset(ctx context.Context, asks []weir.Ask) error {
	return s.change(ctx, reset, asks)
}

func (s *Store) change(ctx context.Context, v verb, asks []weir.Ask) error {
	return s.split(len(asks), func(i int) []byte { return asks[i].Key }, func(part []int) error {
		return s.simply(ctx, s.job(v, asks, part))
	})
}

// simply submits a job whose answer is only whether it was done.
func (s *Store) simply(ctx context.Context, j *job) error {
	err := s.submit(ctx, j)
	if err == nil {
		s.pool.put(j)
	}
	return err
}

// Lend implements [weir.Lender].
func (s *Store) Lend(ctx context.Context, loans []weir.Loan, out []weir.Grant) error {
	return s.split(len(loans), func(i int) []byte { return loans[i].Key }, func(part []int) error {
		j := s.pool.get(lend, len(part))
		for i, n := range part {
			l := &loans[n]
			q := l.Loan
			j.asks[i] = ask{
				policy: l.Policy,
				key:    s.names.name(l.Policy.ID(), l.Key),
				loan:   algo.Loan{Want: within(q.Want), Name: within(q.Name), Used: within(q.Used), Back: within(q.Back)},
			}
		}
		if err := s.submit(ctx, j); err != nil {
			return err
		}
		for i, n := range part {
			out[n] = j.answers[i].grant
		}
		s.pool.put(j)
		return nil
	})
}

// split does something for the parts of n keys that lie in one slot and are not too
// many for one call.
func (s *Store) split(n int, key func(i int) []byte, do func(part []int) error) error {
	parts := s.parts(n, key)
	if parts == nil {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		parts = [][]int{all}
	}
	var bounded [][]int
	for _, part := range parts {
		for len(part) > maxKeys {
			bounded, part = append(bounded, part[:maxKeys]), part[maxKeys:]
		}
		if len(part) > 0 {
			bounded = append(bounded, part)
		}
	}
	errs := make([]error, len(bounded))
	each(len(bounded), func(i int) { errs[i] = do(bounded[i]) })
	return errors.Join(errs...)
}
