package algo

// A node that asks a distant store for every unit waits for it every time. It may
// instead be lent units: they are charged when they are lent and used later, so
// that no more is ever used than was charged.
//
// Charging early is not enough for a bucket. While lent units lie unused, time would
// forgive their debt, and the bucket would fill up and hand out its burst once more
// beside them. So time does not forgive what is lent: a [Ledger] says how many units
// are out, and the debt does not drain below it. Then the tokens of the bucket and
// those that are out are never more than its capacity, they grow by its rate alone,
// and all admissions between two instants are within capacity + rate × time, however
// many nodes borrow and whichever of them crash. (lend_test.go lets them.)
//
// A counter of a window needs no ledger: what is lent of it dies with the window.

// Lending says how units of a limit are lent, in ticks. The zero value: they are not.
type Lending struct {
	// Short is the time for which a busy borrower takes units at once.
	Short int64
	// Long is the time for which it takes them while more than half is left.
	Long int64
	// Life is for how long it may use them.
	Life int64
}

// LeastLent is the number of units left below which nothing is lent, so that small
// limits and the last units of large ones are asked for one by one.
const LeastLent = 20

// Lending of a limit. Only a Bucket, FixedWindow or SlidingWindow of 20 units and
// more is lent.
func (p *Params) Lending() Lending {
	const second = 1_000_000
	if p.Cap < LeastLent {
		return Lending{}
	}
	full, long := p.Window, p.Window/20
	switch p.Kind {
	case Bucket:
		full = ticks(p, p.Cap, 0)
		long = full
	case FixedWindow, SlidingWindow:
	default:
		return Lending{}
	}
	l := Lending{Short: min(second/10, full/4), Long: min(second, long)}
	if l.Short < second/200 {
		return Lending{}
	}
	l.Long = max(l.Long, l.Short)
	l.Life = max(3*l.Short, l.Long+l.Long/2)
	return l
}

// Ledger counts the units of a Bucket that are out: lent, and neither reported as
// used nor dead. It knows two generations of loans. The zero value: nothing is out.
type Ledger struct {
	Edge int64 // the instant at which Old is dead, and New is as old as that
	Next int64 // the instant at which New is dead; it names the generation
	New  int64 // units of the generation that is lent from now
	Old  int64 // units of the one before
}

// Loan asks for units ahead of use, and reports on an earlier loan.
type Loan struct {
	Want int64 // the most units that are wanted, at least 0
	Name int64 // of the loan that is reported on: its Grant's Name
	Used int64 // units of it that were used since the last report
	Back int64 // units of it that are given back unused
}

// Grant is the answer to a Loan.
type Grant struct {
	Units     int64 // charged ahead, 0 to Want
	Name      int64 // to report on them by
	Life      int64 // ticks from the instant of the grant in which they may be used
	Remaining int64 // units left beside them
	Reset     int64 // ticks until nothing is held any more
}

// Settle brings a Bucket and its ledger up to now. After it, [Decide] and [Adjust] at
// the same instant are right for a bucket that is lent.
func Settle(p *Params, s State, l Ledger, now int64) (State, Ledger) {
	now = max(now, 0, s.At)
	for l != (Ledger{}) && now >= l.Edge {
		s = drainDownTo(p, s, max(l.Edge, s.At), l.New+l.Old)
		l = Ledger{Edge: l.Next, Old: l.New}
		if l.Old == 0 {
			l = Ledger{}
		}
	}
	return drainDownTo(p, s, now, l.New+l.Old), l
}

// drainDownTo drains until now, and forgives nothing of the last floor units.
func drainDownTo(p *Params, s State, now, floor int64) State {
	held := s.Used
	s = drain(p, s, now)
	if floor = min(floor, held); s.Used < floor {
		s.Used, s.Prev = floor, 0
	}
	return s
}

// Lend takes a report, and lends up to half of what is left and, of a Bucket, never
// more than half of its capacity in all. A limit without [Params.Lending] lends
// nothing; its ledger is zero.
func Lend(p *Params, s State, l Ledger, now int64, q Loan) (State, Ledger, Grant) {
	lending := p.Lending()
	now = max(now, 0, s.At)
	if p.Kind == Bucket {
		s, l = Settle(p, s, l, now)
		var back int64
		if l, back = l.report(q); back > 0 {
			s = Adjust(p, s, now, now, -back)
		}
	} else if q.Back > 0 {
		s = Adjust(p, s, now, q.Name, -q.Back)
	}
	s, v := Decide(p, s, now, 0, 0)
	g := Grant{Life: lending.Life, Name: now}
	if lending.Life > 0 && v.Remaining >= LeastLent {
		g.Units = max(min(q.Want, v.Remaining/2), 0)
	}
	switch p.Kind {
	case Bucket:
		g.Units = max(min(g.Units, p.Cap/2-l.New-l.Old), 0)
		if g.Units > 0 {
			if l.Edge == 0 {
				l.Edge = now + lending.Life
			}
			l.Next = max(l.Next, l.Edge+lending.Life)
			l.New += g.Units
		}
		g.Name = l.Next
	case FixedWindow, SlidingWindow:
		g.Life = min(g.Life, p.Window-now%p.Window)
	}
	s, v = Decide(p, s, now, g.Units, 0)
	g.Remaining, g.Reset = v.Remaining, v.Reset
	return s, l, g
}

// report takes what was used and what comes back off the generation that was lent,
// and returns how much of the latter was still out.
func (l Ledger) report(q Loan) (_ Ledger, back int64) {
	used, back := max(q.Used, 0), max(q.Back, 0)
	out := int64(0)
	switch q.Name {
	case l.Next:
		out = min(used+back, l.New)
		l.New -= out
	case l.Edge:
		out = min(used+back, l.Old)
		l.Old -= out
	}
	return l, min(back, out)
}

// AdjustLent is [Adjust] for a bucket that is lent: nothing is given back of what is
// out.
func AdjustLent(p *Params, s State, l Ledger, now, at, delta int64) (State, Ledger) {
	if l != (Ledger{}) {
		s, l = Settle(p, s, l, now)
	}
	held := s.Used
	s = Adjust(p, s, now, at, delta)
	if floor := min(l.New+l.Old, held); s.Used < floor {
		s.Used, s.Prev = floor, 0
	}
	return s, l
}

// Holds is for how many ticks after now the ledger may hold debt up.
func (l Ledger) Holds(now int64) int64 { return max(l.Next, l.Edge, now) - now }
