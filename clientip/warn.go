package clientip

import (
	"fmt"
	"strings"
)

// Warn returns what is legal in the options and yet looks like a mistake, one
// sentence each: a header name that nobody is known to write (X-Real_IP), a
// header that is never read, networks with host bits or with everybody in them.
func (o Options) Warn() []string {
	var warnings []string
	warn := func(format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf("clientip: "+format, args...))
	}

	if o.Header != "" {
		if meant := nearest(o.Header); !strings.EqualFold(meant, o.Header) {
			switch {
			case meant != "":
				warn("header %q is unusual; did you mean %q?", o.Header, meant)
			case strings.Contains(o.Header, "_"):
				warn("header %q has an underscore; many proxies, nginx among them, drop such headers", o.Header)
			default:
				warn("header %q is not one that proxies are known to write; if none does, every client behind them is counted as one", o.Header)
			}
		}
		if len(o.TrustedProxies) == 0 {
			warn("header %q is never read, since no proxy is trusted; name the proxies, or leave the header out", o.Header)
		}
	}
	for _, p := range o.TrustedProxies {
		switch {
		case !p.IsValid():
			// An error of New.
		case p.Bits() == 0, p.Bits() == 96 && p.Addr().Is4In6():
			warn("trusted proxies %v are everybody, so any client can choose its address; name the proxies' networks", p)
		case p != p.Masked():
			warn("trusted proxies %v have host bits and mean %v", p, p.Masked())
		}
	}
	return warnings
}
