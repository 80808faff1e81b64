package weir

import (
	"context"

	"github.com/weirhq/weir/algo"
)

// An Ask is the question of one policy about one key.
type Ask struct {
	Policy *Policy
	// Key is the partition key, any bytes. A store does not keep it after the call.
	Key []byte
	// Cost is the units asked for, at least 0; in Adjust, the correction.
	Cost int64
	// Slack is the longest wait the asker accepts, in ticks.
	Slack int64
	// At is, in Adjust, the instant of the charge that is corrected: the At plus the
	// Wait of its verdict.
	At int64
	// Spilled is, in Adjust, that of the charge's verdict.
	Spilled bool
	// Shadow asks are judged alone and refuse nothing.
	Shadow bool
}

// Verdict is the answer to one [Ask]. Its times are ticks of one microsecond.
type Verdict struct {
	OK bool
	// At is the instant of the decision, by the store's clock.
	At int64
	// Wait is how long an allowed asker waits before it goes on; else 0.
	Wait int64
	// Retry is, for a refusal, after how long the same ask would be OK, or algo.Never;
	// else 0.
	Retry int64
	// Reset is after how long nothing is held any more.
	Reset int64
	// Remaining is the units left.
	Remaining int64
	// Spilled is set by a store that had no place for the key and charged a partition
	// that others share.
	Spilled bool
}

// VerdictOf is the answer of the arithmetic, given at an instant: for stores that decide
// by package algo.
func VerdictOf(a algo.Verdict, at int64) Verdict {
	v := Verdict{OK: a.OK, At: at, Reset: a.Reset, Remaining: a.Remaining}
	if a.OK {
		v.Wait = a.Wait
	} else {
		v.Retry = a.Wait
	}
	return v
}

// A Store keeps the state of keys, owns the clock its decisions use, and
// decides asks together. The asks of one call differ in policy or key.
//
// Take charges the enforced asks if all of them are OK, and none of them
// otherwise. Then an ask that was OK by itself keeps its OK, and its Remaining and
// Reset are those without the charge. A shadow ask is judged alone: it is
// charged if it is OK itself, whatever the others say, and never refuses.
// Verdicts are written to out, which is as long as asks.
//
// All methods may be called concurrently. An error wraps ErrUnavailable or the
// context's error; then it is not known whether anything was charged.
type Store interface {
	Take(ctx context.Context, asks []Ask, out []Verdict) (allowed bool, err error)
	// Peek tells whether Take would allow, and what is left now. It charges nothing.
	Peek(ctx context.Context, asks []Ask, out []Verdict) (allowed bool, err error)
	// Adjust charges each ask's Cost without asking; a negative one gives back, never
	// more than is still held of the window that was charged at the ask's At, so that
	// no balance rises above its capacity. Slack and Shadow do not matter to it.
	Adjust(ctx context.Context, asks []Ask) error
	// Reset forgets the keys of the asks.
	Reset(ctx context.Context, asks []Ask) error
}

// A Holder is a store that forgets by itself what matters no more. Hold makes it
// keep all that it holds now for so many ticks at least: a reload has slowed a limit
// down, and what was used under the old numbers matters for longer.
type Holder interface{ Hold(ticks int64) }

// A Supporter is a store that does not run every algorithm. Rules with a policy
// it cannot run are refused when they load.
type Supporter interface {
	// Supports returns nil, or an error that wraps ErrUnsupported and names the reason.
	Supports(p *Policy) error
}
