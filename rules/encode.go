package rules

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A NodeEncoder writes the shape that its DecodeNode reads.
type NodeEncoder interface{ EncodeNode() *Node }

// Encode makes the tree that [Decode] would read v from. Fields follow the order
// of their declaration, map keys are sorted, and fields with omitempty are left
// out when zero, so that equal values make equal trees. Types that Decode does not
// know become Null.
func Encode(v any) *Node { return encode(reflect.ValueOf(v)) }

func encode(v reflect.Value) *Node {
	if !v.IsValid() {
		return &Node{}
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return &Node{}
		}
		if v.Type() == nodeType {
			return v.Interface().(*Node)
		}
		return encode(v.Elem())
	}
	switch t := v.Interface().(type) {
	case NodeEncoder:
		return t.EncodeNode()
	case encoding.TextMarshaler:
		text, err := t.MarshalText()
		if err != nil {
			return &Node{} // a value that no document has
		}
		return NewString(string(text))
	case time.Duration:
		return NewString(FormatWindow(t))
	}
	switch v.Kind() {
	case reflect.Struct:
		return NewMap(encodeFields(v)...)
	case reflect.Map:
		m := NewMap()
		for pairs := v.MapRange(); pairs.Next(); {
			m.Entries = append(m.Entries, NewEntry(pairs.Key().String(), encode(pairs.Value())))
		}
		slices.SortFunc(m.Entries, func(a, b Entry) int { return strings.Compare(a.Key.Value, b.Key.Value) })
		return m
	case reflect.Slice:
		l := NewList()
		for i := range v.Len() {
			l.Items = append(l.Items, encode(v.Index(i)))
		}
		return l
	case reflect.String:
		return NewString(v.String())
	case reflect.Bool:
		return NewBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return NewInt(v.Int())
	case reflect.Float32, reflect.Float64:
		return &Node{Kind: Float, Value: strconv.FormatFloat(v.Float(), 'g', -1, 64)}
	}
	return &Node{}
}

// encodeStruct is the entries of a struct.
func encodeStruct(v any) []Entry { return encodeFields(reflect.ValueOf(v)) }

func encodeFields(v reflect.Value) []Entry {
	var entries []Entry
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		empty := value.IsZero() || (value.Kind() == reflect.Slice || value.Kind() == reflect.Map) && value.Len() == 0
		if f.omit && empty {
			continue
		}
		entries = append(entries, NewEntry(f.name, encode(value)))
	}
	return entries
}
