package weir

import (
	"context"

	"github.com/weirhq/weir/algo"
)

// outage lets each rule's OnOutage decide: the local store first, unless a rule
// that is closed refuses anyway.
func (l *Limiter[R]) outage(ctx context.Context, set *compiled[R], f *frame, d *Decision, do verb, refused bool) (allowed bool) {
	d.Degraded = true
	policy := func(i int) Outage { return set.rules[d.at(f.refs[i]).rule].OnOutage }
	local := f.toFront(func(i int) bool { return policy(i) == FailLocal })
	out, open := f.verdicts(), Verdict{OK: true}
	for i := local; i < len(f.asks); i++ {
		if policy(i) == FailOpen {
			out[i] = open
		} else {
			out[i] = Verdict{Retry: algo.Never}
			refused = refused || !f.asks[i].Shadow
		}
	}
	allowed = !refused
	if local == 0 {
		return allowed
	}
	for i := range local {
		d.at(f.refs[i]).flags |= flagLocal
	}
	var err error
	var ok bool
	if do == peek || refused {
		ok, err = l.local.Peek(ctx, f.asks[:local], out[:local])
	} else {
		ok, err = l.local.Take(ctx, f.asks[:local], out[:local])
	}
	if err != nil { // a local store that fails has no say
		for i := range local {
			out[i] = open
		}
		return allowed
	}
	return allowed && ok
}
