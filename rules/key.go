package rules

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir"
)

// A Key lists the parts of a rule's partition key: names such as "ip" or
// "header:X-Api-Key", alone or inside "lower(…)" and "trim(…)". In a document a
// single part needs no list.
type Key []string

// keyNames is what a message says about what exists.
const keyNames = "global, ip, ip/PREFIX, header:NAME, path:NAME, query:NAME, cookie:NAME, host, method, path, rule, lower(KEY), trim(KEY)"

// DecodeNode reads a text or a list of texts.
func (k *Key) DecodeNode(path string, n *Node) Problems {
	switch n.Kind {
	case String:
		*k = Key{n.Value}
		return nil
	case List:
		return DecodeAt(path, n, (*[]string)(k))
	}
	return Problems{n.Problem(path, "expected a key or a list of keys, found %s; known: %s", n.describe(), keyNames)}
}

// EncodeNode writes a text if there is one part, and a list otherwise.
func (k Key) EncodeNode() *Node {
	if len(k) == 1 {
		return NewString(k[0])
	}
	return Encode([]string(k))
}

// JSONSchema describes both forms.
func (Key) JSONSchema() *Node {
	const part = `{"type": "string", "pattern": "^((lower|trim)\\(){0,8}(ip/[0-9]+|[a-z][a-z0-9_-]*(:[!#-&*+.-~-]+)?)\\){0,8}$"}`
	return schemaOf(`{"oneOf": [` + part + `, {"type": "array", "minItems": 1, "items": ` + part + `}],
		"examples": ["ip", ["header:X-Tenant", "ip"], "lower(trim(header:X-User))", "path:id"]}`)
}

// keyPart is one part of a key, taken apart.
type keyPart struct {
	text  string   // as written
	funcs []string // outermost first
	name  string   // such as "header:X-Api-Key"
	kind  string   // such as "header"
	arg   string   // such as "X-Api-Key"
}

// parseKeyPart reads a part. It knows the form of a name, not which ones a door
// has.
func parseKeyPart(s string) (keyPart, error) {
	p := keyPart{text: s, name: s}
	for {
		open := strings.IndexByte(p.name, '(')
		if open < 0 {
			break
		}
		f := p.name[:open]
		inner, closed := strings.CutSuffix(p.name[open+1:], ")")
		if f != "lower" && f != "trim" || !closed {
			return p, badKey(s)
		}
		if len(p.funcs) == maxFuncs {
			return p, fmt.Errorf("key %s has more than %d functions", quote(s), maxFuncs)
		}
		p.funcs, p.name = append(p.funcs, f), inner
	}
	kind, arg, named := strings.Cut(p.name, ":")
	base, prefix, _ := strings.Cut(kind, "/")
	if !isWord(base) || named && (arg == "" || !isArgument(arg)) || kind != base && (named || strings.Trim(prefix, "0123456789") != "" || prefix == "") {
		return p, badKey(s)
	}
	p.kind, p.arg = base, arg
	switch base {
	case "header", "query", "cookie":
		if !named {
			return p, fmt.Errorf("key %s lacks a name; write for example %s:%s", quote(s), base, map[string]string{"header": "X-Api-Key", "query": "id", "cookie": "session"}[base])
		}
	case "global", "ip", "host", "method", "rule":
		if named {
			return p, fmt.Errorf("key %s: %s takes no name", quote(s), base)
		}
	}
	if kind != base && base != "ip" {
		return p, badKey(s)
	}
	if base == "global" && len(p.funcs) > 0 {
		return p, fmt.Errorf("key %s: global has no text to change", quote(s))
	}
	return p, nil
}

// maxFuncs is how many functions may be applied to a part of a key.
const maxFuncs = 8

// badKey is the error for what cannot be the name of a key, such as an expression.
func badKey(s string) error {
	return fmt.Errorf("%s is not a key; known: %s", quote(s), keyNames)
}

// UnknownKey is the error for a [Binding] to return for the name of a key that it
// does not have, given those it has.
func UnknownKey(name string, known ...string) error {
	near := ";"
	if n := nearest(name, known); n != "" {
		near = fmt.Sprintf("; did you mean %q?", n)
	}
	return fmt.Errorf("unknown key %s%s known: %s", quote(name), near, strings.Join(known, ", "))
}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == "" && 'a' <= s[0] && s[0] <= 'z'
}

// isArgument is whether s can name a header, a parameter or the like: printable
// ASCII without what expressions and composite texts are made of.
func isArgument(s string) bool {
	return len(s) <= 256 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'(),`, r) }) < 0
}

// chosen is whether the client writes the value itself, freely.
func (p *keyPart) chosen() bool {
	switch p.kind {
	case "header", "query", "cookie", "path", "host", "method":
		return true
	}
	return false
}

// lacking is whether a request that the rule matches may have no such value.
func (p *keyPart) lacking() bool {
	switch p.kind {
	case "global", "rule", "host", "method", "path":
		return false
	}
	return true
}

// apply wraps a key function in the part's functions.
func apply[R any](p *keyPart, f weir.KeyFunc[R]) weir.KeyFunc[R] {
	for i := len(p.funcs) - 1; i >= 0; i-- {
		change := trimTail
		if p.funcs[i] == "lower" {
			change = foldTail
		}
		inner := f
		f = func(dst []byte, r R) ([]byte, bool) {
			at := len(dst)
			dst, ok := inner(dst, r)
			if !ok {
				return dst, false
			}
			return change(dst, at), true
		}
	}
	return f
}
