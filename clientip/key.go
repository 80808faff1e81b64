package clientip

import "net/netip"

// WithIPv6Prefix returns a Resolver that groups IPv6 clients by another prefix,
// 1 to 128 bits, for a rule that has its own. 0 keeps the prefix of r.
func (r *Resolver) WithIPv6Prefix(bits int) (*Resolver, error) {
	if bits == 0 {
		return r, nil
	}
	if err := checkBits("IPv6", bits, 128); err != nil {
		return nil, err
	}
	other := *r
	other.ipv6 = bits
	return &other, nil
}

// Group returns the partition of an address: the network of clients who are
// counted together. The zero Addr is in the zero Prefix.
func (r *Resolver) Group(addr netip.Addr) netip.Prefix {
	addr = canonical(addr)
	bits := r.ipv6
	if addr.Is4() {
		bits = r.ipv4
	}
	// Fails for the zero Addr only: the bits were checked.
	group, _ := addr.Prefix(bits)
	return group
}

// AppendKey appends the partition of an address as text and returns the
// extended slice: "203.0.113.9" if the partition is one address, otherwise its
// network, "2001:db8::/64". For the zero Addr it appends "unknown", so that a
// key is never empty; callers who can tell that an address is missing should.
func (r *Resolver) AppendKey(dst []byte, addr netip.Addr) []byte {
	group := r.Group(addr)
	switch {
	case !group.IsValid():
		return append(dst, unknown...)
	case group.IsSingleIP():
		return group.Addr().AppendTo(dst)
	}
	return group.AppendTo(dst)
}
