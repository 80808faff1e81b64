package urlpath

import "strings"

const upperHex = "0123456789ABCDEF"

// readByte reads the byte that s, which is not empty, begins with, and tells
// how wide it is written: 1, or 3 for an escape. The error is one of the
// package's, for what is refused in a path.
func readByte(s string) (c byte, width int, err error) {
	c, width = s[0], 1
	if c == '%' {
		var ok bool
		if c, ok = unescape(s); !ok {
			return 0, 0, ErrEscape
		}
		width = 3
	}
	switch {
	case c == '/':
		return 0, 0, ErrSlash
	case c == '\\':
		return 0, 0, ErrBackslash
	case c < ' ' || c == 0x7f:
		return 0, 0, ErrControl
	}
	return c, width, nil
}

// unescape decodes the escape that s, which begins with a percent sign, begins
// with.
func unescape(s string) (c byte, ok bool) {
	if len(s) < 3 {
		return 0, false
	}
	high, low := fromHex(s[1]), fromHex(s[2])
	return high<<4 | low&15, high < 16 && low < 16
}

// fromHex returns the value of a hexadecimal digit, or 255.
func fromHex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// isUnreserved reports whether c is never escaped (RFC 3986 section 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// isPlain reports whether c may stand in a segment as it is: RFC 3986's pchar,
// escapes left aside.
func isPlain(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("!$&'()*+,;=:@", c) >= 0
}

// Decode decodes every escape of a segment once, for use as a value: the key
// `path:NAME`, or a literal to compare with. The result may be any bytes, also
// invalid UTF-8. What is no escape stays as it is; a clean path has none such,
// and may be decoded whole. It allocates nothing if there is no escape.
func Decode(segment string) string {
	first := strings.IndexByte(segment, '%')
	if first < 0 {
		return segment
	}
	out := make([]byte, first, len(segment))
	copy(out, segment)
	for i := first; i < len(segment); i++ {
		c := segment[i]
		if c == '%' {
			if decoded, ok := unescape(segment[i:]); ok {
				c, i = decoded, i+2
			}
		}
		out = append(out, c)
	}
	return string(out)
}
