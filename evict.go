package weir

import "github.com/weirhq/weir/algo"

// How Memory stays within its bound without ever starting an attacker afresh:
// an entry is forgotten only once it equals a fresh one, and a key that finds no
// place shares the limit of an overflow partition.

const (
	// grace is how long in ticks an entry that equals a fresh one is kept while its
	// table may grow: a busy key comes back soon, and finding it costs less than making
	// it again.
	grace = 1_000_000
	// sweepEvery is the least time in ticks between two sweeps of a shard for want of
	// room, so that a flood of new keys cannot make every call sweep.
	sweepEvery = 10_000
)

// insert makes an entry. A table that is filling up forgets what has equalled a
// fresh entry for a while before it grows, and grows unless that has left it half
// empty: so an entry is moved a constant number of times, and a store holds little
// more than what matters without looking at it all the time.
func (s *shard) insert(id identity, now int64) (e *slot, fresh bool) {
	if s.table.full() {
		s.sweep(now - grace)
		if s.table.n >= int(s.table.homes/2) {
			s.table.grow(s.limit, s.lg)
		}
	}
	for {
		if e, fresh, ok := s.table.insert(id); ok {
			return e, fresh
		}
		s.table.grow(s.limit, s.lg)
	}
}

// crowded says whether the shard has no place for a key of its own, after a
// sweep if one could help.
func (s *shard) crowded(now int64) bool {
	room := s.limit - s.reserve()
	if s.table.n+s.promised < room {
		return false
	}
	if now >= s.earliest && now-s.swept >= sweepEvery {
		s.swept = now
		s.sweep(now)
	}
	return s.table.n+s.promised >= room
}

// reserve is how many entries are kept for overflow partitions, which are as many
// as the policies that meet a crowded shard.
func (s *shard) reserve() int { return 1 + max(s.limit/64, min(s.limit/16, 64)) }

// overflow is the partition that keys of a policy share when the shard is
// crowded. It lies in the same shard: its lock is already held.
func (s *shard) overflow(p *Policy) identity {
	hi := p.salt[1] >> s.lg
	if s.lg > 0 {
		hi |= s.index << (64 - s.lg)
	}
	if hi == vacant {
		hi--
	}
	return identity{hi: hi, lo: p.salt[0]}
}

// sweep forgets all that equalled a fresh entry at an instant, and lets go of an
// empty table.
func (s *shard) sweep(at int64) (freed int) {
	n := s.table.n
	s.earliest = algo.Max
	s.table.retain(func(e *slot) bool {
		expires := e.expires()
		if int64(e.at&low52) <= s.heldFrom {
			expires = max(expires, s.heldUntil)
		}
		if expires > at {
			s.earliest = min(s.earliest, expires)
			return true
		}
		s.forget(e)
		return false
	})
	if s.table.n == 0 {
		s.table, s.logs, s.unused = table{}, nil, nil
	}
	return n - s.table.n
}

// forget frees the log of an entry that is about to go.
func (s *shard) forget(e *slot) {
	if e.kind() == algo.SlidingLog {
		handle := int64(e.unit & low52)
		s.logs[handle] = nil
		s.unused = append(s.unused, handle)
	}
}
