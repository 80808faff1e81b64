package weir

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/algo"
)

// Options are the parts of the world a [Limiter] may be given. The zero value is
// usable.
type Options[R any] struct {
	// Clock is what Wait sleeps by and reads deadlines with; nil is the system's. It
	// does not decide: the Store has its own.
	Clock Clock
	// Observer hears of every decision; nil is nobody.
	Observer Observer[R]
	// Local decides FailLocal rules while the store cannot; nil is a Memory of the
	// default size.
	Local Store
}

// A Limiter decides requests of type R by a [Ruleset], which [Limiter.Swap]
// replaces while it runs. All methods may be called concurrently.
type Limiter[R any] struct {
	store  Store
	local  Store
	clock  Clock
	obs    Observer[R]
	rules  atomic.Pointer[compiled[R]]
	frames sync.Pool
}

// New makes a limiter. The error is a [*ConfigError], or several joined.
func New[R any](s Store, rs Ruleset[R], o Options[R]) (*Limiter[R], error) {
	l := &Limiter[R]{store: s, local: o.Local, clock: o.Clock, obs: o.Observer}
	if l.clock == nil {
		l.clock = SystemClock()
	}
	if l.local == nil {
		l.local = NewMemory(MemoryOptions{Clock: o.Clock})
	}
	l.frames.New = func() any { return new(frame) }
	if err := l.Swap(rs); err != nil {
		return nil, err
	}
	return l, nil
}

// compiled is a Ruleset whose limits are exact numbers.
type compiled[R any] struct {
	owner   *Limiter[R]
	version string
	rules   []compiledRule[R]
	byID    map[string]*Policy // those of missing keys among them
	sel     func(dst []int, r R) []int
}

type compiledRule[R any] struct {
	Rule[R]
	policies []*Policy
	missing  []*Policy // the same limits for requests without a key, kept apart
	rollout  uint64    // 0: enforce for every key
}

// Swap replaces the rules at once: requests already being decided finish under
// the old ones. What was used stays used; a rule counts on under its name, and
// starts afresh if its algorithm or the length of its fixed or sliding window
// changed (SlidingLog and SlidingSlices count in one way and go on). On an error, a
// [*ConfigError] or several joined, the old rules stay.
func (l *Limiter[R]) Swap(rs Ruleset[R]) error {
	c, err := l.compile(rs)
	if err != nil {
		return err
	}
	ticks := c.matters(l.rules.Load())
	l.hold(ticks) // before the new rules ask, and after the last of the old ones have charged
	l.rules.Store(c)
	l.hold(ticks)
	return nil
}

// matters is for how many ticks use may matter under numbers that old did not have,
// 0 if none changed.
func (c *compiled[R]) matters(old *compiled[R]) (ticks int64) {
	if old == nil {
		return 0
	}
	for id, p := range c.byID {
		if o := old.byID[id]; o != nil && o.params != p.params {
			ticks = max(ticks, p.horizon())
		}
	}
	return ticks
}

// hold keeps the stores from forgetting by the old numbers.
func (l *Limiter[R]) hold(ticks int64) {
	if ticks == 0 {
		return
	}
	for _, s := range []Store{l.store, l.local} {
		if h, ok := s.(Holder); ok {
			h.Hold(ticks)
		}
	}
}

// Version is that of the Ruleset in force.
func (l *Limiter[R]) Version() string { return l.rules.Load().version }

// Policies are those of the Ruleset in force, in order.
func (l *Limiter[R]) Policies() []*Policy {
	var all []*Policy
	for _, rule := range l.rules.Load().rules {
		all = append(all, rule.policies...)
	}
	return all
}

func (l *Limiter[R]) compile(rs Ruleset[R]) (*compiled[R], error) {
	c := &compiled[R]{version: rs.Version, sel: rs.Select, rules: make([]compiledRule[R], len(rs.Rules)),
		owner: l, byID: make(map[string]*Policy)}
	supporter, _ := l.store.(Supporter)
	var errs []error
	seen := make(map[string]int, len(rs.Rules))
	for i, rule := range rs.Rules {
		fail := func(format string, args ...any) {
			name := rule.Name
			if name == "" {
				name = fmt.Sprintf("#%d", i+1)
			}
			errs = append(errs, &ConfigError{Rule: name, Err: fmt.Errorf(format, args...)})
		}
		if err := checkName(rule.Name); err != nil {
			fail("%w", err)
			continue
		}
		if first, twice := seen[rule.Name]; twice {
			fail("the name is taken by rule #%d; names are unique", first+1)
		}
		seen[rule.Name] = i
		if rule.Rollout < 0 || rule.Rollout > 10000 {
			fail("rollout %d is not within 0 and 10000", rule.Rollout)
		}
		if rule.NoKey == FallbackKey && rule.Fallback == nil {
			fail("NoKey is FallbackKey and Fallback is nil")
		}
		cr := compiledRule[R]{Rule: rule, rollout: uint64(rule.Rollout) % 10000}
		for n, limit := range rule.Limits {
			p, err := newPolicy(rule.Name, n, limit)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			p.Tag, p.Fast = rule.Tag, rule.Fast
			if rule.Unit != "" {
				p.Unit = rule.Unit
			}
			if supporter != nil {
				if err := supporter.Supports(p); err != nil {
					errs = append(errs, &ConfigError{Rule: p.Name, Err: err})
				}
			}
			cr.policies = append(cr.policies, p)
			missing := p.without()
			cr.missing = append(cr.missing, missing)
			c.byID[p.id], c.byID[missing.id] = p, missing
		}
		c.rules[i] = cr
	}
	return c, errors.Join(errs...)
}

// verb is what a decision does to the store.
type verb uint8

const (
	take verb = iota
	peek
	again // a further attempt of Wait: shadow rules have had their say
)

// fromRules takes each rule's own longest wait as the slack.
const fromRules = math.MinInt64

// Take decides r, and charges it if it is allowed. Take never waits; an allowed
// Decision may say in its Wait that the request should. A failing store is not an
// error but a Degraded decision; the error is that of a ctx that is over, if the
// store minds it. Memory decides all the same.
func (l *Limiter[R]) Take(ctx context.Context, r R) (d Decision, err error) {
	err = l.decide(ctx, r, take, fromRules, &d)
	return d, err
}

// Peek tells what Take would decide, and what is left now. It charges nothing
// and is not observed.
func (l *Limiter[R]) Peek(ctx context.Context, r R) (d Decision, err error) {
	err = l.decide(ctx, r, peek, fromRules, &d)
	return d, err
}

// Wait takes r as soon as it is allowed and returns when it may go on, or fails
// at once, taking nothing, with ErrDeadline if that would be after ctx's
// deadline and with ErrNever if it can never be. If ctx ends during the wait,
// what was taken is given back. Waiters of buckets, queues and fixed windows hold
// a place; for the other algorithms they try again when the verdict promises
// success, in no particular order.
func (l *Limiter[R]) Wait(ctx context.Context, r R) (Decision, error) {
	for attempt := take; ; attempt = again {
		slack := int64(math.MaxInt64)
		deadline, limited := ctx.Deadline()
		if limited {
			slack = max(deadline.Sub(l.clock.Now()).Microseconds(), 0)
		}
		var d Decision
		switch err := l.decide(ctx, r, attempt, slack, &d); {
		case err != nil:
			return d, err
		case d.Allowed:
			if err := l.clock.Sleep(ctx, d.Wait); err != nil {
				// The context is over; giving back must not depend on it.
				return d, errors.Join(err, l.Refund(context.WithoutCancel(ctx), r, &d))
			}
			return d, nil
		case d.RetryAfter < 0:
			return d, ErrNever
		case limited && d.soonest(slack) > slack:
			return d, ErrDeadline
		}
		if err := l.clock.Sleep(ctx, max(d.RetryAfter, time.Microsecond)); err != nil {
			return d, err
		}
	}
}

// soonest is when a request that was refused with this slack could go on at the
// earliest, in ticks. The RetryAfter of a policy that hands out waits says when
// the wait would be as short as the slack; but the time until then comes off
// what is left to wait, so for these it is the wait itself that counts.
func (d *Decision) soonest(slack int64) (ticks int64) {
	for i := range d.count {
		lim := d.at(i)
		if lim.flags&(flagOK|flagShadow) != 0 {
			continue
		}
		at := lim.retry
		switch lim.policy.params.Kind {
		case algo.Bucket, algo.FixedWindow, algo.WarmUp:
			at += slack
		case algo.Queue:
			at = max(at, lim.reset) // all who are before it in the queue
		}
		ticks = max(ticks, at)
	}
	return ticks
}

// decide is one decision. It works in the caller's d and a pooled frame.
func (l *Limiter[R]) decide(ctx context.Context, r R, do verb, slack int64, d *Decision) error {
	f := l.frames.Get().(*frame)
	set := l.rules.Load()
	d.Version, d.set = set.version, set
	refused := set.collect(f, d, r, do, slack)
	allowed, err := l.ask(ctx, f, do, refused)
	if err != nil && ctx.Err() == nil {
		if l.obs != nil {
			l.obs.StoreFailed(ctx, r, err)
		}
		allowed, err = l.outage(ctx, set, f, d, do, refused), nil
	}
	if err != nil {
		d.RetryAfter = -1
	} else {
		f.conclude(d, allowed, do)
		if l.obs != nil && do != peek {
			f.observed = *d
			f.observed.frame = f
			l.obs.Decided(ctx, r, &f.observed)
		}
	}
	f.release()
	l.frames.Put(f)
	return err
}

// collect asks every rule that applies what it has to ask. It returns whether a
// rule refuses without asking.
func (c *compiled[R]) collect(f *frame, d *Decision, r R, do verb, slack int64) (refused bool) {
	n := len(c.rules)
	if c.sel != nil {
		f.selected = c.sel(f.selected[:0], r)
		n = len(f.selected)
	}
	for i := range n {
		if c.sel != nil {
			i = f.selected[i]
		}
		rule := &c.rules[i]
		if rule.Mode == Off || rule.Match != nil && !rule.Match(r) {
			continue
		}
		if len(rule.policies) > 0 {
			refused = rule.collect(f, d, i, r, do, slack) || refused
		}
		if rule.Final {
			break
		}
	}
	return refused
}

func (rule *compiledRule[R]) collect(f *frame, d *Decision, i int, r R, do verb, slack int64) (refused bool) {
	shadow := rule.Mode == Shadow
	policies, flags := rule.policies, uint8(0)
	from := len(f.keys)
	if rule.Key != nil {
		key, ok := rule.Key(f.keys, r)
		if !ok {
			key, policies, flags = key[:from], rule.missing, flagMissing
			switch rule.NoKey {
			case SkipRule:
				return false
			case FallbackKey:
				if key, ok = rule.Fallback(key, r); !ok {
					return false
				}
			case RefuseRequest:
				if shadow && do == again {
					return false
				}
				if shadow {
					flags |= flagShadow
				}
				d.add(rule.policies[0], i, flags).retry = algo.Never
				return !shadow
			}
		}
		f.keys = key
	}
	key := f.keys[from:len(f.keys):len(f.keys)]
	if rule.rollout != 0 && !shadow {
		shadow = share(rule.Name, key) >= rule.rollout
	}
	if shadow && do == again {
		return false
	}
	cost := int64(1)
	if rule.Cost != nil {
		cost = max(rule.Cost(r), 0)
	}
	for _, p := range policies {
		wait := slack
		if slack == fromRules {
			wait = p.slack
		}
		f.ask(d, p, key, cost, wait, shadow, i, flags)
	}
	return false
}

// share places a key among 10,000, the same way on every node.
func share(rule string, key []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(rule))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(key)
	x := h.Sum64() // FNV's high bits know little of the last bytes: mix before the modulus
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return x % 10000
}

// ask asks the store. If a rule refused without asking, enforced asks are only
// looked at, and shadow asks have their say all the same.
func (l *Limiter[R]) ask(ctx context.Context, f *frame, do verb, refused bool) (allowed bool, err error) {
	out := f.verdicts()
	switch {
	case len(f.asks) == 0:
		return !refused, ctx.Err()
	case do == peek:
		allowed, err = l.store.Peek(ctx, f.asks, out)
	case refused:
		n := f.toFront(func(i int) bool { return f.asks[i].Shadow })
		return false, split(ctx, l.store, f, n)
	default:
		allowed, err = l.store.Take(ctx, f.asks, out)
	}
	return allowed && !refused, err
}

// split takes the first n asks, which are shadows, and peeks at the others.
func split(ctx context.Context, s Store, f *frame, n int) error {
	if n > 0 {
		if _, err := s.Take(ctx, f.asks[:n], f.out[:n]); err != nil {
			return err
		}
	}
	if n < len(f.asks) {
		if _, err := s.Peek(ctx, f.asks[n:], f.out[n:]); err != nil {
			return err
		}
	}
	return nil
}

// Reset forgets what r's keys have used under every rule that applies to r.
func (l *Limiter[R]) Reset(ctx context.Context, r R) error {
	f := l.frames.Get().(*frame)
	defer func() {
		f.release()
		l.frames.Put(f)
	}()
	var d Decision
	l.rules.Load().collect(f, &d, r, take, 0)
	if len(f.asks) == 0 {
		return nil
	}
	return errors.Join(l.store.Reset(ctx, f.asks), l.local.Reset(ctx, f.asks))
}
