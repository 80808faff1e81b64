package headers

import (
	"encoding/base64"
	"strconv"
)

// maxInteger is the largest Integer of RFC 9651 §3.3.1.
const maxInteger = 999_999_999_999_999

// appendInteger appends an Integer of RFC 9651. Our numbers are counts: less
// than 0 is 0, and what does not fit is the largest that does.
func appendInteger(dst []byte, n int64) []byte {
	return strconv.AppendInt(dst, min(max(n, 0), maxInteger), 10)
}

// appendString appends a String of RFC 9651 §3.3.3: printable ASCII in double
// quotes, with a backslash before quotes and backslashes. What it cannot hold
// is percent-encoded, and so is the percent sign, to keep different names
// different.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~' || c == '%':
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// appendBytes appends a Byte Sequence of RFC 9651 §3.3.5.
func appendBytes(dst, b []byte) []byte {
	dst = append(dst, ':')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, ':')
}
