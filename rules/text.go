package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendDecoded appends s with every percent-encoded byte decoded; a % without two
// hexadecimal digits stands for itself.
func appendDecoded(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		s = s[i:]
		if b, ok := escaped(s); ok {
			dst, s = append(dst, b), s[3:]
		} else {
			dst, s = append(dst, '%'), s[1:]
		}
	}
}

// appendPath appends a path with its percent-encoding undone but for %2F and %25,
// so that different resources stay different and one that is spelt in two ways is
// one (case B29).
func appendPath(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		s = s[i:]
		switch b, ok := escaped(s); {
		case !ok:
			dst, s = append(dst, '%'), s[1:]
		case b == '/':
			dst, s = append(dst, "%2F"...), s[3:]
		case b == '%':
			dst, s = append(dst, "%25"...), s[3:]
		default:
			dst, s = append(dst, b), s[3:]
		}
	}
}

// escaped is the byte that %XX at the start of s stands for.
func escaped(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	hi, lo := hexDigit(s[1]), hexDigit(s[2])
	return hi<<4 | lo, hi < 16 && lo < 16
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

// fold is the same for all letters that differ in case only, by Unicode's simple
// case folding; for ASCII it is the lower case.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return unicode.ToLower(least)
}

// appendFolded appends s with its letters folded. Bytes that are not UTF-8 stay.
func appendFolded(dst, s []byte) []byte {
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[0])
		} else {
			dst = utf8.AppendRune(dst, fold(r))
		}
		s = s[size:]
	}
	return dst
}

// foldTail folds dst from byte at on, in place where it can.
func foldTail(dst []byte, at int) []byte {
	for i := at; i < len(dst); i++ {
		c := dst[i]
		if c >= utf8.RuneSelf {
			// Folding may change the length: fold the rest behind, then move it down.
			end := len(dst)
			dst = appendFolded(dst, dst[i:end])
			return append(dst[:i], dst[end:]...)
		}
		dst[i] = byte(fold(rune(c)))
	}
	return dst
}

// trimTail drops white space, as Unicode has it, around what dst holds from byte
// at on.
func trimTail(dst []byte, at int) []byte {
	for len(dst) > at {
		r, size := utf8.DecodeLastRune(dst[at:])
		if !unicode.IsSpace(r) {
			break
		}
		dst = dst[:len(dst)-size]
	}
	start := at
	for start < len(dst) {
		r, size := utf8.DecodeRune(dst[start:])
		if !unicode.IsSpace(r) {
			break
		}
		start += size
	}
	return append(dst[:at], dst[start:]...)
}
