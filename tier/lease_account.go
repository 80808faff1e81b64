package tier

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// An account is what a node knows of a key that it may borrow. The lock of its shard
// guards it. Two clocks count in it: this node's, and the store's, of which it has heard
// some instants. Both are ticks.
type account struct {
	place
	policy  *weir.Policy
	changes int // of the policy's numbers until now
	lending algo.Lending
	key     []byte
	ring    int // its place in the ring of its shard

	seen  int64 // when it was last asked for, by this node
	gap   int64 // the mean time between asks
	again bool  // the last ask came soon after another
	short demand
	long  demand

	slots [4]slot // loans, the oldest first
	n     int

	flying  bool  // a loan is being asked for
	epoch   int   // counts drops: a loan asked for before is not to be used
	patient int64 // no loan is asked for before that

	at        int64 // the last instant given out, by the store's clock
	base      int64 // an instant of the store
	heard     int64 // when this node heard it
	remaining int64 // units the store had left then

	refusal heldRefusal
}

// A heldRefusal refuses a busy key for a while without asking the store again. Its times
// are by this node's clock.
type heldRefusal struct{ cost, until, retry, reset int64 }

// A slot is a loan. Its units are lent = left + used + back + what was reported.
type slot struct {
	name  int64 // to report by
	at    int64 // when it was lent, by the store
	end   int64 // when it is dead, by the store
	until int64 // when it is dead, by this node
	left  int64 // units that may be used
	used  int64 // units used and not yet reported
	back  int64 // units to be given back
}

func (s *slot) alive(now, at int64) bool { return now < s.until && at < s.end }

// same is whether the account's loans count for a policy.
func (c *account) same(p *weir.Policy) bool {
	return c.policy == p || *c.policy.Params() == *p.Params()
}

// adopt makes a rule that is in force the account's. Loans under other numbers end.
func (c *account) adopt(r rule) {
	if c.changes != r.changes {
		c.void(r)
		c.lending = r.policy.Params().Lending()
		c.patient, c.refusal = 0, heldRefusal{}
	}
	c.policy, c.changes = r.policy, r.changes
}

// void ends loans under numbers that are no longer in force. They are given back, unless
// they may have been lent of windows of another length: their charges do not count any
// more, so to give back a unit of them would be to forgive another's.
func (c *account) void(r rule) {
	p := r.policy.Params()
	if p.Kind != algo.Bucket && (p.Window != c.policy.Params().Window || c.changes+1 != r.changes) {
		c.drop()
	} else {
		c.retire()
	}
}

// count notes an ask of cost units.
func (c *account) count(now, cost int64) {
	gap := now - c.seen
	c.again = gap <= c.lending.Long
	if c.again {
		c.gap += (gap - c.gap) / 4
	} else {
		c.gap = c.lending.Long
	}
	c.seen = now
	c.short.add(now, c.lending.Short, cost)
	c.long.add(now, c.lending.Long, cost)
}

// idle is whether the key has fallen idle.
func (c *account) idle(now int64) bool {
	return now-c.seen > max(c.lending.Short, min(c.lending.Long, 3*c.gap))
}

// forgettable is whether nothing is lost with the account.
func (c *account) forgettable(now int64) bool {
	return c.n == 0 && !c.flying && now-c.seen > c.lending.Long
}

// hear notes what the store has said, and that this node heard it at now.
func (c *account) hear(now, at, remaining int64) {
	c.base, c.heard, c.remaining = at, now, remaining
}

// instant is the store's time. It does not step back.
func (c *account) instant(now int64) int64 { return max(c.at, c.base+now-c.heard) }

// left is how many units may be used.
func (c *account) left(now, at int64) (n int64) {
	for i := range c.slots[:c.n] {
		if s := &c.slots[i]; s.alive(now, at) {
			n += s.left
		}
	}
	return n
}

// spend uses units, of the oldest loan first, and returns what is left.
func (c *account) spend(now, at, cost int64) (left int64, ok bool) {
	if left = c.left(now, at); left < cost {
		return left, false
	}
	left -= cost
	for i := range c.slots[:c.n] {
		if s := &c.slots[i]; s.alive(now, at) {
			n := min(cost, s.left)
			s.left, s.used, cost = s.left-n, s.used+n, cost-n
		}
	}
	return left, true
}

// refund makes n units that were charged at an instant of the store usable again, all
// or none of them, or tells whether it could.
//
// A loan takes them that was alive then and is so now, and of which as many units have
// been used and not reported, whoever used them: those are then charged by what was
// charged for the refunded. So what was admitted and what may still be are together no
// more than before, and a unit of a window stays in it.
func (c *account) refund(now, at, n int64, commit bool) bool {
	instant := c.instant(now)
	most := int64(0)
	for i := range c.slots[:c.n] {
		if s := &c.slots[i]; s.alive(now, instant) && s.covers(at) {
			most += s.used
		}
	}
	if most < n || n <= 0 {
		return false
	}
	if commit {
		for i := range c.slots[:c.n] {
			if s := &c.slots[i]; s.alive(now, instant) && s.covers(at) {
				k := min(n, s.used)
				s.left, s.used, n = s.left+k, s.used-k, n-k
			}
		}
	}
	return true
}

func (s *slot) covers(at int64) bool { return s.at <= at && at < s.end }

// undo gives up n units that were spent at an instant of the store. Those of a loan that
// has ended go back to the store. It returns how many have been reported as used.
func (c *account) undo(now, at, n int64) int64 {
	instant := c.instant(now)
	for i := c.n - 1; i >= 0; i-- {
		s := &c.slots[i]
		if !s.covers(at) {
			continue
		}
		k := min(n, s.used)
		s.used, n = s.used-k, n-k
		if s.alive(now, instant) {
			s.left += k
		} else {
			s.back += k
		}
	}
	return n
}

// verdict is the answer to an ask that has been allowed, with so many units left.
func (c *account) verdict(v *weir.Verdict, at, left int64) {
	p := c.policy.Params()
	*v = weir.Verdict{OK: true, At: at, Remaining: min(c.remaining+left, p.Cap)}
	switch p.Kind {
	case algo.Bucket:
		_, d := algo.Decide(p, algo.State{At: at, Used: p.Cap - v.Remaining, Unit: p.Unit}, at, 0, 0)
		v.Reset = d.Reset
	case algo.FixedWindow:
		v.Reset = p.Window - at%p.Window
	case algo.SlidingWindow:
		v.Reset = 2*p.Window - at%p.Window
	}
}

// reserve is how many units are asked for in three times the time that a loan takes, and
// in no less than a sixteenth of the short time: if fewer are left a loan is due.
func (c *account) reserve(now, trip int64) int64 {
	ahead := min(max(3*trip, c.lending.Short/16), c.lending.Short)
	return c.short.over(now, c.lending.Short) * ahead / c.lending.Short
}

// want is how many units to ask for: for a short time, or for a long one while more than
// half of the limit is left.
func (c *account) want(now, trip int64) int64 {
	n := c.short.over(now, c.lending.Short)
	if p := c.policy.Params(); c.remaining > p.Cap/2 {
		n = max(n, c.long.over(now, c.lending.Long))
	}
	return max(n+c.reserve(now, trip)-c.left(now, c.instant(now)), 0)
}

// busy is whether so much is asked for that loans would pay, had the store enough.
func (c *account) busy(now int64) bool {
	return c.lending.Life > 0 && c.short.over(now, c.lending.Short) >= algo.LeastLent
}

// refuse holds a refusal of the store, so that what comes back of a limit is not taken
// one by one, by one call each, but lent when the time has come to ask for it again.
func (c *account) refuse(now int64, a *weir.Ask, v *weir.Verdict) {
	if !c.busy(now) || a.Slack > 0 || a.Shadow {
		return
	}
	pause := c.lending.Short / 2
	c.refusal = heldRefusal{cost: a.Cost, until: now + pause, retry: algo.Never, reset: now + v.Reset}
	if v.Retry != algo.Never {
		v.Retry = max(v.Retry, pause)
		c.refusal.retry = now + v.Retry
	}
}

// scarce holds back a busy key of which less is left than this node alone has use for,
// until it may ask for a loan again.
func (c *account) scarce(now, reset int64) {
	if c.busy(now) {
		c.refusal = heldRefusal{cost: 1, until: c.patient, retry: c.patient, reset: now + reset}
	}
}

// held answers an ask by a refusal that is held, or tells that there is none.
func (c *account) held(a *weir.Ask, v *weir.Verdict, now, at, left int64) bool {
	h := &c.refusal
	if now >= h.until || a.Cost < h.cost || a.Slack > 0 || a.Shadow {
		return false
	}
	*v = weir.Verdict{At: at, Retry: algo.Never, Reset: max(h.reset-now, 1), Remaining: min(c.remaining+left, a.Cost-1)}
	if h.retry != algo.Never && a.Cost <= c.policy.Params().Cap {
		v.Retry = h.retry - now
	}
	return true
}

// retire ends all loans, to be given back.
func (c *account) retire() {
	for i := range c.slots[:c.n] {
		s := &c.slots[i]
		s.left, s.back = 0, s.back+s.left
		s.until = 0 // nor is anything put into it again
	}
}

// drop ends all loans, to be forgotten.
func (c *account) drop() {
	c.n, c.refusal = 0, heldRefusal{}
	c.epoch++
}

// report is what is to be said of the oldest loan, and of others of its name. It is said
// once: from here on it counts as said.
func (c *account) report(now int64) (q algo.Loan) {
	at := c.instant(now)
	for i := range c.slots[:c.n] {
		if s := &c.slots[i]; !s.alive(now, at) {
			s.left, s.back = 0, s.back+s.left
		}
	}
	if c.n == 0 {
		return q
	}
	q.Name = c.slots[0].name
	n := 0
	for _, s := range c.slots[:c.n] {
		if s.name == q.Name {
			q.Used, q.Back = q.Used+s.used, q.Back+s.back
			s.used, s.back = 0, 0
		}
		if s.left+s.used+s.back > 0 {
			c.slots[n] = s
			n++
		}
	}
	c.n = n
	return q
}

// overdue is whether there are units to give back.
func (c *account) overdue(now int64) bool {
	at := c.instant(now)
	for i := range c.slots[:c.n] {
		if s := &c.slots[i]; s.back > 0 || s.left > 0 && !s.alive(now, at) {
			return true
		}
	}
	return false
}

// borrow adds a loan that was asked for at sent.
func (c *account) borrow(g *weir.Grant, sent int64) *slot {
	c.refusal = heldRefusal{}
	s := &c.slots[c.n]
	*s = slot{name: g.Name, at: g.At, end: g.At + g.Life, left: g.Units,
		// The store's instant is later than sent, and a hundredth is more than the rates of
		// two clocks differ.
		until: sent + g.Life - (g.Life+99)/100}
	c.n++
	return s
}

// demand is how many units were asked for in a span of time until now. It counts by
// spans, and weighs the one before by what is left of it.
type demand struct{ start, sum, before int64 }

// enough bounds a demand, so that its arithmetic fits a word.
const enough = 1 << 40

func (d *demand) add(now, span, n int64) {
	d.roll(now, span)
	d.sum = min(d.sum+min(n, enough), enough)
}

func (d *demand) over(now, span int64) int64 {
	d.roll(now, span)
	return d.sum + d.before*(span-(now-d.start))/span
}

func (d *demand) roll(now, span int64) {
	switch gone := now - d.start; {
	case gone < span:
	case gone < 2*span:
		d.start, d.before, d.sum = d.start+span, d.sum, 0
	default:
		*d = demand{start: now}
	}
}
