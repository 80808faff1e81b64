package weir

import (
	"sync"

	"github.com/weirhq/weir/algo"
)

// shard is a part of a Memory behind one lock. What every call touches comes
// first, on one cache line of its own.
type shard struct {
	mu       sync.Mutex
	table    table
	earliest int64 // no entry equals a fresh one before this instant

	index    uint64
	lg       uint // the shards are 1<<lg
	limit    int  // entries, overflow partitions included
	promised int  // new entries that the call under way will write
	swept    int64
	logs     [][]algo.Entry // of SlidingLog entries, by their handle
	unused   []int64        // handles
	// Entries last charged by heldFrom are kept until heldUntil: a reload has slowed
	// their limit down since their expiry was computed.
	heldFrom, heldUntil int64
	_                   [24]byte
}

// pending is one ask under decision.
type pending struct {
	shard *shard
	id    identity
	at    int  // the entry's place in the table, -1 if it has none
	full  bool // there is no place, not even in an overflow partition
	spilt bool // id is that of an overflow partition
	state algo.State
	next  algo.State // what state becomes if the ask is charged
	log   []algo.Entry
}

// open finds the entry of an ask, or a place for it: its own, or in an overflow
// partition.
func (s *shard) open(w *pending, m *Memory, id identity, a *Ask, now int64) {
	at := s.table.find(id)
	if at < 0 && a.Cost > 0 && s.crowded(now) {
		m.spills.Add(1)
		w.spilt, id = true, s.overflow(a.Policy)
		if at = s.table.find(id); at < 0 && s.table.n+s.promised >= s.limit {
			m.full.Add(1)
			w.full = true
		}
	}
	w.shard, w.id, w.at = s, id, at
	switch {
	case w.full:
	case at < 0:
		if a.Cost > 0 {
			s.promised++
		}
	default:
		w.state = s.table.slots[at].state()
		if a.Policy.params.Kind == algo.SlidingLog {
			w.log = s.logs[w.state.Unit]
		}
	}
}

// judge asks the arithmetic. It changes nothing but w.next.
func (w *pending) judge(a *Ask, now int64, v *Verdict) {
	p := &a.Policy.params
	var answer algo.Verdict
	switch {
	case w.full: // wait for a place
		answer.Wait = max(w.shard.earliest-now, 1)
	case p.Kind == algo.SlidingLog:
		w.next, answer = algo.DecideLog(p, w.state, w.log, now, a.Cost)
	default:
		w.next, answer = a.Policy.decide(w.state, now, a.Cost, a.Slack)
	}
	*v = VerdictOf(answer, max(now, w.next.At))
	v.Spilled = w.spilt
}

// charge writes an ask that judge has allowed.
func (w *pending) charge(a *Ask, v *Verdict, now int64) {
	p := &a.Policy.params
	if p.Kind == algo.SlidingLog {
		w.next, w.log = algo.Record(p, w.next, w.log, a.Cost)
	}
	w.write(p.Kind, expiry(w.next, v.Reset, now), now)
}

// adjust corrects an entry. One that is gone has nothing to give back.
func (s *shard) adjust(m *Memory, id identity, a *Ask, now int64) {
	if a.Spilled {
		id = s.overflow(a.Policy)
	}
	var w pending
	s.open(&w, m, id, a, now)
	s.promised = 0
	if w.full || w.at < 0 && a.Cost < 0 {
		return
	}
	p := &a.Policy.params
	if p.Kind == algo.SlidingLog {
		w.state, w.log = algo.AdjustLog(p, w.state, w.log, now, a.At, a.Cost)
	} else {
		w.state = a.Policy.adjust(w.state, now, a.At, a.Cost)
	}
	look := Ask{Policy: a.Policy}
	var v Verdict
	w.judge(&look, now, &v)
	w.write(p.Kind, expiry(w.next, v.Reset, now), now)
}

// expiry is the instant from which a state equals a fresh one.
func expiry(s algo.State, reset, now int64) int64 { return max(now, s.At) + reset }

// write puts the next state of an ask into the table.
func (w *pending) write(kind algo.Kind, expires, now int64) {
	s := w.shard
	var e *slot
	fresh := false
	if w.at >= 0 && w.at < len(s.table.slots) && s.table.slots[w.at].is(w.id) {
		e = &s.table.slots[w.at]
	} else { // new, or moved or swept since the ask was opened
		e, fresh = s.insert(w.id, now)
	}
	if kind == algo.SlidingLog {
		handle := int64(e.unit & low52)
		if fresh {
			handle = s.newLog()
		}
		s.logs[handle] = w.log
		w.next.Unit = handle
	}
	s.set(e, w.next, kind, expires)
}

// set writes an entry and keeps the shard's earliest expiry.
func (s *shard) set(e *slot, next algo.State, kind algo.Kind, expires int64) {
	s.earliest = min(s.earliest, expires)
	e.set(next, kind, expires)
}

func (s *shard) newLog() int64 {
	if n := len(s.unused); n > 0 {
		handle := s.unused[n-1]
		s.unused = s.unused[:n-1]
		return handle
	}
	s.logs = append(s.logs, nil)
	return int64(len(s.logs) - 1)
}
