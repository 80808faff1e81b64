package clientip

import (
	"net/netip"
	"strings"

	"github.com/weirhq/weir/internal/token"
)

// longestAddr is the length of the longest IPv6 address in text, one that ends
// in IPv4 notation.
const longestAddr = len("0000:0000:0000:0000:0000:ffff:255.255.255.255")

// ParsePeer returns the address of a peer as servers tell it, such as
// http.Request.RemoteAddr: "203.0.113.9:1234", "[2001:db8::1]:443", or an
// address alone. Port and zone are dropped and IPv4-mapped addresses become
// IPv4. It reports false for anything else, such as the "@" of a Unix socket;
// a server that trusts whoever can open its socket may use 127.0.0.1 for it.
func ParsePeer(s string) (netip.Addr, bool) { return parseAddr(s) }

// parseAddr reads an address as proxies write it: 203.0.113.7, 203.0.113.7:80,
// 2001:db8::5, [2001:db8::5] or [2001:db8::5]:80, with or without a zone.
func parseAddr(s string) (netip.Addr, bool) {
	needs6 := false
	if strings.HasPrefix(s, "[") {
		inside, port, closed := strings.Cut(s[1:], "]")
		if !closed || !isPort(port) {
			return netip.Addr{}, false
		}
		s, needs6 = inside, true
	} else if i := strings.IndexByte(s, ':'); i >= 0 && strings.IndexByte(s[i+1:], ':') < 0 {
		// One colon: too few for IPv6, so it begins a port.
		if !isPort(s[i:]) {
			return netip.Addr{}, false
		}
		s = s[:i]
	}

	// Cut here, since netip interns every zone it parses, and this one may be
	// chosen by a client.
	if i := strings.IndexByte(s, '%'); i >= 0 {
		if i == len(s)-1 {
			return netip.Addr{}, false
		}
		s, needs6 = s[:i], true
	}

	// Most of what is no address ends here, where it costs no error value.
	if s == "" || len(s) > longestAddr || !isHexOrColon(s[0]) {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || needs6 && !addr.Is6() {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

func isHexOrColon(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' || c == ':'
}

// isPort reports whether s is what may follow an address: nothing, a colon and
// up to five digits, or RFC 7239's obfuscated port, a colon, an underscore and
// a token. The value is of no interest, since it is dropped.
func isPort(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) == 1 {
		return false
	}
	if s[1] == '_' {
		return token.Valid(s[1:])
	}
	if len(s) > len(":65535") {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// canonical is the one form in which an address is compared and counted.
func canonical(addr netip.Addr) netip.Addr {
	return addr.Unmap().WithZone("")
}
