package weir

import (
	"context"

	"github.com/weirhq/weir/algo"
)

// Refund gives back what d charged, as far as it is still held, and marks it in
// d, so that a second Refund gives nothing. r is the request that d decided: its
// keys are computed again, nothing is retained in between.
func (l *Limiter[R]) Refund(ctx context.Context, r R, d *Decision) error {
	return l.adjust(ctx, r, d, func(lim *limited) (int64, bool) { return 0, true })
}

// Settle replaces the estimated cost of the policies that count unit by the
// actual one: what was taken too much is given back, what was taken too little is
// charged without asking, so that a balance may become negative. It may be called
// again with a better figure.
func (l *Limiter[R]) Settle(ctx context.Context, r R, d *Decision, unit string, actual int64) error {
	actual = min(max(actual, 0), algo.Max)
	return l.adjust(ctx, r, d, func(lim *limited) (int64, bool) { return actual, lim.policy.Unit == unit })
}

// adjust brings what each charged policy was charged to the cost that want
// names, in the store that charged it.
func (l *Limiter[R]) adjust(ctx context.Context, r R, d *Decision, want func(*limited) (int64, bool)) error {
	set, ok := d.set.(*compiled[R])
	if !ok || set.owner != l {
		return nil // a zero Decision, or one of another limiter: it charged nothing here
	}
	inForce := l.rules.Load()
	f := l.frames.Get().(*frame)
	defer func() {
		f.release()
		l.frames.Put(f)
	}()
	for _, charger := range []struct {
		s    Store
		flag uint8
	}{{l.store, 0}, {l.local, flagLocal}} {
		f.asks, f.refs = f.asks[:0], f.refs[:0]
		for i := range d.count {
			lim := d.at(i)
			cost, wanted := want(lim)
			if !wanted || lim.flags&flagLocal != charger.flag || lim.flags&flagCharged == 0 || cost == lim.cost {
				continue
			}
			from := len(f.keys)
			key, ok := set.rules[lim.rule].chargedKey(f.keys, r, lim)
			if !ok {
				continue // r is not the request that was charged
			}
			f.keys = key
			f.asks = append(f.asks, Ask{Policy: inForce.counting(lim.policy), Key: key[from:len(key):len(key)],
				Cost: cost - lim.cost, At: lim.charged, Spilled: lim.flags&flagSpilled != 0})
			f.refs = append(f.refs, i)
		}
		if len(f.asks) == 0 {
			continue
		}
		if err := charger.s.Adjust(ctx, f.asks); err != nil {
			return err
		}
		for i, ref := range f.refs {
			d.at(ref).cost += f.asks[i].Cost
		}
	}
	return nil
}

// chargedKey appends the key under which r was charged.
func (rule *compiledRule[R]) chargedKey(dst []byte, r R, lim *limited) (key []byte, ok bool) {
	switch {
	case lim.flags&flagMissing != 0 && rule.NoKey == FallbackKey:
		return rule.Fallback(dst, r)
	case lim.flags&flagMissing == 0 && rule.Key != nil:
		return rule.Key(dst, r)
	}
	return dst, true
}

// counting is the policy that counts on in the state of p. Under the numbers of p
// itself, which a reload may have replaced, the state would be aged by another
// window than its own.
func (c *compiled[R]) counting(p *Policy) *Policy {
	if now := c.byID[p.id]; now != nil {
		return now
	}
	return p
}
