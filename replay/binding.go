package replay

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/internal/field"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/urlpath"
)

// keyFunc selects a partition of a rule for a line of a log.
type keyFunc = weir.KeyFunc[*Request]

// Binding teaches rule files to read lines of access logs. It has the keys that
// the HTTP middleware has, with the same meaning as far as a log can tell: ip,
// ip/NN, header:NAME, query:NAME and cookie:NAME. A value that the log does not
// have is missing, and the rule's on_missing_key says what becomes of the request.
// A client that the server logged by name counts by that name.
func Binding() rules.Binding[*Request] {
	return rules.Binding[*Request]{
		Method: func(r *Request) string { return r.record.Method },
		Host:   func(r *Request) string { return r.Host },
		Path:   func(r *Request) string { return r.Path },
		Decode: urlpath.Decode,
		Key:    key,
	}
}

// key returns the function of a key's name.
func key(name string) (keyFunc, error) {
	kind, arg, named := strings.Cut(name, ":")
	switch {
	case named && kind == "header" && strings.EqualFold(arg, "Host"):
		return nil, fmt.Errorf("replay: the host is not counted among the headers; write host")
	case named && kind == "header":
		return byText(func(r *Request) (string, bool) {
			v := r.record.Header(arg)
			return v, v != ""
		}), nil
	case named && kind == "query":
		return func(dst []byte, r *Request) ([]byte, bool) {
			at := len(dst)
			dst, ok := field.AppendQuery(dst, r.record.Query, arg)
			if !ok {
				return dst[:at], false
			}
			return field.Bound(dst, at)
		}, nil
	case named && kind == "cookie":
		return byText(func(r *Request) (string, bool) { return field.Cookie([]string{r.record.Header("Cookie")}, arg) }), nil
	case name == "ip":
		return byAddress(nil), nil
	case strings.HasPrefix(name, "ip/"):
		bits, err := strconv.ParseUint(strings.TrimPrefix(name, "ip/"), 10, 8)
		if err != nil || bits < 1 || bits > 128 {
			return nil, fmt.Errorf("replay: key %.64q has no prefix length of 1 to 128 bits; write for example ip/56", name)
		}
		groups, err := clientip.New(clientip.Options{IPv6Prefix: int(bits)})
		return byAddress(groups), err
	}
	return nil, rules.UnknownKey(name, "global", "rule", "method", "host", "path", "path:NAME",
		"ip", "ip/NN", "header:NAME", "query:NAME", "cookie:NAME")
}

// byAddress is the client's network. With groups, IPv6 is grouped as they do;
// otherwise as the request's resolver does.
func byAddress(groups *clientip.Resolver) keyFunc {
	return func(dst []byte, r *Request) ([]byte, bool) {
		switch {
		case !r.Client.IsValid() && r.record.Client != "":
			return field.Bound(append(dst, r.record.Client...), len(dst))
		case groups == nil || r.Client.Is4():
			return r.groups.AppendKey(dst, r.Client), r.Client.IsValid()
		}
		return groups.AppendKey(dst, r.Client), r.Client.IsValid()
	}
}

func byText(get func(*Request) (string, bool)) keyFunc {
	return func(dst []byte, r *Request) ([]byte, bool) {
		v, ok := get(r)
		if !ok {
			return dst, false
		}
		return field.Bound(append(dst, v...), len(dst))
	}
}
