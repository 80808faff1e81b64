package clientip_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/clientip"
)

func resolver(t testing.TB, header string, trusted ...string) *clientip.Resolver {
	t.Helper()
	r, err := clientip.New(clientip.Options{Header: header, TrustedProxies: prefixes(trusted...)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func prefixes(texts ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range texts {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

type resolveCase struct {
	name  string
	peer  string
	lines []string
	want  string
}

func testResolve(t *testing.T, r *clientip.Resolver, cases []resolveCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := r.Resolve(addr(c.peer), c.lines); got != addr(c.want) {
				t.Errorf("peer %s, %s %q: got %v, want %s", c.peer, r.Header(), c.lines, got, c.want)
			}
		})
	}
}

// Case S26, S03: without trusted proxies the header is never read.
func TestNobodyIsTrustedByDefault(t *testing.T) {
	r := resolver(t, "")
	for n := range 10 {
		claim := []string{fmt.Sprintf("192.0.2.%d", n)}
		if got := r.Resolve(addr("198.51.100.5"), claim); got != addr("198.51.100.5") {
			t.Errorf("claim %q made the client %v", claim, got)
		}
	}
}

func TestClientIsTheFirstUntrustedFromTheRight(t *testing.T) {
	testResolve(t, resolver(t, "", "10.0.0.0/8", "2001:db8:ffff::/48"), []resolveCase{
		{"B24 two lines, read from the last", "10.0.0.1", []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		{"B24 one line with a trusted hop", "10.0.0.1", []string{"192.0.2.1, 203.0.113.7, 10.0.0.9"}, "203.0.113.7"},
		{"B24 untrusted peer", "198.51.100.50", []string{"203.0.113.7"}, "198.51.100.50"},
		{"trusted hops over several lines", "10.0.0.1", []string{"192.0.2.1,203.0.113.7", "10.0.0.9\t,10.0.0.8", "10.0.0.7"}, "203.0.113.7"},
		{"B27 no header", "10.0.0.1", nil, "10.0.0.1"},
		{"B27 only trusted hops: the leftmost", "10.0.0.1", []string{"10.0.0.5, 10.0.0.6"}, "10.0.0.5"},
		{"S07 behind a CDN that appends", "10.0.0.1", []string{"203.0.113.7, 10.0.0.200"}, "203.0.113.7"},
		{"IPv6 hops", "2001:db8:ffff::1", []string{"2001:db8::1, 2001:db8:ffff::2"}, "2001:db8::1"},
		{"mapped peer is trusted as IPv4", "::ffff:10.0.0.1", []string{"203.0.113.7"}, "203.0.113.7"},
		{"mapped hop is trusted as IPv4", "10.0.0.1", []string{"203.0.113.7, ::ffff:10.0.0.2"}, "203.0.113.7"},
		{"mapped client is IPv4", "10.0.0.1", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"mapped client in hexadecimal", "10.0.0.1", []string{"::ffff:cb00:7107"}, "203.0.113.7"},
		{"zone of the peer", "fe80::1%eth0", nil, "fe80::1"},
		{"zone of the client", "10.0.0.1", []string{"fe80::1%eth0"}, "fe80::1"},
		{"zone of a bracketed client", "10.0.0.1", []string{"[fe80::1%25eth0]:443"}, "fe80::1"},
	})
}

// Case B25, S49: a port is never part of who somebody is.
func TestPortsAreDropped(t *testing.T) {
	testResolve(t, resolver(t, "", "10.0.0.0/8"), []resolveCase{
		{"IPv4", "10.0.0.1", []string{"203.0.113.7:51034"}, "203.0.113.7"},
		{"IPv4, another port", "10.0.0.1", []string{"203.0.113.7:51077"}, "203.0.113.7"},
		{"IPv6", "10.0.0.1", []string{"[2001:db8::5]:443"}, "2001:db8::5"},
		{"IPv6 in brackets alone", "10.0.0.1", []string{"[2001:db8::5]"}, "2001:db8::5"},
		{"IPv6 bare", "10.0.0.1", []string{"2001:db8::5"}, "2001:db8::5"},
		{"trusted hop with a port", "10.0.0.1", []string{"203.0.113.7, 10.0.0.9:80"}, "203.0.113.7"},
	})
}

// Cases B25, S05, S06: what is no address is never a key. The walk ends at the
// last hop that somebody vouched for.
func TestJunkEndsTheWalkAtTheLastGoodHop(t *testing.T) {
	r := resolver(t, "", "10.0.0.0/8")
	for _, junk := range []string{
		"", " ", "unknown", "unknow", "_hidden", "localhost", "example.com:80", "203.0.113", "203.0.113.7.1", "203.0.113.256",
		"203.0.113.07", "203.0.113.7:", "203.0.113.7:x", "203.0.113.7:123456", "203.0.113.7 203.0.113.8", "203.0.113.7%eth0",
		"[203.0.113.7]:80", "[2001:db8::5", "2001:db8::5]", "[2001:db8::5]443", "[]", "[]:80", ":", ":80", "%", "[%]", "fe80::1%",
		"2001:db8:::5", "1:2:3:4:5:6:7:8:9", `"203.0.113.7"`, "for=203.0.113.7", "203.0.113.7;", "203.0.113.7/32", "0xcb007107", "3405803783",
		"203.0.113.7\x00", "２０３.0.113.7", strings.Repeat("1", 100), strings.Repeat("f:", 50),
	} {
		for name, lines := range map[string][]string{
			"alone":       {junk},
			"after a lie": {"192.0.2.1, " + junk},
			"own line":    {"192.0.2.1", junk},
		} {
			if got := r.Resolve(addr("10.0.0.1"), lines); got != addr("10.0.0.1") {
				t.Errorf("%s %q: got %v, want the peer", name, lines, got)
			}
		}
		if lines := []string{"192.0.2.1, " + junk + ", 10.0.0.9"}; r.Resolve(addr("10.0.0.1"), lines) != addr("10.0.0.9") {
			t.Errorf("%q: got %v, want the last good hop", lines, r.Resolve(addr("10.0.0.1"), lines))
		}
	}
	testResolve(t, r, []resolveCase{
		{"S05 junk left of the client", "10.0.0.1", []string{"unknown, 203.0.113.7"}, "203.0.113.7"},
		{"S06 nothing left of the client", "10.0.0.1", []string{", 203.0.113.7"}, "203.0.113.7"},
	})
}

func TestForwarded(t *testing.T) {
	testResolve(t, resolver(t, "forwarded", "10.0.0.0/8", "2001:db8:ffff::/48"), []resolveCase{
		{"plain", "10.0.0.1", []string{"for=203.0.113.7"}, "203.0.113.7"},
		{"other case and parameters", "10.0.0.1", []string{"By=10.0.0.1;FOR=203.0.113.7;proto=https"}, "203.0.113.7"},
		{"quoted with port", "10.0.0.1", []string{`for="203.0.113.7:4711"`}, "203.0.113.7"},
		{"quoted IPv6", "10.0.0.1", []string{`for="[2001:db8::1]"`}, "2001:db8::1"},
		{"quoted IPv6 with port", "10.0.0.1", []string{`for="[2001:db8::1]:4711"`}, "2001:db8::1"},
		{"obfuscated port", "10.0.0.1", []string{`for="[2001:db8::1]:_p"`}, "2001:db8::1"},
		{"unquoted IPv6", "10.0.0.1", []string{`for=2001:db8::1;proto=http`}, "2001:db8::1"},
		{"space around separators", "10.0.0.1", []string{" for = 203.0.113.7 ; proto = http "}, "203.0.113.7"},
		{"empty parameters", "10.0.0.1", []string{";;for=203.0.113.7;"}, "203.0.113.7"},
		{"a list over lines", "10.0.0.1", []string{"for=192.0.2.1, for=203.0.113.7", `for="[2001:db8:ffff::1]", for=10.0.0.9`}, "203.0.113.7"},
		{"a comma in quotes", "10.0.0.1", []string{`for=203.0.113.7;host="a,b"`}, "203.0.113.7"},
		{"a quote and a comma in quotes", "10.0.0.1", []string{`for=203.0.113.7;host="a\",b\",c"`}, "203.0.113.7"},
		{"a backslash at the end of quotes", "10.0.0.1", []string{`for=203.0.113.7;host="a,b\\"`}, "203.0.113.7"},
		{"a client's open quote swallows nothing", "10.0.0.1", []string{`for="192.0.2.1, for=203.0.113.7`}, "203.0.113.7"},
		{"nor in front of a quoted value", "10.0.0.1", []string{`x="\, for="203.0.113.7:80"`}, "203.0.113.7"},
		{"unknown", "10.0.0.1", []string{"for=192.0.2.1, for=unknown"}, "10.0.0.1"},
		{"obfuscated", "10.0.0.1", []string{"for=192.0.2.1, for=_hidden, for=10.0.0.9"}, "10.0.0.9"},
		{"no for", "10.0.0.1", []string{"for=192.0.2.1, by=203.0.113.7"}, "10.0.0.1"},
		{"for in a value only", "10.0.0.1", []string{`host="for=192.0.2.1"`}, "10.0.0.1"},
		{"two fors", "10.0.0.1", []string{"for=192.0.2.1;for=203.0.113.7"}, "10.0.0.1"},
		{"the syntax of X-Forwarded-For", "10.0.0.1", []string{"203.0.113.7"}, "10.0.0.1"},
		{"open quote", "10.0.0.1", []string{`for="203.0.113.7`}, "10.0.0.1"},
		{"text behind a quote", "10.0.0.1", []string{`for="203.0.113.7"x`}, "10.0.0.1"},
		{"escapes in an address", "10.0.0.1", []string{`for="203.0.113.\7"`}, "10.0.0.1"},
		{"escaped closing quote", "10.0.0.1", []string{`for="203.0.113.7\"`}, "10.0.0.1"},
		{"no name", "10.0.0.1", []string{`=203.0.113.7`}, "10.0.0.1"},
		{"B27 only trusted hops", "10.0.0.1", []string{"for=10.0.0.5"}, "10.0.0.5"},
	})
}

// A header of one address is set, not appended to. Of more than one, only the
// rightmost can be our proxy's.
func TestSingleAddressHeaderIsReadFromTheRightOnce(t *testing.T) {
	for _, header := range []string{"X-Real-IP", "CF-Connecting-IP", "x-our-client"} {
		testResolve(t, resolver(t, header, "10.0.0.0/8"), []resolveCase{
			{"one", "10.0.0.1", []string{"203.0.113.7"}, "203.0.113.7"},
			{"with port", "10.0.0.1", []string{"[2001:db8::5]:443"}, "2001:db8::5"},
			{"two lines", "10.0.0.1", []string{"192.0.2.1", "203.0.113.7"}, "203.0.113.7"},
			{"a list", "10.0.0.1", []string{"192.0.2.1, 203.0.113.7"}, "203.0.113.7"},
			{"no walk past a trusted address", "10.0.0.1", []string{"192.0.2.1, 10.0.0.9"}, "10.0.0.9"},
			{"unknown", "10.0.0.1", []string{"192.0.2.1", "unknown"}, "10.0.0.1"},
			{"untrusted peer", "198.51.100.50", []string{"203.0.113.7"}, "198.51.100.50"},
		})
	}
}

func TestPeerWithoutAddressVouchesForNobody(t *testing.T) {
	r := resolver(t, "", "0.0.0.0/0", "::/0")
	if got := r.Resolve(netip.Addr{}, []string{"203.0.113.7"}); got.IsValid() {
		t.Errorf("got %v, want the zero Addr", got)
	}
	if got := r.AppendChain(nil, netip.Addr{}, []string{"203.0.113.7"}); len(got) != 0 {
		t.Errorf("chain %v, want none", got)
	}
}

// A header is bounded by the server; what we read of it is bounded here.
func TestWorkIsBounded(t *testing.T) {
	r := resolver(t, "", "10.0.0.0/8")
	hops := slices.Repeat([]string{"10.0.0.2"}, clientip.MaxHops-1)
	hops = append([]string{"10.0.0.5"}, hops...)
	testResolve(t, r, []resolveCase{
		{"as many hops as allowed", "10.0.0.1", []string{"192.0.2.1," + strings.Join(hops, ",")}, "10.0.0.5"},
		{"as many lines as allowed", "10.0.0.1", append([]string{"192.0.2.1"}, hops...), "10.0.0.5"},
		{"a megabyte left of the client", "10.0.0.1", []string{strings.Repeat("1", 1<<20) + ",203.0.113.7"}, "203.0.113.7"},
		{"a megabyte without comma", "10.0.0.1", []string{strings.Repeat("1", 1<<20)}, "10.0.0.1"},
		{"an address behind too much space", "10.0.0.1", []string{"203.0.113.7" + strings.Repeat(" ", clientip.MaxBytes)}, "10.0.0.1"},
		{"an address before all the space allowed", "10.0.0.1", []string{strings.Repeat(" ", clientip.MaxBytes-11) + "203.0.113.7"}, "203.0.113.7"},
		{"space over several elements", "10.0.0.1", []string{"203.0.113.7," + strings.Repeat(" ", clientip.MaxBytes/2) + "10.0.0.9," + strings.Repeat(" ", clientip.MaxBytes/2) + "10.0.0.8"}, "10.0.0.8"},
	})
	chain := r.AppendChain(nil, addr("10.0.0.1"), []string{strings.Repeat("10.0.0.2,", 1<<17) + "10.0.0.2"})
	if len(chain) != clientip.MaxHops+1 {
		t.Errorf("chain of %d, want %d", len(chain), clientip.MaxHops+1)
	}
}

func TestParsePeer(t *testing.T) {
	for s, want := range map[string]string{
		"203.0.113.9:1234":             "203.0.113.9",
		"203.0.113.9":                  "203.0.113.9",
		"[2001:db8::1]:443":            "2001:db8::1",
		"2001:db8::1":                  "2001:db8::1",
		"::":                           "::",
		"[::1]:80":                     "::1",
		"[fe80::1%eth0]:443":           "fe80::1",
		"[::ffff:203.0.113.9]:80":      "203.0.113.9",
		"[::ffff:203.0.113.9%eth0]:80": "203.0.113.9",
	} {
		if got, ok := clientip.ParsePeer(s); !ok || got != addr(want) {
			t.Errorf("ParsePeer(%q) = %v, %v, want %s", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "@", "/run/weir.sock", "pipe", "localhost:80", "bufconn", " 203.0.113.9"} {
		if got, ok := clientip.ParsePeer(s); ok || got.IsValid() {
			t.Errorf("ParsePeer(%q) = %v, %v, want no address", s, got, ok)
		}
	}
}

func TestTrustedNetworks(t *testing.T) {
	r := resolver(t, "", "10.1.0.0/16", "10.0.0.0/8", "10.255.255.255/32", "::ffff:172.16.0.0/108", "192.168.7.9/24", "2001:db8::/32", "10.0.0.0/8")
	for s, want := range map[string]bool{
		"10.0.0.0": true, "10.1.2.3": true, "10.2.0.0": true, "10.255.255.255": true, "9.255.255.255": false, "11.0.0.0": false,
		"172.16.0.1": true, "172.31.255.255": true, "172.32.0.0": false, "::ffff:172.16.0.1": true,
		"192.168.7.1": true, "192.168.8.1": false, "2001:db8:1::1": true, "2001:db8:1::1%eth0": true, "2001:db9::1": false,
		"0.0.0.0": false, "255.255.255.255": false, "::": false, "::a00:1": false,
	} {
		if got := r.Trusts(addr(s)); got != want {
			t.Errorf("Trusts(%s) = %v, want %v", s, got, want)
		}
	}
}

func TestNewListsEverythingWrong(t *testing.T) {
	_, err := clientip.New(clientip.Options{
		TrustedProxies: []netip.Prefix{{}, netip.MustParsePrefix("::ffff:0:0/90")},
		Header:         "X-Real-IP:",
		IPv6Prefix:     129,
		IPv4Prefix:     -1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"zero prefix", "::ffff:0.0.0.0/90", `"X-Real-IP:"`, "129", "-1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not mention %s:\n%v", want, err)
		}
	}
}

func TestHeaderIsCanonical(t *testing.T) {
	for name, want := range map[string]string{
		"": "X-Forwarded-For", "x-forwarded-for": "X-Forwarded-For", "FORWARDED": "Forwarded", "X-Real-IP": "X-Real-Ip", "x-real_ip": "X-Real_ip",
	} {
		if got := resolver(t, name).Header(); got != want {
			t.Errorf("Header of %q = %q, want %q", name, got, want)
		}
	}
}

// Case S04: a header that nobody writes makes one client of all.
func TestUnusualOptionsAreWarnedOf(t *testing.T) {
	for _, c := range []struct {
		header  string
		trusted []netip.Prefix
		want    []string // one substring per warning
	}{
		{"", nil, nil},
		{"", prefixes("10.0.0.0/8"), nil},
		{"x-real-ip", prefixes("10.0.0.0/8"), nil},
		{"CF-Connecting-IP", prefixes("10.0.0.0/8"), nil},
		{"X-Real_IP", prefixes("10.0.0.0/8"), []string{`did you mean "X-Real-Ip"?`}},
		{"XForwardedFor", prefixes("10.0.0.0/8"), []string{`did you mean "X-Forwarded-For"?`}},
		{"x_our_client", prefixes("10.0.0.0/8"), []string{"underscore"}},
		{"X-Our-Client", prefixes("10.0.0.0/8"), []string{`"X-Our-Client" is not one`}},
		{"X-Real-IP", nil, []string{"never read"}},
		{"", prefixes("0.0.0.0/0", "::/0", "::ffff:0:0/96", "10.0.0.1/8"), []string{"0.0.0.0/0 are everybody", "::/0 are everybody", "everybody", "mean 10.0.0.0/8"}},
	} {
		got := clientip.Options{Header: c.header, TrustedProxies: c.trusted}.Warn()
		if len(got) != len(c.want) {
			t.Errorf("header %q, trusted %v: warnings %q, want %d", c.header, c.trusted, got, len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("header %q: warning %q does not contain %q", c.header, got[i], want)
			}
		}
	}
}
