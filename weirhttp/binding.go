package weirhttp

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/internal/token"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/urlpath"
)

// Binding teaches rule files to read HTTP requests. Beside what rules know of
// themselves it has these keys, none of which allocates:
//
//   - ip: the client's network, as the Resolver groups addresses; ip/56: with
//     another prefix length for IPv6, 1 to 128. Missing if the connection has no
//     address, which TCP always has.
//   - header:NAME, in any case: see [ByHeader]. The host is the key host.
//   - query:NAME: see [ByQuery].
//   - cookie:NAME: see [ByCookie].
func Binding() rules.Binding[*Request] {
	return rules.Binding[*Request]{
		Method: func(r *Request) string { return r.Method },
		Host:   func(r *Request) string { return r.Hostname },
		Path:   func(r *Request) string { return r.Path },
		Decode: urlpath.Decode,
		Key:    key,
	}
}

// key returns the function of a key's name.
func key(name string) (KeyFunc, error) {
	kind, arg, named := strings.Cut(name, ":")
	switch {
	case named && kind == "header":
		return headerKey(arg)
	case named && kind == "query" && arg != "":
		return ByQuery(arg), nil
	case named && kind == "cookie":
		if !token.Valid(arg) {
			return nil, fmt.Errorf("weirhttp: %.64q is not the name of a cookie; write for example cookie:session", arg)
		}
		return ByCookie(arg), nil
	case name == "ip":
		return byAddress, nil
	case strings.HasPrefix(name, "ip/"):
		return networkKey(name)
	}
	return nil, rules.UnknownKey(name, "global", "rule", "method", "host", "path", "path:NAME",
		"ip", "ip/NN", "header:NAME", "query:NAME", "cookie:NAME")
}

func headerKey(name string) (KeyFunc, error) {
	if !token.Valid(name) {
		return nil, fmt.Errorf("weirhttp: %.64q is not the name of a header; write for example header:X-Api-Key", name)
	}
	if http.CanonicalHeaderKey(name) == "Host" {
		return nil, fmt.Errorf("weirhttp: net/http keeps Host apart from the headers; write host")
	}
	return ByHeader(name), nil
}

func networkKey(name string) (KeyFunc, error) {
	bits, err := strconv.ParseUint(strings.TrimPrefix(name, "ip/"), 10, 8)
	if err != nil || bits < 1 || bits > 128 {
		return nil, fmt.Errorf("weirhttp: key %.64q has no prefix length of 1 to 128 bits; write for example ip/56", name)
	}
	groups, err := clientip.New(clientip.Options{IPv6Prefix: int(bits)})
	if err != nil {
		return nil, err
	}
	return byNetwork(groups), nil
}
