package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/rules"
)

// A Gateway is the reverse proxy.
type Gateway struct {
	// Listen is the address of the door.
	Listen Address `json:"listen" rules:"required" doc:"the address of the door, such as 127.0.0.1:8080"`
	// Routes are tried in order; the first that matches is taken.
	Routes []Route `json:"routes" rules:"required" doc:"the ways to your servers, such as [{match: /**, upstreams: [\"http://127.0.0.1:9000\"]}]"`
	// Timeouts bound what others may keep waiting.
	Timeouts Timeouts `json:"timeouts"`
}

// A Route leads requests to upstreams.
type Route struct {
	// Match says which requests, in the words of rules.
	Match rules.Match `json:"match" rules:"required" doc:"which requests, as in a rule, such as /** for all"`
	// Upstreams take turns.
	Upstreams []Upstream `json:"upstreams" rules:"required" doc:"where they go, such as [\"http://127.0.0.1:9000\"]"`

	node *rules.Node
}

// routeFields is a Route in its plain shape.
type routeFields Route

// DecodeNode reads the route and remembers its position.
func (r *Route) DecodeNode(path string, n *rules.Node) rules.Problems {
	problems := rules.DecodeAt(path, n, (*routeFields)(r))
	r.node = n
	if list := n.Get("upstreams"); list != nil && list.Kind == rules.List && len(list.Items) == 0 {
		problems = append(problems, list.Problem(path+".upstreams", "is empty; name at least one, such as http://127.0.0.1:9000"))
	}
	return problems
}

// Rule is the route as a rule that limits nothing: its match is checked, compiled
// and explained as that of any rule.
func (r *Route) Rule(name string) rules.Rule {
	return rules.Rule{Name: name, Match: &r.Match, Limit: &rules.Limit{Unlimited: true}, Final: true}
}

func (g *Gateway) check() rules.Problems {
	var problems rules.Problems
	for i := range g.Routes {
		r := &g.Routes[i]
		if r.node.Get("match") == nil {
			continue // reported as missing
		}
		doc := rules.Document{Rules: []rules.Rule{r.Rule("route")}}
		for _, p := range doc.Validate() {
			path := fmt.Sprintf("gateway.routes[%d]%s", i, strings.TrimPrefix(p.Path, "rules[0]"))
			problems = append(problems, r.node.Get("match").Problem(path, "%s", p.Msg))
		}
	}
	return problems
}

// Timeouts bound what clients and upstreams may keep waiting. Each is above 0 in a
// Config; left out of the file, it is the default.
type Timeouts struct {
	// Header is the longest that a client may take to send the header of a request.
	// 10 s by default.
	Header time.Duration `json:"header"`
	// Body is the longest pause between two pieces of a request's body. 1 minute by
	// default.
	Body time.Duration `json:"body"`
	// Send is the longest that a client may take nothing of its answer. 1 minute by
	// default.
	Send time.Duration `json:"send"`
	// Idle is how long a connection may stay open between two requests. 2 minutes by
	// default.
	Idle time.Duration `json:"idle"`
	// Connect is the longest that connecting to an upstream may take. 5 s by
	// default.
	Connect time.Duration `json:"connect"`
	// Response is the longest that an upstream may take to begin its answer, once
	// it has the request. 1 minute by default.
	Response time.Duration `json:"response"`
	// Shutdown is how long requests may go on after weir was told to stop. 30 s by
	// default.
	Shutdown time.Duration `json:"shutdown"`
}

// Fill returns the timeouts with the defaults in place of zeros.
func (t Timeouts) Fill() Timeouts {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&t.Header, 10 * time.Second},
		{&t.Body, time.Minute},
		{&t.Send, time.Minute},
		{&t.Idle, 2 * time.Minute},
		{&t.Connect, 5 * time.Second},
		{&t.Response, time.Minute},
		{&t.Shutdown, 30 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return t
}

// timeoutFields are Timeouts in their plain shape.
type timeoutFields Timeouts

// DecodeNode reads the timeouts and fills in the defaults.
func (t *Timeouts) DecodeNode(path string, n *rules.Node) rules.Problems {
	problems := rules.DecodeAt(path, n, (*timeoutFields)(t))
	for _, e := range n.Entries {
		if d, err := rules.ParseWindow(e.Value.Value); e.Value.Kind == rules.String && err == nil && d == 0 {
			problems = append(problems, e.Value.Problem(path+"."+e.Key.Value, "is no time at all; leave it out for the default"))
		}
	}
	*t = t.Fill()
	return problems
}

// An Address is where a door listens: HOST:PORT, with an IP address, a name, or
// nothing for every address of the machine.
type Address string

// UnmarshalText checks an address.
func (a *Address) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return fmt.Errorf("%.80q is not an address to listen on; write HOST:PORT, such as 127.0.0.1:8080", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %.80q is not a number from 0 to 65535", port)
	}
	*a = Address(text)
	return nil
}

// Loopback is whether only this machine can reach the address.
func (a Address) Loopback() bool {
	host, _, _ := net.SplitHostPort(string(a)) // UnmarshalText found no flaw
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

// An Upstream is a server behind the gateway.
type Upstream struct {
	// URL has a scheme, http or https, and a host, and nothing else.
	URL *url.URL
}

// UnmarshalText reads http://HOST[:PORT] or https://HOST[:PORT].
func (u *Upstream) UnmarshalText(text []byte) error {
	v, err := url.Parse(string(text))
	const want = "write http://HOST:PORT or https://HOST:PORT"
	switch {
	case err != nil:
		return fmt.Errorf("%.80q is not a URL; %s", text, want)
	case v.Scheme != "http" && v.Scheme != "https":
		return fmt.Errorf("%.80q has no scheme that is spoken here; %s", text, want)
	case v.Hostname() == "":
		return fmt.Errorf("%.80q names no host; %s", text, want)
	case v.User != nil:
		return fmt.Errorf("the URL holds a user name or a password, which are not sent; %s", want)
	case strings.Trim(v.Path, "/") != "" || v.RawQuery != "" || v.Fragment != "" || v.Opaque != "":
		return fmt.Errorf("%.80q says more than the host; paths are forwarded as they come, so %s", text, want)
	}
	*u = Upstream{&url.URL{Scheme: v.Scheme, Host: v.Host}}
	return nil
}

// String is the URL.
func (u Upstream) String() string { return u.URL.String() }
