package tier

import (
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir"
)

const (
	shards = 64
	// looks is how many accounts a call looks at that found no units.
	looks = 2
)

// shard is a part of the accounts behind one lock. No call holds two of them.
type shard struct {
	mu       sync.Mutex
	accounts map[place]*account
	ring     []*account // the same, to be looked at in turn
	hand     int
	closed   bool
	local    atomic.Int64 // requests decided
}

// open finds the account of an ask, or makes one. It returns nil if the limit is not
// lent or there is no place.
func (l *Lease) open(s *shard, id place, a *weir.Ask, now int64) *account {
	c := s.accounts[id]
	if c != nil {
		if c.policy != a.Policy {
			c.adopt(rule{a.Policy, l.rules.now(a.Policy)})
		}
		return c
	}
	lending := a.Policy.Params().Lending()
	if lending.Life == 0 || s.closed {
		l.rules.saw(a.Policy)
		return nil
	}
	l.sweep(s, now, looks)
	if len(s.ring) >= l.limit {
		return nil
	}
	c = &account{place: id, policy: a.Policy, changes: l.rules.now(a.Policy), lending: lending, key: append([]byte(nil), a.Key...),
		ring: len(s.ring), seen: now - lending.Long - 1}
	s.accounts[id] = c
	s.ring = append(s.ring, c)
	return c
}

// sweep looks at the next n accounts: those of idle keys give back what they have
// borrowed, and are forgotten after that. It tells whether one of them has a loan.
func (l *Lease) sweep(s *shard, now int64, n int) (alive bool) {
	for range min(n, len(s.ring)) {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		c := s.ring[s.hand]
		switch {
		case c.forgettable(now):
			last := len(s.ring) - 1
			s.ring[c.ring] = s.ring[last]
			s.ring[c.ring].ring = c.ring
			s.ring[last] = nil
			s.ring = s.ring[:last]
			delete(s.accounts, c.place)
			continue
		case c.n > 0 && !c.flying && c.idle(now):
			c.retire()
			c.flying = l.loans.add(l, c)
		}
		alive = alive || c.n > 0
		s.hand++
	}
	return alive
}

// current knows the policies in force of the limits that are lent. A reload may change
// one while loans are out under the old numbers.
type current struct {
	mu   sync.RWMutex
	some atomic.Bool
	byID map[string]rule
}

// A rule is a policy in force, and how often its numbers have changed.
type rule struct {
	policy  *weir.Policy
	changes int
}

// now says that a policy that is lent is in force, and returns how often its numbers have
// changed.
func (r *current) now(p *weir.Policy) (changes int) {
	r.mu.RLock()
	known := r.byID[p.ID()]
	r.mu.RUnlock()
	if known.policy == p {
		return known.changes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = make(map[string]rule)
	}
	known = r.byID[p.ID()]
	if known.policy != nil && *known.policy.Params() != *p.Params() {
		known.changes++
	}
	r.byID[p.ID()] = rule{p, known.changes}
	r.some.Store(true)
	return known.changes
}

// saw says that a policy is in force, which matters if another of its identity was lent.
func (r *current) saw(p *weir.Policy) {
	if r.some.Load() && r.of(p).policy != p {
		r.now(p)
	}
}

// of is the rule in force in the place of p.
func (r *current) of(p *weir.Policy) rule {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if now := r.byID[p.ID()]; now.policy != nil {
		return now
	}
	return rule{policy: p}
}
