// Package weiryaml reads YAML documents, and JSON ones as YAML 1.2 contains them,
// into the trees and rules of package rules. It is a module of its own because it
// needs a YAML library.
//
// Of YAML it takes what a configuration needs. One file holds one document in
// UTF-8. Anchors and aliases work, and what they expand to counts towards
// [rules.MaxNodes], so a few lines cannot fill the memory (billion laughs). Merge
// keys (<<) and tags of one's own (!x) are refused: what a document says is written
// in it. Numbers are decimal, and yes, no, on, off and dates are texts.
package weiryaml

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/rules"
)

// Load parses, decodes and validates a document of rules. The name is used in
// problems. The document is nil if it could not be parsed; otherwise it holds what
// could be read, and only one without problems compiles.
func Load(name string, data []byte) (*rules.Document, []rules.Problem) {
	n, problems := Parse(name, data)
	if n == nil {
		return nil, problems
	}
	return rules.FromNode(n)
}

// Parse reads a document into a tree, for [rules.Decode]. If it returns problems,
// the tree is nil.
func Parse(name string, data []byte) (*rules.Node, []rules.Problem) {
	p := parser{file: name}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := p.check(data); err != nil {
		return nil, []rules.Problem{*err}
	}
	var docs []yaml.Node
	if err := yaml.Load(data, &docs, yaml.WithAllDocuments()); err != nil {
		return nil, []rules.Problem{p.syntax(data, err)}
	}
	root, err := single(docs)
	if err != nil {
		return nil, []rules.Problem{*p.fail(root, "%v", err)}
	}
	n, problem := p.value(root, 0)
	if problem != nil {
		return nil, []rules.Problem{*problem}
	}
	return n, nil
}

// single is the value of the only document of a file; with an error, the node to
// name.
func single(docs []yaml.Node) (*yaml.Node, error) {
	if len(docs) > 1 {
		at := &docs[1]
		if len(at.Content) > 0 {
			at = at.Content[0]
		}
		return at, errors.New("a second document begins here; a file holds one")
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 {
		return &yaml.Node{Line: 1, Column: 1}, errors.New("the document is empty; write rules: [] for no rules")
	}
	return docs[0].Content[0], nil
}

type parser struct {
	file  string
	nodes int
	// open are the anchored nodes around the value being read, which it must not
	// contain again.
	open []*yaml.Node
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) *rules.Problem {
	return &rules.Problem{File: p.file, Line: n.Line, Col: n.Column, Msg: fmt.Sprintf(format, args...)}
}

// check refuses what the library should not see: it reads UTF-16 too, reports bad
// bytes without a position, and builds a whole tree before anybody can count it.
func (p *parser) check(data []byte) *rules.Problem {
	if len(data) > rules.MaxSize {
		return p.fail(&yaml.Node{Line: 1, Column: 1}, "the document has %d bytes; at most %d are read", len(data), rules.MaxSize)
	}
	line, col, marks := 1, 1, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return p.fail(&yaml.Node{Line: line, Column: col}, "byte 0x%02x is not UTF-8; save the file as UTF-8", data[i])
		case r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f:
			return p.fail(&yaml.Node{Line: line, Column: col}, "%q is a control character; in double quotes it may be written as an escape", r)
		}
		// Every value and key needs one of these, or begins the document.
		if strings.ContainsRune("\n\r,:[{-?", r) {
			if marks++; marks > 4*rules.MaxNodes {
				return p.fail(&yaml.Node{Line: line, Column: col}, "the document has more than %d values", rules.MaxNodes)
			}
		}
		if col++; r == '\n' {
			line, col = line+1, 1
		}
		i += size
	}
	return nil
}

// syntax turns an error of the library into a problem.
func (p *parser) syntax(data []byte, err error) rules.Problem {
	at := &yaml.Node{Line: 1, Column: 1}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return *p.fail(at, "not YAML: %v", oneLine(err.Error()))
	}
	if load.Mark.Line > 0 {
		at.Line, at.Column = load.Mark.Line, max(load.Mark.Column, 1)
	}
	msg := load.Message
	if load.ContextMsg != "" && load.ContextMark.Line > 0 {
		msg = fmt.Sprintf("%s %s that began at line %d", msg, load.ContextMsg, load.ContextMark.Line)
	}
	if strings.HasPrefix(msg, "unknown anchor") {
		msg += "; a text that begins with * is written in quotes"
	}
	if tab(data, at.Line, at.Column) {
		msg = "a tab in the indentation; YAML is indented with spaces"
	}
	return *p.fail(at, "not YAML: %s", oneLine(msg))
}

// tab is whether a position is a tab that only blanks precede on its line.
func tab(data []byte, line, col int) bool {
	for ; line > 1; line-- {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	lead := data[:len(data)-len(bytes.TrimLeft(data, " \t"))]
	return col <= len(lead) && bytes.IndexByte(lead, '\t') >= 0
}

// oneLine keeps what the library quotes from the document out of log lines of its
// own.
func oneLine(s string) string {
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// value turns a node of the library into one of package rules, aliases into what
// they stand for.
func (p *parser) value(y *yaml.Node, depth int) (*rules.Node, *rules.Problem) {
	if depth > rules.MaxDepth {
		return nil, p.fail(y, "lists and maps are nested deeper than %d", rules.MaxDepth)
	}
	if p.nodes++; p.nodes > rules.MaxNodes {
		return nil, p.fail(y, "the document has more than %d values, counting what aliases stand for", rules.MaxNodes)
	}
	if y.Kind == yaml.AliasNode {
		for _, around := range p.open {
			if around == y.Alias {
				return nil, p.fail(y, "the alias *%s is inside of what it stands for", oneLine(y.Value))
			}
		}
		return p.value(y.Alias, depth)
	}
	if y.Anchor != "" {
		p.open = append(p.open, y)
		defer func() { p.open = p.open[:len(p.open)-1] }()
	}
	n := &rules.Node{File: p.file, Line: y.Line, Col: y.Column}
	switch y.Kind {
	case yaml.ScalarNode:
		return n, p.scalar(n, y)
	case yaml.SequenceNode:
		if tag := y.ShortTag(); tag != "!!seq" {
			return nil, p.tag(y, tag)
		}
		n.Kind = rules.List
		for _, c := range y.Content {
			it, err := p.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, it)
		}
		return n, nil
	case yaml.MappingNode:
		if tag := y.ShortTag(); tag != "!!map" {
			return nil, p.tag(y, tag)
		}
		return n, p.entries(n, y, depth)
	}
	return nil, p.fail(y, "not a value")
}

func (p *parser) entries(n *rules.Node, y *yaml.Node, depth int) *rules.Problem {
	n.Kind = rules.Map
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].ShortTag() == "!!merge" {
			return p.fail(y.Content[i], "merge keys (<<) are not read; write the keys out, or use an alias for a whole value")
		}
		key, err := p.value(y.Content[i], depth+1)
		if err != nil {
			return err
		}
		if key.Kind == rules.List || key.Kind == rules.Map || key.Kind == rules.Null {
			return p.fail(y.Content[i], "%s where a key was expected", key.Kind)
		}
		key.Kind = rules.String // 404: is a key like any other
		value, err := p.value(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		n.Entries = append(n.Entries, rules.Entry{Key: key, Value: value})
	}
	return nil
}

func (p *parser) scalar(n *rules.Node, y *yaml.Node) *rules.Problem {
	n.Value = y.Value
	switch tag := y.ShortTag(); tag {
	case "!!str", "!!timestamp":
		n.Kind = rules.String
	case "!!int":
		n.Kind = rules.Int
	case "!!float":
		n.Kind = rules.Float
	case "!!bool":
		n.Kind, n.Value = rules.Bool, strings.ToLower(y.Value)
	case "!!null":
		n.Value = ""
	default:
		return p.tag(y, tag)
	}
	return nil
}

func (p *parser) tag(y *yaml.Node, tag string) *rules.Problem {
	return p.fail(y, "the tag %s is not read; remove it", oneLine(tag))
}
