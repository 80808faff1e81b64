package rules

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir"
)

// A Binding teaches rules to read one kind of request. A name that it does not
// have is an error when the rules load, never at a request (case B40). Its
// functions are called concurrently, and those that read requests should not
// allocate.
type Binding[R any] struct {
	// Method is the method in capitals as sent. A nil function here and below means
	// that requests have no such thing, and rules that need it are errors.
	Method func(R) string
	// Host is the host without port, in lower case.
	Host func(R) string
	// Path is the path in normal form, percent-encoded.
	Path func(R) string
	// Decode turns what a wildcard stands for, one segment or for {name...} the rest
	// of a path, into the key path:NAME; nil leaves it as it is.
	Decode func(segment string) string
	// Key returns the function for a name such as "ip", "ip/56", "header:X-Api-Key",
	// "query:id" or "cookie:sid", or an error that says what there is, such as
	// [UnknownKey]'s. The names global, rule, method, host, path and path:NAME do not
	// get here.
	Key func(name string) (weir.KeyFunc[R], error)
}

// A Program is a compiled document. It may be used concurrently.
type Program[R any] struct {
	// Ruleset is for a weir.Limiter. Its rules are those of the document, in order.
	Ruleset weir.Ruleset[R]

	doc   *Document
	b     Binding[R]
	rules []compiled[R]
}

// compiled is what a Program keeps of a rule to explain it.
type compiled[R any] struct {
	matcher matcher
	parts   []keyPart
	keys    []weir.KeyFunc[R] // of parts
}

// Compile turns a document into rules for requests of type R. The error is
// [Problems], and holds everything that is wrong: what [Document.Validate] finds,
// and what the binding cannot do.
func Compile[R any](doc *Document, b Binding[R]) (*Program[R], error) {
	p := &Program[R]{doc: doc, b: b, rules: make([]compiled[R], len(doc.Rules))}
	p.Ruleset = weir.Ruleset[R]{Version: doc.Version(), Rules: make([]weir.Rule[R], len(doc.Rules))}
	problems := doc.Validate()
	if problems.Err() != nil {
		return nil, problems.sort()
	}
	var x index
	for i := range doc.Rules {
		l := loader[R]{b: &p.b, r: &doc.Rules[i], path: item("rules", i), c: &p.rules[i]}
		p.Ruleset.Rules[i] = l.rule()
		problems = append(problems, l.problems...)
		if l.r.Mode != Mode(weir.Off) {
			x.add(i, &l.c.matcher)
		}
	}
	if problems.Err() != nil {
		return nil, problems.sort()
	}
	p.Ruleset.Select = selector(&x, b)
	return p, nil
}

// selector is the index as weir asks it.
func selector[R any](x *index, b Binding[R]) func([]int, R) []int {
	return func(dst []int, r R) []int {
		var host, path string
		if x.byHost {
			host = b.Host(r)
		}
		if x.byPath {
			path = b.Path(r)
		}
		return x.find(dst, host, path)
	}
}

// loader compiles one rule.
type loader[R any] struct {
	b        *Binding[R]
	r        *Rule
	path     string
	c        *compiled[R]
	problems Problems
}

func (l *loader[R]) fail(err error, keys ...any) {
	l.problems = append(l.problems, l.r.problem(l.path, err.Error(), keys...))
}

func (l *loader[R]) rule() weir.Rule[R] {
	r := l.r
	rule := weir.Rule[R]{
		Name: r.Name, Unit: r.Unit, Mode: weir.Mode(r.Mode), Rollout: int(r.Rollout), Final: r.Final,
		OnOutage: weir.Outage(r.OnStoreError), Fast: r.Store == Fast, Tag: r.answer(),
	}
	for _, limit := range r.limits() {
		rule.Limits = append(rule.Limits, limit.Weir())
	}
	if cost := r.cost(); cost != 1 {
		rule.Cost = func(R) int64 { return cost }
	}
	l.c.matcher, _ = r.matcher() // Validate found no flaw
	rule.Match = l.match()
	rule.Key = l.key()
	rule.NoKey, rule.Fallback = l.missing()
	return rule
}

// match is the Match of the compiled rule, nil if it matches everything.
func (l *loader[R]) match() func(R) bool {
	m, b := &l.c.matcher, l.b
	need := func(has bool, what string, used bool) {
		if used && !has {
			l.fail(fmt.Errorf("requests of this door have no %s to match", what), "match")
		}
	}
	need(b.Method != nil, "method", len(m.methods) > 0)
	need(b.Host != nil, "host", len(m.hosts) > 0)
	need(b.Path != nil, "path", len(m.paths) > 0)
	if len(m.methods)+len(m.hosts)+len(m.paths) == 0 {
		return nil
	}
	return func(r R) bool {
		return (len(m.methods) == 0 || m.method(b.Method(r))) &&
			(len(m.hosts) == 0 || m.host(b.Host(r))) &&
			(len(m.paths) == 0 || m.path(b.Path(r)) != nil)
	}
}

// key is the Key of the compiled rule, nil if all requests share one partition.
func (l *loader[R]) key() weir.KeyFunc[R] {
	for i, text := range l.r.Key {
		part, _ := parseKeyPart(text) // Validate found no flaw
		if part.kind == "global" {
			return nil
		}
		f, err := l.part(&part)
		if err != nil {
			l.fail(err, l.r.keyAt(i)...)
			continue
		}
		l.c.parts = append(l.c.parts, part)
		l.c.keys = append(l.c.keys, apply(&part, f))
	}
	switch len(l.c.keys) {
	case 0:
		return nil
	case 1:
		return l.c.keys[0]
	}
	return weir.Keys(l.c.keys...)
}

// part is the function of one part of the key, before its functions.
func (l *loader[R]) part(p *keyPart) (weir.KeyFunc[R], error) {
	b := l.b
	switch {
	case p.kind == "rule":
		return weir.Constant[R](l.r.Name), nil
	case p.kind == "method":
		return text(b.Method, "method")
	case p.kind == "host":
		return text(b.Host, "host")
	case p.kind == "path" && b.Path == nil:
		return text(b.Path, "path")
	case p.kind == "path" && p.arg == "":
		return l.pathKey(), nil
	case p.kind == "path":
		return l.segmentKey(p.arg), nil
	case b.Key == nil:
		return nil, UnknownKey(p.name, "global", "rule", "method", "host", "path", "path:NAME")
	}
	f, err := b.Key(p.name)
	if err == nil && f == nil {
		err = UnknownKey(p.name)
	}
	return f, err
}

// text makes a key of a function that every request of a door has, or of none.
func text[R any](get func(R) string, what string) (weir.KeyFunc[R], error) {
	if get == nil {
		return nil, fmt.Errorf("requests of this door have no %s to be told apart by", what)
	}
	return func(dst []byte, r R) ([]byte, bool) { return append(dst, get(r)...), true }, nil
}

// pathKey is the key "path": one spelling for each resource that rules tell apart.
func (l *loader[R]) pathKey() weir.KeyFunc[R] {
	get, slash, lower := l.b.Path, l.r.IgnoreTrailingSlash, l.r.IgnoreCase
	return func(dst []byte, r R) ([]byte, bool) {
		at := len(dst)
		path := get(r)
		if slash {
			path = trimSlash(path)
		}
		dst = appendPath(dst, path)
		if lower {
			dst = foldTail(dst, at)
		}
		return dst, true
	}
}

// segmentKey is the key path:NAME.
func (l *loader[R]) segmentKey(name string) weir.KeyFunc[R] {
	m, get, decode, slash, lower := &l.c.matcher, l.b.Path, l.b.Decode, l.r.IgnoreTrailingSlash, l.r.IgnoreCase
	return func(dst []byte, r R) ([]byte, bool) {
		path := get(r)
		p := m.path(path)
		if p == nil {
			return dst, false
		}
		value, ok := p.capture(path, name)
		if !ok {
			return dst, false
		}
		if slash && name == p.rest {
			value = trimSlash(value)
		}
		if decode != nil {
			value = decode(value)
		}
		at := len(dst)
		if dst = append(dst, value...); lower {
			dst = foldTail(dst, at)
		}
		return dst, true
	}
}

// trimSlash drops a trailing slash, but not the root's.
func trimSlash(path string) string {
	if n := len(path); n > 1 && path[n-1] == '/' {
		return path[:n-1]
	}
	return path
}

// missing says what becomes of a request without the key.
func (l *loader[R]) missing() (weir.NoKey, weir.KeyFunc[R]) {
	switch l.r.OnMissingKey {
	case MissingSkip:
		return weir.SkipRule, nil
	case MissingShared:
		return weir.SharePartition, nil
	case MissingRefuse:
		return weir.RefuseRequest, nil
	}
	lacking := false
	for i := range l.c.parts {
		lacking = lacking || l.c.parts[i].lacking()
	}
	if !lacking {
		return weir.SharePartition, nil
	}
	ip, err := weir.KeyFunc[R](nil), errors.New("there is none")
	if l.b.Key != nil {
		ip, err = l.b.Key("ip")
	}
	if err != nil || ip == nil {
		l.fail(errors.New("requests of this door have no client address to count those without a key by; set on_missing_key to skip, shared or refuse"), "on_missing_key")
		return weir.SkipRule, nil
	}
	// A request without an address either must not go uncounted (case B27).
	return weir.FallbackKey, func(dst []byte, r R) ([]byte, bool) {
		at := len(dst)
		dst, ok := ip(dst, r)
		if !ok {
			dst = append(dst[:at], "unknown"...)
		}
		return dst, true
	}
}
