package rules

import (
	"fmt"
	"strconv"
)

// A Kind is the shape of a [Node].
type Kind uint8

const (
	// Null is an empty value. It is the zero value.
	Null Kind = iota
	// Bool is true or false.
	Bool
	// Int is a number without fraction or exponent.
	Int
	// Float is any other number.
	Float
	// String is text.
	String
	// List is a list of Items.
	List
	// Map is a list of Entries.
	Map
)

// String is what the kind is called in messages.
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Bool:
		return "true or false"
	case Int:
		return "a whole number"
	case Float:
		return "a number with a fraction"
	case String:
		return "a text"
	case List:
		return "a list"
	case Map:
		return "a map"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// A Node is a value of a document with its position. Trees of them are what
// [ParseJSON] and package weiryaml make and [Decode] reads. A tree is not changed
// once it was made, and may then be read concurrently.
type Node struct {
	Kind Kind
	// Value is the text of a scalar: as it was written for numbers, without quotes
	// for strings, "true" or "false" for booleans.
	Value string
	// Items are the values of a List.
	Items []*Node
	// Entries are the pairs of a Map in the order of the document. A key may occur
	// twice; [Decode] reports it.
	Entries []Entry
	// File, Line and Col are the position: Line and Col count from 1, and are 0 in
	// trees that no document was parsed for.
	File string
	Line int
	Col  int
}

// An Entry is a pair of a Map. Key is a String.
type Entry struct{ Key, Value *Node }

// Limits of what the parsers accept, so that a document cannot exhaust memory or
// the stack.
const (
	// MaxSize is the largest document, in bytes.
	MaxSize = 16 << 20
	// MaxDepth is how deep lists and maps may nest.
	MaxDepth = 100
	// MaxNodes is the largest number of values and keys.
	MaxNodes = 1 << 20
)

// Get returns the value of a key of a Map, or nil. It may be called on nil.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, e := range n.Entries {
		if e.Key.Value == key {
			return e.Value
		}
	}
	return nil
}

// At returns the item i of a List, or nil. It may be called on nil.
func (n *Node) At(i int) *Node {
	if n == nil || i < 0 || i >= len(n.Items) {
		return nil
	}
	return n.Items[i]
}

// Problem makes a problem at the node's position. It may be called on nil, for a
// value that no document was parsed for.
func (n *Node) Problem(path, format string, args ...any) Problem {
	p := Problem{Path: path, Msg: fmt.Sprintf(format, args...)}
	if n != nil {
		p.File, p.Line, p.Col = n.File, n.Line, n.Col
	}
	return p
}

// describe names the value in a message.
func (n *Node) describe() string {
	switch n.Kind {
	case Bool:
		return n.Value
	case Int, Float:
		return "the number " + n.Value
	case String:
		return "the text " + quote(n.Value)
	}
	return n.Kind.String()
}

// NewString returns a String node without position, for documents that a program
// builds; the other New functions do likewise.
func NewString(s string) *Node { return &Node{Kind: String, Value: s} }

// NewInt returns an Int node.
func NewInt(i int64) *Node { return &Node{Kind: Int, Value: strconv.FormatInt(i, 10)} }

// NewBool returns a Bool node.
func NewBool(b bool) *Node { return &Node{Kind: Bool, Value: strconv.FormatBool(b)} }

// NewList returns a List node.
func NewList(items ...*Node) *Node { return &Node{Kind: List, Items: items} }

// NewMap returns a Map node.
func NewMap(entries ...Entry) *Node { return &Node{Kind: Map, Entries: entries} }

// NewEntry returns a pair for NewMap.
func NewEntry(key string, value *Node) Entry { return Entry{NewString(key), value} }
