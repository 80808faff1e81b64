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

// withoutHopFields drops the fields that the Connection header names before a rule
// may count by them: no upstream will see them, so a client could be somebody to the
// limit and nobody behind it. The field that tells the client's address is kept for
// the resolver, which believes only trusted peers.
func withoutHopFields(r *http.Request, own string) *http.Request {
	var named []string
	for _, line := range r.Header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			switch name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name {
			case "", "Close", "Keep-Alive", "Upgrade", "Te", own:
			default:
				named = append(named, name)
			}
		}
	}
	if len(named) == 0 {
		return r
	}
	r = r.Clone(r.Context())
	for _, name := range named {
		delete(r.Header, name)
	}
	return r
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
		"x-remote-ip", "x-remote-addr", "x-originating-ip", "x-host", "x-backend-host", "x-original-uri",
		"x-http-host-override", "x-proxyuser-ip", "cdn-src-ip", "x-nf-client-connection-ip", "x-appengine-remote-addr",
		"x-sucuri-clientip":
		return true
	default:
		if strings.HasPrefix(s, "x-forwarded-") {
			return true
		}
		for _, ending := range []string{"-client-ip", "-connecting-ip", "-real-ip"} {
			if strings.HasSuffix(s, ending) { // one of each content network, and of each copied recipe
				return true
			}
		}
		return false
	}
}

// spelled is a name as servers see it that turn headers into variables (CGI, WSGI):
// there X_Forwarded_For and HTTP_X_FORWARDED_FOR are X-Forwarded-For.
func spelled(name string) string {
	return strings.TrimPrefix(strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name)), "http-")
}
