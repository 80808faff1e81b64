package accesslog

import (
	"net/netip"
	"strings"
)

// longestAddr is the length of the longest address in text without a zone.
const longestAddr = len("0000:0000:0000:0000:0000:ffff:255.255.255.255")

// parseAddr reads an address as servers log it: 203.0.113.7, 203.0.113.7:80,
// 2001:db8::5, [2001:db8::5] or [2001:db8::5]:80, with or without a zone.
func parseAddr(s string) (netip.Addr, bool) {
	if s == "" || s[0] != '[' && !isHex(s[0]) && s[0] != ':' {
		return netip.Addr{}, false
	}
	if s[0] == '[' {
		inside, port, closed := strings.Cut(s[1:], "]")
		if !closed || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		s = inside
	} else if i := strings.IndexByte(s, ':'); i >= 0 && strings.IndexByte(s[i+1:], ':') < 0 {
		// One colon: too few for IPv6, so it begins a port.
		if !isPort(s[i:]) {
			return netip.Addr{}, false
		}
		s = s[:i]
	}
	// Cut here, since netip interns every zone it parses.
	if i := strings.IndexByte(s, '%'); i >= 0 {
		s = s[:i]
	}
	// Names end here, and do not cost an error value each.
	if len(s) > longestAddr {
		return netip.Addr{}, false
	}
	for i := range len(s) {
		if c := s[i]; !isHex(c) && c != ':' && c != '.' {
			return netip.Addr{}, false
		}
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// isPort tells whether s is a colon and a number.
func isPort(s string) bool {
	return len(s) > 1 && len(s) <= 6 && s[0] == ':' && digits(s[1:]) >= 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
