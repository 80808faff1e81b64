package rules

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A NodeDecoder is a type with a shape of its own in a document, such as a limit
// that is written 5/m or as a map. DecodeNode returns what is wrong; path leads to
// n. To read the plain shape of a struct, decode into a type that was defined from
// it and so lacks the method.
type NodeDecoder interface {
	DecodeNode(path string, n *Node) Problems
}

// An Enum is a text type with a fixed set of words, for messages that list them
// and for the schema.
type Enum interface {
	encoding.TextMarshaler
	// Enum returns the words in the order in which to show them.
	Enum() []string
}

// Decode reads a tree into what v points to, strictly, and returns everything
// that is wrong. Go types read as follows; anything else is an error of the caller
// and reported as a problem.
//
//   - A struct is a map with the keys that its fields' json tags name. Unknown and
//     repeated keys are problems; so is the absence of a field with the tag
//     rules:"required". Embedded structs without a tag are part of the outer one.
//   - A map has string keys; a slice is a list; a pointer is what it points to.
//   - Integers are decimal and fit their type and the tags min and max.
//   - A [time.Duration] is a text that [ParseWindow] reads.
//   - A type with DecodeNode or UnmarshalText reads itself, the latter from text.
//   - A *[Node] takes the tree as it is.
//
// Null is never a value: what is not wanted is left out.
func Decode(n *Node, v any) Problems { return DecodeAt("", n, v) }

// DecodeAt is Decode of a part of a document that path leads to.
func DecodeAt(path string, n *Node, v any) Problems {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return Problems{n.Problem(path, "cannot be decoded into a %T, which is not a pointer", v)}
	}
	var d decoder
	d.value(path, n, p.Elem(), "")
	return d.problems
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	nodeType     = reflect.TypeFor[*Node]()
)

type decoder struct{ problems Problems }

func (d *decoder) fail(n *Node, path, format string, args ...any) {
	d.problems = append(d.problems, n.Problem(path, format, args...))
}

// want says that a value has the wrong kind.
func (d *decoder) want(n *Node, path, what string) {
	if n.Kind == Null {
		d.fail(n, path, "has no value; give it %s or leave it out", what)
		return
	}
	d.fail(n, path, "expected %s, found %s", what, n.describe())
}

// value reads n into v; tag is that of the struct field that v is.
func (d *decoder) value(path string, n *Node, v reflect.Value, tag reflect.StructTag) {
	if len(d.problems) >= maxProblems {
		return
	}
	if v.Type() == nodeType {
		v.Set(reflect.ValueOf(n))
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem(), tag)
		return
	}
	switch t := v.Addr().Interface().(type) {
	case NodeDecoder:
		d.problems = append(d.problems, t.DecodeNode(path, n)...)
		return
	case encoding.TextUnmarshaler:
		d.text(path, n, v, t)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Map:
		d.dictionary(path, n, v)
	case reflect.Slice:
		d.list(path, n, v)
	case reflect.String:
		switch n.Kind {
		case String:
			v.SetString(n.Value)
		case Int, Float, Bool:
			d.fail(n, path, "expected a text, found %s; put it in quotes: %q", n.describe(), n.Value)
		default:
			d.want(n, path, "a text")
		}
	case reflect.Bool:
		if n.Kind != Bool {
			d.want(n, path, "true or false")
			return
		}
		v.SetBool(n.Value == "true")
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != Int && n.Kind != Float || err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			d.want(n, path, "a number")
			return
		}
		v.SetFloat(f)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if v.Type() == durationType {
			d.duration(path, n, v)
			return
		}
		d.integer(path, n, v, tag)
	default:
		d.fail(n, path, "cannot be decoded into a %v", v.Type())
	}
}

func (d *decoder) text(path string, n *Node, v reflect.Value, t encoding.TextUnmarshaler) {
	what := "a text"
	if e, ok := v.Addr().Interface().(Enum); ok {
		what = oneOf(e.Enum())
	}
	if n.Kind != String && n.Kind != Int && n.Kind != Float {
		d.want(n, path, what)
		return
	}
	if err := t.UnmarshalText([]byte(n.Value)); err != nil {
		d.fail(n, path, "%v", err)
	} else if n.Kind != String {
		d.fail(n, path, "expected a text, found %s; put it in quotes: %q", n.describe(), n.Value)
	}
}

func (d *decoder) duration(path string, n *Node, v reflect.Value) {
	if n.Kind == Int {
		d.fail(n, path, "%s has no unit; write for example %ss", n.Value, n.Value)
		return
	}
	if n.Kind != String {
		d.want(n, path, "a duration such as 1m30s")
		return
	}
	w, err := ParseWindow(n.Value)
	if err != nil {
		d.fail(n, path, "%v", err)
		return
	}
	v.SetInt(int64(w))
}

func (d *decoder) integer(path string, n *Node, v reflect.Value, tag reflect.StructTag) {
	if n.Kind != Int {
		d.want(n, path, "a whole number")
		return
	}
	lo, hi := bounds(v.Type(), tag)
	i, err := parseInt(n.Value)
	switch {
	case err != nil:
		d.fail(n, path, "%v", err)
	case i < lo || i > hi:
		d.fail(n, path, "%d is not within %d and %d", i, lo, hi)
	default:
		v.SetInt(i)
	}
}

// bounds are those of a signed integer type, narrowed by the tags min and max.
func bounds(t reflect.Type, tag reflect.StructTag) (lo, hi int64) {
	lo, hi = -1<<(t.Bits()-1), 1<<(t.Bits()-1)-1
	if i, err := strconv.ParseInt(tag.Get("min"), 10, 64); err == nil {
		lo = i
	}
	if i, err := strconv.ParseInt(tag.Get("max"), 10, 64); err == nil {
		hi = i
	}
	return lo, hi
}

// parseInt reads a decimal number. YAML knows more spellings, and 010 is eight in
// one of its versions and ten in the other, so none of them is accepted.
func parseInt(s string) (int64, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 1 && digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%s is not a plain decimal number; write it with the digits 0 to 9, without a leading 0", quote(s))
	}
	i, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s does not fit into 64 bits", quote(s))
	}
	return i, nil
}

func (d *decoder) list(path string, n *Node, v reflect.Value) {
	if n.Kind != List {
		d.want(n, path, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	for i, it := range n.Items {
		d.value(item(path, i), it, v.Index(i), "")
	}
}

func (d *decoder) dictionary(path string, n *Node, v reflect.Value) {
	if v.Type().Key().Kind() != reflect.String {
		d.fail(n, path, "cannot be decoded into a %v", v.Type())
		return
	}
	if n.Kind != Map {
		d.want(n, path, "a map")
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Entries)))
	for _, e := range d.unique(path, n) {
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(join(path, e.Key.Value), e.Value, value, "")
		v.SetMapIndex(reflect.ValueOf(e.Key.Value).Convert(v.Type().Key()), value)
	}
}

func (d *decoder) structure(path string, n *Node, v reflect.Value) {
	if n.Kind != Map {
		d.want(n, path, "a map")
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range d.unique(path, n) {
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == e.Key.Value })
		if at < 0 {
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = f.name
			}
			d.fail(e.Key, join(path, e.Key.Value), "unknown key%s", suggest(e.Key.Value, names))
			last := &d.problems[len(d.problems)-1]
			last.meant, last.unknown = nearest(e.Key.Value, names), true
			continue
		}
		d.value(join(path, e.Key.Value), e.Value, v.FieldByIndex(fields[at].index), fields[at].tag)
	}
	for _, f := range fields {
		meant := func(p Problem) bool { return p.meant == f.name }
		if f.required && n.Get(f.name) == nil && !slices.ContainsFunc(d.problems, meant) {
			d.fail(n, path, "lacks %s: %s", f.name, f.tag.Get("doc"))
			d.problems[len(d.problems)-1].meant = f.name
		}
	}
}

// unique reports the keys that occur again and returns the entries without them.
func (d *decoder) unique(path string, n *Node) []Entry {
	first := make(map[string]*Node, len(n.Entries))
	kept := make([]Entry, 0, len(n.Entries))
	for _, e := range n.Entries {
		if before := first[e.Key.Value]; before != nil {
			d.fail(e.Key, join(path, e.Key.Value), "this key is already given at line %d; keep one of them", before.Line)
			continue
		}
		first[e.Key.Value] = e.Key
		kept = append(kept, e)
	}
	return kept
}

// field is a key of a map that a struct describes.
type field struct {
	name     string
	index    []int
	tag      reflect.StructTag
	typ      reflect.Type
	required bool
	omit     bool // left out by Encode when zero
}

// fieldsOf lists the fields of a struct type in the order of their declaration.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		case f.IsExported() && name != "" && name != "-":
			fields = append(fields, field{
				name: name, index: f.Index, tag: f.Tag, typ: f.Type,
				required: f.Tag.Get("rules") == "required",
				omit:     strings.Contains(rest, "omitempty"),
			})
		}
	}
	return fields
}

// oneOf names the words of an enum in a message.
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
