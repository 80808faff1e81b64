package clientip

import (
	"net/netip"
	"strings"

	"github.com/weirhq/weir/internal/token"
)

// syntax is how a forwarding header is written.
type syntax uint8

const (
	list      syntax = iota // X-Forwarded-For: addresses, appended with commas
	forwarded               // Forwarded, RFC 7239
	single                  // one address
)

// syntaxOf takes a canonical header name.
func syntaxOf(header string) syntax {
	switch header {
	case "X-Forwarded-For":
		return list
	case "Forwarded":
		return forwarded
	}
	return single
}

// lastComma returns the index of the comma that begins the last element of s,
// or -1 if s has one element only. The quotes of Forwarded are matched from the
// right, so that an open one in what a client wrote swallows nothing.
func (x syntax) lastComma(s string) int {
	if x != forwarded {
		return strings.LastIndexByte(s, ',')
	}
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && !(quoted && escaped(s, i)):
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return i
		}
	}
	return -1
}

// escaped reports whether an odd number of backslashes precedes s[i]. Each
// quote counts only those right before it, so all quotes together cost one pass.
func escaped(s string, i int) bool {
	odd := false
	for i--; i >= 0 && s[i] == '\\'; i-- {
		odd = !odd
	}
	return odd
}

// parse reads the address of one element, without space around it.
func (x syntax) parse(element string) (netip.Addr, bool) {
	if x != forwarded {
		return parseAddr(element)
	}
	node, ok := forwardedFor(element)
	if !ok {
		return netip.Addr{}, false
	}
	return parseAddr(node)
}

// forwardedFor returns the value of the "for" parameter of a Forwarded element,
// without its quotes. Beyond RFC 7239 section 4 it accepts space around the
// separators and, since some proxies forget the quotes, any unquoted value. An
// element with two of them is nobody's, and neither is a value with backslash
// escapes, for which no address has a use.
func forwardedFor(element string) (string, bool) {
	node, found := "", false
	for rest := element; ; {
		rest = strings.TrimLeft(rest, "; \t")
		if rest == "" {
			return node, found
		}
		name, tail, ok := strings.Cut(rest, "=")
		name = strings.TrimRight(name, " \t")
		if !ok || !token.Valid(name) {
			return "", false
		}
		value, tail, ok := cutValue(strings.TrimLeft(tail, " \t"))
		if !ok {
			return "", false
		}
		if strings.EqualFold(name, "for") {
			if found || strings.Contains(value, `\`) {
				return "", false
			}
			node, found = value, true
		}
		rest = tail
	}
}

// cutValue splits s behind the parameter value that it begins with: a quoted
// string, returned without quotes but with its escapes, or all up to a
// semicolon. What remains is empty or begins with a semicolon.
func cutValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexByte(s, ';')
		if end < 0 {
			end = len(s)
		}
		value = strings.TrimRight(s[:end], " \t")
		return value, s[end:], !strings.ContainsAny(value, `"\`)
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			rest = strings.TrimLeft(s[i+1:], " \t")
			return s[1:i], rest, rest == "" || rest[0] == ';'
		}
	}
	return "", "", false
}
