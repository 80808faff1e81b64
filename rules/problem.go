package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Problem is one thing that is wrong, or doubtful, in a document: where, what,
// and what to do. Its text is one line whatever the document holds.
type Problem struct {
	// File is the name the document was parsed under; empty for a document that was
	// built by a program.
	File string `json:"file,omitempty"`
	// Line and Col count from 1, Col in characters; 0 if there is no position.
	Line int `json:"line,omitempty"`
	Col  int `json:"col,omitempty"`
	// Path leads to the value, such as "rules[3].limit.window" with lists counted
	// from 0; empty for the document as a whole.
	Path string `json:"path,omitempty"`
	// Msg says what is wrong and what would be right.
	Msg string `json:"msg"`
	// Warning is set for what [Document.Lint] found: the document works.
	Warning bool `json:"warning,omitempty"`

	// meant is the key that an unknown one was probably meant to be, or that is
	// lacking; unknown is set for the former.
	meant   string
	unknown bool
}

// String is "FILE:LINE:COL: PATH: MSG" without the parts that are unknown, and
// with "warning: " before the message of a warning.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		b.WriteByte(':')
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Col)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	if p.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Msg)
	return b.String()
}

// Error is String.
func (p Problem) Error() string { return p.String() }

// Problems are all that was found in a document, as one error for errors.As.
// Nil means that nothing was.
type Problems []Problem

// Error is the problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns every problem as an error.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// Err returns the problems as an error, or nil if none is more than a warning.
func (ps Problems) Err() error {
	if !slices.ContainsFunc(ps, func(p Problem) bool { return !p.Warning }) {
		return nil
	}
	return ps
}

// maxProblems is about how many problems are looked for in one document, so that
// a large one that is wrong everywhere is not answered by a larger one.
const maxProblems = 1000

// sort orders problems as a reader of the file meets them.
func (ps Problems) sort() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return ps
}

// quote shows a value of a document inside a message: on one line, and not longer
// than a reader wants.
func quote(s string) string {
	const most = 60
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

// join extends a path by a key, which is quoted unless it is a plain word.
func join(path, key string) string {
	plain := key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	switch {
	case !plain:
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// item extends a path by a position in a list.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// nearest returns the candidate that a misspelt word was probably meant to be, or
// the empty string.
func nearest(word string, candidates []string) string {
	if len(word) > 64 {
		return ""
	}
	best, least := "", 3
	for _, c := range candidates {
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d < least && 3*d <= max(len(word), len(c)) {
			best, least = c, d
		}
	}
	return best
}

// distance is how many letters are missing, too many, wrong or swapped with their
// neighbour (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// suggest is the end of a message about an unknown word: the one that was
// probably meant, or else all that exist.
func suggest(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; known: " + strings.Join(known, ", ")
}
