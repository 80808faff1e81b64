package config

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/rules"
)

// Admin is the door for metrics, health and profiles.
type Admin struct {
	// Listen is a loopback address: the door asks for no credential, so it does not
	// open to anybody but this machine.
	Listen Address `json:"listen" rules:"required" doc:"the address of the door, such as 127.0.0.1:6070"`
}

// adminFields is Admin in its plain shape.
type adminFields Admin

// DecodeNode reads the section and refuses addresses that others can reach.
func (a *Admin) DecodeNode(path string, n *rules.Node) rules.Problems {
	problems := rules.DecodeAt(path, n, (*adminFields)(a))
	if a.Listen != "" && !a.Listen.Loopback() {
		problems = append(problems, n.Get("listen").Problem(path+".listen",
			"%q can be reached from outside, and the admin door asks for no credential in this version; listen on 127.0.0.1 or [::1]", string(a.Listen)))
	}
	return problems
}

// ClientIP says whom to believe about the address of a client. The zero value
// believes nobody: the client is the other end of the connection.
type ClientIP struct {
	// TrustedProxies are the networks whose forwarding header is believed.
	TrustedProxies []Network `json:"trusted_proxies"`
	// Header is the one that they write; empty for X-Forwarded-For.
	Header string `json:"header"`
	// IPv6Prefix is how many bits of an IPv6 address make a client; 0 for 64.
	IPv6Prefix int `json:"ipv6_prefix" min:"1" max:"128"`
}

func (c ClientIP) options() clientip.Options {
	o := clientip.Options{Header: c.Header, IPv6Prefix: c.IPv6Prefix}
	for _, n := range c.TrustedProxies {
		if n.IsValid() { // one that is not has been reported
			o.TrustedProxies = append(o.TrustedProxies, n.Prefix)
		}
	}
	return o
}

// A Network is a range of addresses, or one.
type Network struct{ netip.Prefix }

// UnmarshalText reads 10.0.0.0/8, or an address alone.
func (n *Network) UnmarshalText(text []byte) error {
	if a, err := netip.ParseAddr(string(text)); err == nil && a.Zone() == "" {
		n.Prefix = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	p, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%.80q is not a network; write 10.0.0.0/8, 2001:db8::/32 or one address", text)
	}
	n.Prefix = p
	return nil
}

// Store is where counters are kept: in the memory of the process, or in Redis.
type Store struct {
	// Memory bounds the store in memory.
	Memory Memory
	// Redis is used if it is not nil.
	Redis *Redis
}

// Memory bounds the store in memory.
type Memory struct {
	// MaxKeys is the most keys held at once; 0 for weir.DefaultMaxKeys.
	MaxKeys int `json:"max_keys" min:"1" max:"4294967296"`
}

// storeFields are the stores by name.
type storeFields struct {
	Memory *Memory `json:"memory"`
	Redis  *Redis  `json:"redis"`
}

// DecodeNode reads "memory", or a map with the one store that is used.
func (s *Store) DecodeNode(path string, n *rules.Node) rules.Problems {
	switch {
	case n.Kind == rules.String && n.Value == "memory":
		return nil
	case n.Kind == rules.String && n.Value == "redis":
		return rules.Problems{n.Problem(path, `does not say where redis is; write {redis: {addresses: ["127.0.0.1:6379"]}}`)}
	case n.Kind != rules.Map || len(n.Entries) == 0:
		return rules.Problems{n.Problem(path, `is not a store; write memory, {memory: {max_keys: 1000000}}, or {redis: {addresses: ["127.0.0.1:6379"]}}`)}
	}
	var f storeFields
	problems := rules.DecodeAt(path, n, &f)
	if f.Memory != nil && f.Redis != nil {
		problems = append(problems, n.Problem(path, "names two stores; keep one of memory and redis"))
	}
	if f.Memory != nil {
		s.Memory = *f.Memory
	}
	s.Redis = f.Redis
	return problems
}

// Headers says which fields tell a client about its limits. A file that does not
// say has those of the IETF alone.
type Headers struct {
	// IETF: RateLimit and RateLimit-Policy.
	IETF bool
	// X: X-RateLimit-Limit, -Remaining and -Reset.
	X bool
}

// DecodeNode reads a list of ietf and x.
func (h *Headers) DecodeNode(path string, n *rules.Node) rules.Problems {
	var words []string
	problems := rules.DecodeAt(path, n, &words)
	known := []string{"ietf", "x"}
	for i, w := range words {
		if !slices.Contains(known, w) {
			problems = append(problems, n.At(i).Problem(fmt.Sprintf("%s[%d]", path, i), "%.80q is not a kind of header; write %s", w, oneOf(known)))
		}
	}
	h.IETF, h.X = slices.Contains(words, "ietf"), slices.Contains(words, "x")
	return problems
}
