package tier

import (
	"context"
	"math"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// RefusalsOptions configure a [Refusals]. The zero value is usable.
type RefusalsOptions struct {
	// MaxKeys bounds the refusals remembered, counted over all policies; 0 means
	// 100,000. They take about 160 bytes each, and their places 8 more from the start.
	MaxKeys int
	// Cap is for how long a refusal is remembered at most; 0 means 1 s. What another
	// node gives back or resets is seen here after that time.
	Cap time.Duration
	// Clock measures how old a refusal is; nil is the system's. Only differences matter:
	// decisions are by the store's own clock.
	Clock weir.Clock
}

// Refusals is a [weir.Store] that remembers refusals and answers the same ask by
// itself until it could pass. Its answer is the store's, to the microsecond, unless the
// key was changed in the meantime by another node, or here by a call that was under way
// at the same time: then it is that of at most Cap ago, and still a refusal that was true
// when it was learnt.
//
// A request is answered here only if the whole answer is known: every one of its asks is
// enforced, of the cost and slack that was refused, under the same numbers. A request
// with a shadow ask goes to the store, where it is counted, and so does one that
// another rule would allow, whose units left are not known here.
//
// A refusal is forgotten when the time is over after which it could pass, counted from
// before the store was asked; when this node adjusts or resets its key, or is allowed
// to charge it; and when its place is needed. All methods may be called concurrently.
type Refusals struct {
	inner  weir.Store
	clock  weir.Clock
	cap    int64
	places *places
}

var (
	_ weir.Store     = (*Refusals)(nil)
	_ weir.Holder    = (*Refusals)(nil)
	_ weir.Supporter = (*Refusals)(nil)
)

// NewRefusals puts a memory for refusals in front of a store.
func NewRefusals(inner weir.Store, o RefusalsOptions) *Refusals {
	if o.MaxKeys <= 0 {
		o.MaxKeys = 100_000
	}
	if o.Cap <= 0 {
		o.Cap = time.Second
	}
	if o.Clock == nil {
		o.Clock = weir.SystemClock()
	}
	return &Refusals{inner: inner, clock: o.Clock, cap: o.Cap.Microseconds(), places: newPlaces(o.MaxKeys)}
}

// RefusalsStats are the figures of a [Refusals].
type RefusalsStats struct {
	Local int64 // requests answered here since the start
}

// Stats returns the figures.
func (r *Refusals) Stats() RefusalsStats { return RefusalsStats{Local: r.places.hits()} }

func (r *Refusals) now() int64 { return r.clock.Now().UnixMicro() }

// few is how many asks are looked up without allocating.
const few = 4

// Take implements [weir.Store].
func (r *Refusals) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	var room [few]place
	ids := room[:0]
	for i := range asks {
		ids = append(ids, r.places.of(&asks[i]))
	}
	start := r.now()
	if r.answer(ids, asks, out, start) {
		return false, nil
	}
	changes := r.places.changes(ids)
	allowed, err := r.inner.Take(ctx, asks, out)
	if err != nil {
		return allowed, err
	}
	end := int64(-1)
	for i := range asks {
		a, v := &asks[i], &out[i]
		switch {
		case v.OK && a.Cost > 0 && (allowed || a.Shadow):
			r.places.forget(ids[i])
		case v.OK || a.Shadow:
		default:
			life := lasts(a, v)
			if life <= 0 {
				continue
			}
			if end < 0 {
				end = r.now()
			}
			r.places.remember(ids, i, changes, start, &refusal{place: ids[i], params: *a.Policy.Params(), cost: a.Cost,
				slack: patience(a), from: start, until: start + min(life, r.cap), learnt: end,
				at: v.At, retry: v.Retry, reset: v.Reset, remaining: v.Remaining})
		}
	}
	return allowed, nil
}

// answer answers all asks, or says that it cannot. What it has written by then the
// store writes over.
func (r *Refusals) answer(ids []place, asks []weir.Ask, out []weir.Verdict, now int64) bool {
	for i := range asks {
		a := &asks[i]
		if a.Shadow {
			return false
		}
		e := r.places.find(ids[i])
		if e == nil || now < e.from || now >= e.until ||
			e.cost != a.Cost || e.slack != patience(a) || e.params != *a.Policy.Params() {
			return false
		}
		e.verdict(&out[i], now)
	}
	if len(asks) == 0 {
		return false
	}
	r.places.hit(ids[0])
	return true
}

// A refusal is a verdict and what it was the answer to. It does not change.
type refusal struct {
	place            // the policy and the key
	params           algo.Params
	cost, slack      int64
	from, until      int64 // when it is true, by the clock of Refusals
	learnt           int64 // when the store's answer was here
	at, retry, reset int64 // as the store has answered
	remaining        int64
}

// verdict is what the store would answer now. The store decided between from and
// learnt; its time is counted from the later one, so that nobody is told to come back
// too early.
func (e *refusal) verdict(v *weir.Verdict, now int64) {
	age := max(now-e.learnt, 0)
	*v = weir.Verdict{At: e.at + age, Retry: e.retry, Reset: max(e.reset-age, 0), Remaining: e.remaining}
	if e.retry != algo.Never {
		v.Retry -= age
	}
}

// patience is the slack as far as it matters to the policy.
func patience(a *weir.Ask) int64 {
	switch a.Policy.Params().Kind {
	case algo.Bucket, algo.Queue, algo.FixedWindow:
		return a.Slack
	}
	return 0
}

// lasts is for how many ticks a refusal is known in full, 0 if it is not. Retry and
// Reset pass with time, but the units that are left come back one by one, at instants
// that a verdict does not tell: it does if they are one too few, since they cannot
// become more before the ask could pass. The units left in a window stay until its end.
func lasts(a *weir.Ask, v *weir.Verdict) int64 {
	if a.Cost <= 0 || v.Spilled {
		return 0
	}
	p := a.Policy.Params()
	still := v.Remaining == a.Cost-1
	switch p.Kind {
	case algo.Bucket, algo.SlidingWindow, algo.SlidingLog:
	case algo.Queue: // there may be a place and yet too long a wait
		still = still && v.Reset <= a.Slack
	case algo.FixedWindow: // places in later windows may have been handed out
		still = still || v.Reset <= p.Window-v.At%p.Window
	case algo.FirstWindow:
		still = true
	default:
		return 0
	}
	switch {
	case !still:
		return 0
	case v.Retry != algo.Never:
		return v.Retry
	case v.Reset > 0:
		return v.Reset
	}
	return math.MaxInt64
}

// Peek implements [weir.Store]. It always asks the store.
func (r *Refusals) Peek(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return r.inner.Peek(ctx, asks, out)
}

// Adjust implements [weir.Store].
func (r *Refusals) Adjust(ctx context.Context, asks []weir.Ask) error {
	err := r.inner.Adjust(ctx, asks)
	r.changed(asks)
	return err
}

// Reset implements [weir.Store].
func (r *Refusals) Reset(ctx context.Context, asks []weir.Ask) error {
	err := r.inner.Reset(ctx, asks)
	r.changed(asks)
	return err
}

// changed forgets keys, after the store has been told: what is learnt of them from then
// on is true, and takes that were asked before do not count.
func (r *Refusals) changed(asks []weir.Ask) {
	for i := range asks {
		r.places.change(r.places.of(&asks[i]))
	}
}

// Hold implements [weir.Holder] for a store that does.
func (r *Refusals) Hold(ticks int64) { hold(r.inner, ticks) }

// Supports implements [weir.Supporter] for a store that does.
func (r *Refusals) Supports(p *weir.Policy) error { return supports(r.inner, p) }

// hold passes a Hold on.
func hold(inner weir.Store, ticks int64) {
	if h, ok := inner.(weir.Holder); ok {
		h.Hold(ticks)
	}
}

// supports asks the inner store whether it supports a policy.
func supports(inner weir.Store, p *weir.Policy) error {
	if s, ok := inner.(weir.Supporter); ok {
		return s.Supports(p)
	}
	return nil
}
