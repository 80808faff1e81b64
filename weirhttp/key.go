package weirhttp

import (
	"net/http"

	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/internal/field"
)

// ByIP is the key of the client's address, an IPv6 client being its /64 unless the
// Resolver says otherwise. A connection without addresses, such as a Unix socket,
// is the partition "unknown", so that it does not go uncounted.
func ByIP(dst []byte, r *Request) ([]byte, bool) { return r.groups.AppendKey(dst, r.Client), true }

// byAddress is ByIP for rule files: a request without an address lacks the key, and
// the rule says what becomes of it.
func byAddress(dst []byte, r *Request) ([]byte, bool) {
	return r.groups.AppendKey(dst, r.Client), r.Client.IsValid()
}

// byNetwork is byAddress with another prefix for IPv6.
func byNetwork(groups *clientip.Resolver) KeyFunc {
	return func(dst []byte, r *Request) ([]byte, bool) {
		if r.Client.Is4() {
			return byAddress(dst, r)
		}
		return groups.AppendKey(dst, r.Client), r.Client.IsValid()
	}
}

// ByHeader is the key of a request header. Of several lines the first counts, as
// in http.Header.Get and nearly every server: were they joined, a client could add
// a line and be somebody new to the limit while its handler still knows it by the
// first. An empty value is a missing one.
//
// Like all values that clients write, one above 1 KiB is cut to its first KiB and
// the SHA-256 of the whole, so keys stay bounded and different values different;
// but white space around such a value does not count, lest padding makes new keys
// of one name.
func ByHeader(name string) KeyFunc {
	name = http.CanonicalHeaderKey(name)
	return func(dst []byte, r *Request) ([]byte, bool) {
		lines := r.Header[name]
		if len(lines) == 0 {
			return dst, false
		}
		at := len(dst)
		return field.Bound(append(dst, lines[0]...), at)
	}
}

// ByQuery is the key of a parameter of the URL's query, decoded: the first that
// url.ParseQuery finds, an empty one being a missing one. Forms in bodies are not
// read. Long values are treated as in [ByHeader].
func ByQuery(name string) KeyFunc {
	return func(dst []byte, r *Request) ([]byte, bool) {
		at := len(dst)
		dst, ok := field.AppendQuery(dst, r.URL.RawQuery, name)
		if !ok {
			return dst[:at], false
		}
		return field.Bound(dst, at)
	}
}

// ByCookie is the key of a cookie: the first that http.Request.Cookie finds, an
// empty one being a missing one. Long values are treated as in [ByHeader].
func ByCookie(name string) KeyFunc {
	return func(dst []byte, r *Request) ([]byte, bool) {
		value, ok := field.Cookie(r.Header["Cookie"], name)
		if !ok {
			return dst, false
		}
		at := len(dst)
		return field.Bound(append(dst, value...), at)
	}
}
