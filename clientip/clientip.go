// Package clientip tells who a client is: the address of a request behind
// trusted proxies, and the partition key that the address belongs to.
//
// No proxy is trusted by default, so the client is the peer, the other end of
// the connection, and no header is read. Behind a proxy that is trusted, one
// forwarding header is read from the right: each proxy appends the address it
// saw, so the first untrusted address from the right is the last that somebody
// we trust has written. What stands left of it is what the client claims, and
// is never looked at.
//
//	peer 10.0.0.1, trusted 10.0.0.0/8
//	X-Forwarded-For: 192.0.2.1, 203.0.113.7, 10.0.0.9
//	                 claimed    the client   a trusted hop
//
// An IPv4-mapped IPv6 address (::ffff:203.0.113.7) is the IPv4 address, ports
// and zones are dropped, and IPv6 clients are grouped by /64, since a single
// subscriber is usually given at least that much to choose from.
//
// The package parses and appends text. It does not know net/http, and does not
// translate addresses: clients of an IPv4 network that reach us as addresses in
// a NAT64 prefix (64:ff9b::/96) share one /64, and need an IPv6Prefix of 128.
package clientip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weirhq/weir/internal/token"
)

// Options tell which proxies are believed and how addresses are grouped. The
// zero value believes nobody, keeps IPv4 addresses apart and groups IPv6 by /64.
type Options struct {
	// TrustedProxies are the networks of the proxies whose forwarding header is
	// believed, usually the load balancer's or the CDN's. None means that the
	// header is never read. Host bits are ignored: 10.0.0.1/8 is 10.0.0.0/8.
	TrustedProxies []netip.Prefix

	// Header is the one header that the trusted proxies write. Case does not
	// matter. The zero value means X-Forwarded-For. X-Forwarded-For and
	// Forwarded (RFC 7239) are lists that grow to the right; every other header,
	// such as X-Real-IP or CF-Connecting-IP, holds one address. Every trusted
	// proxy must write such a single-address header or remove it; one that lets
	// it through lets the client choose its address.
	Header string

	// IPv6Prefix is how many leading bits of an IPv6 address make a partition,
	// 1 to 128. 0 means 64.
	IPv6Prefix int

	// IPv4Prefix is how many leading bits of an IPv4 address make a partition,
	// 1 to 32. 0 means 32, each address its own.
	IPv4Prefix int
}

// A Resolver finds the client of a request. Make it with [New]. It is immutable,
// so all its methods may be called concurrently. They do not allocate, except
// that an element which looks like an address and is none costs netip's error
// value, once per request, since it ends the search.
type Resolver struct {
	trusted    networks
	header     string
	syntax     syntax
	ipv4, ipv6 int // bits of a partition
}

// New returns a Resolver, or one error that lists everything wrong with the
// options. See [Options.Warn] for what is legal and yet looks like a mistake.
func New(o Options) (*Resolver, error) {
	var errs []error
	trusted, err := newNetworks(o.TrustedProxies)
	errs = append(errs, err)

	name := o.Header
	if name == "" {
		name = "X-Forwarded-For"
	}
	if !token.Valid(name) {
		errs = append(errs, fmt.Errorf("clientip: header %q is not a header name; write one such as X-Forwarded-For, without colon or spaces", name))
	}

	r := &Resolver{trusted: trusted, header: canonicalHeader(name), ipv4: o.IPv4Prefix, ipv6: o.IPv6Prefix}
	r.syntax = syntaxOf(r.header)
	if r.ipv4 == 0 {
		r.ipv4 = 32
	}
	if r.ipv6 == 0 {
		r.ipv6 = 64
	}
	errs = append(errs, checkBits("IPv4", r.ipv4, 32), checkBits("IPv6", r.ipv6, 128))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

func checkBits(family string, bits, most int) error {
	if bits < 1 || bits > most {
		return fmt.Errorf("clientip: %s prefix %d is out of range; it is 1 to %d bits", family, bits, most)
	}
	return nil
}

// Header returns the name of the header that Resolve wants the lines of, in the
// canonical form of net/http ("X-Real-Ip"), so that it can index an http.Header.
func (r *Resolver) Header() string { return r.header }

// Trusts reports whether addr is the address of a trusted proxy.
func (r *Resolver) Trusts(addr netip.Addr) bool {
	return r.trusted.contain(canonical(addr))
}

// Resolve returns the address of the client that sent a request. The peer is
// the other end of the connection (see [ParsePeer]); lines are all values of
// the header named by [Resolver.Header], in the order received.
//
// The answer is the first address that is not trusted, looking at the peer
// first and then at the header from its last line's right end leftwards. If all
// are trusted it is the leftmost one. Anything that is not an address (empty,
// "unknown", "_hidden", junk) ends the search at the last good hop, as do
// [MaxHops] and [MaxBytes]. Of a single-address header only the rightmost
// element of the last line is read.
//
// The answer has no zone and is never IPv4-mapped. It is the zero Addr only if
// the peer is: a connection without addresses, such as a Unix socket, vouches
// for nobody.
func (r *Resolver) Resolve(peer netip.Addr, lines []string) netip.Addr {
	client := canonical(peer)
	w := newWalk(r.syntax, lines)
	for r.trusted.contain(client) {
		hop, ok := w.next()
		if !ok {
			break
		}
		client = hop
	}
	return client
}

// AppendChain appends the addresses that are vouched for, the client first and
// the peer last, and returns the extended slice. It appends one address if the
// client is the peer, none if the peer is the zero Addr, and at most
// [MaxHops] + 1.
func (r *Resolver) AppendChain(dst []netip.Addr, peer netip.Addr, lines []string) []netip.Addr {
	hop := canonical(peer)
	if !hop.IsValid() {
		return dst
	}
	start := len(dst)
	dst = append(dst, hop)
	w := newWalk(r.syntax, lines)
	for r.trusted.contain(hop) {
		var ok bool
		if hop, ok = w.next(); !ok {
			break
		}
		dst = append(dst, hop)
	}
	slices.Reverse(dst[start:])
	return dst
}
