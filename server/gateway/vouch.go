package gateway

import (
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/weirhq/weir/clientip"
)

// vouch makes the headers of an outgoing request say of the client what we know,
// and nothing that somebody merely claims (case B46). It runs after ReverseProxy
// has removed what the Connection header names, so that no client can have our
// fields removed.
func (g *Gateway) vouch(pr *httputil.ProxyRequest) {
	resolver, in, out := g.o.Resolver, pr.In, pr.Out
	onlyWebSocket(out.Header)
	own := resolver.Header()
	for name := range out.Header {
		if forwarding(name) || spelled(name) == spelled(own) {
			delete(out.Header, name)
		}
	}
	peer, _ := clientip.ParsePeer(in.RemoteAddr)
	var buf [128]byte
	out.Header.Set(own, string(resolver.AppendForward(buf[:0], peer, in.Header[own])))
	out.Header.Set("X-Forwarded-Host", in.Host)
	out.Header.Set("X-Forwarded-Proto", g.proto(in))
}

// onlyWebSocket takes the offer of any other protocol out of a request. A client that
// got an upstream to speak HTTP/2 over its connection (Upgrade: h2c) would send it
// requests that nobody here sees.
func onlyWebSocket(h http.Header) {
	if offers := h["Upgrade"]; len(offers) > 0 && (len(offers) > 1 || !strings.EqualFold(offers[0], "websocket")) {
		delete(h, "Upgrade")
		delete(h, "Connection") // it names Upgrade and nothing else by now
		delete(h, "Http2-Settings")
	}
}

// proto is how the client's request was made: what a trusted proxy says of it, or
// else how it came in here.
func (g *Gateway) proto(in *http.Request) string {
	if peer, ok := clientip.ParsePeer(in.RemoteAddr); ok && g.o.Resolver.Trusts(peer) {
		if lines := in.Header["X-Forwarded-Proto"]; len(lines) == 1 && (lines[0] == "https" || lines[0] == "http") {
			return lines[0]
		}
	}
	if in.TLS != nil {
		return "https"
	}
	return "http"
}

// forwarding is whether servers read a header of that name as a proxy's word about
// the client.
func forwarding(name string) bool {
	switch s := spelled(name); s {
	case "forwarded", "x-forwarded", "forwarded-for", "x-real-ip", "x-client-ip", "client-ip",
		"x-cluster-client-ip", "true-client-ip", "cf-connecting-ip", "cf-connecting-ipv6", "fastly-client-ip",
		"x-original-forwarded-for", "x-original-host", "x-original-url", "x-rewrite-url",
		"x-envoy-external-address", "x-azure-clientip", "x-azure-socketip", "x-appengine-user-ip",
		"x-remote-ip", "x-remote-addr", "x-originating-ip", "x-host":
		return true
	default:
		return strings.HasPrefix(s, "x-forwarded-")
	}
}

// spelled is a name as servers see it that turn headers into variables (CGI, WSGI):
// there X_Forwarded_For is X-Forwarded-For.
func spelled(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}
