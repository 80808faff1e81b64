package algo

// A fixed window allows up to 2*Cap units around one of its edges; that is what
// the word means. Who wants no span of one window to see more than Cap uses a
// SlidingLog.

// fixed decides a window aligned to the epoch. An ask that does not fit may be
// given a place in a later window, if its slack reaches that window's start;
// Prev then lies ahead of now, and the windows before it count as full.
func fixed(p *Params, s State, now, cost, slack int64) (State, Verdict) {
	s = fixedAt(p, s, now)
	var v Verdict
	start, used := s.Prev, s.Used
	if cost > p.Cap-used { // not used+cost > Cap: the sum could pass Max
		start, used = start+p.Window, 0
	}
	wait := max(start-now, 0)
	switch {
	case cost > p.Cap:
		v.Wait = Never
	case wait > slack:
		v.Wait = wait - slack
	default:
		v.OK, v.Wait = true, wait
		if cost > 0 { // a look must not move on to a later window
			s.Prev, s.Used = start, used+cost
		}
	}
	if s.Prev <= now {
		v.Remaining = max(p.Cap-s.Used, 0)
	}
	switch {
	case s.Used > 0:
		v.Reset = s.Prev + p.Window - now
	case s.Prev > now: // a reservation was given back; the windows before it are full
		v.Reset = s.Prev - now
	}
	return s, v
}

// fixedAt brings a fixed window up to now. One of another length starts fresh:
// its use cannot be placed in the new grid.
func fixedAt(p *Params, s State, now int64) State {
	if s.Unit != p.Window {
		s = State{Unit: p.Window}
	}
	s.At = now
	if start := now - now%p.Window; s.Prev < start {
		s.Prev, s.Used = start, 0
	}
	return s
}

// first decides a window that its first allowed ask opens.
func first(p *Params, s State, now, cost int64) (State, Verdict) {
	s = firstAt(p, s, now)
	var v Verdict
	switch {
	case cost > p.Cap:
		v.Wait = Never
	case cost > p.Cap-s.Used:
		v.Wait = s.Prev + p.Window - now
	default:
		v.OK = true
		if s.Used == 0 {
			s.Prev = now
		}
		s.Used += cost
	}
	v.Remaining = max(p.Cap-s.Used, 0)
	if s.Used > 0 {
		v.Reset = s.Prev + p.Window - now
	}
	return s, v
}

// firstAt brings a first-ask window up to now: at its end it is closed. Its
// length is not part of the state, so a new one applies at once.
func firstAt(p *Params, s State, now int64) State {
	s.At = now
	if now-s.Prev >= p.Window {
		s.Used, s.Prev = 0, 0
	}
	return s
}

// sliding decides the two-window counter. With e ticks of the current window
// gone, the use is Used + Prev*(Window-e)/Window, and an ask is allowed if the
// use with its cost is at most Cap, as exact fractions. It may let a true
// window see up to 2*Cap-1 units when the previous window's use came late in
// it; it never allows more than Cap if use is even.
func sliding(p *Params, s State, now, cost int64) (State, Verdict) {
	s = slidingAt(p, s, now)
	var v Verdict
	left := p.Window - now%p.Window // Window-e, 1..Window
	switch {
	case cost > p.Cap:
		v.Wait = Never
	case fits(p, s.Prev, left, p.Cap-s.Used-cost):
		v.OK = true
		s.Used += cost
	default:
		v.Wait = slidingRetry(p, s, left, cost)
	}
	v.Remaining = max(p.Cap-s.Used-weighted(p, s.Prev, left), 0)
	switch {
	case s.Used > 0:
		v.Reset = left + p.Window
	case s.Prev > 0:
		v.Reset = left
	}
	return s, v
}

// slidingAt brings the two counts up to now. Counts of windows of another
// length start fresh.
func slidingAt(p *Params, s State, now int64) State {
	if s.Unit != p.Window {
		s = State{Unit: p.Window, At: now}
	}
	switch now/p.Window - s.At/p.Window {
	case 0:
	case 1:
		s.Used, s.Prev = 0, s.Used
	default:
		s.Used, s.Prev = 0, 0
	}
	s.At = now
	return s
}

// slidingRetry is the ticks until cost, at most Cap, fits: later in the current
// window as Prev fades, or in the next one as Used does, or in the one after.
func slidingRetry(p *Params, s State, left, cost int64) int64 {
	if room := p.Cap - s.Used - cost; room >= 0 {
		if at := fade(p, s.Prev, room); at > 0 {
			return left - at
		}
	}
	return left + p.Window - fade(p, s.Used, p.Cap-cost)
}

// weighted is prev*left/Window rounded up: what the previous window still holds.
func weighted(p *Params, prev, left int64) int64 {
	q, r := scale(prev, left, p.Window)
	if r > 0 {
		q++
	}
	return q
}

// fits says whether what the previous window holds is at most room.
func fits(p *Params, prev, left, room int64) bool {
	return room >= 0 && (prev <= room || weighted(p, prev, left) <= room)
}

// fade is the greatest number of ticks left in a window at which n units of the
// window before weigh at most room: floor(room*Window/n), at most Window.
func fade(p *Params, n, room int64) int64 {
	if n <= room {
		return p.Window
	}
	q, _ := scale(room, p.Window, n)
	return q
}
