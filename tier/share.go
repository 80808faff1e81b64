package tier

import (
	"bytes"
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// ShareOptions configure a [Share].
type ShareOptions struct {
	// Live tells how many nodes share the limits, this one included; nil is always 1. It
	// is asked when an outage begins. More than 2048 count as so many.
	Live func() int
	// Outage, if not nil, tells whether the common store is given up now, and counts how
	// often it was: Stats of a Breaker know. A call that fails while it is not may be a
	// mishap, which would be allowed on top of all that the store allows: it is refused,
	// unless nil says that all calls are those of one outage, until Settle.
	Outage func() (n int64, down bool)
	// MaxKeys bounds the keys of an outage, counted over all policies; 0 means 250,000.
	// They take about 300 bytes each. Keys beyond them share 1024 places for each policy.
	MaxKeys int
	// Clock decides; nil is the system's.
	Clock weir.Clock
}

// Share is a [weir.Store] for the time in which the store that nodes share cannot be
// asked. It decides by this node's share of each limit: the limit divided by the nodes, at
// least one unit at once, at an equal part of its rate.
//
// Shares start empty, as if all had been used at the instant the outage began, since it
// may have been: a bucket fills from nothing at its part of the rate, a window that the
// outage finds begun allows nothing to its end. So K nodes together allow at most K units
// more than the limit in any window, those before the outage included. [Share.Settle] tells
// the store what was allowed meanwhile, lest it be allowed again.
//
// An outage begins with the first failure and ends by Settle; until the store is asked
// again, all is refused then. All methods may be called
// concurrently; one lock is enough for a time of which nobody should see much.
type Share struct {
	o     ShareOptions
	seeds seeds

	mu     sync.Mutex
	outage *outage // nil if there is none
	over   int64   // the number of the outage that is settled, 0 if none
	stats  ShareStats
}

// outage is what was decided in one.
type outage struct {
	start int64
	last  int64 // asked
	nodes uint64
	parts map[place]*portion
}

// portion is what a node has of a limit for a key.
type portion struct {
	policy  *weir.Policy
	key     []byte
	common  bool // a place that several keys share
	params  algo.Params
	state   algo.State
	log     []algo.Entry
	allowed int64 // units, without those given back
}

var (
	_ weir.Store     = (*Share)(nil)
	_ weir.Supporter = (*Share)(nil)
)

// NewShare makes one.
func NewShare(o ShareOptions) *Share {
	if o.Live == nil {
		o.Live = func() int { return 1 }
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = 250_000
	}
	if o.Clock == nil {
		o.Clock = weir.SystemClock()
	}
	return &Share{o: o, seeds: newSeeds()}
}

// ShareStats are the figures of a [Share], since it was made.
type ShareStats struct {
	Keys    int   // of the outage now
	Allowed int64 // asks
	Refused int64 // asks
	Settled int64 // units charged to the store afterwards
}

// Stats returns the figures.
func (s *Share) Stats() ShareStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	if s.outage != nil {
		st.Keys = len(s.outage.parts)
	}
	return st
}

// runUp is how long after a failure the next may be one of the same outage.
const runUp = 2 * time.Second

// now returns the instant, the outage that it is part of, and whether nothing may be
// allowed in it. The lock is held.
func (s *Share) now() (now int64, o *outage, shut bool) {
	now = max(s.o.Clock.Now().UnixMicro(), 0)
	down := true
	if s.o.Outage != nil {
		var n int64
		n, down = s.o.Outage()
		shut = !down || n == s.over
	}
	o = s.outage
	if o == nil || !down && now-o.last > runUp.Microseconds() {
		o = &outage{start: now, nodes: uint64(min(max(s.o.Live(), 1), 2048)), parts: make(map[place]*portion)}
		s.outage = o
	}
	o.last = max(now, o.last)
	return max(now, o.start), o, shut
}

// overflow is how many places keys share that have none of their own, for each policy.
const overflow = 1024

// part returns a key's part, under the numbers that its policy has now.
func (s *Share) part(o *outage, p *weir.Policy, key []byte) *portion {
	id := s.seeds.of(p, key)
	part, common := o.parts[id], false
	if part == nil && len(o.parts) >= s.o.MaxKeys {
		n := id.lo % overflow
		id = s.seeds.of(p, nil)
		id.lo ^= n + 1
		key, common = nil, true
		part = o.parts[id]
	}
	switch {
	case part == nil:
		part = &portion{policy: p, key: bytes.Clone(key), common: common, params: divided(p.Params(), o.nodes)}
		part.empty(o.start)
		o.parts[id] = part
	case part.policy != p:
		part.policy = p
		part.params = divided(p.Params(), o.nodes)
	}
	return part
}

// divided is one of n equal parts of a limit, rounded down, of at least one unit at once.
func divided(p *algo.Params, n uint64) algo.Params {
	q := *p
	if q.Cap > 0 {
		q.Cap = max(q.Cap/int64(n), 1)
	}
	if q.Kind != algo.Bucket && q.Kind != algo.Queue {
		return q
	}
	over, unit := bits.Mul64(uint64(q.Unit), n)
	if over == 0 && unit <= algo.Max {
		q.Unit = int64(unit)
		return q
	}
	// Drain ÷ (Unit × n) as so many parts of Max.
	hi, lo := bits.Mul64(uint64(q.Drain), algo.Max)
	drain, _ := bits.Div64(hi, lo, unit)
	q.Drain, q.Unit = max(int64(drain), 1), algo.Max
	return q
}

// empty makes a portion as if all of it had been used at an instant.
func (p *portion) empty(at int64) {
	if p.params.Kind == algo.SlidingLog {
		p.state, _ = algo.DecideLog(&p.params, algo.State{}, nil, at, 0)
		p.state, p.log = algo.Record(&p.params, p.state, nil, p.params.Cap)
		return
	}
	p.state = algo.Adjust(&p.params, algo.State{}, at, at, p.params.Cap)
}

// decide is the arithmetic; it returns the state with the charge.
func (p *portion) decide(now, cost, slack int64) (algo.State, algo.Verdict) {
	if p.params.Kind == algo.SlidingLog {
		return algo.DecideLog(&p.params, p.state, p.log, now, cost)
	}
	return algo.Decide(&p.params, p.state, now, cost, slack)
}

// charge keeps what decide has returned.
func (p *portion) charge(s algo.State, cost int64) {
	p.state = s
	if p.params.Kind == algo.SlidingLog {
		p.state, p.log = algo.Record(&p.params, s, p.log, cost)
	}
	p.allowed += cost
}

// Take implements [weir.Store]. It never fails, even if ctx is over.
func (s *Share) Take(_ context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return s.judge(asks, out, true), nil
}

// Peek implements [weir.Store]. It never fails.
func (s *Share) Peek(_ context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return s.judge(asks, out, false), nil
}

func (s *Share) judge(asks []weir.Ask, out []weir.Verdict, take bool) (allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, o, shut := s.now()
	var room [few]*portion
	parts := room[:0]
	allowed = true
	for i := range asks {
		a := &asks[i]
		part := s.part(o, a.Policy, a.Key)
		if shut && a.Cost > 0 {
			part = &portion{policy: a.Policy, params: part.params, common: part.common}
			part.empty(now)
		}
		parts = append(parts, part)
		state, v := part.decide(now, a.Cost, a.Slack)
		out[i] = weir.Verdict{OK: v.OK, At: max(now, state.At), Remaining: v.Remaining, Reset: v.Reset, Spilled: part.common}
		if v.OK {
			out[i].Wait = v.Wait
		} else {
			out[i].Retry = v.Wait
		}
		allowed = allowed && (v.OK || a.Shadow)
	}
	for i := range asks {
		a, v := &asks[i], &out[i]
		if !v.OK {
			s.stats.Refused++
			continue
		}
		if take && (allowed || a.Shadow) {
			state, _ := parts[i].decide(now, a.Cost, a.Slack)
			parts[i].charge(state, a.Cost)
			s.stats.Allowed++
			continue
		}
		_, look := parts[i].decide(now, 0, 0)
		v.Remaining, v.Reset = look.Remaining, look.Reset
	}
	return allowed
}

// Adjust implements [weir.Store]. What was charged in an outage that is over is not given
// back any more.
func (s *Share) Adjust(_ context.Context, asks []weir.Ask) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, o, _ := s.now()
	for i := range asks {
		a := &asks[i]
		p := s.part(o, a.Policy, a.Key)
		delta := a.Cost
		if delta < 0 { // never of what was used up before
			delta = -min(-delta, p.allowed)
		}
		if p.params.Kind == algo.SlidingLog {
			p.state, p.log = algo.AdjustLog(&p.params, p.state, p.log, now, a.At, delta)
		} else {
			p.state = algo.Adjust(&p.params, p.state, now, a.At, delta)
		}
		p.allowed += delta
	}
	return nil
}

// Reset implements [weir.Store]: the keys have all of their share.
func (s *Share) Reset(_ context.Context, asks []weir.Ask) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, o, _ := s.now()
	for i := range asks {
		p := s.part(o, asks[i].Policy, asks[i].Key)
		p.state, p.log, p.allowed = algo.State{}, nil, 0
	}
	return nil
}

// Supports refuses what no store that is shared runs.
func (s *Share) Supports(p *weir.Policy) error {
	if p.Params().Kind == algo.WarmUp {
		return weir.ErrUnsupported
	}
	return nil
}

// bill is how many keys are settled by one call.
const bill = 500

// Settle ends the outage and charges to a store what was allowed in it and still counts.
// The store's own state has drained meanwhile, so with these charges it holds at least
// what it would have held if it had been asked. A call that fails is not made again,
// since it may have charged; Settle goes on with the rest unless ctx is over, and returns
// the first error.
func (s *Share) Settle(ctx context.Context, store weir.Store) error {
	s.mu.Lock()
	now, o, _ := s.now()
	s.outage = nil
	if s.o.Outage != nil {
		s.over, _ = s.o.Outage()
	}
	s.mu.Unlock()
	var asks []weir.Ask
	for _, p := range o.parts {
		if p.allowed <= 0 || p.common {
			continue
		}
		_, v := p.decide(now, 0, 0)
		if cost := min(p.allowed, p.params.Cap-v.Remaining); cost > 0 {
			asks = append(asks, weir.Ask{Policy: p.policy, Key: p.key, Cost: cost, At: now})
		}
	}
	var first error
	for len(asks) > 0 && ctx.Err() == nil {
		n := min(len(asks), bill)
		err := store.Adjust(ctx, asks[:n])
		if err != nil && first == nil {
			first = err
		}
		if err == nil {
			s.settled(asks[:n])
		}
		asks = asks[n:]
	}
	if first == nil && len(asks) > 0 {
		first = ctx.Err()
	}
	return first
}

func (s *Share) settled(asks []weir.Ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range asks {
		s.stats.Settled += asks[i].Cost
	}
}
