package rules_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/rules"
)

// compile makes a program of rules given as JSON and fails the test if it cannot.
func compile(t testing.TB, document string) *rules.Program[*request] {
	t.Helper()
	doc, problems := rules.LoadJSON("rules.json", []byte(document))
	if problems != nil {
		t.Fatal(problems.Error())
	}
	p, err := rules.Compile(doc, binding())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// one is a document of a rule with the given match and options.
func one(match, more string) string {
	return fmt.Sprintf(`{"rules": [{"name": "r", "match": %s, "key": "ip", "limit": "1/s"%s}]}`, match, more)
}

func matches(p *rules.Program[*request], r *request) bool {
	rule := &p.Ruleset.Rules[0]
	selected := len(p.Ruleset.Select(nil, r)) == 1
	matched := rule.Match == nil || rule.Match(r)
	if matched && !selected {
		panic("the index lost a rule that matches " + r.path)
	}
	return matched
}

func TestMatch(t *testing.T) {
	const fold, slash = `, "ignore_case": true`, `, "ignore_trailing_slash": true`
	for _, c := range []struct {
		match, more string
		yes, no     string // METHOD HOST PATH, separated by |
	}{
		{`"/a/b"`, "", "GET h /a/b|POST h /a/%62", "GET h /a/b/|GET h /a|GET h /A/b|GET h /a/b/c"},
		{`"POST /a"`, "", "POST h /a", "GET h /a|post h /a"},
		{`"GET /a"`, "", "GET h /a|HEAD h /a", "POST h /a"},
		{`"/a/"`, "", "GET h /a/|GET h /a/b/c", "GET h /a|GET h /ab"},
		{`"/a/{$}"`, "", "GET h /a/", "GET h /a|GET h /a/b"},
		{`"/"`, "", "GET h /|GET h /x/y", "OPTIONS h *"},
		{`"/**"`, "", "GET h /|GET h /x/y|OPTIONS h *", ""},
		{`"/a/**"`, "", "GET h /a|GET h /a/|GET h /a/b/c", "GET h /ab|GET h /"},
		{`"/a/{id}"`, "", "GET h /a/7|GET h /a/%2F", "GET h /a/|GET h /a|GET h /a/7/|GET h /a/7/8"},
		{`"/a/{id}/b"`, "", "GET h /a/7/b", "GET h /a/7/c|GET h /a//b"},
		{`"/a/{rest...}"`, "", "GET h /a/|GET h /a/b/c", "GET h /a"},
		{`"/us@er"`, "", "GET h /us@er|GET h /us%40er", "GET h /us%2540er"},
		{`"/a%2Fb"`, "", "GET h /a%2Fb|GET h /a%2fb", "GET h /a/b"},
		{`"/Été"`, fold, "GET h /%c3%89t%C3%A9|GET h /été", "GET h /ete"},
		{`"/Login"`, fold, "GET h /login|GET h /LOGIN|GET h /%4cogin", "GET h /login/"},
		{`"/login"`, slash, "GET h /login|GET h /login/", "GET h /login/x|GET h /LOGIN"},
		{`"/a/{$}"`, slash, "GET h /a|GET h /a/", "GET h /a/b"},
		{`"/a/"`, slash, "GET h /a|GET h /a/|GET h /a/b", "GET h /ab"},
		{`"/a/{id}"`, slash, "GET h /a/7|GET h /a/7/", "GET h /a/|GET h /a/7/8"},
		{`"a.com/x"`, "", "GET a.com /x", "GET b.com /x|GET x.a.com /x"},
		{`"*.a.com/x"`, "", "GET b.a.com /x|GET c.b.a.com /x", "GET a.com /x|GET ba.com /x|GET .a.com /x"},
		{`{"hosts": ["A.com", "*.b.com", "[2001:db8::1]"]}`, "", "GET a.com /|GET x.b.com /y|GET 2001:db8::1 /", "GET b.com /"},
		{`{"methods": ["PUT", "POST"], "paths": ["/a", "/b/**"]}`, "", "PUT h /a|POST h /b/c", "GET h /a|PUT h /c"},
	} {
		p := compile(t, one(c.match, c.more))
		for i, list := range []string{c.yes, c.no} {
			for line := range strings.SplitSeq(list, "|") {
				f := strings.Fields(line)
				if len(f) < 3 {
					continue
				}
				if got := matches(p, &request{method: f[0], host: f[1], path: f[2]}); got != (i == 0) {
					t.Errorf("%s%s: %s: %v", c.match, c.more, line, got)
				}
			}
		}
	}
}

// segments aims at what patterns tell apart: few words, empty ends, escapes.
var segments = []string{"a", "b", "A", "%61", "{x}", "{y}", "c%2Fd", "c"}

func randomPattern(r *rand.Rand, server bool) string {
	var b strings.Builder
	for i := range r.IntN(4) {
		s := segments[r.IntN(len(segments))]
		if strings.HasPrefix(s, "{") {
			s = fmt.Sprintf("{w%d}", i)
		}
		b.WriteString("/" + s)
	}
	switch r.IntN(5) {
	case 0:
		b.WriteString("/")
	case 1:
		b.WriteString("/{$}")
	case 2:
		b.WriteString("/{rest...}")
	case 3:
		if !server {
			b.WriteString("/**")
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

func randomPath(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(5) {
		if s := segments[r.IntN(len(segments))]; s[0] != '{' {
			b.WriteString("/" + s)
		}
	}
	if b.Len() == 0 || r.IntN(3) == 0 {
		b.WriteString("/")
	}
	return b.String()
}

func TestPatternsMatchAsServeMuxDoes(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	hits := 0
	for range 20000 {
		pattern, path := randomPattern(r, true), randomPath(r)
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
		req := httptest.NewRequest("GET", "http://h"+path, nil)
		_, found := mux.Handler(req)
		// For /a the mux offers a redirect to /a/; only serving tells that from a match.
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, req)
		want := found != "" && rec.Code == 200
		got := matches(compile(t, one(`"`+pattern+`"`, "")), &request{method: "GET", host: "h", path: path})
		if got != want {
			t.Fatalf("seed %d: pattern %s, path %s: got %v, ServeMux %v", seed, pattern, path, got, want)
		}
		if got {
			hits++
		}
	}
	if hits < 500 {
		t.Errorf("only %d matches: the test no longer aims", hits)
	}
}

func TestSelectFindsWhatTryingAllFinds(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	hosts := []string{"", "", "a.com", "*.a.com", "*.b.a.com", "b.a.com"}
	asked := []string{"a.com", "b.a.com", "c.b.a.com", "x.org", ""}
	for range 300 {
		var doc strings.Builder
		doc.WriteString(`{"rules": [`)
		n := 1 + r.IntN(30)
		for i := range n {
			if i > 0 {
				doc.WriteString(",")
			}
			match := fmt.Sprintf(`"match": "%s%s", `, hosts[r.IntN(len(hosts))], randomPattern(r, false))
			switch r.IntN(12) {
			case 0:
				match = ""
			case 1:
				match = `"match": {"hosts": ["a.com"]}, `
			case 2:
				match = fmt.Sprintf(`"match": {"paths": ["%s", "%s"], "hosts": ["a.com", "*.a.com"]}, `, randomPattern(r, false), randomPattern(r, false))
			}
			fmt.Fprintf(&doc, `{"name": "r%d", %s"ignore_case": %v, "ignore_trailing_slash": %v, "key": "ip", "limit": "1/s"}`,
				i, match, r.IntN(3) == 0, r.IntN(3) == 0)
		}
		doc.WriteString("]}")
		p := compile(t, doc.String())
		for range 200 {
			req := &request{method: "GET", host: asked[r.IntN(len(asked))], path: randomPath(r)}
			selected := p.Ruleset.Select(nil, req)
			if !slices.IsSorted(selected) || len(slices.Compact(slices.Clone(selected))) != len(selected) {
				t.Fatalf("seed %d: %v is not ascending", seed, selected)
			}
			var all, some []int
			for i := range p.Ruleset.Rules {
				if m := p.Ruleset.Rules[i].Match; m == nil || m(req) {
					all = append(all, i)
				}
			}
			for _, i := range selected {
				if m := p.Ruleset.Rules[i].Match; m == nil || m(req) {
					some = append(some, i)
				}
			}
			if !slices.Equal(all, some) {
				t.Fatalf("seed %d: %+v: all %v, index %v\n%s", seed, req, all, some, doc.String())
			}
		}
	}
}
