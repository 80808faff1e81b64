package weiryaml_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/weiryaml"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the code says now")

// separator stands between a document and what is to be said about it.
const separator = "\n---- problems ----\n"

// TestProblems reads one document per file and compares everything that is said
// about it.
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			input, want := golden(t, file)
			doc, problems := weiryaml.Load("rules.yaml", input)
			got := text(problems)
			if *update {
				if err := os.WriteFile(file, []byte(string(input)+separator+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if problems == nil {
				compiles(t, doc)
			}
		})
	}
}

// YAML contains JSON: both parsers give the same tree, and so the same problems at
// the same places. Where the JSON is not well-formed, YAML may be more generous.
func TestYAMLReadsJSONAlike(t *testing.T) {
	files, err := filepath.Glob("../rules/testdata/problems/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		input, _ := golden(t, file)
		if n, _ := rules.ParseJSON("", input); n == nil {
			continue
		}
		_, want := rules.LoadJSON("rules.json", input)
		if _, got := weiryaml.Load("rules.json", input); text(got) != text(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, text(got), text(want))
		}
	}
}

func golden(t *testing.T, file string) (input []byte, want string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	input, problems, _ := bytes.Cut(data, []byte(separator))
	return input, string(problems)
}

func text(problems []rules.Problem) string {
	if len(problems) == 0 {
		return ""
	}
	return rules.Problems(problems).Error() + "\n"
}

// compiles holds that a document without problems compiles for a door that has
// everything, and survives being written and read.
func compiles(t *testing.T, doc *rules.Document) {
	t.Helper()
	str := func(string) string { return "" }
	_, err := rules.Compile(doc, rules.Binding[string]{Method: str, Host: str, Path: str,
		Key: func(string) (weir.KeyFunc[string], error) { return weir.Constant[string]("k"), nil }})
	if err != nil {
		t.Fatalf("no problems, yet %v", err)
	}
	written := doc.AppendYAML(nil, "written by a test")
	again, problems := weiryaml.Load("again", written)
	if problems != nil {
		t.Fatalf("%s\n%s", text(problems), written)
	}
	if doc.Version() != again.Version() {
		t.Fatalf("reads back as another document: %v\n%s", rules.Diff(doc, again), written)
	}
}

// Strings that a reader of YAML could take for something else are quoted.
func TestWrittenStringsReadBack(t *testing.T) {
	for _, s := range []string{"yes", "off", "Null", "~", "1", "1e3", "0x1f", "1_0", "12:30:45", "2020-01-01", "5/m", "1s", "1e", "25%", ".5", "-", "- a", "a: b", "a:", ":a",
		"a #b", "#a", "&a", "*a", "!a", "@a", "`a", "%a", "?", "[a", "{a}", "a,b", " a", "a ", "a\nb", "\t", "\x00", "\u2028", "\ufeff", "\u0085", "é", "😀", `"`, `'`, `\`, "<<", "=", "---", "...", "//", "true", strings.Repeat("x ", 300)} {
		doc := &rules.Document{Rules: []rules.Rule{{Name: "a", Description: s, Key: rules.Key{"ip"}, Limit: &rules.Limit{Quota: 1, Window: 1e9}, Body: s + "x", Message: rules.Translations{"": s}}}}
		written := doc.AppendYAML(nil, s)
		again, problems := weiryaml.Load("", written)
		if problems != nil {
			t.Errorf("%q: %s\n%s", s, text(problems), written)
			continue
		}
		if got := again.Rules[0].Description; got != s || again.Rules[0].Message[""] != s {
			t.Errorf("%q reads back as %q\n%s", s, got, written)
		}
	}
}

func TestBounds(t *testing.T) {
	laughs := "rules:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 6 { // ten million
		a := fmt.Sprintf("*a%d", i)
		laughs += fmt.Sprintf("  a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(a+", ", 9)+a)
	}
	for name, c := range map[string]struct{ data, want string }{
		"billion laughs": {laughs, "values, counting what aliases stand for"},
		"deep flow":      {strings.Repeat("[", 1<<20), "max depth"},
		"deep":           {strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested deeper than 100"},
		"deep block":     {strings.Repeat("- ", 1<<19), "max depth"},
		"large":          {strings.Repeat("a", rules.MaxSize+1), "at most 16777216 are read"},
		"values":         {"[" + strings.Repeat(",", 5*rules.MaxNodes) + "]", "more than 1048576 values"},
		"utf-8":          {"rules: \xff", "byte 0xff is not UTF-8"},
		"utf-16":         {"\xff\xfer\x00", "byte 0xff is not UTF-8"},
		"nul":            {"rules: \x00", "control character"},
	} {
		n, problems := weiryaml.Parse("f", []byte(c.data))
		if n != nil || len(problems) != 1 || !strings.Contains(problems[0].Msg, c.want) || problems[0].Line < 1 {
			t.Errorf("%s: %.300v", name, problems)
		}
	}
	if _, problems := weiryaml.Load("f", []byte("\ufeffrules: []\r\n")); problems != nil {
		t.Error(problems)
	}
}

func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/problems/*.txt", "../rules/testdata/problems/*.txt"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			input, _, _ := bytes.Cut(data, []byte(separator))
			f.Add(input)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, problems := weiryaml.Load("f", data)
		if doc == nil && problems == nil {
			t.Fatal("neither a document nor a problem")
		}
		for _, p := range problems {
			if p.Line < 1 || p.Col < 1 || strings.ContainsAny(p.String(), "\n\r\x1b\u2028") {
				t.Fatalf("%q", p)
			}
		}
		if problems == nil {
			compiles(t, doc)
		}
	})
}

func ExampleLoad() {
	_, problems := weiryaml.Load("rules.yaml", []byte(`
rules:
  - name: login
    match: POST /api/login
    kye: ip
    limit: 5/m
`))
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// rules.yaml:5:5: rules[0].kye: unknown key; did you mean "key"?
}
