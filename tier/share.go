package tier

import (
	"bytes"
	"context"
	"math/bits"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// ShareOptions configure a [Share].
type ShareOptions struct {
	// Live tells how many nodes share the limits, this one included; nil is always 1. It
	// is asked when an outage begins, and counts until its end. More than 2048 count as so
	// many.
	Live func() int
	// Outage, if not nil, tells whether the common store is given up now, and counts how
	// often it was: Stats of a Breaker know. A call that fails while it is not may be a
	// mishap, which would be allowed on top of all that the store allows: it is refused.
	// nil says that every Take is of an outage, until Settle.
	Outage func() (n int64, down bool)
	// MaxKeys bounds the keys that something is allowed to in an outage, counted over all
	// policies; 0 means 250,000. They take about 300 bytes each. A key is forgotten once
	// that has drained. Keys beyond them share 1024 places for each policy.
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
// An outage begins with the first Take in it and ends by Settle. Before and after, all is
// refused. All methods may be called concurrently; one lock is enough for a time of which
// nobody should see much.
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
	number int64
	start  int64
	nodes  uint64
	parts  map[place]*portion // of keys that were allowed something, or reset
	swept  int64              // when the latest sweep was
}

// portion is what a node has of a limit for a key.
type portion struct {
	id      place
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

// current returns the instant and the outage that it is part of, nil if there is none and
// none is to begin. The lock is held.
func (s *Share) current(begin bool) (now int64, o *outage) {
	now = max(s.o.Clock.Now().UnixMicro(), 0)
	var number int64
	if s.o.Outage != nil {
		var down bool
		if number, down = s.o.Outage(); !down || number == s.over {
			return now, nil
		}
	}
	if begin && (s.outage == nil || s.outage.number != number) {
		s.outage = s.begin(number, now)
	}
	if o = s.outage; o == nil || o.number != number {
		return now, nil
	}
	return max(now, o.start), o
}

// begin is an outage that begins now.
func (s *Share) begin(number, now int64) *outage {
	return &outage{number: number, start: now, nodes: uint64(min(max(s.o.Live(), 1), 2048)), parts: make(map[place]*portion)}
}

const (
	// overflow is how many places keys share that have none of their own, for each policy.
	overflow = 1024
	// sweepEvery is the least time in ticks between two sweeps for want of room.
	sweepEvery = 1_000_000
)

// portion returns a key's, under the numbers that its policy has now. One that is new is
// not in o yet.
func (s *Share) portion(o *outage, a *weir.Ask, now int64) *portion {
	p, key := a.Policy, a.Key
	id := s.seeds.of(p, key)
	part, common := o.parts[id], a.Spilled
	if common || part == nil && len(o.parts) >= s.o.MaxKeys && !o.sweep(now, s.o.MaxKeys) {
		n := id.lo % overflow
		id = s.seeds.of(p, nil)
		id.lo ^= n + 1
		key, common = nil, true
		part = o.parts[id]
	}
	switch {
	case part == nil:
		part = &portion{id: id, policy: p, key: key, common: common, params: divided(p.Params(), o.nodes)}
		part.empty(o.start, p.Params().Cap, o.nodes)
	case part.policy != p:
		part.policy = p
		part.params = divided(p.Params(), o.nodes)
	}
	return part
}

// keep puts a portion that is new into the outage, and returns what is there.
func (o *outage) keep(p *portion) *portion {
	if kept := o.parts[p.id]; kept != nil {
		return kept
	}
	p.key = bytes.Clone(p.key)
	o.parts[p.id] = p
	return p
}

// sweep forgets keys of which nothing is held: they are like those that were never asked
// for. It returns whether that has made room.
func (o *outage) sweep(now int64, most int) bool {
	if now-o.swept < sweepEvery {
		return false
	}
	o.swept = now
	for id, p := range o.parts {
		if _, v := p.decide(now, 0, 0); v.Reset == 0 {
			delete(o.parts, id)
		}
	}
	return len(o.parts) < most
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

// empty makes a portion of a limit as if all of it had been used at an instant. Of a
// bucket it is rounded up, so that all n portions are no less than the whole.
func (p *portion) empty(at, whole int64, n uint64) {
	switch p.params.Kind {
	case algo.SlidingLog:
		p.state, _ = algo.DecideLog(&p.params, algo.State{}, nil, at, 0)
		p.state, p.log = algo.Record(&p.params, p.state, nil, p.params.Cap)
	case algo.Bucket, algo.Queue:
		used := whole / int64(n)
		if whole%int64(n) > 0 {
			used++
		}
		p.state = algo.Adjust(&p.params, algo.State{}, at, at, used)
	default:
		p.state = algo.Adjust(&p.params, algo.State{}, at, at, p.params.Cap)
	}
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
	now, o := s.current(take)
	shut := o == nil
	if shut {
		o = s.begin(0, now)
	}
	var room [few]*portion
	parts := room[:0]
	allowed = true
	for i := range asks {
		a := &asks[i]
		slack := a.Slack
		if shut { // no place ahead of time either
			slack = 0
		}
		part := s.portion(o, &weir.Ask{Policy: a.Policy, Key: a.Key}, now)
		parts = append(parts, part)
		state, v := part.decide(now, a.Cost, slack)
		out[i] = weir.VerdictOf(v, max(now, state.At))
		out[i].Spilled = part.common
		allowed = allowed && (v.OK || a.Shadow)
	}
	for i := range asks {
		a, v := &asks[i], &out[i]
		if !v.OK {
			s.stats.Refused++
			continue
		}
		if take && (allowed || a.Shadow) {
			s.stats.Allowed++
			if a.Cost > 0 {
				part := o.keep(parts[i])
				state, _ := part.decide(now, a.Cost, a.Slack)
				part.charge(state, a.Cost)
			}
			continue
		}
		_, look := parts[i].decide(now, 0, 0)
		v.Remaining, v.Reset = look.Remaining, look.Reset
	}
	return allowed
}

// Adjust implements [weir.Store]. What was charged in an outage that is over is neither
// given back nor charged any more.
func (s *Share) Adjust(_ context.Context, asks []weir.Ask) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, o := s.current(false)
	for i := range asks {
		a := &asks[i]
		if o == nil || a.At < o.start {
			continue
		}
		p := s.portion(o, a, now)
		delta := a.Cost
		if delta < 0 { // never of what was used up before
			delta = -min(-delta, p.allowed)
		}
		if delta == 0 {
			continue
		}
		p = o.keep(p)
		if p.params.Kind == algo.SlidingLog {
			p.state, p.log = algo.AdjustLog(&p.params, p.state, p.log, now, a.At, delta)
		} else {
			p.state = algo.Adjust(&p.params, p.state, now, a.At, delta)
		}
		p.allowed += delta
	}
	return nil
}

// Reset implements [weir.Store]: in an outage the keys have all of their share.
func (s *Share) Reset(_ context.Context, asks []weir.Ask) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, o := s.current(false)
	if o == nil {
		return nil
	}
	for i := range asks {
		p := o.keep(s.portion(o, &asks[i], now))
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
	now, o := max(s.o.Clock.Now().UnixMicro(), 0), s.outage
	s.outage = nil
	if s.o.Outage != nil {
		s.over, _ = s.o.Outage()
	}
	s.mu.Unlock()
	if o == nil {
		return nil
	}
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
