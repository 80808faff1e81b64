// Package urlpath brings the path of a request into one normal form, so that
// the path a rule is matched against and the path the upstream is sent are the
// same one, however the client spelled it.
//
// A limiter that reads /login where the client wrote //login, /%6Cogin or
// /x/../login, while the upstream reads them as the same resource, counts
// nothing. So [Clean] resolves what every server resolves, keeps what servers
// read as data, and refuses what servers disagree on.
//
// # The normal form
//
//   - It begins with a slash; `//` is one slash; the segments `.` and `..` are
//     resolved, also when they are escaped, and `..` stops at the root. Slashes
//     are merged before `..` is resolved (/a//../b is /b), as nginx and net/http
//     do it.
//   - A trailing slash is kept, and so is letter case. What ends in a dot segment
//     ends in a slash (/a/b/.. is /a/), as in RFC 3986 section 5.2.4.
//   - Escapes are decoded once, and only those of the unreserved characters of
//     RFC 3986 section 2.3: letters, digits, `-`, `.`, `_`, `~`. All others stay,
//     in upper-case hexadecimal; %252e stays as it is.
//   - A raw byte that has no place in a path (space, quotes, `[`, `{`, `^`, `?`,
//     non-ASCII and so on) is escaped; the bytes need not be valid UTF-8.
//   - Parameters (`;x=1`) are part of their segment.
//
// # What still differs
//
// A reserved character and its escape, `/a:b` and `/a%3Ab`, are two clean paths,
// since some services tell them apart (`+` and `%2B`); most do not. Match
// literals against [Decode] of the path or of its segments. That is safe: a
// clean path decodes to the same segments, for it has no escaped slash. And
// where the upstream ignores parameters, as servlet containers do, match
// [WithoutParams].
//
// The package only rewrites text; it knows no routes, hosts or queries.
package urlpath

import (
	"bytes"
	"strings"
)

// Clean returns the normal form of an escaped path, such as the result of
// url.URL.EscapedPath. It returns the same string, and allocates nothing, if
// that is clean already; cleaning twice changes nothing. The `*` of OPTIONS *
// stays as it is, and the empty path is "/". A url.URL with this RawPath, and
// with [Decode] of it as its Path, writes it unchanged.
//
// The error is an [*Error] around [ErrSlash], [ErrBackslash], [ErrControl],
// [ErrEscape] or [ErrDots]; a gateway answers it with 400. It is returned also
// for a segment that a later `..` would have removed. The work is linear, and
// the result at most three times as long plus one byte.
func Clean(escaped string) (string, error) {
	if escaped == "*" || isClean(escaped) {
		return escaped, nil
	}
	out := make([]byte, 0, len(escaped)+1)
	for rest, more := strings.TrimPrefix(escaped, "/"), true; more; {
		var segment string
		var err *Error
		offset := len(escaped) - len(rest)
		segment, rest, more = strings.Cut(rest, "/")

		parent := len(out)
		if out, err = appendSegment(append(out, '/'), segment); err != nil {
			err.Path, err.Offset = escaped, offset+err.Offset
			return "", err
		}
		// Looked at decoded: %2e%2e is a dot segment too.
		switch string(out[parent+1:]) {
		case "", ".":
			out = out[:parent]
		case "..":
			out = out[:max(bytes.LastIndexByte(out[:parent], '/'), 0)]
		default:
			continue
		}
		if !more {
			out = append(out, '/')
		}
	}
	return string(out), nil
}

// isClean reports whether Clean has nothing to do and nothing to refuse.
func isClean(s string) bool {
	if !strings.HasPrefix(s, "/") {
		return false
	}
	for rest, more := s[1:], true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if segment == "" && more || segment == "." || segment == ".." || isDotsWithParams(segment) {
			return false
		}
		for i := 0; i < len(segment); {
			if isUnreserved(segment[i]) { // most of all bytes, for speed
				i++
				continue
			}
			c, width, err := readByte(segment[i:])
			switch {
			case err != nil:
				return false
			case width == 1 && !isPlain(c):
				return false
			case width == 3 && (isUnreserved(c) || segment[i+1] >= 'a' || segment[i+2] >= 'a'):
				return false
			}
			i += width
		}
	}
	return true
}

// appendSegment appends the normal form of one segment, dot segments included.
// The offset of its error counts from the start of the segment.
func appendSegment(dst []byte, segment string) ([]byte, *Error) {
	start := len(dst)
	for i := 0; i < len(segment); {
		c, width, err := readByte(segment[i:])
		if err != nil {
			return dst, &Error{Offset: i, Reason: err}
		}
		if isUnreserved(c) || width == 1 && isPlain(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
		i += width
	}
	if isDotsWithParams(string(dst[start:min(len(dst), start+len("..%3B"))])) {
		return dst, &Error{Reason: ErrDots}
	}
	return dst, nil
}

// isDotsWithParams reports whether a clean segment is a dot segment to a server
// that cuts parameters off first, and a name to all others.
func isDotsWithParams(segment string) bool {
	name, dotted := strings.CutPrefix(segment, ".")
	name = strings.TrimPrefix(name, ".")
	return dotted && (strings.HasPrefix(name, ";") || strings.HasPrefix(name, "%3B"))
}

// WithoutParams returns a clean path without the parameters of its segments,
// as the servlet containers (Tomcat, Jetty) and Spring read it: /login;x=1 is
// /login. The result is clean too. It is for matching only; the path forwarded
// stays whole.
func WithoutParams(clean string) string {
	if strings.IndexByte(clean, ';') < 0 {
		return clean
	}
	var out strings.Builder
	for rest, more := strings.TrimPrefix(clean, "/"), true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		name, _, _ := strings.Cut(segment, ";")
		// A segment of parameters only leaves an empty one, which is merged.
		if name != "" || !more {
			out.WriteByte('/')
			out.WriteString(name)
		}
	}
	return out.String()
}
