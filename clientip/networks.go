package clientip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// networks is a set of addresses as disjoint prefixes in ascending order, so
// that a CDN's few hundred prefixes cost a binary search per hop.
type networks []netip.Prefix

func newNetworks(prefixes []netip.Prefix) (networks, error) {
	var sorted networks
	var errs []error
	for _, p := range prefixes {
		switch {
		case !p.IsValid():
			errs = append(errs, errors.New("clientip: the zero prefix is no network of trusted proxies; write one such as 10.0.0.0/8"))
			continue
		case p.Addr().Is4In6() && p.Bits() < 96:
			errs = append(errs, fmt.Errorf("clientip: trusted proxies %v are neither IPv4 nor IPv6; write the IPv4 network, such as 10.0.0.0/8", p))
			continue
		case p.Addr().Is4In6():
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		sorted = append(sorted, p.Masked())
	}
	slices.SortFunc(sorted, netip.Prefix.Compare)

	// A network sorts right before those inside it.
	disjoint := sorted[:0]
	for _, p := range sorted {
		if n := len(disjoint); n == 0 || !disjoint[n-1].Overlaps(p) {
			disjoint = append(disjoint, p)
		}
	}
	return disjoint, errors.Join(errs...)
}

// contain reports whether a canonical address lies in one of the networks.
func (n networks) contain(addr netip.Addr) bool {
	i, _ := slices.BinarySearchFunc(n, addr, func(p netip.Prefix, addr netip.Addr) int {
		if p.Addr().Compare(addr) <= 0 {
			return -1
		}
		return 1
	})
	return i > 0 && n[i-1].Contains(addr)
}
