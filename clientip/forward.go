package clientip

import "net/netip"

// unknown is RFC 7239's word for a node without an address. Those who read a
// header as we do end their walk at it.
const unknown = "unknown"

// AppendForward appends the value of the header named by [Resolver.Header] that
// a gateway sends to its upstream, and returns the extended slice. Peer and
// lines are those of [Resolver.Resolve].
//
// It holds what we vouch for and nothing else: the client, the trusted hops in
// order, and the peer last, each once and as a bare address ("203.0.113.7,
// 10.0.0.1", or `for=203.0.113.7, for="[2001:db8::1]"` in Forwarded, whose
// other parameters are dropped). A header of one address gets the client's. The
// gateway must remove every line of the header that came in, also when the
// Connection header names it, and set this one value.
//
// For the zero peer the value is "unknown".
func (r *Resolver) AppendForward(dst []byte, peer netip.Addr, lines []string) []byte {
	var room [MaxHops + 1]netip.Addr
	chain := r.AppendChain(room[:0], peer, lines)
	if len(chain) == 0 {
		chain = append(chain, netip.Addr{})
	}
	if r.syntax == single {
		chain = chain[:1]
	}
	for i, hop := range chain {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = r.syntax.appendHop(dst, hop)
	}
	return dst
}

func (x syntax) appendHop(dst []byte, hop netip.Addr) []byte {
	if x == forwarded {
		dst = append(dst, "for="...)
	}
	switch {
	case !hop.IsValid():
		return append(dst, unknown...)
	case x == forwarded && hop.Is6():
		dst = append(dst, `"[`...)
		dst = hop.AppendTo(dst)
		return append(dst, `]"`...)
	}
	return hop.AppendTo(dst)
}
