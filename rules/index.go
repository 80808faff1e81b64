package rules

import (
	"slices"
	"strings"
)

// index finds the rules that may match a request by its host and path without
// trying all. What it finds is a superset of what matches.
type index struct {
	always []int // rules without hosts and paths
	byPath bool  // whether any rule looks at the path
	byHost bool
	any    trees            // rules for any host
	exact  map[string]trees // by host
	below  map[string]trees // by what follows the * of a host
}

// trees are the paths of some rules: as they are, and folded for the rules that
// ignore case.
type trees struct{ plain, folded *branch }

// branch is a node of a tree over path segments.
type branch struct {
	literal map[string]*branch
	any     *branch // {name}
	ends    []end
}

// end is a rule whose pattern's segments lead to a branch.
type end struct {
	ending ending
	rule   int
}

func (x *index) add(rule int, m *matcher) {
	if len(m.hosts) == 0 && len(m.paths) == 0 {
		x.always = append(x.always, rule)
		return
	}
	paths := m.paths
	if len(paths) == 0 {
		paths = []pattern{{end: endTree}}
	}
	x.byPath = x.byPath || len(m.paths) > 0
	if len(m.hosts) == 0 {
		x.any.add(rule, paths, m.fold)
		return
	}
	x.byHost = true
	if x.exact == nil {
		x.exact, x.below = make(map[string]trees), make(map[string]trees)
	}
	for _, h := range m.hosts {
		hosts, name := x.exact, h
		if h[0] == '*' {
			hosts, name = x.below, h[1:]
		}
		t := hosts[name]
		t.add(rule, paths, m.fold)
		hosts[name] = t
	}
}

func (t *trees) add(rule int, paths []pattern, fold bool) {
	root := &t.plain
	if fold {
		root = &t.folded
	}
	if *root == nil {
		*root = new(branch)
	}
	for i := range paths {
		b := *root
		for _, s := range paths[i].segments {
			b = b.child(s)
		}
		b.ends = append(b.ends, end{paths[i].end, rule})
	}
}

// child is the branch that a segment leads to, made if there is none.
func (b *branch) child(s segment) *branch {
	if s.name != "" {
		if b.any == nil {
			b.any = new(branch)
		}
		return b.any
	}
	c := b.literal[s.literal]
	if c == nil {
		if b.literal == nil {
			b.literal = make(map[string]*branch)
		}
		c = new(branch)
		b.literal[s.literal] = c
	}
	return c
}

// find appends the rules that may match, ascending and once each.
func (x *index) find(dst []int, host, path string) []int {
	at := len(dst)
	dst = append(dst, x.always...)
	dst = x.any.find(dst, path)
	if x.byHost && len(host) <= maxHost {
		dst = x.exact[host].find(dst, path)
		for rest := host; len(x.below) > 0; rest = rest[1:] {
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				break
			}
			if rest = rest[i:]; len(rest) < len(host) { // * stands for at least a letter
				dst = x.below[rest].find(dst, path)
			}
		}
	}
	if len(dst)-at > 1 {
		found := dst[at:]
		slices.Sort(found)
		dst = dst[:at+len(slices.Compact(found))]
	}
	return dst
}

func (t trees) find(dst []int, path string) []int {
	dst = t.plain.find(dst, path, false)
	return t.folded.find(dst, path, true)
}

// find visits every branch at most once, since only one path leads to it.
func (b *branch) find(dst []int, path string, fold bool) []int {
	if b == nil {
		return dst
	}
	for _, e := range b.ends {
		if e.ending.match(path) {
			dst = append(dst, e.rule)
		}
	}
	if b.literal == nil && b.any == nil {
		return dst
	}
	seg, rest, ok := cutSegment(path)
	if !ok {
		return dst
	}
	if b.literal != nil {
		dst = b.lookup(seg, fold).find(dst, rest, fold)
	}
	return b.any.find(dst, rest, fold)
}

func (b *branch) lookup(seg string, fold bool) *branch {
	if !fold && strings.IndexByte(seg, '%') < 0 {
		return b.literal[seg]
	}
	var buf [segmentBuffer]byte
	return b.literal[string(appendSegment(buf[:0], seg, fold))]
}
