package clientip_test

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/clientip"
)

const port = `(?::(?:[0-9]{1,5}|_[-!#$%&'*+.^_\x60|~0-9A-Za-z]*))?`

// modelAddr reads an address by the three spellings it may have.
func modelAddr(s string) (netip.Addr, bool) {
	var a netip.Addr
	err := errors.New("no spelling of an address")
	if m := regexp.MustCompile(`^\[([^\]]*)\]` + port + `$`).FindStringSubmatch(s); m != nil {
		if a, err = netip.ParseAddr(m[1]); !a.Is6() {
			return netip.Addr{}, false
		}
	} else if m := regexp.MustCompile(`^([0-9.]*)` + port + `$`).FindStringSubmatch(s); m != nil {
		a, err = netip.ParseAddr(m[1])
	} else if strings.Count(s, ":") > 1 {
		a, err = netip.ParseAddr(s)
	}
	return a.Unmap().WithZone(""), err == nil
}

// modelElements splits a well-formed Forwarded line from the left, as RFC 7239
// reads. It reports false for a line with quotes in odd places.
func modelElements(line string) ([]string, bool) {
	elements, quoted, start := []string{}, false, 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '\\':
			return nil, false
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			elements, start = append(elements, line[start:i]), i+1
		}
	}
	return append(elements, line[start:]), !quoted
}

// model is Resolve in the most obvious words: all elements of all lines,
// reversed, until one does not count.
func model(trusted []netip.Prefix, peer netip.Addr, elements []string, parse func(string) (netip.Addr, bool)) netip.Addr {
	isTrusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	elements = slices.Clone(elements)
	slices.Reverse(elements)
	client := peer.Unmap().WithZone("")
	for i, e := range elements {
		hop, ok := parse(strings.Trim(e, " \t"))
		if !ok || i == clientip.MaxHops || !isTrusted(client) {
			break
		}
		client = hop
	}
	return client
}

var oddHeaders = []string{
	"", ",", ", 203.0.113.7", "192.0.2.1, 203.0.113.7, 10.0.0.9", "192.0.2.1\n203.0.113.7\n10.0.0.9,10.0.0.8", "unknown", "_hidden, 10.0.0.9",
	"203.0.113.7:51034", "[2001:db8::5]:443", "[2001:db8::5]", "::ffff:10.0.0.2", "fe80::1%eth0,10.0.0.2", "[fe80::1%a]:1", "10.0.0.2,10.0.0.3\n\n10.0.0.4",
}

func FuzzResolveAgreesWithTheModel(f *testing.F) {
	for _, s := range oddHeaders {
		f.Add("10.0.0.1", s)
	}
	trusted := prefixes("10.0.0.0/8", "10.7.0.0/16", "2001:db8:ffff::/48", "fe80::/10", "172.16.0.0/12")
	r, err := clientip.New(clientip.Options{TrustedProxies: trusted})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, peer, text string) {
		p, ok := clientip.ParsePeer(peer)
		if want, wantOK := modelAddr(peer); ok != wantOK || p != want {
			t.Fatalf("ParsePeer(%q) = %v, %v, want %v, %v", peer, p, ok, want, wantOK)
		}
		if !ok || len(text) > clientip.MaxBytes {
			return
		}
		lines := strings.Split(text, "\n")
		var elements []string
		for _, line := range lines {
			elements = append(elements, strings.Split(line, ",")...)
		}
		want := model(trusted, p, elements, modelAddr)
		if got := r.Resolve(p, lines); got != want {
			t.Errorf("peer %v, lines %q: got %v, want %v", p, lines, got, want)
		}
		chain := r.AppendChain(nil, p, lines)
		if chain[0] != want || chain[len(chain)-1] != p {
			t.Errorf("peer %v, lines %q: chain %v, want %v to %v", p, lines, chain, want, p)
		}
	})
}

func FuzzForwardedAgreesWithReadingFromTheLeft(f *testing.F) {
	for _, s := range []string{
		"for=203.0.113.7, for=10.0.0.9", `for="[2001:db8::1]:4711";by=x`, `for=203.0.113.7;host="a,b", for=10.0.0.9`, `for=1.2.3.4;a="\",\\", FOR="10.0.0.9"`, "for=_hidden", "for=10.0.0.9\nby=x",
	} {
		f.Add(s)
	}
	trusted := prefixes("10.0.0.0/8")
	r, err := clientip.New(clientip.Options{TrustedProxies: trusted, Header: "Forwarded"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		peer, lines := addr("10.0.0.1"), strings.Split(text, "\n")
		got := r.Resolve(peer, lines) // whatever the text, no panic
		if len(text) > clientip.MaxBytes {
			return
		}
		var elements []string
		for _, line := range lines {
			es, ok := modelElements(line)
			if !ok {
				return
			}
			elements = append(elements, es...)
		}
		// The element's own syntax is the package's: one element alone is read by it.
		parse := func(e string) (netip.Addr, bool) {
			chain := r.AppendChain(nil, peer, []string{e})
			return chain[0], len(chain) > 1
		}
		if want := model(trusted, peer, elements, parse); got != want {
			t.Errorf("lines %q: got %v, want %v", lines, got, want)
		}
	})
}

// Whatever it sends, a client whom nobody vouches for is its own address, and a
// client in front of a trusted proxy is the address that the proxy appended.
func FuzzClientCannotChooseItsKey(f *testing.F) {
	for _, s := range append(oddHeaders, `for="`, `for="\`, `for=1.2.3.4, for="a\\`, `x="`+strings.Repeat(`\"`, 50)) {
		f.Add(uint8(0), s)
		f.Add(uint8(1), s)
		f.Add(uint8(2), s)
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		header := []string{"X-Forwarded-For", "Forwarded", "X-Real-IP"}[which%3]
		r := resolver(t, header, "10.0.0.0/8")
		peer, client, claim := addr("10.0.0.1"), addr("203.0.113.7"), strings.Split(text, "\n")

		want := string(r.AppendKey(nil, client))
		if got := string(r.AppendKey(nil, r.Resolve(client, claim))); got != want {
			t.Errorf("untrusted peer with %q got key %q, want %q", claim, got, want)
		}

		hops := []string{"203.0.113.7:4711", "10.0.0.9"}
		if which%3 == 1 {
			hops = []string{`for="203.0.113.7:4711";host="a,\"b\\"`, "for=10.0.0.9"}
		}
		if which%3 == 2 {
			hops = hops[:1]
		}
		for name, lines := range map[string][]string{
			"on new lines":     append(slices.Clone(claim), hops...),
			"on the last line": append(slices.Clone(claim[:len(claim)-1]), claim[len(claim)-1]+", "+strings.Join(hops, ", ")),
		} {
			if got := string(r.AppendKey(nil, r.Resolve(peer, lines))); got != want {
				t.Errorf("proxy's hops %s: %q got key %q, want %q", name, lines, got, want)
			}
		}
	})
}
