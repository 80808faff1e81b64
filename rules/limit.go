package rules

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// A Limit is a quota per window in a document: "5/m", "unlimited", or a map of
// its fields. See [weir.Limit] for what the fields mean.
type Limit struct {
	// Unlimited is the word unlimited; no other field is set then.
	Unlimited bool `json:"-"`

	Quota     int64         `json:"quota" rules:"required" min:"0" max:"4503599627370495" doc:"units per window; 0 refuses everything"`
	Window    time.Duration `json:"window" rules:"required" doc:"the span of time that the quota is for, such as 1m"`
	Burst     int64         `json:"burst,omitempty" min:"1" max:"4503599627370495" doc:"units that may be taken at once; left out, the quota (token_bucket)"`
	Algorithm Algorithm     `json:"algorithm,omitempty" doc:"how to count; token_bucket if left out"`
	Queue     int64         `json:"queue,omitempty" min:"0" max:"4503599627370494" doc:"units that may wait behind the one in service (leaky_queue)"`
	MaxWait   time.Duration `json:"max_wait,omitempty" doc:"the longest wait before a request goes on instead of being refused (token_bucket, leaky_queue)"`
	Slices    int           `json:"slices,omitempty" min:"1" max:"4096" doc:"slices of a window, 10 if left out (sliding_slices)"`
	WarmUp    time.Duration `json:"warm_up,omitempty" doc:"how long the rate rises from a third to all of it (warm_up)"`
}

// unlimited is how an exemption is written.
const unlimited = "unlimited"

// Weir is the limit as package weir takes it. An unlimited one is the zero Limit,
// which weir refuses to take for a limit.
func (l Limit) Weir() weir.Limit {
	return weir.Limit{
		Quota: l.Quota, Window: l.Window, Burst: l.Burst, Queue: l.Queue, MaxWait: l.MaxWait,
		Slices: l.Slices, WarmUp: l.WarmUp, Algorithm: weir.Algorithm(l.Algorithm),
	}
}

// LimitOf is the limit of a document for one of package weir.
func LimitOf(l weir.Limit) Limit {
	return Limit{
		Quota: l.Quota, Window: l.Window, Burst: l.Burst, Queue: l.Queue, MaxWait: l.MaxWait,
		Slices: l.Slices, WarmUp: l.WarmUp, Algorithm: Algorithm(l.Algorithm),
	}
}

// ParseLimit reads the short form of a limit: QUOTA/WINDOW, such as 5/m, 100/10s
// or 1000/1h30m, or the word unlimited. Whether the numbers make a limit is for
// [Document.Validate] to say.
func ParseLimit(s string) (Limit, error) {
	if s == unlimited {
		return Limit{Unlimited: true}, nil
	}
	quota, window, ok := strings.Cut(s, "/")
	if !ok {
		return Limit{}, fmt.Errorf("%s is not a limit; write QUOTA/WINDOW such as 5/m or 100/10s, or %s, or a map with quota and window", quote(s), unlimited)
	}
	q, err := parseInt(quota)
	if err != nil {
		return Limit{}, fmt.Errorf("quota %w", err)
	}
	if q < 0 {
		return Limit{}, fmt.Errorf("quota %d is negative; 0 refuses everything, and %s is a word", q, unlimited)
	}
	w, err := ParseWindow(window)
	if err != nil {
		return Limit{}, fmt.Errorf("window %w", err)
	}
	return Limit{Quota: q, Window: w}, nil
}

// String is the short form if the limit has one, and otherwise says the rest in
// words: "5/m burst 10 sliding_log".
func (l Limit) String() string {
	if l.Unlimited {
		return unlimited
	}
	s := strconv.FormatInt(l.Quota, 10) + "/" + strings.TrimPrefix(FormatWindow(l.Window), "1")
	if c := strings.TrimPrefix(FormatWindow(l.Window), "1"); unitLength(c) == 0 {
		s = strconv.FormatInt(l.Quota, 10) + "/" + FormatWindow(l.Window)
	}
	for _, e := range l.rest() {
		s += " " + e.Key.Value + " " + e.Value.Value
	}
	return s
}

// rest are the fields that the short form cannot say.
func (l Limit) rest() []Entry {
	plain := limitFields(l)
	return encodeStruct(plain)[2:]
}

// limitFields is a Limit in its plain shape.
type limitFields Limit

// DecodeNode reads any of the forms.
func (l *Limit) DecodeNode(path string, n *Node) Problems {
	switch n.Kind {
	case String:
		parsed, err := ParseLimit(n.Value)
		if err != nil {
			return Problems{n.Problem(path, "%v", err)}
		}
		*l = parsed
		return nil
	case Map:
		// The tag's bound would say it too, without what to do.
		if b := n.Get("burst"); b != nil && b.Kind == Int && b.Value == "0" {
			return append(Problems{b.Problem(join(path, "burst"), "burst 0 allows nothing; leave it out to use the quota, or write quota: 0 to refuse everything")},
				DecodeAt(path, n.without("burst"), (*limitFields)(l))...)
		}
		return DecodeAt(path, n, (*limitFields)(l))
	case Int:
		return Problems{n.Problem(path, "a limit needs a window too; write for example %s/m", n.Value)}
	}
	return Problems{n.Problem(path, "expected a limit such as 5/m, %s, or a map with quota and window, found %s", unlimited, n.describe())}
}

// without is the map less one key.
func (n *Node) without(key string) *Node {
	m := *n
	m.Entries = nil
	for _, e := range n.Entries {
		if e.Key.Value != key {
			m.Entries = append(m.Entries, e)
		}
	}
	return &m
}

// EncodeNode writes the short form if the limit has one.
func (l Limit) EncodeNode() *Node {
	if l.Unlimited || len(l.rest()) == 0 {
		return NewString(l.String())
	}
	return Encode(limitFields(l))
}

// JSONSchema describes the forms.
func (Limit) JSONSchema() *Node {
	short := schemaOf(`{"type": "string",
		"pattern": "^(unlimited|[0-9]+/([0-9]+(w|d|h|m|s|ms|us|µs))+|[0-9]+/(w|d|h|m|s|ms|us|µs))$",
		"examples": ["5/m", "100/10s", "1000/h", "unlimited"]}`)
	return NewMap(NewEntry("oneOf", NewList(short, Schema(limitFields{}))))
}
