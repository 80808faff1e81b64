package rules

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// A Schemer is a type whose JSON schema cannot be told from its Go type.
type Schemer interface{ JSONSchema() *Node }

// Schema describes, as JSON Schema 2020-12, the documents that [Decode] reads into
// a value of v's type. Struct tags add to it: doc is the description, example an
// example, pattern what a string looks like, min and max the bounds of a number.
func Schema(v any) *Node { return schema(reflect.TypeOf(v), "") }

// DocumentSchema is the schema of a document of rules, as a file for editors:
// schema.json beside this package.
func DocumentSchema() []byte {
	s := Schema(Document{})
	s.Entries = append([]Entry{
		NewEntry("$schema", NewString("https://json-schema.org/draft/2020-12/schema")),
		NewEntry("title", NewString("weir rules")),
	}, s.Entries...)
	return indent(s)
}

func schema(t reflect.Type, tag reflect.StructTag) *Node {
	s := shape(t, tag)
	if doc := tag.Get("doc"); doc != "" {
		s.Entries = append(s.Entries, NewEntry("description", NewString(doc)))
	}
	if example := tag.Get("example"); example != "" {
		s.Entries = append(s.Entries, NewEntry("examples", NewList(NewString(example))))
	}
	return s
}

// shape is the schema of a type without words for people.
func shape(t reflect.Type, tag reflect.StructTag) *Node {
	for t.Kind() == reflect.Pointer && t != nodeType {
		t = t.Elem()
	}
	switch v := reflect.New(t).Interface().(type) {
	case Schemer:
		return v.JSONSchema()
	case Enum:
		words := NewList()
		for _, w := range v.Enum() {
			words.Items = append(words.Items, NewString(w))
		}
		return NewMap(NewEntry("enum", words))
	case encoding.TextUnmarshaler:
		return typed("string")
	}
	switch t.Kind() {
	case reflect.Struct:
		return object(t)
	case reflect.Map:
		s := typed("object")
		s.Entries = append(s.Entries, NewEntry("additionalProperties", schema(t.Elem(), "")))
		return s
	case reflect.Slice:
		s := typed("array")
		s.Entries = append(s.Entries, NewEntry("items", schema(t.Elem(), "")))
		return s
	case reflect.String:
		s := typed("string")
		if p := tag.Get("pattern"); p != "" {
			s.Entries = append(s.Entries, NewEntry("pattern", NewString(p)))
		}
		return s
	case reflect.Bool:
		return typed("boolean")
	case reflect.Float32, reflect.Float64:
		return typed("number")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if t == reflect.TypeFor[time.Duration]() {
			return schemaOf(`{"type": "string", "pattern": "^([0-9]+(w|d|h|m|s|ms|us|µs))+$|^(w|d|h|m|s|ms|us|µs)$"}`)
		}
		s := typed("integer")
		for _, b := range []struct{ tag, key string }{{"min", "minimum"}, {"max", "maximum"}} {
			if i, err := strconv.ParseInt(tag.Get(b.tag), 10, 64); err == nil {
				s.Entries = append(s.Entries, NewEntry(b.key, NewInt(i)))
			}
		}
		return s
	}
	return NewMap() // anything
}

func object(t reflect.Type) *Node {
	properties, required := NewMap(), NewList()
	for _, f := range fieldsOf(t) {
		properties.Entries = append(properties.Entries, NewEntry(f.name, schema(f.typ, f.tag)))
		if f.required {
			required.Items = append(required.Items, NewString(f.name))
		}
	}
	s := typed("object")
	s.Entries = append(s.Entries, NewEntry("properties", properties))
	if len(required.Items) > 0 {
		s.Entries = append(s.Entries, NewEntry("required", required))
	}
	s.Entries = append(s.Entries, NewEntry("additionalProperties", NewBool(false)))
	return s
}

func typed(name string) *Node { return NewMap(NewEntry("type", NewString(name))) }

// schemaOf is the tree of a schema that is written out in this package; nothing
// else may call it.
func schemaOf(text string) *Node {
	n, problems := ParseJSON("", []byte(text))
	if problems != nil {
		return NewMap(NewEntry("$comment", NewString(problems.Error())))
	}
	return n
}

// indent is a tree as JSON for people.
func indent(n *Node) []byte {
	text, err := json.MarshalIndent(json.RawMessage(n.AppendJSON(nil)), "", "  ")
	if err != nil {
		return n.AppendJSON(nil) // AppendJSON writes JSON, so there is no such error
	}
	return append(text, '\n')
}
