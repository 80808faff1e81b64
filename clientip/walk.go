package clientip

import (
	"net/netip"
	"strings"
)

// MaxHops and MaxBytes bound the work on one header: that many addresses and
// that many bytes are read from the right. Chains of trusted proxies are a few
// hops long and servers limit a whole header line to about 8 KiB, so what lies
// beyond was not written by a proxy.
const (
	MaxHops  = 32
	MaxBytes = 8 << 10
)

// A walk reads the addresses of a header from the right, one element at a time.
// How an element is read never depends on what stands left of its comma, so
// nothing that a client wrote in front of a proxy's element can change it.
type walk struct {
	syntax syntax
	lines  []string // not begun yet
	rest   string   // the line being read, up to the comma before the last element
	more   bool     // rest holds an element, perhaps an empty one
	hops   int      // still allowed
	bytes  int      // still allowed
}

func newWalk(s syntax, lines []string) walk {
	w := walk{syntax: s, lines: lines, hops: MaxHops, bytes: MaxBytes}
	if s == single {
		w.hops = 1
	}
	return w
}

// next returns the next address to the left. It reports false if there is none,
// or something else in its place; it must not be called again then.
func (w *walk) next() (netip.Addr, bool) {
	if !w.more {
		if len(w.lines) == 0 {
			return netip.Addr{}, false
		}
		last := len(w.lines) - 1
		w.rest, w.lines, w.more = w.lines[last], w.lines[:last], true
	}
	if w.hops == 0 {
		return netip.Addr{}, false
	}
	w.hops--

	seen := w.rest[len(w.rest)-min(len(w.rest), w.bytes):]
	comma := w.syntax.lastComma(seen)
	if comma < 0 && len(seen) < len(w.rest) {
		return netip.Addr{}, false
	}
	element := seen[comma+1:]
	w.bytes -= len(seen) - max(comma, 0)
	w.more = comma >= 0
	w.rest = strings.TrimSuffix(w.rest[:len(w.rest)-len(element)], ",")

	return w.syntax.parse(strings.Trim(element, " \t"))
}
