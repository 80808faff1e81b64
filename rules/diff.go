package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/weirhq/weir"
)

// A ChangeKind says what happened to a rule between two documents.
type ChangeKind string

const (
	// Added, Removed: the rule is only in the new, or only in the old document.
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	// Renamed: the rule is the same under another name.
	Renamed ChangeKind = "renamed"
	// Changed: one of the rule's values differs.
	Changed ChangeKind = "changed"
	// Moved: the rule stands elsewhere among those that both documents have.
	Moved ChangeKind = "moved"
)

// A Change is one difference between two documents.
type Change struct {
	Kind ChangeKind `json:"kind"`
	// Rule is the rule's name, the old one if it was renamed.
	Rule string `json:"rule"`
	// Path is the value that changed, such as "limit.quota".
	Path string `json:"path,omitempty"`
	// From and To are the values as text; empty where there is none. For Moved they
	// are positions, counted from 1.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Fresh is set if what was used so far is forgotten: the counters start anew.
	// Otherwise the change applies to what was used already. Reason says why.
	Fresh  bool   `json:"fresh,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// String is the change on one line.
func (c Change) String() string {
	s := string(c.Kind) + " rule " + strconv.Quote(c.Rule)
	if c.Path != "" {
		s += ": " + c.Path
	}
	switch {
	case c.From != "" && c.To != "":
		s += " from " + c.From + " to " + c.To
	case c.From != "":
		s += " " + c.From + " removed"
	case c.To != "":
		s += " " + c.To + " added"
	}
	if c.Fresh {
		s += "; counters start anew: " + c.Reason
	}
	return s
}

// Diff tells what replacing one valid document by another changes, and where it
// makes counters start anew (case B42): rule by rule in the order of the new
// document, then the rules that are gone, then those that moved.
func Diff(before, after *Document) []Change {
	d := differ{before: places(before), after: places(after)}
	d.pairRenamed(before, after)
	for i := range after.Rules {
		r := &after.Rules[i]
		if at, ok := d.before[r.Name]; ok {
			d.values(&before.Rules[at], r)
		} else if old, ok := d.renamed[r.Name]; ok {
			d.changes = append(d.changes, Change{Kind: Renamed, Rule: old, From: old, To: r.Name,
				Fresh: len(r.limits()) > 0, Reason: "counters are kept by the rule's name"})
		} else {
			d.changes = append(d.changes, Change{Kind: Added, Rule: r.Name})
		}
	}
	for i := range before.Rules {
		if name := before.Rules[i].Name; d.gone[name] {
			d.changes = append(d.changes, Change{Kind: Removed, Rule: name})
		}
	}
	d.moved(after)
	return d.changes
}

type differ struct {
	before, after map[string]int    // positions by name
	renamed       map[string]string // old names by new ones
	gone          map[string]bool   // names of removed rules
	changes       []Change
}

// places are the positions of rules by their names.
func places(d *Document) map[string]int {
	m := make(map[string]int, len(d.Rules))
	for i := range d.Rules {
		m[d.Rules[i].Name] = i
	}
	return m
}

// pairRenamed finds the rules that are gone, and those of them that are the same
// as a new one but for the name.
func (d *differ) pairRenamed(before, after *Document) {
	d.renamed, d.gone = make(map[string]string), make(map[string]bool)
	nameless := func(r Rule) string {
		r.Name = ""
		return string(Encode(r).AppendJSON(nil))
	}
	same := make(map[string][]string) // names of the rules that are gone, by what they say
	for _, r := range before.Rules {
		if _, kept := d.after[r.Name]; !kept {
			d.gone[r.Name] = true
			says := nameless(r)
			same[says] = append(same[says], r.Name)
		}
	}
	for _, r := range after.Rules {
		if _, old := d.before[r.Name]; old {
			continue
		}
		says := nameless(r)
		if names := same[says]; len(names) > 0 {
			d.renamed[r.Name], same[says] = names[0], names[1:]
			delete(d.gone, names[0])
		}
	}
}

// values compares the two rules of one name, value by value.
func (d *differ) values(old, r *Rule) {
	a, b := Encode(ruleFields(*old)), Encode(ruleFields(*r))
	for _, f := range fieldsOf(reflect.TypeFor[Rule]()) {
		switch f.name {
		case "limits":
		case "limit":
			d.limits(old, r)
		default:
			d.value(old, r, f.name, orDefault(a.Get(f.name), f), orDefault(b.Get(f.name), f))
		}
	}
}

// orDefault is the word that a value left out stands for, if it is one of a set.
func orDefault(n *Node, f field) *Node {
	zero := reflect.Zero(f.typ)
	if _, ok := zero.Interface().(Enum); n == nil && ok {
		return encode(zero)
	}
	return n
}

func (d *differ) value(old, r *Rule, name string, a, b *Node) {
	from, to := plain(a), plain(b)
	if from == to {
		return
	}
	c := Change{Kind: Changed, Rule: r.Name, Path: name, From: from, To: to}
	switch {
	case len(old.limits()) == 0:
	case name == "key":
		c.Fresh, c.Reason = true, "other keys, other counters"
	case (name == "ignore_case" || name == "ignore_trailing_slash") && old.keyedByPath():
		c.Fresh, c.Reason = true, "the key is written in another way"
	}
	d.changes = append(d.changes, c)
}

// keyedByPath is whether the rule's key depends on how a path is spelt.
func (r *Rule) keyedByPath() bool {
	return slices.ContainsFunc(r.Key, func(s string) bool {
		p, err := parseKeyPart(s)
		return err == nil && p.kind == "path"
	})
}

// limits compares limits by position, as stores keep them.
func (d *differ) limits(old, r *Rule) {
	a, b := old.limits(), r.limits()
	add := func(c Change) {
		c.Kind, c.Rule = Changed, r.Name
		d.changes = append(d.changes, c)
	}
	if (len(a) == 0) != (len(b) == 0) {
		add(Change{Path: "limit", From: all(a), To: all(b)})
		return
	}
	many := len(a) > 1 || len(b) > 1
	for i := range max(len(a), len(b)) {
		path := "limit"
		if many {
			path = item("limits", i)
		}
		switch {
		case i >= len(a):
			add(Change{Path: path, To: b[i].String()})
		case i >= len(b):
			add(Change{Path: path, From: a[i].String()})
		default:
			for _, c := range changedFields(path, a[i], b[i]) {
				add(c)
			}
		}
	}
}

// all is the limits of a rule in words.
func all(limits []Limit) string {
	if len(limits) == 0 {
		return unlimited
	}
	s := ""
	for i, l := range limits {
		if i > 0 {
			s += ", "
		}
		s += l.String()
	}
	return s
}

func changedFields(path string, a, b Limit) []Change {
	var changes []Change
	x, y := Encode(limitFields(a)), Encode(limitFields(b))
	for _, f := range fieldsOf(reflect.TypeFor[Limit]()) {
		from, to := plain(x.Get(f.name)), plain(y.Get(f.name))
		if from == to {
			continue
		}
		if f.name == "algorithm" { // its zero value is left out, and has a name
			from, to = weir.Algorithm(a.Algorithm).String(), weir.Algorithm(b.Algorithm).String()
		}
		c := Change{Path: join(path, f.name), From: from, To: to}
		c.Fresh, c.Reason = startsAnew(f.name, a, b)
		changes = append(changes, c)
	}
	return changes
}

// startsAnew is whether a changed field of a limit makes its counters start anew.
// Which states two policies share is package weir's to say; that windows on a grid
// of another length share nothing is the algorithms'.
func startsAnew(field string, a, b Limit) (bool, string) {
	switch field {
	case "algorithm":
		p, err := weir.NewPolicy("x", a.Weir())
		q, err2 := weir.NewPolicy("x", b.Weir())
		if err == nil && err2 == nil && p.ID() != q.ID() {
			return true, "another algorithm counts in another way"
		}
	case "window":
		switch alg := weir.Algorithm(b.Algorithm); {
		case a.Algorithm != b.Algorithm:
		case alg == weir.FixedWindow, alg == weir.SlidingWindow:
			return true, fmt.Sprintf("windows of another length share no edges (%v)", alg)
		}
	}
	return false, ""
}

// moved reports the fewest rules that have to move to get from one order to the
// other, of those that both documents have.
func (d *differ) moved(after *Document) {
	var names []string
	var places []int
	for i := range after.Rules {
		name := after.Rules[i].Name
		if place, ok := d.before[name]; ok {
			names, places = append(names, name), append(places, place)
		}
	}
	stay := longestAscending(places)
	for i, name := range names {
		if !stay[i] {
			d.changes = append(d.changes, Change{Kind: Moved, Rule: name,
				From: strconv.Itoa(places[i] + 1), To: strconv.Itoa(d.after[name] + 1)})
		}
	}
}

// longestAscending marks the elements of one longest ascending subsequence.
func longestAscending(list []int) []bool {
	var ends []int // ends[n] is where the best subsequence of length n+1 ends
	previous := make([]int, len(list))
	for i, v := range list {
		n, _ := slices.BinarySearchFunc(ends, v, func(e, v int) int { return list[e] - v })
		previous[i] = -1
		if n > 0 {
			previous[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	marks := make([]bool, len(list))
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = previous[i] {
			marks[i] = true
		}
	}
	return marks
}

// plain is a value as text on one line: bare if it is a scalar, otherwise JSON.
func plain(n *Node) string {
	switch {
	case n == nil:
		return ""
	case n.Kind == String && plainYAML(n.Value, false):
		return n.Value
	}
	return string(n.AppendJSON(nil))
}
