package replay

// windows are the windows that peaks are taken in, in seconds.
var windows = [...]uint32{1, 60, 3600}

// windowNames are their names for people.
var windowNames = [...]string{"second", "minute", "hour"}

// pace is how fast one key asks, now and at its fastest: a list of the seconds of
// the last hour in which it asked, the last minute apart. Marks are indices into
// a trail, 0 for none; the seconds of the marks at which something happens are
// kept here too, since every look at a mark is likely to be a cache miss.
type pace struct {
	peaks     [len(windows)]uint32
	minuteSum uint32
	hourSum   uint32
	first     spot // the whole list
	older     spot // the last mark before the minute
	minute    spot // the first mark in the minute
	last      spot
}

// spot is a mark and its second.
type spot struct {
	at     int32
	second uint32
}

// mark says that a key asked n times in a second; for a mark that has left the
// minute, in its clock minute up to that second.
type mark struct {
	second, n uint32
	next      int32
}

// trail holds the marks of all keys of a rule in one piece of memory without
// pointers. A key has at most 60 + 61 of them.
type trail struct {
	marks []mark // marks[0] is none
	free  int32
}

func (t *trail) make(second uint32) int32 {
	m := mark{second: second, n: 1}
	if at := t.free; at != 0 {
		t.free = t.marks[at].next
		t.marks[at] = m
		return at
	}
	if len(t.marks) == 0 {
		t.marks = make([]mark, 1, 64)
	}
	t.marks = append(t.marks, m)
	return int32(len(t.marks) - 1)
}

func (t *trail) drop(at int32) {
	t.marks[at].next, t.free = t.free, at
}

// spot is the spot of a mark.
func (t *trail) spot(at int32) spot {
	if at == 0 {
		return spot{}
	}
	return spot{at, t.marks[at].second}
}

// ask counts a request in a second, which is never before the last one.
func (t *trail) ask(p *pace, second uint32) {
	n := uint32(1)
	if p.last.at != 0 && p.last.second == second {
		m := &t.marks[p.last.at]
		m.n++
		n = m.n
	} else {
		t.expire(p, second)
		now := spot{t.make(second), second}
		if p.last.at != 0 {
			t.marks[p.last.at].next = now.at
		} else {
			p.first = now
		}
		if p.minute.at == 0 {
			p.minute = now
		}
		p.last = now
	}
	p.minuteSum++
	p.hourSum++
	p.peaks[0] = max(p.peaks[0], n)
	p.peaks[1] = max(p.peaks[1], p.minuteSum)
	p.peaks[2] = max(p.peaks[2], p.hourSum)
}

// expire moves what has left the minute among the older marks, and forgets what
// has left the hour.
func (t *trail) expire(p *pace, second uint32) {
	for p.minute.at != 0 && second-p.minute.second >= windows[1] {
		left, n, next := p.minute, p.minuteSum, int32(0)
		if left.at != p.last.at { // else it is all that is left of the minute
			m := t.marks[left.at]
			n, next = m.n, m.next
		}
		p.minuteSum -= n
		p.minute = t.spot(next)
		if o := p.older.at; o != 0 && p.older.second/windows[1] == left.second/windows[1] {
			// One mark a clock minute is enough now. It takes the later second, so that
			// the hour counts too much rather than too little.
			t.marks[o] = mark{second: left.second, n: t.marks[o].n + n, next: next}
			t.drop(left.at)
			p.older.second = left.second
			if p.first.at == o {
				p.first.second = left.second
			}
			if next == 0 {
				p.last = p.older
			}
		} else {
			p.older = left
		}
	}
	for p.first.at != p.minute.at && second-p.first.second >= windows[2] {
		gone := t.marks[p.first.at]
		p.hourSum -= gone.n
		t.drop(p.first.at)
		if p.first.at == p.older.at {
			p.older = spot{}
		}
		if p.first.at == p.last.at {
			p.last = spot{}
		}
		p.first = t.spot(gone.next)
	}
}

// forget gives the marks of a key back.
func (t *trail) forget(p *pace) {
	for at := p.first.at; at != 0; {
		next := t.marks[at].next
		t.drop(at)
		at = next
	}
	p.first, p.last, p.older, p.minute = spot{}, spot{}, spot{}, spot{}
}
