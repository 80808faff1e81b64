package rules_test

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
)

// request is a request as these tests see one.
type request struct {
	method, host, path, ip string
	header                 map[string]string
}

// binding reads all that a rule may ask of a request.
func binding() rules.Binding[*request] {
	return rules.Binding[*request]{
		Method: func(r *request) string { return r.method },
		Host:   func(r *request) string { return r.host },
		Path:   func(r *request) string { return r.path },
		Decode: func(s string) string {
			if d, err := url.PathUnescape(s); err == nil {
				return d
			}
			return s
		},
		Key: func(name string) (weir.KeyFunc[*request], error) {
			kind, arg, _ := strings.Cut(name, ":")
			switch {
			case kind == "ip" || strings.HasPrefix(kind, "ip/"):
				return func(dst []byte, r *request) ([]byte, bool) { return append(dst, r.ip...), r.ip != "" }, nil
			case kind == "header" || kind == "query" || kind == "cookie":
				return func(dst []byte, r *request) ([]byte, bool) {
					v, ok := r.header[arg]
					return append(dst, v...), ok
				}, nil
			}
			return nil, rules.UnknownKey(name, "ip", "ip/PREFIX", "header:NAME", "query:NAME", "cookie:NAME")
		},
	}
}
