package field

import "strings"

// AppendQuery appends the first value of a parameter that url.ParseQuery would
// find, without making a map of all of them. Pairs that are malformed, or hold a
// semicolon, are no parameters there and none here: otherwise a client could put
// one in front that only the limit reads.
func AppendQuery(dst []byte, query, name string) ([]byte, bool) {
	at := len(dst)
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" || strings.IndexByte(pair, ';') >= 0 {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		if !equalsUnescaped(key, name) {
			continue
		}
		var ok bool
		if dst, ok = appendUnescaped(dst, value); ok {
			return dst, true
		}
		dst = dst[:at]
	}
	return dst, false
}

// equalsUnescaped reports whether s stands for name.
func equalsUnescaped(s, name string) bool {
	n := 0
	for i := 0; i < len(s); n++ {
		c, width := unescape(s[i:])
		if width == 0 || n == len(name) || c != name[n] {
			return false
		}
		i += width
	}
	return n == len(name)
}

// appendUnescaped appends what s stands for, or fails on a malformed escape.
func appendUnescaped(dst []byte, s string) ([]byte, bool) {
	for i := 0; i < len(s); {
		c, width := unescape(s[i:])
		if width == 0 {
			return dst, false
		}
		dst = append(dst, c)
		i += width
	}
	return dst, true
}

// unescape returns the byte that s begins with and how many bytes it takes, 0 if
// they are a malformed escape.
func unescape(s string) (c byte, width int) {
	switch s[0] {
	case '+':
		return ' ', 1
	case '%':
		if len(s) < 3 || !isHex(s[1]) || !isHex(s[2]) {
			return 0, 0
		}
		return fromHex(s[1])<<4 | fromHex(s[2]), 3
	}
	return s[0], 1
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func fromHex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&7 + 9 // a letter's low bits count from 1, in both cases
}
