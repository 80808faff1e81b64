package weir

// frame is the scratch of one decision. Frames are pooled, so that a decision
// allocates nothing once its frame has grown to the size of the ruleset.
//
// Two traps: a Decision whose address goes to an Observer escapes to the heap, so
// the Observer gets the frame's copy; and a method value such as l.store.Take as
// an argument allocates, so verbs are an enum.
type frame struct {
	keys     []byte // all partition keys, one after the other
	selected []int  // what Ruleset.Select chose
	asks     []Ask
	refs     []int // asks[i] belongs to service limit refs[i]
	out      []Verdict
	observed Decision
}

// key implements keeper.
func (f *frame) key(i int) []byte {
	for j, ref := range f.refs {
		if ref == i {
			return f.asks[j].Key
		}
	}
	return nil
}

// ask adds a question and the service limit that will hold its answer. It writes
// into the slice that the frame has kept; an append of a literal copies it twice.
func (f *frame) ask(d *Decision, p *Policy, key []byte, cost, slack int64, shadow bool, rule int, flags uint8) {
	if shadow {
		flags |= flagShadow
	}
	n := len(f.asks)
	if n == cap(f.asks) {
		f.asks, f.refs = append(f.asks, Ask{}), append(f.refs, 0)
	} else {
		f.asks, f.refs = f.asks[:n+1], f.refs[:n+1]
	}
	a := &f.asks[n]
	a.Policy, a.Key, a.Cost, a.Slack, a.Shadow = p, key, cost, slack, shadow
	f.refs[n] = d.count
	d.add(p, rule, flags)
}

// verdicts returns room for the answers.
func (f *frame) verdicts() []Verdict {
	if cap(f.out) < len(f.asks) {
		f.out = make([]Verdict, len(f.asks), 2*len(f.asks))
	}
	f.out = f.out[:len(f.asks)]
	return f.out
}

// toFront moves the asks that belong to a group to the front, keeping order,
// and returns how many they are.
func (f *frame) toFront(group func(i int) bool) int {
	n := 0
	for i := range f.asks {
		if group(i) {
			a, ref := f.asks[i], f.refs[i]
			copy(f.asks[n+1:i+1], f.asks[n:i])
			copy(f.refs[n+1:i+1], f.refs[n:i])
			f.asks[n], f.refs[n] = a, ref
			n++
		}
	}
	return n
}

// conclude writes the verdicts into the decision.
func (f *frame) conclude(d *Decision, allowed bool, do verb) {
	d.Allowed = allowed
	for i := range f.asks {
		a, v, lim := &f.asks[i], &f.out[i], d.at(f.refs[i])
		if v.OK {
			lim.flags |= flagOK
			if do != peek && (a.Shadow || allowed) {
				lim.cost, lim.charged = a.Cost, v.At+v.Wait
				lim.flags |= flagCharged
				if v.Spilled {
					lim.flags |= flagSpilled
				}
			}
			if allowed && !a.Shadow {
				d.Wait = max(d.Wait, duration(v.Wait))
			}
		}
		lim.remaining, lim.reset, lim.retry = v.Remaining, v.Reset, v.Retry
	}
	if allowed {
		return
	}
	for i := range d.count {
		lim := d.at(i)
		switch {
		case lim.flags&(flagOK|flagShadow) != 0:
		case lim.retry < 0:
			d.RetryAfter = -1
			return
		default:
			d.RetryAfter = max(d.RetryAfter, duration(lim.retry))
		}
	}
}

// maxKeptKeys bounds the key bytes a pooled frame keeps, so that one request with
// huge keys does not pin its memory.
const maxKeptKeys = 64 << 10

// release forgets the request, for the pool.
func (f *frame) release() {
	if cap(f.keys) > maxKeptKeys {
		f.keys = nil
	}
	f.keys, f.selected, f.refs = f.keys[:0], f.selected[:0], f.refs[:0]
	f.asks = f.asks[:0]
	if f.observed.frame != nil {
		f.observed = Decision{}
	}
}
