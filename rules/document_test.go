package rules_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
)

func TestSchemaFile(t *testing.T) {
	got := rules.DocumentSchema()
	if *update {
		if err := os.WriteFile("schema.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schema.json is stale; run go generate in this directory")
	}
	if bytes.Contains(got, []byte("$comment")) {
		t.Error("a schema written in the code is not JSON")
	}
}

func TestCanonicalFormReadsBack(t *testing.T) {
	input, err := os.ReadFile("testdata/problems/good.txt")
	if err != nil {
		t.Fatal(err)
	}
	input, _, _ = bytes.Cut(input, []byte(separator))
	doc, problems := rules.LoadJSON("", input)
	if problems != nil {
		t.Fatal(problems.Error())
	}
	first, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	again, problems := rules.LoadJSON("", first)
	if problems != nil {
		t.Fatal(problems.Error())
	}
	second, _ := json.Marshal(again)
	if !bytes.Equal(first, second) || doc.Version() != again.Version() {
		t.Errorf("%s\n%s", first, second)
	}
}

func TestProgramsCanBuildDocuments(t *testing.T) {
	doc := &rules.Document{Rules: []rules.Rule{
		{Name: "a", Key: rules.Key{"ip"}, Limit: &rules.Limit{Quota: 5, Window: time.Minute}},
		{Name: "a", Key: rules.Key{"ip"}, Limits: []rules.Limit{rules.LimitOf(weir.PerHour(-1))}},
	}}
	got := doc.Validate().Error()
	for _, want := range []string{`rules[1].name: "a" is already the name of a rule;`, "rules[1].limits[0].quota: quota -1 is not within"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	doc.Rules = doc.Rules[:1]
	want := "# by hand\n#\n# for now\n\nrules:\n  - name: a\n    key: ip\n    limit: 5/m\n"
	if got := string(doc.AppendYAML(nil, "by hand\n\nfor \x1bnow")); got != want {
		t.Errorf("got\n%s", got)
	}
}

// A configuration file has rules among its own keys, and they keep their place.
func TestRulesInsideAnotherDocument(t *testing.T) {
	var config struct {
		Listen string       `json:"listen" rules:"required" doc:"where to listen"`
		Rules  []rules.Rule `json:"rules"`
	}
	n, problems := rules.ParseJSON("weir.json", []byte("{\"listen\": \"x\",\n \"rules\": [{\"name\": \"a\", \"key\": \"ip\",\n  \"limit\": \"5/0s\"}]}"))
	if problems == nil {
		problems = rules.Decode(n, &config)
	}
	if problems != nil {
		t.Fatal(problems.Error())
	}
	doc := &rules.Document{Rules: config.Rules}
	if got := doc.Validate().Error(); !strings.HasPrefix(got, "weir.json:3:12: rules[0].limit.window: window 0s") {
		t.Error(got)
	}
}

func TestWindowsReadBack(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"m": time.Minute, "1m30s": 90 * time.Second, "2w": 14 * 24 * time.Hour, "7d": 7 * 24 * time.Hour,
		"100ms": 100 * time.Millisecond, "5us": 5 * time.Microsecond, "5µs": 5 * time.Microsecond, "0s": 0, "90m": 90 * time.Minute,
	} {
		got, err := rules.ParseWindow(in)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", in, got, err)
		}
		if back, err := rules.ParseWindow(rules.FormatWindow(got)); got > 0 && (err != nil || back != got) {
			t.Errorf("%s: %s reads as %v, %v", in, rules.FormatWindow(got), back, err)
		}
	}
	for _, bad := range []string{"", "1", "1y", "-1s", "1.5s", "1s2", "ss", "1mm", "1 m", "m30", "300y", "999999999w", "1M"} {
		if d, err := rules.ParseWindow(bad); err == nil {
			t.Errorf("%q is %v", bad, d)
		}
	}
}

func TestJSONBounds(t *testing.T) {
	for name, data := range map[string][]byte{
		"deep":   bytes.Repeat([]byte("["), 1<<20),
		"large":  make([]byte, rules.MaxSize+1),
		"values": append(bytes.Repeat([]byte("[],"), 10), bytes.Repeat([]byte("0,"), 10)...),
		"many":   []byte("[" + strings.Repeat("0,", rules.MaxNodes) + "0]"),
		"utf8":   []byte("\"\xff\""),
	} {
		if n, problems := rules.ParseJSON(name, data); n != nil || len(problems) != 1 || problems[0].Line != 1 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	files, _ := filepath.Glob("testdata/problems/*.txt")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		input, _, _ := bytes.Cut(data, []byte(separator))
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, problems := rules.ParseJSON("f", data)
		if (n == nil) != (problems != nil) {
			t.Fatal(n, problems)
		}
		if valid := json.Valid(bytes.TrimPrefix(data, []byte("\ufeff"))); n != nil && !valid {
			t.Fatalf("encoding/json refuses what was read: %q", data)
		}
		checkDocument(t, data)
	})
}

// checkDocument holds that problems are one line each, and that a document without
// any compiles and reads back from its canonical form.
func checkDocument(t *testing.T, data []byte) {
	doc, problems := rules.LoadJSON("f", data)
	for _, p := range problems {
		if strings.ContainsAny(p.String(), "\n\r\x1b\u2028") {
			t.Fatalf("forged line %q", p)
		}
	}
	if doc == nil || problems != nil {
		return
	}
	anything := rules.Binding[*request]{Method: binding().Method, Host: binding().Host, Path: binding().Path,
		Key: func(string) (weir.KeyFunc[*request], error) { return weir.Constant[*request]("k"), nil }}
	p, err := rules.Compile(doc, anything)
	if err != nil {
		t.Fatalf("no problems, yet %v\n%s", err, data)
	}
	for i := range doc.Rules {
		doc.Rules[i].Bounds()
		if _, err := weir.NewPolicy(doc.Rules[i].Name, weir.PerSecond(1)); err != nil {
			t.Fatal(err)
		}
	}
	doc.Lint()
	r := &request{method: "GET", host: "a.com", path: "/a/b%20c/", ip: "192.0.2.1"}
	p.Explain(r)
	p.Ruleset.Select(nil, r)
	canonical, _ := doc.MarshalJSON()
	again, problems := rules.LoadJSON("again", canonical)
	if problems != nil {
		t.Fatalf("%v\n%s", problems.Error(), canonical)
	}
	if changes := rules.Diff(doc, again); len(changes) > 0 || doc.Version() != again.Version() {
		t.Fatalf("%v\n%s", changes, canonical)
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"/a", "GET /a/{b}", "*.a.com/x/**", "/{$}", "/a%zz", "POST a/{x...}", "/%2F/%"} {
		f.Add(s, "/a/b")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		quoted, _ := json.Marshal(pattern)
		for _, more := range []string{"", `, "ignore_case": true, "ignore_trailing_slash": true`} {
			doc, problems := rules.LoadJSON("", []byte(one(string(quoted), more)))
			if problems != nil {
				continue
			}
			p, err := rules.Compile(doc, binding())
			if err != nil {
				t.Fatal(err)
			}
			matches(p, &request{method: "GET", host: "a", path: path}) // panics if the index differs
		}
	})
}

func FuzzLimit(f *testing.F) {
	for _, s := range []string{"5/m", "100/10s", "unlimited", "0/1w", "9223372036854775807/292w", "1/1m30s", "1/µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := rules.ParseLimit(s)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q", err)
			}
			return
		}
		if back, err := rules.ParseLimit(l.String()); !l.Unlimited && l.Window > 0 && (err != nil || back != l) {
			t.Fatalf("%q is %+v, written %q, read %+v %v", s, l, l.String(), back, err)
		}
	})
}

func ExampleCompile() {
	doc, problems := rules.LoadJSON("rules.json", []byte(`{"rules": [
		{"name": "login", "match": "POST /login", "key": "ip", "limit": "5/m", "final": true},
		{"name": "rest", "key": "ip", "limit": "100/s"}]}`))
	if problems.Err() != nil {
		fmt.Println(problems.Err())
		return
	}
	type request struct{ method, path, ip string }
	program, err := rules.Compile(doc, rules.Binding[request]{
		Method: func(r request) string { return r.method },
		Path:   func(r request) string { return r.path },
		Key: func(name string) (weir.KeyFunc[request], error) {
			if name != "ip" {
				return nil, rules.UnknownKey(name, "ip")
			}
			return func(dst []byte, r request) ([]byte, bool) { return append(dst, r.ip...), true }, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range program.Explain(request{"POST", "/login", "192.0.2.7"}) {
		fmt.Println(e.Rule, e.Applies, e.Key, e.Bounds)
	}
	// Output:
	// login true 192.0.2.7 [at most 10 in any 1m (burst 5 + quota 5 per 1m)]
	// rest false  [at most 200 in any 1s (burst 100 + quota 100 per 1s)]
}
