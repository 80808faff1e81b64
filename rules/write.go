package rules

import (
	"strings"
	"unicode/utf8"
)

// AppendJSON appends the tree to dst as JSON without spaces. It is the canonical
// form that [Document.Version] hashes.
func (n *Node) AppendJSON(dst []byte) []byte {
	switch n.Kind {
	case Null:
		return append(dst, "null"...)
	case String:
		return appendString(dst, n.Value)
	case List:
		dst = append(dst, '[')
		for i, it := range n.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = it.AppendJSON(dst)
		}
		return append(dst, ']')
	case Map:
		dst = append(dst, '{')
		for i, e := range n.Entries {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, e.Key.Value), ':')
			dst = e.Value.AppendJSON(dst)
		}
		return append(dst, '}')
	}
	return append(dst, n.Value...)
}

// AppendYAML appends the tree to dst as YAML with an indent of two: maps as
// blocks, lists of scalars in brackets, strings in double quotes unless they are
// safe without, so that every reader of YAML 1.1 or 1.2 finds the same tree.
func (n *Node) AppendYAML(dst []byte) []byte {
	if n.Kind != Map && n.Kind != List || n.flow() {
		return append(n.appendFlow(dst), '\n')
	}
	return n.appendBlock(dst, 0, false)
}

// flow is whether a value fits on the line of its key.
func (n *Node) flow() bool {
	switch n.Kind {
	case Map:
		return len(n.Entries) == 0
	case List:
		for _, it := range n.Items {
			if it.Kind == Map || it.Kind == List {
				return false
			}
		}
	}
	return true
}

// appendBlock writes a map or a list over several lines; inline is set if the
// indent of the first line is already written.
func (n *Node) appendBlock(dst []byte, indent int, inline bool) []byte {
	lead := func() {
		if !inline {
			for range indent {
				dst = append(dst, ' ')
			}
		}
		inline = false
	}
	for _, it := range n.Items {
		lead()
		dst = append(dst, '-', ' ')
		if it.flow() {
			dst = append(it.appendFlow(dst), '\n')
		} else {
			dst = it.appendBlock(dst, indent+2, true)
		}
	}
	for _, e := range n.Entries {
		lead()
		dst = append(appendPlain(dst, e.Key.Value, true), ':')
		if e.Value.flow() {
			dst = append(e.Value.appendScalar(append(dst, ' ')), '\n')
		} else {
			dst = e.Value.appendBlock(append(dst, '\n'), indent+2, false)
		}
	}
	return dst
}

// appendScalar writes a value after its key, where fewer strings need quotes than
// inside brackets.
func (n *Node) appendScalar(dst []byte) []byte {
	if n.Kind == String {
		return appendPlain(dst, n.Value, false)
	}
	return n.appendFlow(dst)
}

func (n *Node) appendFlow(dst []byte) []byte {
	switch n.Kind {
	case String:
		return appendPlain(dst, n.Value, true)
	case List:
		dst = append(dst, '[')
		for i, it := range n.Items {
			if i > 0 {
				dst = append(dst, ',', ' ')
			}
			dst = it.appendFlow(dst)
		}
		return append(dst, ']')
	case Map:
		return append(dst, "{}"...)
	}
	return n.AppendJSON(dst)
}

// appendPlain writes a string without quotes if no reader can take it for
// something else; strict is set inside brackets and for keys.
func appendPlain(dst []byte, s string, strict bool) []byte {
	if plainYAML(s, strict) {
		return append(dst, s...)
	}
	return appendString(dst, s)
}

func plainYAML(s string, strict bool) bool {
	if s == "" || len(s) > 200 || s[len(s)-1] == ' ' || s[len(s)-1] == ':' {
		return false
	}
	switch c := s[0]; {
	case c == '/' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		switch strings.ToLower(s) {
		case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
			return false
		}
	case '0' <= c && c <= '9':
		// A number over a window or a percentage is no number in any YAML; other
		// things that begin with a digit may be.
		if strings.IndexByte(s, '/') < 0 && s[len(s)-1] != '%' && !plainWindow(s) {
			return false
		}
	default:
		return false
	}
	for i := range len(s) {
		c := s[i]
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("/._-%()+@$*", c) >= 0 ||
			c == ':' && s[i+1] != ' ' && !strict ||
			strings.IndexByte("{}", c) >= 0 && !strict ||
			c == ' ' && !strict
		// header:X-Id is worth reading without quotes, in brackets too.
		if !ok && (c != ':' || s[i+1] == ' ') {
			return false
		}
	}
	return true
}

// plainWindow is whether s is a duration that no YAML takes for a number: 1e3 and
// 0x1 have letters that no unit has.
func plainWindow(s string) bool {
	_, err := ParseWindow(s)
	return err == nil
}

// appendString writes a string in double quotes, as JSON and YAML both read it.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r < ' ', 0x7f <= r && r <= 0x9f, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
