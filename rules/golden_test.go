package rules_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/rules"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the code says now")

// separator stands between a document and what is to be said about it.
const separator = "\n---- problems ----\n"

// TestProblems reads one document per file and compares everything that is said
// about it: the problems of loading, or else those of compiling, or else warnings.
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, _ := bytes.Cut(data, []byte(separator))
			got := said(rules.LoadJSON("rules.json", input))
			if *update {
				out := append(append(bytes.Clone(input), separator...), got...)
				if err := os.WriteFile(file, out, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func said(doc *rules.Document, problems rules.Problems) string {
	if problems == nil {
		_, err := rules.Compile(doc, binding())
		if !errors.As(err, &problems) {
			problems = doc.Lint()
		}
	}
	if problems == nil {
		return ""
	}
	return problems.Error() + "\n"
}
