package clientip_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/clientip"
)

// Case B46: the upstream is told what we vouch for, once, then the peer.
func TestForwardHoldsOnlyWhatIsVouchedFor(t *testing.T) {
	for _, c := range []struct {
		name, header, peer string
		lines              []string
		want               string
	}{
		{"B46 a: no header", "", "198.51.100.9", nil, "198.51.100.9"},
		{"B46 b: trusted peer", "", "10.0.0.1", []string{"203.0.113.7"}, "203.0.113.7, 10.0.0.1"},
		{"B46 c: untrusted peer", "", "198.51.100.9", []string{"1.2.3.4"}, "198.51.100.9"},
		{"trusted peer without header", "", "10.0.0.1", nil, "10.0.0.1"},
		{"claims are left out", "", "10.0.0.1", []string{"1.2.3.4", "203.0.113.7:5 , 10.0.0.9:80"}, "203.0.113.7, 10.0.0.9, 10.0.0.1"},
		{"junk is left out", "", "10.0.0.1", []string{"203.0.113.7, evil\x1b[31m, 10.0.0.9"}, "10.0.0.9, 10.0.0.1"},
		{"only trusted hops", "", "10.0.0.1", []string{"10.0.0.5, 10.0.0.6"}, "10.0.0.5, 10.0.0.6, 10.0.0.1"},
		{"IPv6", "", "::ffff:10.0.0.1", []string{"[2001:db8::1%eth0]:443"}, "2001:db8::1, 10.0.0.1"},
		{"Forwarded", "Forwarded", "10.0.0.1", []string{`for=1.2.3.4, for="203.0.113.7:80";proto=https;host=evil`}, "for=203.0.113.7, for=10.0.0.1"},
		{"Forwarded with IPv6", "Forwarded", "10.0.0.1", []string{`for="[2001:db8::1]:443"`}, `for="[2001:db8::1]", for=10.0.0.1`},
		{"Forwarded, untrusted peer", "Forwarded", "2001:db8::9", []string{"for=1.2.3.4"}, `for="[2001:db8::9]"`},
		{"one address", "X-Real-IP", "10.0.0.1", []string{"1.2.3.4, 203.0.113.7:80"}, "203.0.113.7"},
		{"one address, untrusted peer", "X-Real-IP", "198.51.100.9", []string{"1.2.3.4"}, "198.51.100.9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := resolver(t, c.header, "10.0.0.0/8")
			if got := string(r.AppendForward(nil, addr(c.peer), c.lines)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestForwardOfAPeerWithoutAddressIsUnknown(t *testing.T) {
	for header, want := range map[string]string{"": "unknown", "Forwarded": "for=unknown", "X-Real-IP": "unknown"} {
		r := resolver(t, header, "10.0.0.0/8")
		if got := string(r.AppendForward(nil, netip.Addr{}, []string{"1.2.3.4"})); got != want {
			t.Errorf("%s: got %q, want %q", r.Header(), got, want)
		}
	}
}

// An upstream weir that trusts us and our proxies finds the same client.
func FuzzUpstreamResolvesTheSameClient(f *testing.F) {
	f.Add(uint8(0), "192.0.2.1, 203.0.113.7, 10.0.0.9")
	f.Add(uint8(1), `for=192.0.2.1, for="[2001:db8::1]:443", for=10.0.0.9`)
	f.Add(uint8(2), "203.0.113.7")
	f.Add(uint8(0), "10.0.0.5\n10.0.0.6, 10.0.0.7")
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		header := []string{"X-Forwarded-For", "Forwarded", "X-Real-IP"}[which%3]
		r := resolver(t, header, "10.0.0.0/8")
		peer, lines := addr("10.0.0.1"), strings.Split(text, "\n")
		value := string(r.AppendForward(nil, peer, lines))
		// Forward adds one hop, which may be one more than the upstream reads.
		if len(r.AppendChain(nil, peer, lines)) > clientip.MaxHops {
			return
		}
		us := addr("10.0.0.2")
		if got, want := r.Resolve(us, []string{value}), r.Resolve(peer, lines); got != want {
			t.Errorf("%s %q is forwarded as %q: upstream finds %v, we %v", header, lines, value, got, want)
		}
	})
}
