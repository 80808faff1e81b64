package tier_test

import (
	"context"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// bank is a store that lends, by algo alone and under one lock: what Redis does, in a
// few lines, on a clock that tests move. It never forgets.
type bank struct {
	clock weir.Clock

	mu       sync.Mutex
	accounts map[account]*held
}

type account struct{ policy, key string }

type held struct {
	state  algo.State
	ledger algo.Ledger
	log    []algo.Entry
}

func newBank(c weir.Clock) *bank { return &bank{clock: c, accounts: make(map[account]*held)} }

func (b *bank) of(p *weir.Policy, key []byte) *held {
	a := account{p.ID(), string(key)}
	h := b.accounts[a]
	if h == nil {
		h = new(held)
		b.accounts[a] = h
	}
	return h
}

func (b *bank) now() int64 { return max(b.clock.Now().UnixMicro(), 0) }

func (h *held) decide(p *algo.Params, now, cost, slack int64) (algo.State, algo.Verdict) {
	if p.Kind == algo.SlidingLog {
		return algo.DecideLog(p, h.state, h.log, now, cost)
	}
	if p.Kind == algo.Bucket && h.ledger != (algo.Ledger{}) {
		h.state, h.ledger = algo.Settle(p, h.state, h.ledger, now)
	}
	return algo.Decide(p, h.state, now, cost, slack)
}

func (b *bank) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return b.judge(ctx, asks, out, true)
}

func (b *bank) Peek(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return b.judge(ctx, asks, out, false)
}

func (b *bank) judge(ctx context.Context, asks []weir.Ask, out []weir.Verdict, take bool) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now, allowed := b.now(), true
	for i := range asks {
		a := &asks[i]
		h := b.of(a.Policy, a.Key)
		s, v := h.decide(a.Policy.Params(), now, a.Cost, a.Slack)
		out[i] = weir.VerdictOf(v, max(now, s.At))
		allowed = allowed && (v.OK || a.Shadow)
	}
	for i := range asks {
		a, v := &asks[i], &out[i]
		if !v.OK {
			continue
		}
		h, p := b.of(a.Policy, a.Key), a.Policy.Params()
		if take && (allowed || a.Shadow) {
			h.state, _ = h.decide(p, now, a.Cost, a.Slack)
			if p.Kind == algo.SlidingLog {
				h.state, h.log = algo.Record(p, h.state, h.log, a.Cost)
			}
			continue
		}
		_, look := h.decide(p, now, 0, 0)
		v.Remaining, v.Reset = look.Remaining, look.Reset
	}
	return allowed, nil
}

func (b *bank) Adjust(ctx context.Context, asks []weir.Ask) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for i := range asks {
		a := &asks[i]
		h, p := b.of(a.Policy, a.Key), a.Policy.Params()
		switch {
		case p.Kind == algo.SlidingLog:
			h.state, h.log = algo.AdjustLog(p, h.state, h.log, now, a.At, a.Cost)
		case p.Kind == algo.Bucket:
			h.state, h.ledger = algo.AdjustLent(p, h.state, h.ledger, now, a.At, a.Cost)
		default:
			h.state = algo.Adjust(p, h.state, now, a.At, a.Cost)
		}
	}
	return nil
}

func (b *bank) Reset(ctx context.Context, asks []weir.Ask) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range asks {
		*b.of(asks[i].Policy, asks[i].Key) = held{}
	}
	return nil
}

func (b *bank) Lend(ctx context.Context, loans []weir.Loan, out []weir.Grant) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for i := range loans {
		l := &loans[i]
		h := b.of(l.Policy, l.Key)
		var g algo.Grant
		h.state, h.ledger, g = algo.Lend(l.Policy.Params(), h.state, h.ledger, now, l.Loan)
		out[i] = weir.Grant{Grant: g, At: max(now, h.state.At)}
	}
	return nil
}

func (b *bank) Supports(p *weir.Policy) error {
	if p.Params().Kind == algo.WarmUp {
		return weir.ErrUnsupported
	}
	return nil
}
