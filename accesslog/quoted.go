package accesslog

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads the rest of a quoted field, whose opening quote stands before s,
// and undoes its escapes. The field ends with a quote that is not escaped and has
// a space or nothing after it; so a server that does not escape quotes, as
// Traefik, is still understood mostly. If there is no such quote it is all of s.
func quoted(s string) (text, rest string, closed bool) {
	text = s
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			break
		}
		i += n
		if i+1 < len(s) && s[i+1] != ' ' || i > 0 && s[i-1] == '\\' && isEscaped(s, i) {
			continue
		}
		text, rest, closed = s[:i], s[i+1:], true
		break
	}
	return unescape(dash(text)), rest, closed
}

// isEscaped tells whether an odd number of backslashes stands before s[i].
func isEscaped(s string, i int) bool {
	return (i-len(strings.TrimRight(s[:i], `\`)))%2 == 1
}

// dash returns s, or nothing for the dash that stands for it.
func dash(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// unescape undoes the escapes of nginx (\xHH), Apache (\xhh, \" and those of C)
// and JSON. An escape that none of them knows is left as it is. It allocates only
// if there is a backslash.
func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for ; i >= 0; i = strings.IndexByte(s, '\\') {
		b = append(b, s[:i]...)
		n := 0
		b, n = appendEscape(b, s[i:])
		s = s[i+n:]
	}
	return string(append(b, s...))
}

// appendEscape appends what the escape that s begins with stands for, and
// returns how long it is.
func appendEscape(b []byte, s string) ([]byte, int) {
	if len(s) < 2 {
		return append(b, s...), len(s)
	}
	switch c := s[1]; c {
	case '"', '\\', '/':
		return append(b, c), 2
	case 'b':
		return append(b, '\b'), 2
	case 'f':
		return append(b, '\f'), 2
	case 'n':
		return append(b, '\n'), 2
	case 'r':
		return append(b, '\r'), 2
	case 't':
		return append(b, '\t'), 2
	case 'v':
		return append(b, '\v'), 2
	case 'x':
		if v, ok := hexAt(s, 2, 4); ok {
			return append(b, byte(v)), 4
		}
	case 'u':
		if v, ok := hexAt(s, 2, 6); ok {
			r := rune(v)
			if !utf16.IsSurrogate(r) {
				return utf8.AppendRune(b, r), 6
			}
			if low, ok := hexAt(s, 8, 12); ok && s[6:8] == `\u` {
				if pair := utf16.DecodeRune(r, rune(low)); pair != utf8.RuneError {
					return utf8.AppendRune(b, pair), 12
				}
			}
			return utf8.AppendRune(b, utf8.RuneError), 6
		}
	}
	return append(b, s[:2]...), 2
}

// hexAt reads the hexadecimal number s[from:to].
func hexAt(s string, from, to int) (uint64, bool) {
	if len(s) < to {
		return 0, false
	}
	for i := from; i < to; i++ {
		if !isHex(s[i]) {
			return 0, false
		}
	}
	v, err := strconv.ParseUint(s[from:to], 16, 32)
	return v, err == nil
}
