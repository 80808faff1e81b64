package clientip_test

import (
	"fmt"
	"net/netip"

	"github.com/weirhq/weir/clientip"
)

func Example() {
	who, err := clientip.New(clientip.Options{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	if err != nil {
		panic(err)
	}

	peer, _ := clientip.ParsePeer("10.0.0.1:51034")       // http.Request.RemoteAddr
	lines := []string{"192.0.2.1, 2001:db8::5, 10.0.0.9"} // http.Request.Header[who.Header()]
	client := who.Resolve(peer, lines)

	fmt.Println(client)
	fmt.Println(string(who.AppendKey([]byte("login:"), client)))
	fmt.Println(string(who.AppendForward(nil, peer, lines)))
	// Output:
	// 2001:db8::5
	// login:2001:db8::/64
	// 2001:db8::5, 10.0.0.9, 10.0.0.1
}
