//go:build !race

package clientip_test

import (
	"testing"

	"github.com/weirhq/weir/clientip"
)

func TestNothingIsAllocatedPerRequest(t *testing.T) {
	lists := map[string][]string{
		"X-Forwarded-For": {"192.0.2.1", "[2001:db8::1%eth0]:443, 10.0.0.9:80"},
		"Forwarded":       {`for=192.0.2.1, for="[2001:db8::1]:443";host="a,b", for=10.0.0.9`},
		"X-Real-IP":       {"2001:db8::1"},
		"X-Client-IP":     {"unknown"},
	}
	dst := make([]byte, 0, 256)
	for header, lines := range lists {
		r := resolver(t, header, "10.0.0.0/8", "192.168.0.0/16", "2001:db8:ffff::/48")
		got := testing.AllocsPerRun(100, func() {
			peer, _ := clientip.ParsePeer("[::ffff:10.0.0.1]:51034")
			dst = r.AppendKey(dst[:0], r.Resolve(peer, lines))
			dst = r.AppendForward(dst[:0], peer, lines)
		})
		if got != 0 {
			t.Errorf("%s: %v allocations, want 0", header, got)
		}
	}
}
