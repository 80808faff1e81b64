package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Document is a list of rules. It is made by [LoadJSON], by weiryaml.Load, or
// by a program. Rules that were decoded remember where they stood, so that
// everything found later names file, line and column too. A document may be read
// concurrently; copies of its rules may be changed.
type Document struct {
	Rules []Rule `json:"rules" rules:"required" doc:"the rules, in the order in which they are tried; every rule that matches applies, and they are decided all or nothing"`
}

// A Rule says which requests are limited, how they are told apart, and by how
// much. Its fields are the keys of the document.
type Rule struct {
	Name                string       `json:"name" rules:"required" pattern:"^[^\\u0000-\\u0020\\u007f#]{1,128}$" doc:"unique; part of the counters, the metrics and the headers" example:"login"`
	Description         string       `json:"description,omitempty" doc:"free text for people"`
	Match               *Match       `json:"match,omitempty" doc:"which requests; left out, all"`
	IgnoreCase          bool         `json:"ignore_case,omitempty" doc:"paths match, and count, whatever their letter case"`
	IgnoreTrailingSlash bool         `json:"ignore_trailing_slash,omitempty" doc:"/a/ matches, and counts, as /a"`
	Key                 Key          `json:"key,omitempty" doc:"what splits requests into partitions with counters of their own"`
	Limit               *Limit       `json:"limit,omitempty" doc:"how much each partition may take"`
	Limits              []Limit      `json:"limits,omitempty" doc:"several limits that are decided together on the same key"`
	Cost                *int64       `json:"cost,omitempty" min:"0" max:"4503599627370495" doc:"units that a request takes, 1 if left out; 0 looks without taking"`
	Unit                string       `json:"unit,omitempty" pattern:"^[ -!#-\\[\\]-~]{1,64}$" doc:"what is counted; requests if left out" example:"content-bytes"`
	Mode                Mode         `json:"mode,omitempty" doc:"enforce refuses what exceeds the limit and is the default, shadow counts and refuses nothing, off ignores the rule"`
	Rollout             Rollout      `json:"rollout,omitempty" doc:"enforces for this share of the keys, always the same ones, and only watches the others"`
	Final               bool         `json:"final,omitempty" doc:"rules below do not apply to a request that this one matched"`
	OnMissingKey        MissingKey   `json:"on_missing_key,omitempty" doc:"what becomes of a request without the key: ip counts it by client address and is the default, skip does not apply the rule, shared puts all of them into one partition, refuse refuses"`
	Store               Sharing      `json:"store,omitempty" doc:"how nodes share the limit: strict asks the common store for every unit and is the default, fast lets each take some ahead and decide by itself; neither allows more than the limit"`
	OnStoreError        Outage       `json:"on_store_error,omitempty" doc:"while the store fails: local lets each node keep its share and is the default, open allows, closed refuses"`
	Message             Translations `json:"message,omitempty" doc:"what the refused are told: a text, or one for each language"`
	Status              int          `json:"status,omitempty" min:"400" max:"599" doc:"the HTTP status of a refusal; 429 if left out"`
	Body                string       `json:"body,omitempty" doc:"the whole body of a refusal; left out, a problem document"`
	ContentType         string       `json:"content_type,omitempty" doc:"the media type of body; text/plain if left out" example:"application/json"`

	node *Node           // where the rule stood; nil if a program made it
	bad  map[string]bool // keys that Decode complained about
}

// Answer is the [weir.Rule] Tag of a rule that has something to say to the
// refused.
type Answer struct {
	// Messages are by language tag; the empty tag is the text for any language.
	Messages map[string]string
	// Status is the HTTP status, 0 meaning the default.
	Status int
	// Body replaces the whole body of the refusal unless empty.
	Body string
	// ContentType is the media type of Body, empty meaning text/plain.
	ContentType string
}

// ruleFields is a Rule in its plain shape.
type ruleFields Rule

// DecodeNode reads the rule and remembers its position.
func (r *Rule) DecodeNode(path string, n *Node) Problems {
	problems := DecodeAt(path, n, (*ruleFields)(r))
	r.node = n
	for _, p := range problems {
		if r.bad == nil {
			r.bad = make(map[string]bool)
		}
		key, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p.Path, path), "."), ".")
		key, _, _ = strings.Cut(key, "[")
		r.bad[p.meant] = true
		if key != "match" || !p.unknown { // the known parts of a match can be checked
			r.bad[key] = true
		}
	}
	return problems
}

// EncodeNode writes the rule.
func (r Rule) EncodeNode() *Node { return Encode(ruleFields(r)) }

// JSONSchema describes the plain shape, and that a rule has one of limit and
// limits, and a key unless it is unlimited.
func (Rule) JSONSchema() *Node {
	s := Schema(ruleFields{})
	s.Entries = append(s.Entries,
		NewEntry("oneOf", schemaOf(`[{"required": ["limit"]}, {"required": ["limits"]}]`)),
		NewEntry("anyOf", schemaOf(`[{"required": ["key"]}, {"properties": {"limit": {"const": "unlimited"}}, "required": ["limit"]}]`)))
	return s
}

// find is the node of one of the rule's values, or of the deepest thing around it
// that the document had; nil if there was none.
func (r *Rule) find(keys ...any) *Node {
	n := r.node
	for _, k := range keys {
		var next *Node
		switch k := k.(type) {
		case string:
			next = n.Get(k)
		case int:
			next = n.At(k)
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}

// limits are the rule's limits, none if it is unlimited.
func (r *Rule) limits() []Limit {
	all := slices.Clone(r.Limits)
	if r.Limit != nil {
		all = append(all, *r.Limit)
	}
	return slices.DeleteFunc(all, func(l Limit) bool { return l.Unlimited })
}

// unlimited is whether the rule is an exemption.
func (r *Rule) unlimited() bool { return r.Limit != nil && r.Limit.Unlimited }

// cost is the units a request takes.
func (r *Rule) cost() int64 {
	if r.Cost == nil {
		return 1
	}
	return *r.Cost
}

// answer is the Tag of the compiled rule: an *Answer, or nil.
func (r *Rule) answer() any {
	if len(r.Message) == 0 && r.Status == 0 && r.Body == "" {
		return nil
	}
	return &Answer{Messages: r.Message, Status: r.Status, Body: r.Body, ContentType: r.ContentType}
}

// FromNode reads a tree as a document of rules and validates it. The document is
// not nil and holds what could be read, even if there are problems; only one
// without problems compiles. The search ends after about a thousand problems.
func FromNode(n *Node) (*Document, Problems) {
	doc := new(Document)
	problems := Decode(n, doc)
	return doc, append(problems, doc.Validate()...).sort()
}

// LoadJSON parses, decodes and validates a JSON document. The document is nil if
// it could not be parsed; see [FromNode] otherwise.
func LoadJSON(name string, data []byte) (*Document, Problems) {
	n, problems := ParseJSON(name, data)
	if n == nil {
		return nil, problems
	}
	return FromNode(n)
}

// Version is a short hash of what the document says: the same on every node that
// has the same rules, however they were written (case B23).
func (d *Document) Version() string {
	sum := sha256.Sum256(Encode(d).AppendJSON(nil))
	return hex.EncodeToString(sum[:6])
}

// MarshalJSON returns the document in its canonical form, which depends only on
// what it says.
func (d *Document) MarshalJSON() ([]byte, error) { return Encode(d).AppendJSON(nil), nil }

// AppendYAML appends the document in its canonical form to dst, below the header
// as a comment.
func (d *Document) AppendYAML(dst []byte, header string) []byte {
	if header != "" {
		for line := range strings.Lines(header) {
			dst = append(dst, strings.TrimRight("# "+clean(line), " ")...)
			dst = append(dst, '\n')
		}
		dst = append(dst, '\n')
	}
	return Encode(d).AppendYAML(dst)
}

// clean drops what would end a comment or hide in it.
func clean(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || !strconv.IsPrint(r) && r != ' ' {
			return -1
		}
		return r
	}, line)
}

// Rollout is a share of all keys in parts of 10,000; 0 means all of them.
type Rollout int

// UnmarshalText reads a percentage with at most two decimals, above 0%.
func (r *Rollout) UnmarshalText(text []byte) error {
	s := string(text)
	number, ok := strings.CutSuffix(s, "%")
	whole, cents, dot := strings.Cut(number, ".")
	w, err := strconv.ParseUint(whole, 10, 16)
	if !ok || err != nil || dot && (cents == "" || len(cents) > 2) {
		return fmt.Errorf("%s is not a percentage; write for example 25%% or 0.5%%", quote(s))
	}
	c, err := strconv.ParseUint((cents + "00")[:2], 10, 8)
	switch parts := w*100 + c; {
	case err != nil:
		return fmt.Errorf("%s is not a percentage; write for example 25%% or 0.5%%", quote(s))
	case parts == 0:
		return fmt.Errorf("%s enforces for nobody; write mode: shadow", quote(s))
	case parts > 10000:
		return fmt.Errorf("%s is above 100%%", quote(s))
	default:
		*r = Rollout(parts % 10000)
	}
	return nil
}

// MarshalText writes the percentage.
func (r Rollout) MarshalText() ([]byte, error) {
	if r == 0 {
		return []byte("100%"), nil
	}
	s := fmt.Sprintf("%d.%02d", r/100, r%100)
	return []byte(strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + "%"), nil
}

// JSONSchema describes a percentage.
func (Rollout) JSONSchema() *Node {
	return schemaOf(`{"type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9]{1,2})?%$", "examples": ["25%", "0.5%"]}`)
}

// Translations are texts by language tag (RFC 5646); the empty tag is the text
// for any language. In a document they are a map, or just a text.
type Translations map[string]string

// DecodeNode reads both forms.
func (t *Translations) DecodeNode(path string, n *Node) Problems {
	if n.Kind == String {
		*t = Translations{"": n.Value}
		return nil
	}
	if n.Kind != Map {
		return Problems{n.Problem(path, "expected a text, or a map of texts by language, found %s", n.describe())}
	}
	problems := DecodeAt(path, n, (*map[string]string)(t))
	for _, e := range n.Entries {
		if !isLanguage(e.Key.Value) {
			problems = append(problems, e.Key.Problem(join(path, e.Key.Value), "%s is not a language tag such as en or zh-TW", quote(e.Key.Value)))
		}
	}
	return problems
}

// EncodeNode writes the shorter form.
func (t Translations) EncodeNode() *Node {
	if text, ok := t[""]; ok && len(t) == 1 {
		return NewString(text)
	}
	return Encode(map[string]string(t))
}

// JSONSchema describes both forms.
func (Translations) JSONSchema() *Node {
	return schemaOf(`{"oneOf": [{"type": "string"}, {"type": "object",
		"propertyNames": {"pattern": "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"},
		"additionalProperties": {"type": "string"}}],
		"examples": ["too many attempts", {"en": "too many attempts", "zh": "尝试次数过多"}]}`)
}

// isLanguage is whether tag has the shape of a language tag.
func isLanguage(tag string) bool {
	for i, part := range strings.Split(tag, "-") {
		letters := strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
		alnum := strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
		if i == 0 && (!letters || len(part) < 2) || !alnum || part == "" || len(part) > 8 {
			return false
		}
	}
	return true
}
