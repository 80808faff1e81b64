package weirredis

import "github.com/weirhq/weir/algo"

// A stored state is one byte that says how it is written, the instant in 7 bytes, and
// Used, Prev and Unit in 1, 2, 4 or 7 bytes each, all little-endian. Two bits each of
// the first byte say how many; its bit 64 says that the four words of a ledger follow in
// 7 bytes each. A log has a first byte of 128 and the width of its counts, its instant
// and its sum, and for each entry the instant and the count.
const (
	wordLen    = 7
	hasLedger  = 64
	isLog      = 128
	ledgerLen  = 4 * wordLen
	beforeWide = 1 + wordLen
)

// widths are the lengths of a number by the two bits that stand for it.
func width(code byte) int { return int("\x01\x02\x04\x07"[code&3]) }

// state reads what decode of take.lua reads, and is as strict: ok is false for what
// counts as never seen.
func state(raw string) (s algo.State, l algo.Ledger, ok bool) {
	if len(raw) == 0 || raw[0] >= isLog {
		return s, l, false
	}
	code := raw[0]
	used, prev, unit := width(code), width(code>>2), width(code>>4)
	size := beforeWide + used + prev + unit
	if code&hasLedger != 0 {
		size += ledgerLen
	}
	if len(raw) != size {
		return s, l, false
	}
	raw = raw[1:]
	next := func(n int) int64 {
		v := word(raw[:n])
		raw = raw[n:]
		return v
	}
	s.At, s.Used, s.Prev, s.Unit = next(wordLen), next(used), next(prev), next(unit)
	if code&hasLedger != 0 {
		l.Edge, l.Next, l.New, l.Old = next(wordLen), next(wordLen), next(wordLen), next(wordLen)
	}
	return s, l, true
}

// word reads a little-endian number.
func word(s string) int64 {
	v := int64(0)
	for i := len(s) - 1; i >= 0; i-- {
		v = v<<8 | int64(s[i])
	}
	return v
}

// appendWord writes v in n bytes.
func appendWord(dst []byte, v int64, n int) []byte {
	for range n {
		dst = append(dst, byte(v))
		v >>= 8
	}
	return dst
}
