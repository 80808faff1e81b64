package rules

import (
	"fmt"
	"go/token"
	"strings"
)

// A pattern says which paths match, in the syntax of net/http's ServeMux plus a
// trailing /**. Segments are compared with percent-encoding undone, so that
// /us%40er is /us@er, as it is for the routers behind.
type pattern struct {
	segments []segment
	end      ending
	rest     string // the name of {name...}; empty without one
}

type segment struct {
	literal string // decoded; folded if the rule ignores case
	name    string // of {name}; empty for a literal
}

// An ending is what may follow the segments of a pattern.
type ending uint8

const (
	endHere        ending = iota // nothing
	endSlash                     // a slash: {$}
	endBelow                     // a slash and anything: a trailing / or {name...}
	endHereOrSlash               // endHere or endSlash, for ignore_trailing_slash
	endTree                      // endHere or endBelow: /**
)

// parsePath reads the path part of a pattern, which begins with a slash.
func parsePath(s string) (pattern, error) {
	var p pattern
	if !strings.HasPrefix(s, "/") {
		return p, fmt.Errorf("path %s does not begin with /", quote(s))
	}
	if len(s) > maxPath {
		return p, fmt.Errorf("path %s has %d bytes; at most %d are read", quote(s), len(s), maxPath)
	}
	if i := strings.IndexAny(s, "?# \t"); i >= 0 {
		return p, fmt.Errorf("path %s has a %q, which is never part of a path; a space is written %%20", quote(s), s[i])
	}
	parts := strings.Split(s[1:], "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "" && last:
			p.end = endBelow
		case part == "**" && last:
			p.end = endTree
		case part == "" || part == "." || part == "..":
			return p, fmt.Errorf("path %s has a segment %q, which no path in normal form has", quote(s), part)
		case strings.HasPrefix(part, "{"):
			if err := p.wildcard(part, last); err != nil {
				return p, fmt.Errorf("path %s: %w", quote(s), err)
			}
		case strings.ContainsAny(part, "{}"):
			return p, fmt.Errorf("path %s: a wildcard is a whole segment, not a part of %s", quote(s), quote(part))
		case strings.Contains(part, "*"):
			return p, fmt.Errorf("path %s: write {name} for any one segment and /** at the end for everything below; a literal * is %%2A", quote(s))
		default:
			p.segments = append(p.segments, segment{literal: string(appendDecoded(nil, part))})
		}
	}
	return p, nil
}

// maxPath is the longest pattern of a path.
const maxPath = 4096

// wildcard adds {name}, {name...} or {$}.
func (p *pattern) wildcard(part string, last bool) error {
	inner, ok := strings.CutSuffix(part[1:], "}")
	if !ok || strings.ContainsAny(inner, "{}") {
		return fmt.Errorf("a wildcard is a whole segment such as {id}, not %s", quote(part))
	}
	if inner == "$" || strings.HasSuffix(inner, "...") {
		if !last {
			return fmt.Errorf("%s may only stand at the end", part)
		}
		if inner == "$" {
			p.end = endSlash
			return nil
		}
	}
	name, multi := strings.CutSuffix(inner, "...")
	if !token.IsIdentifier(name) && !token.IsKeyword(name) {
		return fmt.Errorf("%s is not a name of letters, digits and _", quote(name))
	}
	if p.has(name) {
		return fmt.Errorf("the name %s occurs twice", quote(name))
	}
	if multi {
		p.end, p.rest = endBelow, name
		return nil
	}
	p.segments = append(p.segments, segment{name: name})
	return nil
}

// has is whether a wildcard has the name.
func (p *pattern) has(name string) bool {
	for _, s := range p.segments {
		if s.name == name {
			return true
		}
	}
	return p.rest == name
}

// loosen makes the pattern ignore letter case and a trailing slash.
func (p *pattern) loosen(fold, slash bool) {
	if fold {
		for i := range p.segments {
			p.segments[i].literal = string(appendFolded(nil, []byte(p.segments[i].literal)))
		}
	}
	if !slash {
		return
	}
	switch p.end {
	case endHere, endSlash:
		p.end = endHereOrSlash
	case endBelow:
		p.end = endTree
	}
}

// match is whether a path in normal form matches.
func (p *pattern) match(path string, fold bool) bool {
	for i := range p.segments {
		seg, rest, ok := cutSegment(path)
		if !ok || !p.segments[i].match(seg, fold) {
			return false
		}
		path = rest
	}
	return p.end.match(path)
}

// cutSegment takes the first segment, which is not empty, off a path.
func cutSegment(path string) (seg, rest string, ok bool) {
	if len(path) < 2 || path[0] != '/' || path[1] == '/' {
		return "", "", false
	}
	path = path[1:]
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:], true
	}
	return path, "", true
}

func (s *segment) match(seg string, fold bool) bool {
	if s.name != "" {
		return true
	}
	if !fold && strings.IndexByte(seg, '%') < 0 {
		return seg == s.literal
	}
	var buf [segmentBuffer]byte
	return string(appendSegment(buf[:0], seg, fold)) == s.literal
}

// segmentBuffer holds a decoded segment on the stack; longer ones are allocated.
const segmentBuffer = 256

// appendSegment appends a segment as literals have it.
func appendSegment(dst []byte, seg string, fold bool) []byte {
	at := len(dst)
	dst = appendDecoded(dst, seg)
	if fold {
		dst = foldTail(dst, at)
	}
	return dst
}

// match is whether the end of a pattern takes what is left of a path.
func (e ending) match(rest string) bool {
	switch e {
	case endHere:
		return rest == ""
	case endSlash:
		return rest == "/"
	case endHereOrSlash:
		return rest == "" || rest == "/"
	case endBelow:
		return rest != "" && rest[0] == '/'
	}
	return true
}

// capture is what the wildcard of that name stands for in a path that matches, as
// the path has it.
func (p *pattern) capture(path, name string) (string, bool) {
	for i := range p.segments {
		seg, rest, ok := cutSegment(path)
		if !ok {
			return "", false
		}
		if p.segments[i].name == name {
			return seg, true
		}
		path = rest
	}
	if p.rest == name {
		return strings.TrimPrefix(path, "/"), true
	}
	return "", false
}

// covers is whether every path that q matches is matched by p, as far as can be
// told from their forms; both ignore case or neither does, and folded says which.
func (p *pattern) covers(q *pattern) bool {
	if len(p.segments) > len(q.segments) {
		return false
	}
	for i := range p.segments {
		if a, b := p.segments[i], q.segments[i]; a.name == "" && (b.name != "" || a.literal != b.literal) {
			return false
		}
	}
	if len(q.segments) > len(p.segments) {
		return p.end == endBelow || p.end == endTree
	}
	switch p.end {
	case endTree:
		return true
	case endBelow:
		return q.end == endBelow || q.end == endSlash
	case endHereOrSlash:
		return q.end == endHere || q.end == endSlash || q.end == endHereOrSlash
	}
	return p.end == q.end
}
