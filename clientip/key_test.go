package clientip_test

import (
	"net/netip"
	"testing"

	"github.com/weirhq/weir/clientip"
)

func TestPartitions(t *testing.T) {
	for _, c := range []struct {
		ipv4, ipv6  int // 0: default
		addr, group string
		key         string
	}{
		{0, 0, "203.0.113.9", "203.0.113.9/32", "203.0.113.9"},
		{0, 0, "::ffff:203.0.113.9", "203.0.113.9/32", "203.0.113.9"},
		{0, 0, "2001:db8::1", "2001:db8::/64", "2001:db8::/64"},
		{0, 0, "2001:db8::ffff:ffff:ffff:ffff", "2001:db8::/64", "2001:db8::/64"},
		{0, 0, "2001:db8:0:1::1", "2001:db8:0:1::/64", "2001:db8:0:1::/64"},
		{0, 0, "fe80::1%eth0", "fe80::/64", "fe80::/64"},
		{24, 56, "203.0.113.9", "203.0.113.0/24", "203.0.113.0/24"},
		{24, 56, "2001:db8:0:1ff::1", "2001:db8:0:100::/56", "2001:db8:0:100::/56"},
		{0, 128, "2001:db8::1", "2001:db8::1/128", "2001:db8::1"},
		{1, 1, "203.0.113.9", "128.0.0.0/1", "128.0.0.0/1"},
	} {
		r, err := clientip.New(clientip.Options{IPv4Prefix: c.ipv4, IPv6Prefix: c.ipv6})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Group(addr(c.addr)); got != netip.MustParsePrefix(c.group) {
			t.Errorf("Group(%s) by /%d and /%d = %v, want %s", c.addr, c.ipv4, c.ipv6, got, c.group)
		}
		if got := string(r.AppendKey([]byte("ip:"), addr(c.addr))); got != "ip:"+c.key {
			t.Errorf("AppendKey(%s) by /%d and /%d = %q, want %q", c.addr, c.ipv4, c.ipv6, got, "ip:"+c.key)
		}
	}
}

func TestKeyIsNeverEmpty(t *testing.T) {
	r := resolver(t, "")
	if got := string(r.AppendKey(nil, netip.Addr{})); got != "unknown" {
		t.Errorf("key of no address = %q, want unknown", got)
	}
	if got := r.Group(netip.Addr{}); got.IsValid() {
		t.Errorf("group of no address = %v, want the zero Prefix", got)
	}
}

func TestRuleMayHaveItsOwnPrefix(t *testing.T) {
	r := resolver(t, "", "10.0.0.0/8")
	wide, err := r.WithIPv6Prefix(48)
	if err != nil {
		t.Fatal(err)
	}
	client := addr("2001:db8:0:1::1")
	for _, c := range []struct {
		r    *clientip.Resolver
		want string
	}{{r, "2001:db8:0:1::/64"}, {wide, "2001:db8::/48"}} {
		if got := string(c.r.AppendKey(nil, client)); got != c.want {
			t.Errorf("key %q, want %q", got, c.want)
		}
	}
	if same, err := wide.WithIPv6Prefix(0); err != nil || string(same.AppendKey(nil, client)) != "2001:db8::/48" {
		t.Errorf("prefix 0 gives %v, %v; want the resolver's own", same, err)
	}
	for _, bits := range []int{-1, 129} {
		if _, err := r.WithIPv6Prefix(bits); err == nil {
			t.Errorf("prefix %d is accepted", bits)
		}
	}
}
