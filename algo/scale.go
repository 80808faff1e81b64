package algo

import (
	"math"
	"math/bits"
)

// scale returns a*b/c and the remainder, exactly, for a, b >= 0 and c > 0; a
// quotient above Max is returned as Max+1 with remainder 0, which is later than
// any limit looks. The product may be wider than a word, which is what lets a
// limit of a prime million per month be kept to the microsecond.
//
// Where only doubles are at hand, as in Lua, it can be written bit by bit with no
// value above 2^53; scale_test.go holds the two together.
func scale(a, b, c int64) (q, r int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi == 0 {
		u := divide(lo, uint64(c))
		if u > Max {
			return Max + 1, 0
		}
		return int64(u), int64(lo - u*uint64(c))
	}
	if hi >= uint64(c) {
		return Max + 1, 0
	}
	u, rem := bits.Div64(hi, lo, uint64(c))
	if u > Max {
		return Max + 1, 0
	}
	return int64(u), int64(rem)
}

// divide is a/b. Many processors take half the time for words of half the size,
// which most limits keep to.
func divide(a, b uint64) uint64 {
	if a <= math.MaxUint32 && b <= math.MaxUint32 {
		return uint64(uint32(a) / uint32(b))
	}
	return a / b
}
