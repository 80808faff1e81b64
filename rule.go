package weir

import (
	"encoding/binary"
)

// A KeyFunc appends the partition key of r to dst: the bytes that select which
// of a policy's counters r falls in. It returns false if r has no such key. It
// must not keep dst, and it is called from many goroutines.
type KeyFunc[R any] func(dst []byte, r R) (key []byte, ok bool)

// A Rule says which requests are limited, how they split into partitions, and
// how much each partition may take.
type Rule[R any] struct {
	// Name is unique in a Ruleset: 1 to 128 bytes without spaces, control
	// characters or '#'. It is part of the identity of the rule's counters.
	Name string
	// Limits are decided together on the same key. A rule without limits allows
	// everything; with Final that is an exemption.
	Limits []Limit
	// Unit is the quota unit; empty means "requests".
	Unit string
	// Key selects the partition; nil means that all requests share one.
	Key KeyFunc[R]
	// Match selects the requests; nil means all.
	Match func(R) bool
	// Cost is the number of units a request takes, nil meaning 1. Below 0 counts as
	// 0, and 0 looks without taking.
	Cost func(R) int64
	// Mode is Enforce, Shadow or Off.
	Mode Mode
	// Rollout, 1 to 9999, enforces for that many of 10,000 keys, always the same
	// ones on every node, and only watches the others. 0 enforces for all.
	Rollout int
	// Final ends the search: rules after a final one that matched do not apply.
	Final bool
	// NoKey says what becomes of a request without a key.
	NoKey NoKey
	// Fallback is the key of NoKey's FallbackKey. Its values are kept apart from
	// those of Key.
	Fallback KeyFunc[R]
	// OnOutage decides when the store cannot.
	OnOutage Outage
	// Fast allows that units are lent to a node ahead of use, see [Lender]: decisions
	// need no call then, are never too many, and may be a little too few.
	Fast bool
	// Tag is handed back untouched in [Policy].Tag.
	Tag any
}

// A NoKey says what becomes of a request that has no key for a rule.
type NoKey uint8

const (
	// SkipRule lets the rule not apply.
	SkipRule NoKey = iota
	// SharePartition puts all requests without a key into one partition of their own.
	SharePartition
	// FallbackKey asks the rule's Fallback, and skips the rule if that has no key
	// either.
	FallbackKey
	// RefuseRequest refuses the request.
	RefuseRequest
)

// An Outage says who decides while the store cannot.
type Outage uint8

const (
	// FailLocal lets [Options].Local decide, which starts empty at the first outage and
	// is kept. It is the zero value.
	FailLocal Outage = iota
	// FailOpen allows.
	FailOpen
	// FailClosed refuses.
	FailClosed
)

// A Ruleset is a list of rules in the order in which they are tried. Every rule
// that matches applies; they are decided all or nothing.
type Ruleset[R any] struct {
	// Version is shown in decisions; it may be empty.
	Version string
	// Rules are tried in order.
	Rules []Rule[R]
	// Select appends the indices of the rules that may match r, ascending; nil means
	// that all are tried. It only saves time: Match still decides.
	Select func(dst []int, r R) []int
}

// Keys joins several keys into a composite one. Every part is preceded by its
// length, so that ("aa", "b") and ("a", "ab") never meet. A request that lacks
// one of the parts lacks the key.
func Keys[R any](parts ...KeyFunc[R]) KeyFunc[R] {
	return func(dst []byte, r R) ([]byte, bool) {
		for _, part := range parts {
			at := len(dst)
			dst = append(dst, 0, 0, 0, 0)
			var ok bool
			if dst, ok = part(dst, r); !ok {
				return dst, false
			}
			binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		}
		return dst, true
	}
}

// Constant is a key that is the same for all requests.
func Constant[R any](key string) KeyFunc[R] {
	return func(dst []byte, _ R) ([]byte, bool) { return append(dst, key...), true }
}

// SplitKeys returns the parts of a key that Keys joined, or false if it did not.
func SplitKeys(key []byte) (parts [][]byte, ok bool) {
	for len(key) >= 4 {
		n := binary.BigEndian.Uint32(key)
		if uint64(n) > uint64(len(key)-4) {
			return nil, false
		}
		parts = append(parts, key[4:4+n])
		key = key[4+n:]
	}
	return parts, len(key) == 0
}
