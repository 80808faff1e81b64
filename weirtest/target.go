package weirtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// OnStore is the target that asks a bare store.
func OnStore(s weir.Store) Target { return &storeTarget{store: s, last: make(map[string]charge)} }

type storeTarget struct {
	store    weir.Store
	policies []storePolicy
	last     map[string]charge // by key
}

type storePolicy struct {
	*weir.Policy
	shadow, shared bool
}

// charge is what the last allowed take of a key was charged: the asks, as
// Adjust wants them.
type charge []weir.Ask

func (t *storeTarget) Policies(_ context.Context, policies []Policy) error {
	t.policies = nil
	for _, p := range policies {
		made, err := weir.NewPolicy(p.Name, p.Limit)
		if err != nil {
			return err
		}
		if p.Unit != "" {
			made.Unit = p.Unit
		}
		if s, ok := t.store.(weir.Supporter); ok {
			if err := s.Supports(made); err != nil {
				return fmt.Errorf("%w: %w", ErrCannot, err)
			}
		}
		t.policies = append(t.policies, storePolicy{made, p.Shadow, p.Shared})
	}
	return nil
}

func (t *storeTarget) Load(context.Context, string) error {
	return fmt.Errorf("%w: a bare store reads no rule files", ErrCannot)
}

func (t *storeTarget) Do(ctx context.Context, r Request) (Answer, error) {
	switch r.Verb {
	case Take, Peek:
		return t.take(ctx, r)
	case Refund:
		r.Cost = 0
		return Answer{}, t.settle(ctx, r)
	case Settle:
		return Answer{}, t.settle(ctx, r)
	case Reset:
		delete(t.last, r.Key)
		return Answer{}, t.store.Reset(ctx, t.asks(r))
	}
	return Answer{}, fmt.Errorf("%w: a bare store knows keys, not requests", ErrCannot)
}

func (t *storeTarget) asks(r Request) (asks []weir.Ask) {
	for _, p := range t.policies {
		a := weir.Ask{Policy: p.Policy, Key: []byte(r.Key), Cost: r.Cost, Slack: slack(p.Limit, r.Slack), Shadow: p.shadow}
		if p.shared {
			a.Key = nil
		}
		asks = append(asks, a)
	}
	return asks
}

// slack is how long an ask may wait: what the request accepts, or what Take
// hands out under the limit.
func slack(l weir.Limit, wanted time.Duration) int64 {
	switch {
	case wanted >= 0:
		return wanted.Microseconds()
	case l.Algorithm == weir.LeakyQueue && l.MaxWait == 0:
		return math.MaxInt64
	}
	return l.MaxWait.Microseconds()
}

func (t *storeTarget) take(ctx context.Context, r Request) (a Answer, err error) {
	asks := t.asks(r)
	out := make([]weir.Verdict, len(asks))
	if r.Verb == Peek {
		a.Allowed, err = t.store.Peek(ctx, asks, out)
	} else {
		a.Allowed, err = t.store.Take(ctx, asks, out)
	}
	if err != nil {
		return a, err
	}
	var charged charge
	for i, v := range out {
		ask := asks[i]
		a.Limits = append(a.Limits, weir.ServiceLimit{Policy: ask.Policy, OK: v.OK, Shadow: ask.Shadow,
			Remaining: v.Remaining, Reset: ticks(v.Reset), RetryAfter: ticks(v.Retry)})
		switch {
		case v.OK && a.Allowed && !ask.Shadow:
			a.Wait = max(a.Wait, ticks(v.Wait))
		case !v.OK && !ask.Shadow && (v.Retry < 0 || a.RetryAfter < 0):
			a.RetryAfter = -1
		case !v.OK && !ask.Shadow:
			a.RetryAfter = max(a.RetryAfter, ticks(v.Retry))
		}
		if v.OK && (a.Allowed || ask.Shadow) {
			ask.At = v.At + v.Wait
			charged = append(charged, ask)
		}
	}
	if a.Allowed && r.Verb == Take {
		t.last[r.Key] = charged
	}
	return a, nil
}

// settle makes the last allowed take of a key cost r.Cost after all.
func (t *storeTarget) settle(ctx context.Context, r Request) error {
	cost := min(max(r.Cost, 0), algo.Max)
	charged := t.last[r.Key]
	var asks []weir.Ask
	for i := range charged {
		if r.Unit != "" && charged[i].Policy.Unit != r.Unit || charged[i].Cost == cost {
			continue
		}
		ask := charged[i]
		ask.Cost = cost - ask.Cost
		charged[i].Cost = cost
		asks = append(asks, ask)
	}
	return t.store.Adjust(ctx, asks)
}

func ticks(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/1000)) * time.Microsecond
}

// OnLimiter is the target that asks a [weir.Limiter] on top of a store, one rule
// for each policy.
func OnLimiter(s weir.Store, clock weir.Clock) Target {
	return &limiterTarget{store: s, clock: clock, last: make(map[string]*taken)}
}

type limiterTarget struct {
	store   weir.Store
	clock   weir.Clock
	limiter *weir.Limiter[Request]
	units   []string
	last    map[string]*taken
}

// taken is the last allowed take of a key.
type taken struct {
	req Request
	d   weir.Decision
}

func (t *limiterTarget) Policies(_ context.Context, policies []Policy) (err error) {
	var rs weir.Ruleset[Request]
	t.units = nil
	for _, p := range policies {
		rule := weir.Rule[Request]{Name: p.Name, Limits: []weir.Limit{p.Limit}, Unit: p.Unit,
			Cost: func(r Request) int64 { return r.Cost }}
		if !p.Shared {
			rule.Key = func(dst []byte, r Request) ([]byte, bool) { return append(dst, r.Key...), true }
		}
		if p.Shadow {
			rule.Mode = weir.Shadow
		}
		rs.Rules = append(rs.Rules, rule)
		if unit := cmp.Or(p.Unit, "requests"); !slices.Contains(t.units, unit) {
			t.units = append(t.units, unit)
		}
	}
	if t.limiter == nil {
		t.limiter, err = weir.New(t.store, rs, weir.Options[Request]{Clock: t.clock})
	} else {
		err = t.limiter.Swap(rs)
	}
	if errors.Is(err, weir.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return err
}

func (t *limiterTarget) Load(context.Context, string) error {
	return fmt.Errorf("%w: a limiter reads no rule files", ErrCannot)
}

func (t *limiterTarget) Do(ctx context.Context, r Request) (Answer, error) {
	switch {
	case t.limiter == nil:
		return Answer{}, fmt.Errorf("%w: there is no policy yet", ErrCannot)
	case r.Verb == Send:
		return Answer{}, fmt.Errorf("%w: this limiter knows keys, not requests", ErrCannot)
	case r.Slack >= 0:
		return Answer{}, fmt.Errorf("%w: a limiter reserves nothing, it waits", ErrCannot)
	}
	switch last := t.last[r.Key]; r.Verb {
	case Peek:
		d, err := t.limiter.Peek(ctx, r)
		return Answered(&d), err
	case Refund:
		if last == nil {
			return Answer{}, nil
		}
		return Answer{}, t.limiter.Refund(ctx, last.req, &last.d)
	case Settle:
		for _, unit := range t.units {
			if last == nil || r.Unit != "" && r.Unit != unit {
				continue
			}
			if err := t.limiter.Settle(ctx, last.req, &last.d, unit, r.Cost); err != nil {
				return Answer{}, err
			}
		}
		return Answer{}, nil
	case Reset:
		delete(t.last, r.Key)
		return Answer{}, t.limiter.Reset(ctx, r)
	}
	d, err := t.limiter.Take(ctx, r)
	if d.Allowed {
		t.last[r.Key] = &taken{r, d}
	}
	return Answered(&d), err
}
