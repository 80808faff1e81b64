package accesslog

import "strings"

// A value is one value of JSON as it stands in the line.
type value struct {
	kind byte   // its first byte: " { [ t f n - or a digit; 0 for no value
	text string // a string without its quotes, still escaped; anything else as it is
}

// str returns a string unescaped, a number or a truth as it is written, and
// nothing for null, a dash, an object or a list.
func (v value) str() string {
	switch v.kind {
	case '"':
		return unescape(dash(v.text))
	case 0, 'n', '{', '[':
		return ""
	}
	return v.text
}

// told tells whether the value says anything: not null, empty or a dash.
func (v value) told() bool {
	return v.kind != 0 && v.kind != 'n' && (v.kind != '"' || dash(v.text) != "")
}

// first returns the first value of a list, and anything else as it is.
func (v value) first() value {
	if v.kind != '[' {
		return v
	}
	s := scanner{v.text, 1}
	v, _ = s.value()
	return v
}

// A scanner walks over JSON without building anything. It finds the ends of
// values, which is all that is needed here, and does not check what stands in
// values that nobody asks for. Escapes that JSON does not know, such as nginx's
// \x22 without escape=json, are let through.
type scanner struct {
	s string
	i int
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *scanner) peek() byte {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; c {
		case ' ', '\t', '\r', '\n':
			p.i++
		default:
			return c
		}
	}
	return 0
}

// open enters an object or a list.
func (p *scanner) open(bracket byte) bool {
	if p.peek() != bracket {
		return false
	}
	p.i++
	return true
}

// member goes to the next member of the object it is in and returns its key,
// still escaped. Then the value must be read. At the end of the object it leaves
// it, and more is false.
func (p *scanner) member(first bool) (key string, more, ok bool) {
	switch c := p.peek(); {
	case c == '}':
		p.i++
		return "", false, true
	case !first && c != ',':
		return "", false, false
	case !first:
		p.i++
		p.peek()
	}
	if key, ok = p.str(); !ok || p.peek() != ':' {
		return "", false, false
	}
	p.i++
	return key, true, true
}

// str reads a string.
func (p *scanner) str() (string, bool) {
	if p.i >= len(p.s) || p.s[p.i] != '"' {
		return "", false
	}
	from := p.i + 1
	for i := from; ; i++ {
		n := strings.IndexByte(p.s[i:], '"')
		if n < 0 {
			return "", false
		}
		if i += n; i == from || p.s[i-1] != '\\' || !isEscaped(p.s[from:], i-from) {
			p.i = i + 1
			return p.s[from:i], true
		}
	}
}

// value reads any value.
func (p *scanner) value() (value, bool) {
	kind := p.peek()
	from := p.i
	switch {
	case kind == '"':
		text, ok := p.str()
		return value{kind, text}, ok
	case kind == '{' || kind == '[':
		ok := p.skip()
		return value{kind, p.s[from:p.i]}, ok
	case kind == '-' || '0' <= kind && kind <= '9' || kind == 't' || kind == 'f' || kind == 'n':
		for p.i < len(p.s) && !ends(p.s[p.i]) {
			p.i++
		}
		return value{kind, p.s[from:p.i]}, true
	}
	return value{}, false
}

func ends(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c <= ' '
}

// skip passes over an object or a list of any depth.
func (p *scanner) skip() bool {
	for depth := 0; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				p.i++
				return true
			}
		case '"':
			if _, ok := p.str(); !ok {
				return false
			}
			p.i--
		}
	}
	return false
}
