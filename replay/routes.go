package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A route is a group of requests that a rule can be written for.
type route struct {
	method   string
	path     string // a pattern of package rules
	requests int64
	login    bool // looks like one where people prove who they are
}

const (
	maxDepth = 3       // segments of a path that are told apart
	maxNodes = 100_000 // of the tree, so that no log makes it grow without bound
)

// routes counts the requests of a log by method and leading segments of the path.
type routes struct {
	methods map[string]*node
	nodes   int
	total   int64
}

// node is a prefix of paths.
type node struct {
	children map[string]*node
	requests int64 // with this prefix
	here     int64 // that end with it
	slash    int64 // that end with it and a slash
}

// add counts a request. HEAD counts as GET, as it does for a rule.
func (t *routes) add(method, path string) {
	if method == "HEAD" {
		method = "GET"
	}
	if t.methods == nil {
		t.methods = make(map[string]*node)
	}
	t.total++
	n := t.methods[method]
	if n == nil {
		if len(t.methods) >= 32 || !isMethod(method) {
			return
		}
		n = new(node)
		t.methods[strings.Clone(method)] = n
	}
	n.requests++
	rest := strings.TrimPrefix(path, "/")
	for depth := 0; ; depth++ {
		switch {
		case rest == "" && (depth == 0 || strings.HasSuffix(path, "/")):
			n.slash++
			return
		case rest == "":
			n.here++
			return
		case depth == maxDepth:
			return
		}
		var segment string
		segment, rest, _ = strings.Cut(rest, "/")
		if n = t.child(n, segment); n == nil {
			return
		}
		n.requests++
	}
}

func (t *routes) child(n *node, segment string) *node {
	if looksLikeID(segment) {
		segment = idSegment
	} else if !isLiteral(segment) {
		return nil
	}
	c := n.children[segment]
	if c == nil && t.nodes < maxNodes {
		if n.children == nil {
			n.children = make(map[string]*node)
		}
		c = new(node)
		n.children[strings.Clone(segment)] = c
		t.nodes++
	}
	return c
}

// idSegment stands for all segments that look like an identifier.
const idSegment = "{id}"

// isMethod is whether a rule may name the method.
func isMethod(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// isLiteral is whether a segment may stand in a pattern as it is.
func isLiteral(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") == "" && strings.Trim(s, ".") != ""
}

// looksLikeID is whether a segment is likely to name one of many things: a number,
// or at least eight hexadecimal digits, dashes aside, some of them decimal.
func looksLikeID(s string) bool {
	bare := strings.ReplaceAll(s, "-", "")
	if bare == "" {
		return false
	}
	if strings.Trim(s, "0123456789") == "" {
		return true
	}
	return len(bare) >= 8 && strings.Trim(bare, "0123456789abcdefABCDEF") == "" && strings.ContainsAny(bare, "0123456789")
}

// groups chooses the routes that are worth a rule: those of at least a share of
// all requests, and where people sign in; not more than most, the busiest first.
// What is left over is for a rule that catches all.
func (t *routes) groups(share float64, most int) []route {
	least := max(int64(share*float64(t.total)), 1)
	var all []route
	for method, n := range t.methods {
		all, _ = n.groups(all, method, "", least)
	}
	slices.SortFunc(all, func(a, b route) int {
		if a.login != b.login {
			return cmp.Compare(b2i(b.login), b2i(a.login))
		}
		return cmp.Or(cmp.Compare(b.requests, a.requests), strings.Compare(a.method+a.path, b.method+b.path))
	})
	all = all[:min(len(all), most)]
	// The narrower pattern goes first: the first final rule that matches has the request.
	slices.SortStableFunc(all, func(a, b route) int { return cmp.Compare(b.depth(), a.depth()) })
	return all
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// depth orders patterns by how narrow they are.
func (r *route) depth() int {
	d := 4 * strings.Count(r.path, "/")
	if strings.HasSuffix(r.path, "/**") {
		d -= 6
	}
	return d - strings.Count(r.path, "{id")
}

// groups appends the routes at and below a prefix, and returns how many requests
// they take.
func (n *node) groups(all []route, method, prefix string, least int64) (_ []route, taken int64) {
	for segment, c := range n.children {
		if segment == idSegment {
			if k := strings.Count(prefix, "{id"); k > 0 {
				segment = fmt.Sprintf("{id%d}", k+1) // names are unique in a pattern
			}
		}
		var some int64
		all, some = c.groups(all, method, prefix+"/"+segment, least)
		taken += some
	}
	rest := n.requests - taken
	login := method == "POST" && n.here+n.slash > 0 && looksLikeLogin(prefix)
	if rest < least && !login || prefix == "" && n.slash < least {
		return all, taken
	}
	r := route{method: method, path: prefix + "/**", requests: rest, login: login}
	switch {
	case prefix == "": // the site's first page; below is the rule that catches all
		r.path, r.requests = "/{$}", n.slash
	case rest == n.here:
		r.path = prefix
	case rest == n.slash:
		r.path = prefix + "/{$}"
	}
	return append(all, r), taken + r.requests
}

// looksLikeLogin is whether people prove who they are at a path, or ask to be
// known.
func looksLikeLogin(path string) bool {
	last := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	for _, word := range [...]string{"login", "signin", "sign-in", "sign_in", "signup", "sign-up", "sign_up", "register",
		"auth", "session", "sessions", "token", "password", "otp", "xmlrpc.php"} {
		if strings.Contains(last, word) {
			return true
		}
	}
	return false
}

// ruleName makes a name of a route that is unique among those taken.
func ruleName(r route, taken map[string]bool) string {
	var b strings.Builder
	b.WriteString(strings.ToLower(r.method))
	for _, part := range strings.FieldsFunc(r.path, func(c rune) bool { return strings.ContainsRune("/{}$*._~", c) }) {
		b.WriteString("-" + strings.ToLower(part))
	}
	base := b.String()
	if r.path == "/{$}" {
		base += "-home"
	}
	base = base[:min(len(base), 100)]
	name := base
	for i := 2; taken[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	taken[name] = true
	return name
}
