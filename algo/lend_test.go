package algo_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/algo"
)

// lent are limits that are lent, with capacities, rates and windows at their edges.
func lent(r *rand.Rand) algo.Params {
	cap := []int64{20, 21, 40, 99, 1000, 1_000_000}[r.IntN(6)]
	switch r.IntN(3) {
	case 0: // full after 20 ms to 5 s
		p := algo.Params{Kind: algo.Bucket, Cap: cap, Unit: 20_000 + r.Int64N(5_000_000), Drain: cap}
		if r.IntN(2) == 0 { // parts of a unit that never come out even
			p.Unit, p.Drain = p.Unit|1, max(p.Drain-1, 1)
		}
		return p
	case 1:
		return algo.Params{Kind: algo.FixedWindow, Cap: cap, Window: 20_000 + r.Int64N(5_000_000)}
	}
	return algo.Params{Kind: algo.SlidingWindow, Cap: cap, Window: 20_000 + r.Int64N(5_000_000)}
}

// A bank is a key that is lent, with the clock of its store.
type bank struct {
	p    algo.Params
	s    algo.State
	l    algo.Ledger
	slow int64 // how far its clock is behind true time; it only steps back
	last int64 // what the clock has shown, to anybody: a step back makes it stand still
}

func (b *bank) now(real int64) int64 {
	b.last = max(real-b.slow, b.s.At, b.last)
	return b.last
}

// take decides without the ledger's help once it is settled, as stores do.
func (b *bank) take(real, cost int64) (ok bool) {
	if b.p.Kind == algo.Bucket {
		b.s, b.l = algo.Settle(&b.p, b.s, b.l, b.now(real))
	}
	var v algo.Verdict
	next, v := algo.Decide(&b.p, b.s, b.now(real), cost, 0)
	if v.OK {
		b.s = next
	}
	return v.OK
}

func (b *bank) lend(real int64, q algo.Loan) (g algo.Grant) {
	b.s, b.l, g = algo.Lend(&b.p, b.s, b.l, b.now(real), q)
	return g
}

func (b *bank) out() int64 { return b.l.New + b.l.Old }

// A purse is a loan at its borrower. Its report is sent in pieces, none of them twice.
type purse struct {
	name, left, used, until int64
}

// A call is a Loan on its way, and then its Grant on the way back.
type call struct {
	by      *borrower
	sent    int64
	loan    algo.Loan
	granted *algo.Grant
}

type borrower struct{ purses []*purse }

func (b *borrower) alive(real int64) (n int64) {
	for _, p := range b.purses {
		if real < p.until {
			n += p.left
		}
	}
	return n
}

// use takes a unit of the first loan that is alive.
func (b *borrower) use(real int64) bool {
	for _, p := range b.purses {
		if real < p.until && p.left > 0 {
			p.left--
			p.used++
			return true
		}
	}
	return false
}

// report makes the Loan of a call: what it says of a purse it says once.
func (b *borrower) report(r *rand.Rand, want int64) algo.Loan {
	q := algo.Loan{Want: want}
	if len(b.purses) == 0 {
		return q
	}
	at := r.IntN(len(b.purses))
	p := b.purses[at]
	q.Name = p.name
	q.Used = r.Int64N(p.used + 1)
	p.used -= q.Used
	if r.IntN(2) == 0 {
		q.Back = r.Int64N(p.left + 1)
		p.left -= q.Back
	}
	if p.left == 0 && p.used == 0 {
		b.purses = append(b.purses[:at], b.purses[at+1:]...)
	}
	return q
}

// world is a key with its borrowers, in true time. Its trouble is drawn from r: calls
// that are lost on the way there or back, late ones, crashes, and a store whose clock
// steps back.
type world struct {
	*testing.T
	r         *rand.Rand
	bank      bank
	borrowers []*borrower
	calls     []*call
	real      int64
	admit     func(n int64, by string)
	units     struct{ direct, local, lent int64 }
}

func newWorld(t *testing.T, r *rand.Rand, p algo.Params) *world {
	w := &world{T: t, r: r, bank: bank{p: p}, real: start + r.Int64N(hour)}
	for range 1 + r.IntN(5) {
		w.borrowers = append(w.borrowers, new(borrower))
	}
	return w
}

// alive is what borrowers may still use.
func (w *world) alive() (n int64) {
	for _, b := range w.borrowers {
		n += b.alive(w.real)
	}
	return n
}

// step is one event after some time.
func (w *world) step() {
	r, p := w.r, &w.bank.p
	life := max(p.Lending().Life, 1)
	if r.IntN(3) == 0 {
		w.real += r.Int64N(life/2 + 1)
	}
	b := w.borrowers[r.IntN(len(w.borrowers))]
	switch r.IntN(16) {
	case 0, 1, 2: // direct, in bulk or one by one
		cost := int64(1)
		if r.IntN(4) == 0 {
			cost = r.Int64N(p.Cap + 2)
		}
		if w.bank.take(w.real, cost) {
			w.units.direct += cost
			w.admit(cost, "direct")
		}
	case 3, 4, 5, 6: // a burst of local decisions
		n := int64(0)
		for most := r.Int64N(p.Cap); n < most && b.use(w.real); n++ {
		}
		if n > 0 {
			w.units.local += n
			w.admit(n, "local")
		}
	case 7, 8, 9: // send
		if len(w.calls) < 6 {
			w.calls = append(w.calls, &call{by: b, sent: w.real, loan: b.report(r, r.Int64N(2*p.Cap))})
		}
	case 10, 11, 12, 13: // a call is carried out, or its answer comes, in any order
		if len(w.calls) == 0 {
			return
		}
		at := r.IntN(len(w.calls))
		c := w.calls[at]
		lost := r.IntN(20) == 0
		if c.granted == nil && !lost {
			g := w.bank.lend(w.real, c.loan)
			w.units.lent += g.Units
			c.granted = &g
			return
		}
		w.calls = append(w.calls[:at], w.calls[at+1:]...)
		if lost {
			return
		}
		if g := c.granted; g.Units > 0 {
			c.by.purses = append(c.by.purses, &purse{name: g.Name, left: g.Units, until: c.sent + g.Life})
		}
	case 14:
		if r.IntN(10) == 0 { // a crash: loans and calls are gone
			b.purses = nil
			for _, c := range w.calls {
				if c.by == b {
					c.by = new(borrower)
				}
			}
		}
	case 15:
		if r.IntN(10) == 0 {
			w.bank.slow += r.Int64N(2 * life)
		}
	}
}

// TestBorrowersAreNeverAllowedTooMuch: whatever borrowers and direct takes do, each
// admission is one that the model would allow who sees them all, so all bounds of the
// limit hold: cap + rate × time of a bucket, and those of windows.
func TestBorrowersAreNeverAllowedTooMuch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var local, direct int64
	for range 600 {
		p := lent(r)
		w, m := newWorld(t, r, p), newModel(p)
		var all []charge
		w.admit = func(n int64, by string) {
			now := w.bank.now(w.real)
			if !m.fits(now, n) {
				t.Fatalf("%+v at %d: %s admission of %d beside %v held; %d are out", p, now, by, n, m.held(now), w.bank.out())
			}
			m.charge(now, n)
			all = append(all, charge{now, n})
		}
		for range 400 {
			w.step()
			if p.Kind == algo.Bucket && w.bank.out() > p.Cap/2 {
				t.Fatalf("%+v: %d units are out, more than half of the capacity", p, w.bank.out())
			}
		}
		within(t, p, all)
		local, direct = local+w.units.local, direct+w.units.direct
	}
	if local < direct/20 {
		t.Errorf("%d units were used locally and %d directly: this tests nothing", local, direct)
	}
}

// within states the bounds once more, without a model.
func within(t *testing.T, p algo.Params, all []charge) {
	t.Helper()
	switch p.Kind {
	case algo.Bucket: // any interval
		for i := range all {
			sum := int64(0)
			for _, c := range all[i:] {
				if sum += c.n; (sum-p.Cap)*p.Unit > (c.at-all[i].at)*p.Drain {
					t.Fatalf("%+v: %d units within %d ticks", p, sum, c.at-all[i].at)
				}
			}
		}
	case algo.FixedWindow, algo.SlidingWindow:
		in := make(map[int64]int64)
		for _, c := range all {
			if in[c.at/p.Window] += c.n; in[c.at/p.Window] > p.Cap {
				t.Fatalf("%+v: %d units in one window", p, in[c.at/p.Window])
			}
		}
	}
}

// TestLentUnitsAreHeldUntilTheyAreDead: the debt of a bucket covers what is admitted and
// what may still be used, exactly, over reloads of its numbers and refunds as well.
func TestLentUnitsAreHeldUntilTheyAreDead(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		p := lent(r)
		for p.Kind != algo.Bucket {
			p = lent(r)
		}
		w, m := newWorld(t, r, p), newModel(p)
		w.admit = func(n int64, _ string) { m.charge(w.bank.now(w.real), n) }
		reloads := 0
		for range 300 {
			switch b := &w.bank; {
			case r.IntN(60) == 0 && reloads < 5: // of another capacity and rate
				reloads++
				for next := lent(r); ; next = lent(r) {
					if next.Kind == algo.Bucket {
						m.charge(b.now(w.real), 0)
						b.s, b.l = algo.Settle(&b.p, b.s, b.l, b.now(w.real))
						b.p, m.p = next, next
						break
					}
				}
			case r.IntN(20) == 0: // a refund
				n := r.Int64N(b.p.Cap)
				b.s, b.l = algo.AdjustLent(&b.p, b.s, b.l, b.now(w.real), b.s.At, -n)
				m.charge(b.now(w.real), 0)
				if m.debt.Sub(m.debt, rat(n)); m.debt.Sign() < 0 {
					m.debt.SetInt64(0)
				}
			default:
				w.step()
			}
			s, l := algo.Settle(&w.bank.p, w.bank.s, w.bank.l, w.bank.now(w.real))
			held := m.held(w.bank.now(w.real))
			if held.Add(held, rat(w.alive())).Cmp(exactly(s)) > 0 {
				t.Fatalf("%+v: the debt is %v, and admitted and usable are %v", w.bank.p, exactly(s), held)
			}
			if w.alive() > l.New+l.Old {
				t.Fatalf("%+v: %d may be used of %+v", w.bank.p, w.alive(), l)
			}
		}
		// Nothing is held for ever.
		b := &w.bank
		end := b.now(w.real) + b.l.Holds(b.now(w.real))
		if s, l := algo.Settle(&b.p, b.s, b.l, end); l != (algo.Ledger{}) {
			t.Fatalf("%+v: %+v at %d, after Holds", b.p, l, s.At)
		}
		b.s, b.l = algo.Settle(&b.p, b.s, b.l, end)
		_, v := algo.Decide(&b.p, b.s, end, 0, 0)
		b.s, b.l = algo.Settle(&b.p, b.s, b.l, end+v.Reset)
		if _, v = algo.Decide(&b.p, b.s, end+v.Reset, 0, 0); v.Reset != 0 || v.Remaining != b.p.Cap {
			t.Fatalf("%+v once it should be full: %+v", b.p, v)
		}
	}
}

// TestALoanGivenBackAtOnceLeavesNoTrace, and one that was used is a charge like any.
func TestALoanGivenBackAtOnceLeavesNoTrace(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		p := lent(r)
		b := bank{p: p}
		now := int64(start) + r.Int64N(hour)
		b.take(now, r.Int64N(p.Cap/2+1))
		now += r.Int64N(100_000)
		before := b
		if p.Kind == algo.Bucket {
			b.s, b.l = algo.Settle(&p, b.s, b.l, now)
		}
		_, want := algo.Decide(&p, b.s, now, 0, 0)
		g := b.lend(now, algo.Loan{Want: p.Cap})
		if g.Units > want.Remaining/2 || g.Units+g.Remaining != want.Remaining {
			t.Fatalf("%+v: %+v of %d left", p, g, want.Remaining)
		}
		used := r.Int64N(g.Units + 1)
		g = b.lend(now, algo.Loan{Name: g.Name, Used: used, Back: g.Units - used})
		if g.Units != 0 || g.Remaining != want.Remaining-used || b.out() != 0 {
			t.Fatalf("%+v: %+v after %d were used and the rest was given back, of %d; ledger %+v", p, g, used, want.Remaining, b.l)
		}
		before.take(now, used)
		for range 10 { // and from then on nobody can tell
			now += r.Int64N(200_000)
			cost := r.Int64N(p.Cap + 1)
			if got, want := b.take(now, cost), before.take(now, cost); got != want {
				t.Fatalf("%+v at %d cost %d: %v, and without a loan %v", p, now, cost, got, want)
			}
		}
	}
}

// TestALoanEndsWithItsWindow: not a tick later, and what comes back of it then is not
// given to the next.
func TestALoanEndsWithItsWindow(t *testing.T) {
	for _, kind := range []algo.Kind{algo.FixedWindow, algo.SlidingWindow} {
		b := bank{p: algo.Params{Kind: kind, Cap: 100, Window: second}}
		for _, before := range []int64{400_000, 75_001, 49_999, 2, 1} { // time goes on
			now := int64(start) + second - before
			g := b.lend(now, algo.Loan{Want: 10})
			if want := min(b.p.Lending().Life, before); g.Units != 10 || g.Life != want {
				t.Errorf("kind %d, %d ticks before the end: %+v, want a life of %d", kind, before, g, want)
			}
			b.lend(now, algo.Loan{Name: g.Name, Back: g.Units})
		}
		g := b.lend(start+second-1, algo.Loan{Want: 10})
		b.take(start+second, 30)
		if kind == algo.FixedWindow {
			if g = b.lend(start+second, algo.Loan{Name: g.Name, Back: 10}); g.Remaining != 70 {
				t.Errorf("given back into the next window: %+v", g)
			}
		} else if g = b.lend(start+second, algo.Loan{Name: g.Name, Back: 10}); g.Remaining != 70 || b.s.Prev != 0 {
			t.Errorf("given back to the window before: %+v, state %+v", g, b.s)
		}
	}
}

// TestSmallLimitsAreNotLent, nor are those whose loans would live too short, nor kinds
// that are counted otherwise; but reports on them are taken.
func TestSmallLimitsAreNotLent(t *testing.T) {
	for _, p := range []algo.Params{
		{},
		{Kind: algo.Bucket, Cap: 19, Unit: 1_000_000, Drain: 19},
		{Kind: algo.Bucket, Cap: 5, Unit: 60_000_000, Drain: 5},
		{Kind: algo.Bucket, Cap: 20, Unit: 1, Drain: 1},             // full in 20 µs
		{Kind: algo.Bucket, Cap: 100, Unit: 19_999, Drain: 100},     // in a tick less than 20 ms
		{Kind: algo.FixedWindow, Cap: 19, Window: 60_000_000},       //
		{Kind: algo.FixedWindow, Cap: 20, Window: 19_999},           //
		{Kind: algo.SlidingWindow, Cap: 19, Window: 60_000_000},     //
		{Kind: algo.Queue, Cap: 1000, Unit: 1_000_000, Drain: 1000}, //
		{Kind: algo.FirstWindow, Cap: 1000, Window: 60_000_000},
		{Kind: algo.SlidingLog, Cap: 1000, Window: 60_000_000, Step: 1},
		{Kind: algo.WarmUp, Cap: 1000, Window: 60_000_000, Step: 1},
	} {
		if l := p.Lending(); l != (algo.Lending{}) {
			t.Errorf("%+v: %+v, want none", p, l)
		}
		if p.Kind == 0 || p.Kind == algo.SlidingLog || p.Kind == algo.WarmUp {
			continue // nobody asks Lend about these
		}
		s, l, g := algo.Lend(&p, algo.State{}, algo.Ledger{}, start, algo.Loan{Want: algo.Max})
		if g.Units != 0 || l != (algo.Ledger{}) || g.Remaining != p.Cap {
			t.Errorf("%+v: %+v, ledger %+v, state %+v", p, g, l, s)
		}
	}
	for _, p := range []algo.Params{
		{Kind: algo.Bucket, Cap: 20, Unit: 20_000, Drain: 20},
		{Kind: algo.FixedWindow, Cap: 20, Window: 20_000},
		{Kind: algo.SlidingWindow, Cap: algo.Max, Window: algo.Max},
		{Kind: algo.Bucket, Cap: algo.Max, Unit: 1, Drain: 1},
	} {
		l := p.Lending()
		if l.Short < 5000 || l.Short > second/10 || l.Long < l.Short || l.Long > second || l.Life < 3*l.Short || l.Life > 3*second/2 {
			t.Errorf("%+v: %+v", p, l)
		}
		b := bank{p: p}
		b.take(start, p.Cap-19)
		if g := b.lend(start, algo.Loan{Want: p.Cap}); g.Units != 0 || g.Remaining != 19 {
			t.Errorf("%+v: of the last 19 units, %+v", p, g)
		}
	}
}

// TestAbsurdLoans: no number that a caller may send breaks the ledger.
func TestAbsurdLoans(t *testing.T) {
	edges := []int64{-1 << 63, -algo.Max, -1, 0, 1, 10, algo.Max - 1, algo.Max}
	for _, p := range []algo.Params{
		{Kind: algo.Bucket, Cap: 100, Unit: second, Drain: 100},
		{Kind: algo.Bucket, Cap: algo.Max, Unit: 1, Drain: 1},
		{Kind: algo.FixedWindow, Cap: algo.Max, Window: algo.Max},
		{Kind: algo.SlidingWindow, Cap: 100, Window: second},
	} {
		for _, now := range []int64{-1, 0, start, algo.Max} {
			for _, want := range edges {
				for _, used := range edges {
					for _, back := range edges {
						b := bank{p: p}
						g := b.lend(now, algo.Loan{Want: 40})
						lent, left := g.Units, g.Remaining
						g = b.lend(now, algo.Loan{Want: want, Name: g.Name, Used: used, Back: back})
						say := fmt.Sprintf("%+v at %d: want %d, used %d, back %d after %d: %+v, ledger %+v, state %+v",
							p, now, want, used, back, lent, g, b.l, b.s)
						switch {
						case g.Units < 0 || g.Units > max(want, 0) || g.Remaining < 0:
							t.Fatal(say)
						case b.s.Used < 0 || b.s.Used > algo.Max || b.l.New < 0 || b.l.Old < 0 || b.l.New > lent+g.Units:
							t.Fatal(say)
						case g.Units+g.Remaining > left+lent:
							t.Fatal(say)
						}
					}
				}
			}
		}
	}
}

// TestALateReportIsNotTakenForAnother: of a generation that is dead, nothing comes back.
func TestALateReportIsNotTakenForAnother(t *testing.T) {
	b := bank{p: algo.Params{Kind: algo.Bucket, Cap: 100, Unit: second, Drain: 100}}
	life := b.p.Lending().Life
	first := b.lend(start, algo.Loan{Want: 40})
	b.lend(start+2*life+1, algo.Loan{Want: 10}) // the first are dead by then
	held, out := b.s.Used, b.out()
	if out != 10 {
		t.Fatalf("%d are out: %+v", out, b.l)
	}
	b.lend(start+2*life+1, algo.Loan{Name: first.Name, Used: 15, Back: 25})
	if b.s.Used != held || b.out() != out {
		t.Errorf("a late report changed %d held, %d out to %d, %d", held, out, b.s.Used, b.out())
	}
}

// TestADeadLoanIsForgivenNoEarlier than its borrower has to stop, and soon after.
func TestADeadLoanIsForgivenNoEarlier(t *testing.T) {
	b := bank{p: algo.Params{Kind: algo.Bucket, Cap: 100, Unit: second, Drain: 100}}
	life := b.p.Lending().Life
	for _, offset := range []int64{0, 1, life - 1, life, life + 1} {
		b.s, b.l = algo.State{}, algo.Ledger{}
		b.lend(start, algo.Loan{Want: 1}) // so that generations do not begin with it
		g := b.lend(start+offset, algo.Loan{Want: 30})
		for _, at := range []int64{offset, offset + 1, offset + life - 1} {
			if s, l := algo.Settle(&b.p, b.s, b.l, start+at); s.Used < 30 || l.New+l.Old < 30 {
				t.Errorf("lent at %d, at %d: %d held, ledger %+v, and 30 may be used; %+v", offset, at, s.Used, l, g)
			}
		}
		if s, l := algo.Settle(&b.p, b.s, b.l, start+offset+2*life); l.New+l.Old != 0 {
			t.Errorf("lent at %d: %d still held two lives later, ledger %+v", offset, s.Used, l)
		}
	}
}

func TestLendingAllocatesNothing(t *testing.T) {
	b := bank{p: algo.Params{Kind: algo.Bucket, Cap: 1000, Unit: second, Drain: 1000}}
	now := int64(start)
	var g algo.Grant
	if n := testing.AllocsPerRun(1000, func() {
		now += 1000
		g = b.lend(now, algo.Loan{Want: 10, Name: g.Name, Used: g.Units})
		b.s, b.l = algo.AdjustLent(&b.p, b.s, b.l, now, now, -1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// exactly is the debt of a bucket as a fraction.
func exactly(s algo.State) *big.Rat {
	r := rat(s.Used)
	if s.Prev > 0 {
		r.Add(r, big.NewRat(s.Prev, s.Unit))
	}
	return r
}
