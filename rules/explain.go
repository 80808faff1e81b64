package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
)

// An Explanation says what a rule has to do with one request.
type Explanation struct {
	// Rule is the rule's name.
	Rule string `json:"rule"`
	// Applies is whether the rule's limits are asked, or in the way of final rules,
	// whether it matched. Why is the reason in words.
	Applies bool   `json:"applies"`
	Why     string `json:"why"`
	// Mode is enforce, shadow or off.
	Mode string `json:"mode"`
	// Rollout is the share of keys that the rule is enforced for, such as "25%";
	// empty if for all.
	Rollout string `json:"rollout,omitempty"`
	// Key is the partition key for people: the value, or NAME=VALUE for each part of
	// a composite one. It is empty if the request has none.
	Key string `json:"key,omitempty"`
	// Missing is what becomes of the request for want of a key: "ip", "skip",
	// "shared" or "refuse"; empty if it has one.
	Missing string `json:"missing,omitempty"`
	// Limits are the rule's limits as a document has them, Bounds what they keep.
	Limits []string `json:"limits,omitempty"`
	Bounds []string `json:"bounds,omitempty"`
}

// Explain says for every rule, in order, whether it applies to a request and why.
// It asks no store.
func (p *Program[R]) Explain(r R) []Explanation {
	all := make([]Explanation, len(p.rules))
	final := ""
	for i := range p.rules {
		rule, e := &p.doc.Rules[i], &all[i]
		mode := weir.Mode(rule.Mode)
		*e = Explanation{Rule: rule.Name, Mode: mode.String(), Bounds: rule.Bounds()}
		for _, l := range rule.limits() {
			e.Limits = append(e.Limits, l.String())
		}
		if rule.Rollout != 0 {
			text, _ := rule.Rollout.MarshalText() // never fails
			e.Rollout = string(text)
		}
		why := p.mismatch(i, r)
		switch {
		case mode == weir.Off:
			e.Why = "the mode is off"
		case why != "":
			e.Why = why
		case final != "":
			e.Why = fmt.Sprintf("rule %q above matched and is final", final)
		default:
			e.Applies, e.Why = true, p.match(i, r)
			p.explainKey(i, r, e)
			if rule.Final {
				final = rule.Name
			}
		}
	}
	return all
}

// mismatch says which part of the match a request does not fit, or nothing.
func (p *Program[R]) mismatch(i int, r R) string {
	m, b := &p.rules[i].matcher, &p.b
	var why []string
	if len(m.methods) > 0 && !m.method(b.Method(r)) {
		why = append(why, fmt.Sprintf("method %s is not %s", quote(b.Method(r)), oneOf(m.methods)))
	}
	if len(m.hosts) > 0 && !m.host(b.Host(r)) {
		why = append(why, fmt.Sprintf("host %s is not %s", quote(b.Host(r)), oneOf(m.hosts)))
	}
	if len(m.paths) > 0 && m.path(b.Path(r)) == nil {
		why = append(why, fmt.Sprintf("path %s does not fit %s", quote(b.Path(r)), oneOf(p.paths(i))))
	}
	return strings.Join(why, "; ")
}

// match says in words why a rule matched.
func (p *Program[R]) match(i int, r R) string {
	m := &p.rules[i].matcher
	for at := range m.paths {
		if m.paths[at].match(p.b.Path(r), m.fold) {
			return "path fits " + p.paths(i)[at]
		}
	}
	if p.Ruleset.Rules[i].Match == nil {
		return "matches every request"
	}
	return "matches"
}

// paths are the path patterns of a rule as they were written.
func (p *Program[R]) paths(i int) []string {
	m := p.doc.Rules[i].Match
	if m.Pattern == "" {
		return m.Paths
	}
	_, _, paths, _ := splitPattern(m.Pattern) // Validate found no flaw
	return paths
}

func (p *Program[R]) explainKey(i int, r R, e *Explanation) {
	rule, c := &p.doc.Rules[i], &p.rules[i]
	if len(e.Limits) == 0 {
		return // an exemption has no partitions
	}
	if len(c.keys) == 0 {
		e.Key = "global"
		return
	}
	var parts, lacking []string
	for n, f := range c.keys {
		value, ok := f(nil, r)
		switch {
		case !ok:
			lacking = append(lacking, c.parts[n].text)
		case len(c.keys) == 1:
			parts = append(parts, readable(value))
		default:
			parts = append(parts, c.parts[n].text+"="+readable(value))
		}
	}
	if len(lacking) == 0 {
		e.Key = strings.Join(parts, ", ")
		return
	}
	text, _ := rule.OnMissingKey.MarshalText() // never fails
	e.Missing = string(text)
	e.Why += "; the request has no " + strings.Join(lacking, " and no ")
	if rule.OnMissingKey == MissingSkip {
		e.Applies = false
	}
}

// readable is a value as it is if that is plain on one line, and quoted otherwise.
func readable(value []byte) string {
	s := string(value)
	odd := func(c byte) bool { return c <= ' ' || c > '~' || c == ',' || c == '=' || c == '"' }
	if s == "" || slices.ContainsFunc(value, odd) {
		return strconv.Quote(s)
	}
	return s
}
