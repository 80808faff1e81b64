package replay

// windows are the windows that peaks are taken in, in seconds.
var windows = [...]uint32{1, 60, 3600}

// windowNames are their names for people.
var windowNames = [...]string{"second", "minute", "hour"}

// pace is how fast one key asks, now and at its fastest: a list of the seconds of
// the last hour in which it asked, the last minute apart. Marks are indices into
// a trail, 0 for none.
type pace struct {
	peaks       [len(windows)]uint32
	minuteSum   uint32
	hourSum     uint32
	first, last int32 // of the whole list
	older       int32 // the last mark before the minute
	minute      int32 // the first mark in the minute
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

// ask counts a request in a second, which is never before the last one.
func (t *trail) ask(p *pace, second uint32) {
	if at := p.last; at != 0 && t.marks[at].second == second {
		t.marks[at].n++
	} else {
		t.expire(p, second)
		at := t.make(second)
		if p.last != 0 {
			t.marks[p.last].next = at
		} else {
			p.first = at
		}
		if p.minute == 0 {
			p.minute = at
		}
		p.last = at
	}
	p.minuteSum++
	p.hourSum++
	for i, n := range [...]uint32{t.marks[p.last].n, p.minuteSum, p.hourSum} {
		p.peaks[i] = max(p.peaks[i], n)
	}
}

// expire moves what has left the minute among the older marks, and forgets what
// has left the hour.
func (t *trail) expire(p *pace, second uint32) {
	at := p.minute
	for at != 0 && second-t.marks[at].second >= windows[1] {
		m, next := t.marks[at], t.marks[at].next
		p.minuteSum -= m.n
		if o := p.older; o != 0 && t.marks[o].second/windows[1] == m.second/windows[1] {
			// One mark a clock minute is enough now. It takes the later second, so that
			// the hour counts too much rather than too little.
			t.marks[o] = mark{second: m.second, n: t.marks[o].n + m.n, next: next}
			t.drop(at)
		} else {
			p.older = at
		}
		at = next
	}
	if p.minute = at; at == 0 {
		p.last = p.older
	}
	for at = p.first; at != p.minute && second-t.marks[at].second >= windows[2]; {
		next := t.marks[at].next
		p.hourSum -= t.marks[at].n
		if at == p.older {
			p.older = 0
		}
		t.drop(at)
		at = next
	}
	if p.first = at; at == 0 {
		p.last = 0
	}
}

// forget gives the marks of a key back.
func (t *trail) forget(p *pace) {
	for at := p.first; at != 0; {
		next := t.marks[at].next
		t.drop(at)
		at = next
	}
	p.first, p.last, p.older, p.minute = 0, 0, 0, 0
}
