package tier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

// ErrOpen is the error of a [Breaker] that is open. It is also weir.ErrUnavailable.
var ErrOpen = fmt.Errorf("%w: it has failed again and again, and is not asked until it answers", weir.ErrUnavailable)

// BreakerOptions configure a [Breaker]. The zero value is usable.
type BreakerOptions struct {
	// Failures is how many calls of one second must have failed before it opens; 0 means
	// 5. It also opens if nothing but failures were heard for a second and more.
	Failures int
	// Percent is how much of all calls of that second they must be, 1 to 100; 0 means
	// 50. In front of a Cluster, of which a part may be down, it is rather 90.
	Percent int
	// Pause is how long it stays open at least before the store is probed; it doubles
	// with each probe that fails, up to four times as long, and up to as much again is
	// added by chance, lest all nodes probe at once. 0 means 250 ms.
	Pause time.Duration
	// Gather, if not nil, is called when the store answers again, and returns when the
	// other nodes have found that too, or enough was waited for them: while some ask the
	// store and others decide without it, they allow more than either.
	Gather func(context.Context)
	// Settle, if not nil, is called then, before anybody else may ask the store: for what
	// was decided without it. Its context ends after a second.
	Settle func(context.Context)
	// Rest is for how long it stays open after Settle, until all others have settled too.
	Rest time.Duration
	// OnChange, if not nil, is called when it has opened and just before it closes, by one
	// goroutine at a time.
	OnChange func(open bool)
	// Clock is nil for the system's.
	Clock weir.Clock
}

// Breaker is a [weir.Store] that fails at once while the store behind it does: callers
// wait for a store that is down only until enough of them have. Then it probes the store
// by a charge of its own, and lets all through again when that works; the queue
// of the store is bounded, so they need no slow start.
//
// A call fails if its error is weir.ErrUnavailable. A caller whose own time is over says
// nothing of the store. All methods may be called concurrently.
type Breaker struct {
	inner weir.Lender
	o     BreakerOptions
	ctx   context.Context // ends by Close
	close context.CancelFunc
	probe sync.WaitGroup

	open atomic.Bool
	// turn counts how often it has opened: a call that began before says nothing of what
	// came after.
	turn      atomic.Uint64
	succeeded atomic.Int64
	rejected  atomic.Int64
	probes    atomic.Int64

	mu     sync.Mutex
	since  time.Time // the second that is counted
	failed int64     // in it
	before int64     // succeeded at its beginning
	ill    time.Time // the first of the failures without a success between
	well   int64     // succeeded then
}

var (
	_ weir.Lender    = (*Breaker)(nil)
	_ weir.Holder    = (*Breaker)(nil)
	_ weir.Supporter = (*Breaker)(nil)
)

// NewBreaker puts a breaker in front of a store. It is closed, which means that calls
// pass.
func NewBreaker(inner weir.Lender, o BreakerOptions) *Breaker {
	if o.Failures <= 0 {
		o.Failures = 5
	}
	if o.Percent <= 0 {
		o.Percent = 50
	}
	if o.Pause <= 0 {
		o.Pause = 250 * time.Millisecond
	}
	if o.Clock == nil {
		o.Clock = weir.SystemClock()
	}
	b := &Breaker{inner: inner, o: o}
	b.ctx, b.close = context.WithCancel(context.Background())
	return b
}

// Close ends the probing. A breaker that is open stays so.
func (b *Breaker) Close() {
	b.mu.Lock() // lest probing begins after its end has been waited for
	b.close()
	b.mu.Unlock()
	b.probe.Wait()
}

// BreakerStats are the figures of a [Breaker].
type BreakerStats struct {
	Open     bool
	Opened   int64 // how often, since the start
	Probes   int64
	Rejected int64 // calls that failed at once
}

// Stats returns the figures.
func (b *Breaker) Stats() BreakerStats {
	return BreakerStats{Open: b.open.Load(), Opened: int64(b.turn.Load()), Probes: b.probes.Load(), Rejected: b.rejected.Load()}
}

// call makes a call for a key, or none if the breaker is open.
func (b *Breaker) call(key []byte, do func() error) error {
	turn := b.turn.Load()
	if b.open.Load() {
		b.rejected.Add(1)
		return ErrOpen
	}
	err := do()
	switch {
	case err == nil:
		b.succeeded.Add(1)
	case errors.Is(err, weir.ErrUnavailable):
		b.fail(turn, key)
	}
	return err
}

// fail counts a failure, and opens if it is one too many.
func (b *Breaker) fail(turn uint64, key []byte) {
	b.mu.Lock()
	if turn != b.turn.Load() || b.open.Load() || b.ctx.Err() != nil { // of the past
		b.mu.Unlock()
		return
	}
	now, succeeded := b.o.Clock.Now(), b.succeeded.Load()
	if now.Sub(b.since) >= time.Second {
		b.since, b.failed, b.before = now, 0, succeeded
	}
	if b.ill.IsZero() || succeeded != b.well {
		b.ill, b.well = now, succeeded
	}
	b.failed++
	all := b.failed + succeeded - b.before
	opens := now.Sub(b.ill) >= time.Second || b.failed >= int64(b.o.Failures) && b.failed*100 >= all*int64(b.o.Percent)
	if opens {
		b.turn.Add(1)
		b.open.Store(true)
		b.probe.Add(1)
	}
	b.mu.Unlock()
	if !opens {
		return
	}
	if b.o.OnChange != nil {
		b.o.OnChange(true)
	}
	go b.heal(bytes.Clone(key))
}

// heal probes until the store answers for a key that it failed for, and closes the
// breaker. In a Cluster another part of it says nothing of that key's.
func (b *Breaker) heal(key []byte) {
	defer b.probe.Done()
	policy, err := weir.NewPolicy("weir-probe", weir.PerSecond(1000))
	if err != nil {
		panic(err) // a constant
	}
	for pause := b.o.Pause; ; pause = min(2*pause, 4*b.o.Pause) {
		if b.o.Clock.Sleep(b.ctx, pause+mathrand.N(pause)) != nil {
			return
		}
		if b.answers(policy, key) {
			break
		}
	}
	if b.o.Gather != nil {
		b.o.Gather(b.ctx)
	}
	if b.o.Settle != nil {
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		b.o.Settle(ctx)
		cancel()
	}
	if b.o.Clock.Sleep(b.ctx, b.o.Rest) != nil {
		return
	}
	if b.o.OnChange != nil { // before calls pass that may open it, and tell of that
		b.o.OnChange(false)
	}
	b.mu.Lock()
	b.since, b.ill = time.Time{}, time.Time{}
	b.open.Store(false)
	b.mu.Unlock()
}

// answers charges the key under a policy that nobody else has: a store that only reads is
// no use.
func (b *Breaker) answers(policy *weir.Policy, key []byte) bool {
	b.probes.Add(1)
	ctx, cancel := context.WithTimeout(b.ctx, time.Second)
	defer cancel()
	var out [1]weir.Verdict
	_, err := b.inner.Take(ctx, []weir.Ask{{Policy: policy, Key: key, Cost: 1}}, out[:])
	return err == nil
}

// keyOf is the key of the first of some asks.
func keyOf(asks []weir.Ask) []byte {
	if len(asks) == 0 {
		return nil
	}
	return asks[0].Key
}

// Take implements [weir.Store].
func (b *Breaker) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (allowed bool, err error) {
	err = b.call(keyOf(asks), func() (err error) {
		allowed, err = b.inner.Take(ctx, asks, out)
		return err
	})
	return allowed, err
}

// Peek implements [weir.Store].
func (b *Breaker) Peek(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (allowed bool, err error) {
	err = b.call(keyOf(asks), func() (err error) {
		allowed, err = b.inner.Peek(ctx, asks, out)
		return err
	})
	return allowed, err
}

// Adjust implements [weir.Store].
func (b *Breaker) Adjust(ctx context.Context, asks []weir.Ask) error {
	return b.call(keyOf(asks), func() error { return b.inner.Adjust(ctx, asks) })
}

// Reset implements [weir.Store].
func (b *Breaker) Reset(ctx context.Context, asks []weir.Ask) error {
	return b.call(keyOf(asks), func() error { return b.inner.Reset(ctx, asks) })
}

// Lend implements [weir.Lender].
func (b *Breaker) Lend(ctx context.Context, loans []weir.Loan, out []weir.Grant) error {
	var key []byte
	if len(loans) > 0 {
		key = loans[0].Key
	}
	return b.call(key, func() error { return b.inner.Lend(ctx, loans, out) })
}

// Hold implements [weir.Holder] for a store that does.
func (b *Breaker) Hold(ticks int64) { hold(b.inner, ticks) }

// Supports implements [weir.Supporter] for a store that does.
func (b *Breaker) Supports(p *weir.Policy) error { return supports(b.inner, p) }
