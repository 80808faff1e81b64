package rules

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ParseJSON reads a JSON document (RFC 8259) into a tree whose nodes know their
// positions. The name is used in problems only. It stops at the first problem,
// which is then the only one; repeated keys are kept for [Decode] to report.
func ParseJSON(name string, data []byte) (*Node, Problems) {
	p := jsonParser{file: name, data: data, line: 1, col: 1}
	n, err := p.document()
	if err != nil {
		return nil, Problems{*err}
	}
	return n, nil
}

// jsonParser is a recursive descent over data. Its methods leave pos behind what
// they read.
type jsonParser struct {
	file  string
	data  []byte
	pos   int
	nodes int

	// line and col are the position of byte mark, which only moves forward, so that
	// finding positions is linear in the document.
	mark, line, col int
}

func (p *jsonParser) document() (*Node, *Problem) {
	if len(p.data) > MaxSize {
		return nil, p.fail(0, "the document has %d bytes; at most %d are read", len(p.data), MaxSize)
	}
	if strings.HasPrefix(string(p.data[:min(3, len(p.data))]), "\ufeff") {
		p.pos, p.mark = 3, 3
	}
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(p.data) {
		return nil, p.fail(p.pos, "%s after the end of the document; a file holds one value", p.here())
	}
	return n, nil
}

func (p *jsonParser) value(depth int) (*Node, *Problem) {
	p.space()
	start := p.pos
	if depth > MaxDepth {
		return nil, p.fail(start, "lists and maps are nested deeper than %d", MaxDepth)
	}
	if p.nodes++; p.nodes > MaxNodes {
		return nil, p.fail(start, "the document has more than %d values", MaxNodes)
	}
	if start >= len(p.data) {
		return nil, p.fail(start, "the document ends where a value was expected")
	}
	n := p.node(start)
	var err *Problem
	switch c := p.data[start]; {
	case c == '{':
		n.Kind = Map
		n.Entries, err = p.entries(depth)
	case c == '[':
		n.Kind = List
		n.Items, err = p.items(depth)
	case c == '"':
		n.Kind = String
		n.Value, err = p.str()
	case c == '-' || '0' <= c && c <= '9':
		n.Kind, n.Value, err = p.number()
	case p.word("true"), p.word("false"):
		n.Kind, n.Value = Bool, string(p.data[start:p.pos])
	case p.word("null"):
	default:
		err = p.fail(start, "%s where a value was expected", p.here())
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (p *jsonParser) entries(depth int) (entries []Entry, err *Problem) {
	p.pos++
	for {
		p.space()
		if p.skip('}') {
			if len(entries) > 0 {
				return nil, p.fail(p.pos-1, "a comma before }; remove it")
			}
			return entries, nil
		}
		if p.pos >= len(p.data) || p.data[p.pos] != '"' {
			return nil, p.fail(p.pos, "%s where a key in double quotes was expected", p.here())
		}
		key, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.space(); !p.skip(':') {
			return nil, p.fail(p.pos, "%s where : was expected after the key %s", p.here(), quote(key.Value))
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{key, value})
		switch p.space(); {
		case p.skip('}'):
			return entries, nil
		case !p.skip(','):
			return nil, p.fail(p.pos, "%s where , or } was expected", p.here())
		}
	}
}

func (p *jsonParser) items(depth int) (items []*Node, err *Problem) {
	p.pos++
	for {
		p.space()
		if p.skip(']') {
			if len(items) > 0 {
				return nil, p.fail(p.pos-1, "a comma before ]; remove it")
			}
			return items, nil
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, value)
		switch p.space(); {
		case p.skip(']'):
			return items, nil
		case !p.skip(','):
			return nil, p.fail(p.pos, "%s where , or ] was expected", p.here())
		}
	}
}

// number reads a number and checks that it is one by the grammar of JSON.
func (p *jsonParser) number() (Kind, string, *Problem) {
	start := p.pos
	kind := Int
	p.skip('-')
	whole := p.digits()
	leading := whole > 1 && p.data[p.pos-whole] == '0'
	ok := whole > 0
	if ok && p.skip('.') {
		kind = Float
		ok = p.digits() > 0
	}
	if ok && (p.skip('e') || p.skip('E')) {
		kind = Float
		_ = p.skip('+') || p.skip('-')
		ok = p.digits() > 0
	}
	switch text := string(p.data[start:p.pos]); {
	case leading:
		return 0, "", p.fail(start, "the number %s begins with 0", quote(text))
	case !ok:
		return 0, "", p.fail(p.pos, "%s where a digit was expected", p.here())
	default:
		return kind, text, nil
	}
}

func (p *jsonParser) digits() int {
	start := p.pos
	for p.pos < len(p.data) && '0' <= p.data[p.pos] && p.data[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

func (p *jsonParser) str() (string, *Problem) {
	start := p.pos
	p.pos++
	var b strings.Builder
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			return b.String(), nil
		case c == '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		case c < ' ':
			return "", p.fail(p.pos, "%s inside a string; write it as an escape", p.here())
		case c < utf8.RuneSelf:
			b.WriteByte(c)
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.data[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.fail(p.pos, "%s is not UTF-8", p.here())
			}
			b.WriteRune(r)
			p.pos += size
		}
	}
	return "", p.fail(start, "the string that begins here has no closing quote")
}

// escape reads a backslash and what it stands for.
func (p *jsonParser) escape(b *strings.Builder) *Problem {
	start := p.pos
	p.pos++
	if p.pos < len(p.data) {
		c := p.data[p.pos]
		if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
			b.WriteByte("\"\\/\b\f\n\r\t"[i])
			p.pos++
			return nil
		}
		if c == 'u' {
			p.pos--
			r := p.unit()
			if utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, p.unit())
			}
			if r >= 0 && r != utf8.RuneError {
				b.WriteRune(r)
				return nil
			}
		}
	}
	return p.fail(start, `an escape that is none of \" \\ \/ \b \f \n \r \t \uXXXX`)
}

// unit reads \uXXXX, or returns -1.
func (p *jsonParser) unit() rune {
	if p.pos+6 > len(p.data) || p.data[p.pos] != '\\' || p.data[p.pos+1] != 'u' {
		return -1
	}
	u, err := strconv.ParseUint(string(p.data[p.pos+2:p.pos+6]), 16, 16)
	if err != nil {
		return -1
	}
	p.pos += 6
	return rune(u)
}

func (p *jsonParser) space() {
	for p.pos < len(p.data) && strings.IndexByte(" \t\r\n", p.data[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *jsonParser) skip(c byte) bool {
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *jsonParser) word(w string) bool {
	if end := p.pos + len(w); end <= len(p.data) && string(p.data[p.pos:end]) == w {
		p.pos = end
		return true
	}
	return false
}

// here names what stands at pos, for a message.
func (p *jsonParser) here() string {
	if p.pos >= len(p.data) {
		return "the end of the document"
	}
	r, size := utf8.DecodeRune(p.data[p.pos:])
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf("byte 0x%02x", p.data[p.pos])
	}
	return strconv.QuoteRune(r)
}

// node returns an empty node at byte offset at.
func (p *jsonParser) node(at int) *Node {
	for ; p.mark < at && p.mark < len(p.data); p.mark++ {
		switch c := p.data[p.mark]; {
		case c == '\n':
			p.line, p.col = p.line+1, 1
		case utf8.RuneStart(c):
			p.col++
		}
	}
	return &Node{File: p.file, Line: p.line, Col: p.col}
}

// fail makes a problem at byte offset at, which is not before the last node.
func (p *jsonParser) fail(at int, format string, args ...any) *Problem {
	problem := p.node(at).Problem("", format, args...)
	return &problem
}
