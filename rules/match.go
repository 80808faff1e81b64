package rules

import (
	"fmt"
	"slices"
	"strings"
)

// A Match says which requests a rule is for: a Pattern, or lists of which each
// that is given has to hold one that fits. An empty Match fits everything.
type Match struct {
	// Pattern is "[METHOD ][HOST]/PATH", as net/http's ServeMux has it, plus a
	// trailing /** for a path and everything below it and hosts such as
	// *.example.com. Nothing else is set then.
	Pattern string `json:"-"`

	Methods []string `json:"methods,omitempty" doc:"methods in capitals; GET fits HEAD too"`
	Hosts   []string `json:"hosts,omitempty" doc:"hosts without port; *.example.com fits every host below example.com"`
	Paths   []string `json:"paths,omitempty" doc:"paths such as /blog/{id}, /blog/ or /blog/**"`
}

// matchFields is a Match in its plain shape.
type matchFields Match

// DecodeNode reads both forms.
func (m *Match) DecodeNode(path string, n *Node) Problems {
	switch n.Kind {
	case String:
		m.Pattern = n.Value
		return nil
	case Map:
		return DecodeAt(path, n, (*matchFields)(m))
	}
	return Problems{n.Problem(path, "expected a pattern such as POST /api/login, or a map with methods, hosts and paths, found %s", n.describe())}
}

// EncodeNode writes the pattern, or the lists.
func (m Match) EncodeNode() *Node {
	if m.Pattern != "" {
		return NewString(m.Pattern)
	}
	return Encode(matchFields(m))
}

// JSONSchema describes both forms.
func (Match) JSONSchema() *Node {
	pattern := schemaOf(`{"type": "string", "pattern": "^([!#-'*+.0-9A-Z^_|~-]+[ \\t]+)?[^/ \\t]*/[^ \\t?#]*$",
		"examples": ["POST /api/login", "/blog/**", "GET api.example.com/users/{id}"]}`)
	return NewMap(NewEntry("oneOf", NewList(pattern, Schema(matchFields{}))))
}

// matcher is a Match ready to be asked.
type matcher struct {
	methods []string
	hosts   []string // lower case; a leading * for all hosts below
	paths   []pattern
	fold    bool // paths
}

// A flaw is what is wrong with one part of a Match, at keys below it.
type flaw struct {
	keys []any
	err  error
}

// matcher compiles the match of a rule.
func (r *Rule) matcher() (m matcher, flaws []flaw) {
	if r.Match == nil {
		return m, nil
	}
	m.fold = r.IgnoreCase
	methods, hosts, paths := r.Match.Methods, r.Match.Hosts, r.Match.Paths
	where := func(key string, i int) []any { return []any{"match", key, i} }
	if pattern := r.Match.Pattern; pattern != "" || len(methods)+len(hosts)+len(paths) == 0 && r.Match.isText(r) {
		where = func(string, int) []any { return []any{"match"} }
		var err error
		if methods, hosts, paths, err = splitPattern(pattern); err != nil {
			return m, []flaw{{where("", 0), err}}
		}
	}
	for i, method := range methods {
		if err := checkMethod(method); err != nil {
			flaws = append(flaws, flaw{where("methods", i), err})
		}
	}
	m.methods = methods
	for i, host := range hosts {
		h, err := parseHost(host)
		if err != nil {
			flaws = append(flaws, flaw{where("hosts", i), err})
			continue
		}
		m.hosts = append(m.hosts, h)
	}
	for i, path := range paths {
		p, err := parsePath(path)
		if err != nil {
			flaws = append(flaws, flaw{where("paths", i), err})
		}
		p.loosen(r.IgnoreCase, r.IgnoreTrailingSlash)
		m.paths = append(m.paths, p)
	}
	return m, flaws
}

// isText is whether the document has an empty text for a match, which is no
// pattern.
func (*Match) isText(r *Rule) bool {
	n := r.node.Get("match")
	return n != nil && n.Kind == String
}

// splitPattern takes "[METHOD ][HOST]/PATH" apart.
func splitPattern(s string) (methods, hosts, paths []string, err error) {
	rest := s
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		methods, rest = []string{s[:i]}, strings.TrimLeft(s[i:], " \t")
		if strings.Contains(s[:i], "/") {
			return nil, nil, nil, fmt.Errorf("pattern %s has a space behind its path; a space in a path is written %%20", quote(s))
		}
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return nil, nil, nil, fmt.Errorf("pattern %s has no path; write [METHOD ][HOST]/PATH such as POST /api/login, or /** for every path", quote(s))
	}
	if slash > 0 {
		hosts = []string{rest[:slash]}
	}
	return methods, hosts, []string{rest[slash:]}, nil
}

// checkMethod wants a token (RFC 9110 section 5.6.2) without small letters:
// methods are case-sensitive, and no known one has any.
func checkMethod(s string) error {
	for _, r := range s {
		if r > '~' || r <= ' ' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return fmt.Errorf("method %s is not the name of a method", quote(s))
		}
	}
	switch up := strings.ToUpper(s); {
	case s == "":
		return fmt.Errorf("the method is empty")
	case s != up:
		return fmt.Errorf("method %s has small letters, and methods are case-sensitive; write %s", quote(s), up)
	}
	return nil
}

// parseHost checks a host and returns it in lower case.
func parseHost(s string) (string, error) {
	h := strings.ToLower(s)
	name := strings.TrimPrefix(h, "*.")
	if inner, ok := strings.CutPrefix(h, "["); ok && strings.HasSuffix(inner, "]") {
		return strings.TrimSuffix(inner, "]"), nil // an IPv6 address, which has no port here
	}
	switch {
	case name == "" || len(name) > maxHost:
		return "", fmt.Errorf("host %s is empty or longer than %d bytes", quote(s), maxHost)
	case strings.Contains(name, "*"):
		return "", fmt.Errorf("host %s: only a leading *. stands for other names", quote(s))
	case strings.Count(name, ":") == 1:
		return "", fmt.Errorf("host %s has a port; hosts are matched without", quote(s))
	case strings.ContainsAny(name, "{}/ \t?#@%"):
		return "", fmt.Errorf("host %s is not a name or an address", quote(s))
	}
	return h, nil
}

// maxHost is the longest host that can match, that of a DNS name. It bounds the
// work for what a client sends.
const maxHost = 255

// method is whether a request's method fits. As in net/http, GET fits HEAD.
func (m *matcher) method(method string) bool {
	return len(m.methods) == 0 || slices.Contains(m.methods, method) ||
		method == "HEAD" && slices.Contains(m.methods, "GET")
}

func (m *matcher) host(host string) bool {
	if len(m.hosts) == 0 {
		return true
	}
	if len(host) > maxHost {
		return false
	}
	for _, h := range m.hosts {
		if h == host || h[0] == '*' && len(host) >= len(h) && strings.HasSuffix(host, h[1:]) {
			return true
		}
	}
	return false
}

// path returns the first pattern that a path fits, or nil.
func (m *matcher) path(path string) *pattern {
	for i := range m.paths {
		if m.paths[i].match(path, m.fold) {
			return &m.paths[i]
		}
	}
	return nil
}

// covers is whether everything that n fits is fitted by m, as far as can be told.
func (m *matcher) covers(n *matcher) bool {
	within := func(wide, narrow []string, fits func(string) bool) bool {
		if len(wide) == 0 || len(narrow) == 0 {
			return len(wide) == 0
		}
		return !slices.ContainsFunc(narrow, func(s string) bool { return !fits(s) })
	}
	host := func(h string) bool {
		return slices.ContainsFunc(m.hosts, func(wide string) bool {
			return wide == h || wide[0] == '*' && len(h) >= len(wide) && strings.HasSuffix(strings.TrimPrefix(h, "*"), wide[1:])
		})
	}
	if !within(m.methods, n.methods, m.method) || !within(m.hosts, n.hosts, host) {
		return false
	}
	if len(m.paths) == 0 || len(n.paths) == 0 {
		return len(m.paths) == 0
	}
	if n.fold && !m.fold {
		return false
	}
	return !slices.ContainsFunc(n.paths, func(narrow pattern) bool {
		if m.fold && !n.fold {
			narrow.segments = slices.Clone(narrow.segments)
			narrow.loosen(true, false)
		}
		return !slices.ContainsFunc(m.paths, func(wide pattern) bool { return wide.covers(&narrow) })
	})
}
