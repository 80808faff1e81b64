package weir

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/weirhq/weir/algo"
	"github.com/weirhq/weir/smooth"
)

// A Policy is one limit of one rule, under the name that headers, metrics and
// stores know it by. It is made by [NewPolicy] or by a [Limiter], and immutable
// from then on.
type Policy struct {
	// Name is the rule's name, with #2, #3… appended for its further limits.
	Name string
	// Limit is the limit as it was written.
	Limit Limit
	// Unit is what is counted: "requests", or another quota unit of
	// draft-ietf-httpapi-ratelimit-headers such as "content-bytes".
	Unit string
	// Fast is the rule's Fast.
	Fast bool
	// Tag is the rule's Tag, handed back untouched.
	Tag any

	params algo.Params
	pace   smooth.Pace // of WarmUp
	slack  int64       // the longest wait that Take hands out, in ticks
	id     string
	salt   [2]uint64
}

// NewPolicy checks a limit and gives it a name. The error is a [*ConfigError].
func NewPolicy(name string, l Limit) (*Policy, error) { return newPolicy(name, 0, l) }

// newPolicy makes the policy of a rule's limit number index, counted from 0.
func newPolicy(rule string, index int, l Limit) (*Policy, error) {
	name := rule
	if index > 0 {
		name = fmt.Sprintf("%s#%d", rule, index+1)
	}
	if err := checkName(rule); err != nil {
		return nil, &ConfigError{Rule: rule, Err: err}
	}
	params, err := l.params()
	if err != nil {
		return nil, &ConfigError{Rule: name, Err: err}
	}
	p := &Policy{Name: name, Limit: l, Unit: "requests", params: params, slack: l.slack()}
	if l.Algorithm == WarmUp {
		if p.pace, err = l.pace(); err != nil {
			return nil, &ConfigError{Rule: name, Err: err}
		}
	}
	// The identity says all that two states must share to be one: whose limit it
	// is and how it counts, but not how much it allows, so a reload keeps use.
	p.identify(fmt.Sprintf("%s\x00%d\x00%d", rule, index, params.Kind))
	return p, nil
}

func (p *Policy) identify(id string) {
	sum := sha256.Sum256([]byte(id))
	p.id = id
	p.salt = [2]uint64{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}

// without is the same policy for requests that have no key: its partitions are
// apart from those of any real key, whatever bytes that has.
func (p *Policy) without() *Policy {
	q := *p
	q.identify(p.id + "\x00no key")
	return &q
}

// checkName keeps names fit for headers, metrics, keys and log lines.
func checkName(name string) error {
	if name == "" || len(name) > 128 {
		return fmt.Errorf("a name has 1 to 128 bytes, this one %d", len(name))
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' || r == '\ufffd' }); i >= 0 {
		return fmt.Errorf("name %q has a space, control character or # at byte %d; use letters, digits, - and _", name, i)
	}
	return nil
}

// Params are the exact numbers of the limit, for stores.
func (p *Policy) Params() *algo.Params { return &p.params }

// decide asks the arithmetic of every algorithm but the log's.
func (p *Policy) decide(s algo.State, now, cost, slack int64) (algo.State, algo.Verdict) {
	if p.params.Kind == algo.WarmUp {
		return decideWarmUp(p, s, now, cost, slack)
	}
	return algo.Decide(&p.params, s, now, cost, slack)
}

// adjust corrects a charge that decide made.
func (p *Policy) adjust(s algo.State, now, at, delta int64) algo.State {
	if p.params.Kind == algo.WarmUp {
		return adjustWarmUp(p, s, now, delta)
	}
	return algo.Adjust(&p.params, s, now, at, delta)
}

// horizon is for how many ticks use can matter, overdrafts by Settle aside.
func (p *Policy) horizon() int64 {
	switch q := &p.params; q.Kind {
	case algo.Bucket, algo.Queue:
		_, v := algo.Decide(q, algo.State{}, 0, q.Cap, algo.Max)
		return v.Reset
	case algo.WarmUp:
		return q.Window + 2*q.Step
	default:
		return 2 * q.Window
	}
}

// ID is the identity of the policy's states in a store: rule, number of the
// limit, algorithm. It is the same on every node and after every reload that
// changes only numbers.
func (p *Policy) ID() string { return p.id }

// A Mode says whether a rule's refusals count.
type Mode uint8

const (
	// Enforce refuses the requests that exceed the rule. It is the zero value.
	Enforce Mode = iota
	// Shadow counts as Enforce would and refuses nothing.
	Shadow
	// Off ignores the rule.
	Off
)

var modeNames = [...]string{"enforce", "shadow", "off"}

// String is the name the mode has in a rule file.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", m)
}

// ParseMode reads a name that [Mode.String] wrote.
func ParseMode(name string) (Mode, bool) {
	for i, n := range modeNames {
		if n == name {
			return Mode(i), true
		}
	}
	return 0, false
}
