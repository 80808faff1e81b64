package weir_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestCasesAreWhereTheDocumentSays: docs/cases.md names files that exist, tests
// that they contain, and files that speak of the case or are named after it.
func TestCasesAreWhereTheDocumentSays(t *testing.T) {
	doc, err := os.ReadFile("docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`^\| ([BS]\d\d) \| .* \| (.*) \|$`)
	place := regexp.MustCompile("^`([^`]+)`(?:: (.*))?$")
	rows := 0
	for line := range strings.Lines(string(doc)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		rows++
		for _, cell := range strings.Split(m[2], "<br>") {
			p := place.FindStringSubmatch(cell)
			if p == nil {
				t.Errorf("%s: %q is no place", m[1], cell)
				continue
			}
			text, err := os.ReadFile(p[1])
			if err != nil {
				t.Errorf("%s: %v", m[1], err)
				continue
			}
			if p[2] == "" {
				continue
			}
			for _, test := range strings.Split(p[2], ", ") {
				if !strings.Contains(string(text), "\nfunc "+test+"(") {
					t.Errorf("%s: %s has no %s", m[1], p[1], test)
				}
			}
		}
	}
	if rows != 94 {
		t.Errorf("%d cases, want 94", rows)
	}
}
