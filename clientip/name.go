package clientip

import "strings"

// wellKnown are the headers that proxies and CDNs are known to write for one
// client, in canonical form, separated by spaces. CloudFront-Viewer-Address is
// not among them: it puts a port behind an IPv6 address without brackets.
const wellKnown = "X-Forwarded-For Forwarded X-Real-Ip X-Client-Ip X-Cluster-Client-Ip " +
	"Cf-Connecting-Ip Cf-Connecting-Ipv6 True-Client-Ip Fastly-Client-Ip Fly-Client-Ip " +
	"Do-Connecting-Ip X-Azure-Clientip X-Azure-Socketip X-Appengine-User-Ip " +
	"X-Envoy-External-Address X-Nf-Client-Connection-Ip"

// nearest returns the well-known header with the same letters and digits as
// name, or "".
func nearest(name string) string {
	for _, known := range strings.Fields(wellKnown) {
		if letters(known) == letters(name) {
			return known
		}
	}
	return ""
}

func letters(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c == ' ' || c == ':' {
			return -1
		}
		return c
	}, strings.ToLower(name))
}

// canonicalHeader is net/http's CanonicalHeaderKey for a token.
func canonicalHeader(name string) string {
	canonical := []byte(strings.ToLower(name))
	for i, c := range canonical {
		if 'a' <= c && c <= 'z' && (i == 0 || canonical[i-1] == '-') {
			canonical[i] = c - ('a' - 'A')
		}
	}
	return string(canonical)
}
