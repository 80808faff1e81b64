// Package sf is a strict parser of the structured fields that Weir sends, for the
// tests of who sends them. A second, independent parser checks the same answers in
// the server module.
package sf

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// Item is one member of an RFC 9651 List of Items: a String and parameters of
// type int64, string or []byte.
type Item struct {
	Value  string
	Params map[string]any
	Order  []string // of the parameters
}

// ParseList is the parsing algorithm of RFC 9651 §4.2.1 for Lists whose members
// are Strings and whose parameters are Integers, Strings or Byte Sequences. It
// is stricter than the RFC where our output has one form only: no empty list,
// no repeated parameter, ", " between members and no other whitespace, and no
// leading zeros.
func ParseList(s string) ([]Item, error) {
	p := &parser{rest: s}
	var list []Item
	for {
		it, err := p.item()
		if err != nil {
			return nil, fmt.Errorf("member %d of %q: %w", len(list), s, err)
		}
		list = append(list, it)
		if p.rest == "" {
			return list, nil
		}
		if !p.eat(", ") {
			return nil, fmt.Errorf("trailing %q in %q", p.rest, s)
		}
	}
}

type parser struct{ rest string }

func (p *parser) eat(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

func (p *parser) item() (Item, error) {
	value, err := p.str()
	it := Item{Value: value, Params: map[string]any{}}
	for err == nil && p.eat(";") {
		var key string
		if key, err = p.key(); err != nil {
			break
		}
		if _, twice := it.Params[key]; twice {
			return it, fmt.Errorf("parameter %q twice", key)
		}
		if !p.eat("=") {
			return it, fmt.Errorf("parameter %q without a value", key)
		}
		it.Params[key], err = p.bare()
		it.Order = append(it.Order, key)
	}
	return it, err
}

func (p *parser) key() (string, error) {
	n := strings.IndexFunc(p.rest, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.*", r))
	})
	if n <= 0 || p.rest[0] != '*' && (p.rest[0] < 'a' || p.rest[0] > 'z') {
		return "", fmt.Errorf("no key at %q", p.rest)
	}
	key := p.rest[:n]
	p.rest = p.rest[n:]
	return key, nil
}

func (p *parser) bare() (any, error) {
	switch {
	case strings.HasPrefix(p.rest, `"`):
		return p.str()
	case strings.HasPrefix(p.rest, ":"):
		raw, rest, ok := strings.Cut(p.rest[1:], ":")
		if !ok {
			return nil, fmt.Errorf("open byte sequence %q", p.rest)
		}
		p.rest = rest
		return base64.StdEncoding.Strict().DecodeString(raw)
	default:
		return p.integer()
	}
}

func (p *parser) str() (string, error) {
	if !p.eat(`"`) {
		return "", fmt.Errorf("no string at %q", p.rest)
	}
	var out strings.Builder
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '\\':
			i++
			if i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return "", fmt.Errorf("bad escape in %q", p.rest)
			}
			out.WriteByte(p.rest[i])
		case c == '"':
			p.rest = p.rest[i+1:]
			return out.String(), nil
		case c < 0x20 || c > 0x7E:
			return "", fmt.Errorf("byte %#x in a string", c)
		default:
			out.WriteByte(c)
		}
	}
	return "", fmt.Errorf("open string %q", p.rest)
}

func (p *parser) integer() (int64, error) {
	n := 0
	for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	digits := p.rest[:n]
	if n == 0 || n > 15 || n > 1 && digits[0] == '0' {
		return 0, fmt.Errorf("no integer of 1 to 15 digits at %q", p.rest)
	}
	p.rest = p.rest[n:]
	return strconv.ParseInt(digits, 10, 64)
}
