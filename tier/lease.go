package tier

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// LeaseOptions configure a [Lease]. The zero value is usable.
type LeaseOptions struct {
	// MaxKeys bounds the keys remembered, counted over all policies; 0 means 100,000.
	// They take about 500 bytes each and their key. A key that finds no place is asked
	// for one by one.
	MaxKeys int
	// Clock measures how old a loan is; nil is the system's. Only differences matter:
	// decisions are by the store's own clock. It must not run slower than the store's
	// by 1 % or more, nor stand still while the machine sleeps for longer than a loan
	// lives.
	Clock weir.Clock
}

// Lease is a [weir.Store] that borrows units of busy keys ahead of their use and then
// decides by itself, without a call. Only asks of a policy that is Fast and whose limit
// is lent, see algo.Params.Lending, are decided so; all else is the store's to decide.
//
// Nothing is decided here but what the store has charged before. So no key is ever
// allowed more than its limit, whatever number of nodes borrow and whichever of them
// crash; see package algo. What is borrowed and not used is lost to other nodes until
// it is given back or dead: [Promise] says how much that may be.
//
// Who finds too few units is judged by the store, unless the key is busy and units are
// scarce: the store has just refused as much or less, or lent less than was asked for and
// has less than that left. Then who finds too few is refused here, for half of the time
// that loans are for, at most 50 ms, and units come back to be lent meanwhile; Retry says
// so. Without it every unit of a key that is asked for more than it has would cost a
// call. A key is busy if this node is asked for 20 units and more in 100 ms.
//
// A key that is asked for twice in a short time is lent what it was asked for lately,
// in the background and before the units run out, many keys by one call. What is left is
// given back when the key falls idle. The goroutine that does all this ends when no loan
// is alive, which is a second or two after the last one.
//
// A reload that changes a limit ends its loans here at the first ask under the new numbers;
// until then the old ones count.
//
// All methods may be called concurrently.
type Lease struct {
	inner  weir.Lender
	clock  weir.Clock
	latest atomic.Int64 // of a Clock that may step back
	system bool
	seeds  seeds
	shards [shards]shard
	limit  int // keys of a shard
	loans  loans
	rules  current
	pool   sync.Pool // of *part
}

var (
	_ weir.Store     = (*Lease)(nil)
	_ weir.Holder    = (*Lease)(nil)
	_ weir.Supporter = (*Lease)(nil)
)

// NewLease puts a borrower in front of a store that lends. It starts no goroutine, but
// the first loan does; see [Lease.Close].
func NewLease(inner weir.Lender, o LeaseOptions) *Lease {
	if o.MaxKeys <= 0 {
		o.MaxKeys = 100_000
	}
	l := &Lease{inner: inner, clock: o.Clock, seeds: newSeeds(), limit: max(o.MaxKeys/shards, 1)}
	if o.Clock == nil {
		l.clock, l.system = weir.SystemClock(), true
	}
	for i := range l.shards {
		l.shards[i].accounts = make(map[place]*account)
	}
	l.loans.wake = make(chan struct{}, 1)
	l.loans.ctx, l.loans.cancel = context.WithCancel(context.Background())
	l.pool.New = func() any { return new(part) }
	return l
}

// LeaseStats are the figures of a [Lease].
type LeaseStats struct {
	Local int64 // requests decided here since the start
	Loans int64 // loans asked for since the start, one for each key
	Calls int64 // calls that asked for loans or reported on them
	Lent  int64 // units lent since the start
	Back  int64 // units given back unused
	Keys  int   // keys remembered
}

// Stats counts the figures, one shard at a time.
func (l *Lease) Stats() LeaseStats {
	st := LeaseStats{Loans: l.loans.asked.Load(), Calls: l.loans.calls.Load(), Lent: l.loans.lent.Load(), Back: l.loans.back.Load()}
	for i := range l.shards {
		s := &l.shards[i]
		st.Local += s.local.Load()
		s.mu.Lock()
		st.Keys += len(s.ring)
		s.mu.Unlock()
	}
	return st
}

// now never steps back, so that no loan outlives its time.
func (l *Lease) now() int64 {
	now := l.clock.Now().UnixMicro()
	if l.system {
		return now
	}
	for {
		latest := l.latest.Load()
		if now <= latest {
			return latest
		}
		if l.latest.CompareAndSwap(latest, now) {
			return now
		}
	}
}

func (l *Lease) of(a *weir.Ask) place { return l.seeds.of(a.Policy, a.Key) }

func (l *Lease) shard(id place) *shard { return &l.shards[id.hi%shards] }

// A claim is what one ask has been given of the units that are lent.
type claim struct {
	account *account // nil if it got nothing
	shard   *shard
	at      int64 // as in the verdict
	epoch   int   // of the account
	refused bool  // it got a refusal that is held
}

// Take implements [weir.Store].
func (l *Lease) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	var room [few]claim
	claims, given, refused, fast := room[:0], 0, 0, false
	now := l.now()
	for i := range asks {
		var c claim
		if a := &asks[i]; a.Policy.Fast && a.Cost > 0 {
			fast = true
			switch c = l.claim(a, &out[i], now); {
			case c.refused:
				refused++
			case c.account != nil:
				given++
			}
		} else {
			l.rules.saw(a.Policy)
		}
		claims = append(claims, c)
	}
	switch {
	case given+refused == len(asks) && len(asks) > 0:
		claims[0].shard.local.Add(1)
		if refused > 0 {
			l.giveUpAll(ctx, asks, out, claims, false)
		}
		return refused == 0, nil
	case given > 0:
		return l.takeRest(ctx, asks, out, claims)
	}
	allowed, err := l.inner.Take(ctx, asks, out)
	if err == nil && fast {
		l.learn(asks, out, claims)
	}
	return allowed, err
}

// claim decides an ask if enough units are lent.
func (l *Lease) claim(a *weir.Ask, v *weir.Verdict, now int64) claim {
	id := l.of(a)
	s := l.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := l.open(s, id, a, now)
	if c == nil {
		return claim{}
	}
	c.count(now, a.Cost)
	at := c.instant(now)
	left, ok := c.spend(now, at, a.Cost)
	if !ok {
		if c.held(a, v, now, at, left) {
			c.at = at
			return claim{shard: s, refused: true}
		}
		return claim{}
	}
	c.at = at
	c.verdict(v, at, left)
	if left <= c.reserve(now, l.loans.trip.Load())+1 {
		l.ask(c, now)
	}
	return claim{account: c, shard: s, at: at, epoch: c.epoch}
}

// A part is those asks of a request that the store is to judge.
type part struct {
	asks []weir.Ask
	out  []weir.Verdict
}

// takeRest lets the store judge the asks that have no claim, and gives up the claims if
// it refuses.
func (l *Lease) takeRest(ctx context.Context, asks []weir.Ask, out []weir.Verdict, claims []claim) (bool, error) {
	rest := l.pool.Get().(*part)
	defer func() {
		clear(rest.asks)
		l.pool.Put(rest)
	}()
	rest.asks, rest.out = rest.asks[:0], rest.out[:0]
	for i := range asks {
		if claims[i].account == nil {
			rest.asks, rest.out = append(rest.asks, asks[i]), append(rest.out, weir.Verdict{})
		}
	}
	allowed, err := l.inner.Take(ctx, rest.asks, rest.out)
	n := 0
	for i := range asks {
		if claims[i].account == nil {
			out[i] = rest.out[n]
			n++
		}
	}
	if err == nil {
		l.learn(asks, out, claims)
	}
	if err != nil || !allowed {
		l.giveUpAll(ctx, asks, out, claims, err != nil)
	}
	return allowed, err
}

// giveUpAll undoes the claims of a request that is refused, but for those of shadow asks,
// or of one that has failed.
func (l *Lease) giveUpAll(ctx context.Context, asks []weir.Ask, out []weir.Verdict, claims []claim, failed bool) {
	var told []weir.Ask
	for i := range claims {
		a := &asks[i]
		if claims[i].account == nil || !failed && a.Shadow {
			continue
		}
		if n := l.giveUp(&claims[i], a.Cost, &out[i]); n > 0 && !failed {
			told = append(told, weir.Ask{Policy: a.Policy, Key: a.Key, Cost: -n, At: claims[i].at})
		}
	}
	if told != nil {
		_ = l.inner.Adjust(ctx, told) // if it fails they are lost, and nobody is allowed too much
	}
}

// giveUp undoes a claim. It returns how many of its units the store has been told of as
// used in the meantime.
func (l *Lease) giveUp(c *claim, cost int64, v *weir.Verdict) (told int64) {
	now := l.now()
	c.shard.mu.Lock()
	defer c.shard.mu.Unlock()
	if c.epoch == c.account.epoch { // else the store knows nothing of them any more
		told = c.account.undo(now, c.at, cost)
	}
	c.account.verdict(v, c.at, c.account.left(now, c.at))
	return told
}

// learn notes what the store has said of keys that are lent or could be, adds to
// its verdicts what is lent here, and asks for loans of the keys it allowed.
func (l *Lease) learn(asks []weir.Ask, out []weir.Verdict, claims []claim) {
	now := l.now()
	for i := range asks {
		a, v := &asks[i], &out[i]
		if !a.Policy.Fast || a.Cost <= 0 || claims[i].account != nil {
			continue
		}
		id := l.of(a)
		s := l.shard(id)
		s.mu.Lock()
		if c := s.accounts[id]; c != nil && c.policy == a.Policy && !v.Spilled {
			c.hear(now, v.At, v.Remaining)
			if v.OK {
				// A loan may have come in between, and be counted twice.
				v.Remaining = min(v.Remaining+c.left(now, c.instant(now)), a.Policy.Params().Cap)
				l.ask(c, now)
			} else {
				c.refuse(now, a, v)
			}
		}
		s.mu.Unlock()
	}
}

// ask asks for a loan soon, unless one is on its way, the last one was not granted in
// full a moment ago, or the key is rarely asked for.
func (l *Lease) ask(c *account, now int64) {
	if c.again && !c.flying && now >= c.patient && c.lending.Life > 0 {
		c.flying = l.loans.add(l, c)
	}
}

// Peek implements [weir.Store]. It asks the store and adds what is lent here.
func (l *Lease) Peek(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	allowed, err := l.inner.Peek(ctx, asks, out)
	if err != nil {
		return allowed, err
	}
	now := l.now()
	allowed = true
	for i := range asks {
		a, v := &asks[i], &out[i]
		if a.Policy.Fast {
			id := l.of(a)
			s := l.shard(id)
			s.mu.Lock()
			if c := s.accounts[id]; c != nil && c.same(a.Policy) {
				left := c.left(now, c.instant(now))
				v.Remaining = min(v.Remaining+left, a.Policy.Params().Cap) // as in learn
				if !v.OK && a.Cost > 0 && left >= a.Cost {
					v.OK, v.Retry = true, 0
				}
			}
			s.mu.Unlock()
		}
		allowed = allowed && (v.OK || a.Shadow)
	}
	return allowed, nil
}

// Adjust implements [weir.Store]. What is given back of a key while a loan is alive that
// was so when it was charged may be used again here at once.
func (l *Lease) Adjust(ctx context.Context, asks []weir.Ask) error {
	now := l.now()
	var rest, ours []weir.Ask
	for i := range asks {
		if a := &asks[i]; l.refund(a, now, false) {
			ours = append(ours, *a)
		} else {
			l.rules.saw(a.Policy)
			if ours != nil {
				rest = append(rest, *a)
			}
		}
		if ours != nil && rest == nil {
			rest = append(make([]weir.Ask, 0, len(asks)), asks[:i+1-len(ours)]...)
		}
	}
	if ours == nil {
		return l.inner.Adjust(ctx, asks)
	}
	// The store comes first: if it fails nothing has been given back, and the caller
	// may try again.
	if len(rest) > 0 {
		if err := l.inner.Adjust(ctx, rest); err != nil {
			return err
		}
	}
	rest = rest[:0]
	for i := range ours {
		if !l.refund(&ours[i], now, true) {
			rest = append(rest, ours[i])
		}
	}
	if len(rest) > 0 {
		// Their loans have just ended. An error is not passed on: to try again would give
		// the others back twice.
		_ = l.inner.Adjust(ctx, rest)
	}
	return nil
}

// refund gives the units of an ask back to a loan, or tells whether it could.
func (l *Lease) refund(a *weir.Ask, now int64, commit bool) bool {
	if !a.Policy.Fast || a.Cost >= 0 || a.Spilled {
		return false
	}
	id := l.of(a)
	s := l.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.accounts[id]
	if c == nil || !c.same(a.Policy) {
		return false
	}
	c.refusal = heldRefusal{} // there is more to be had
	return c.refund(now, a.At, -a.Cost, commit)
}

// Reset implements [weir.Store]. Units that other nodes have borrowed stay theirs until
// their loans end.
func (l *Lease) Reset(ctx context.Context, asks []weir.Ask) error {
	l.drop(asks)
	err := l.inner.Reset(ctx, asks)
	l.drop(asks) // and what was lent in between
	return err
}

func (l *Lease) drop(asks []weir.Ask) {
	for i := range asks {
		id := l.of(&asks[i])
		s := l.shard(id)
		s.mu.Lock()
		if c := s.accounts[id]; c != nil {
			c.drop()
		}
		s.mu.Unlock()
	}
}

// Hold implements [weir.Holder] for a store that does.
func (l *Lease) Hold(ticks int64) { hold(l.inner, ticks) }

// Supports implements [weir.Supporter] for a store that does.
func (l *Lease) Supports(p *weir.Policy) error { return supports(l.inner, p) }

// Promise says in a sentence what a Lease promises of a policy's limit, for people who
// write rules.
func Promise(p *weir.Policy) string {
	q := p.Params()
	lending := q.Lending()
	life := time.Duration(lending.Life) * time.Microsecond
	switch {
	case !p.Fast:
		return "strict: the store decides every request"
	case lending.Life == 0:
		return "strict: the limit is too small, too short or of an algorithm that is not lent; the store decides every request"
	case q.Kind == algo.Bucket:
		// A ledger knows two generations, so units of a node that crashed are out for two
		// lives at most.
		return fmt.Sprintf("fast: never above the limit; up to %d units may lie unused at the nodes, each for %v at most, and those of a node that crashed for %v", q.Cap/2, life, 2*life)
	}
	return fmt.Sprintf("fast: never above the limit; nodes hold units for %v at most, and those of a node that crashed are lost until their window ends", life)
}
