package algo

// Entry is a run of units charged in the same slice of a SlidingLog.
type Entry struct {
	At int64 // the first instant of the slice
	N  int64 // units charged in it; 0 after they were all given back
}

// DecideLog asks for cost units of a SlidingLog at instant now. The log is
// oldest first and is only read; s tells how many of its first entries are dead
// and how many units the others hold. An entry counts while now - At < Window:
// it is gone exactly one window later. Units given in one slice share an entry,
// so a log has at most Cap live entries, and at most Window/Step + 1.
//
// The returned state is brought up to now, as Decide does; if the verdict is OK
// and the caller keeps the state, it must let [Record] write the charge.
func DecideLog(p *Params, s State, log []Entry, now, cost int64) (State, Verdict) {
	now, cost = max(now, 0, s.At), max(cost, 0)
	s = expire(p, s, log, now)
	var v Verdict
	held := s.Used
	switch {
	case cost > p.Cap:
		v.Wait = Never
	case cost > p.Cap-s.Used:
		v.Wait = leaves(p, log[s.Prev:], s.Used+cost-p.Cap) - now
	default:
		v.OK = true
		held += cost
	}
	v.Remaining = max(p.Cap-held, 0)
	switch last := newest(log[s.Prev:]); {
	case v.OK && cost > 0:
		v.Reset = slice(p, now) + p.Window - now
	case last >= 0:
		v.Reset = last + p.Window - now
	}
	return s, v
}

// Record writes n units charged at s.At into the log and returns both. The dead
// entries are dropped when they outnumber the live ones or the log is full, so
// a log that has reached its size is not allocated again.
func Record(p *Params, s State, log []Entry, n int64) (State, []Entry) {
	n = min(n, Max-s.Used) // the entries add up to Used, which stays within Max
	if n <= 0 {
		return s, log
	}
	if dead := int(s.Prev); dead > 0 && (len(log) == cap(log) || dead > len(log)/2) {
		log = log[:copy(log, log[dead:])]
		s.Prev = 0
	}
	s.Used += n
	at := slice(p, s.At)
	if last := len(log) - 1; last >= int(s.Prev) && log[last].At >= at {
		// A slice of another length, before a reload, may begin later.
		log[last].N += n
		return s, log
	}
	return s, append(log, Entry{At: at, N: n})
}

// AdjustLog is Adjust for a SlidingLog.
func AdjustLog(p *Params, s State, log []Entry, now, at, delta int64) (State, []Entry) {
	s = expire(p, s, log, max(now, 0, s.At))
	delta = min(max(delta, -Max), Max)
	if delta >= 0 {
		return Record(p, s, log, delta)
	}
	at = slice(p, at)
	for i := len(log) - 1; i >= int(s.Prev) && log[i].At >= at; i-- {
		if log[i].At == at {
			back := min(-delta, log[i].N)
			log[i].N -= back
			s.Used -= back
			break
		}
	}
	return s, log
}

// expire brings s up to now: entries a whole window old are dead.
func expire(p *Params, s State, log []Entry, now int64) State {
	s.At = now
	for s.Prev < int64(len(log)) && now-log[s.Prev].At >= p.Window {
		s.Used -= log[s.Prev].N
		s.Prev++
	}
	return s
}

// leaves is the instant at which the oldest n units of the live log are gone.
func leaves(p *Params, live []Entry, n int64) int64 {
	for _, e := range live {
		if n -= e.N; n <= 0 {
			return e.At + p.Window
		}
	}
	return 0 // not reached: the log holds as many units as its state says
}

// newest is the instant of the last entry that holds units, or -1.
func newest(live []Entry) int64 {
	for i := len(live) - 1; i >= 0; i-- {
		if live[i].N > 0 {
			return live[i].At
		}
	}
	return -1
}

// slice is the first instant of the slice of t.
func slice(p *Params, t int64) int64 {
	if p.Step <= 1 {
		return t
	}
	return t - t%p.Step
}
