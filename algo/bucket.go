package algo

// A bucket is kept as a debt: charged units that time has not yet forgiven.
// A token bucket of capacity C with T tokens has a debt of C-T. Debt makes the
// zero State a full bucket, lets a new capacity apply at once to old use, and
// makes the token bucket, GCRA (debt = TAT-now) and the leaky bucket used as a
// meter (debt = level) one piece of code.
//
// The debt is Used whole units and Prev parts of 1/Unit of a unit, so no rate
// is ever rounded: with a quota of 3 per second reduced to Drain/Unit =
// 3/1000000, a tick forgives exactly 3 of the 1000000 parts of a unit.

// bucket decides a token bucket. An ask that does not fit may borrow ahead, if
// its slack covers the time until it would have fitted.
func bucket(p *Params, s State, now, cost, slack int64) (State, Verdict) {
	s = drain(p, s, now)
	var v Verdict
	switch late := lateness(p, s, cost); {
	case late == Never:
		v.Wait = Never
	case late > slack:
		v.Wait = late - slack
	default:
		v.OK, v.Wait = true, late
		s.Used = clamp(s.Used + cost)
	}
	v.Remaining, v.Reset = max(p.Cap-roundUp(s), 0), ticks(p, s.Used, s.Prev)
	return s, v
}

// queue decides a leaky bucket used as a queue: at most Cap units are in it,
// the one in service included, and an allowed ask waits until those before it
// have left. An asker who will not wait that long is refused.
func queue(p *Params, s State, now, cost, slack int64) (State, Verdict) {
	s = drain(p, s, now)
	var v Verdict
	late, turn := lateness(p, s, cost), ticks(p, s.Used, s.Prev)
	switch {
	case late == Never:
		v.Wait = Never
	case late > 0 || turn > slack:
		v.Wait = max(late, turn-slack)
	default:
		v.OK, v.Wait = true, turn
		s.Used = clamp(s.Used + cost)
	}
	v.Remaining, v.Reset = max(p.Cap-roundUp(s), 0), ticks(p, s.Used, s.Prev)
	return s, v
}

// lateness is the ticks until cost fits below the capacity, 0 if it does now.
// A whole number of units fits beside a debt if it fits beside the debt rounded
// up, so no division is needed to allow.
func lateness(p *Params, s State, cost int64) int64 {
	room := p.Cap - cost
	switch {
	case room < 0:
		return Never
	case roundUp(s) <= room:
		return 0
	}
	return ticks(p, s.Used-room, s.Prev)
}

// drain brings the debt up to now, which is not before s.At, in the parts of
// p. A state written under another rate is restated first, rounding up by less
// than one part.
func drain(p *Params, s State, now int64) State {
	if s.Unit != p.Unit {
		if s.Prev > 0 {
			q, r := scale(s.Prev, p.Unit, s.Unit)
			if r > 0 {
				q++
			}
			if s.Prev = q; q >= p.Unit {
				s.Used, s.Prev = s.Used+1, 0
			}
		}
		s.Unit = p.Unit
	}
	elapsed := now - s.At
	s.At = now
	if elapsed == 0 || s.Used == 0 && s.Prev == 0 {
		return s
	}
	units, parts := scale(elapsed, p.Drain, p.Unit)
	s.Used -= units
	if s.Prev -= parts; s.Prev < 0 {
		s.Used, s.Prev = s.Used-1, s.Prev+p.Unit
	}
	if s.Used < 0 {
		s.Used, s.Prev = 0, 0
	}
	return s
}

// roundUp is the debt in whole units, rounded up.
func roundUp(s State) int64 {
	if s.Prev > 0 {
		return s.Used + 1
	}
	return s.Used
}

// ticks is how long it takes to forgive units + parts/Unit, rounded up.
func ticks(p *Params, units, parts int64) int64 {
	if units < 1<<20 && p.Unit < 1<<40 { // the sum fits a word: one division, or none
		n := units*p.Unit + parts
		if p.Drain == 1 {
			return n
		}
		return int64(divide(uint64(n+p.Drain-1), uint64(p.Drain)))
	}
	q, r := scale(units, p.Unit, p.Drain)
	q += (r + parts + p.Drain - 1) / p.Drain
	return min(q, Max+1)
}
