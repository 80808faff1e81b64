package weir_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the import path of the root module.
const module = "github.com/weirhq/weir"

// rooms says which rooms of the house a room may enter, by their paths below
// the module; "" is the root. Imports point down this list, and what a room may
// not know is why it can be read by itself.
var rooms = map[string]struct {
	may []string
	why string
}{
	"algo":                 {nil, "the arithmetic is pure: it knows nothing but numbers"},
	"smooth":               {nil, "Guava's pacing is usable without the rest of Weir"},
	"":                     {[]string{"algo", "smooth"}, "the core knows the arithmetic, and no door, format or network"},
	"internal/field":       {nil, "it reads fields, and knows neither requests nor logs"},
	"internal/redistest":   {nil, "it only starts redis processes"},
	"internal/sf":          {nil, "it only parses what tests are told"},
	"internal/token":       {nil, "it only knows a byte class"},
	"headers":              {nil, "headers appends bytes and decides nothing"},
	"clientip":             {[]string{"internal/token"}, "clientip parses addresses and decides nothing"},
	"urlpath":              {nil, "urlpath spells paths and decides nothing"},
	"accesslog":            {[]string{"internal/token"}, "accesslog reads lines and judges nothing"},
	"source":               {nil, "source watches and delivers documents and does not interpret them"},
	"rules":                {[]string{"", "algo"}, "rules parse and compile; they do no I/O and touch no store"},
	"weirtest":             {[]string{"", "algo"}, "store authors test against the core alone"},
	"weirredis":            {[]string{"", "algo"}, "weirredis keeps state and knows neither requests nor client libraries"},
	"weirredis/clienttest": {[]string{"", "weirredis", "weirtest", "internal/redistest"}, "authors of clients test against the contract alone"},
	"weirgoredis":          {[]string{"weirredis"}, "an adapter runs calls and knows no limit"},
	"weirrueidis":          {[]string{"weirredis"}, "an adapter runs calls and knows no limit"},
	"tier":                 {[]string{"", "algo"}, "a tier stands before any store and knows nothing of Redis"},
	"weirhttp":             {[]string{"", "rules", "headers", "clientip", "urlpath", "internal/token", "internal/field"}, "the middleware is a door: it counts nothing itself"},
	"replay":               {[]string{"", "rules", "accesslog", "clientip", "urlpath", "internal/field"}, "replay drives the same engine by yesterday's log"},
	"weiryaml":             {[]string{"rules", ""}, "weiryaml turns YAML into a rule document and does nothing else"},
	"server/config":        {[]string{"", "rules", "weiryaml", "clientip"}, "config is what cannot reload"},
	"server/metrics": {[]string{"", "rules", "weirhttp", "weirredis", "tier"},
		"metrics translate what the Observer hears; never a raw key"},
	"server/gateway": {[]string{"", "rules", "weirhttp", "headers", "clientip", "urlpath", "server/config", "server/metrics"},
		"doors never import one another, count nothing and read no rule documents"},
	"server/admin":             {[]string{"", "rules", "server/config", "server/metrics"}, "the admin door shows; it has no private path into stores"},
	"server/daemon":            {nil, "the daemon introduces the parts to each other, so it may know all of them"},
	"server/demo":              {nil, "the demo is a site like any upstream"},
	"server/cli":               {nil, "the command line may use everything"},
	"server/internal/realtest": {nil, "it only starts other programs"},
	"server/cmd/weir": {[]string{"server/cli", "server/daemon"},
		"main only starts the command line"},
	"bench":           {nil, "bench measures and is imported by nobody"},
	"bench/cmd/table": {nil, "bench measures and is imported by nobody"},
	"chaos":           {nil, "chaos has tests alone, of all parts together"},
	"bench/redis":     {nil, "bench measures and is imported by nobody"},
	"bench/cmd/redis": {nil, "bench measures and is imported by nobody"},
}

// anyRoom are the rooms whose nil list means everything instead of nothing.
var anyRoom = []string{"server/daemon", "server/cli", "bench", "bench/cmd/table", "bench/redis", "bench/cmd/redis", "chaos"}

// outside is what algo may import of the standard library.
var outside = []string{"math", "math/bits", "slices"}

type pkg struct {
	ImportPath, Dir, Doc string
	Imports, GoFiles     []string
}

// packages lists the packages of every module of the work space.
func packages(t *testing.T) []pkg {
	t.Helper()
	mods, err := filepath.Glob("*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for _, mod := range append(mods, "go.mod") {
		cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,GoFiles", "./...")
		cmd.Dir = filepath.Dir(mod)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", cmd.Dir, err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
			var p pkg
			if err := dec.Decode(&p); err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

func room(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func TestWhoMayImportWhom(t *testing.T) {
	for _, p := range packages(t) {
		name, _ := room(p.ImportPath)
		rule, known := rooms[name]
		if !known {
			t.Errorf("%s is not in the table of rooms: say what it may import, and why", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if other, ours := room(imp); ours {
				if !slices.Contains(rule.may, other) && !slices.Contains(anyRoom, name) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imp, rule.why)
				}
			}
			if name == "algo" && !slices.Contains(outside, imp) {
				t.Errorf("algo imports %s: %s", imp, rule.why)
			}
			if imp == "net/http" && slices.Contains([]string{"", "headers", "clientip", "urlpath", "rules", "source", "accesslog", "replay", "weirtest"}, name) {
				t.Errorf("%s imports net/http, which doubles the binary of who only wants a limiter", p.ImportPath)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		docs := 0
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil && !isDirective(file.Doc) {
				docs++
			}
		}
		if docs > 1 {
			t.Errorf("%s has %d package comments; one is enough", p.ImportPath, docs)
		}
	}
}

func isDirective(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) == "" }

// TestGoModsKeepTheirShape: importing the root costs a user no module at all,
// and every other module can be installed as it stands.
func TestGoModsKeepTheirShape(t *testing.T) {
	mods, err := filepath.Glob("*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, mod := range append(mods, "go.mod") {
		data, err := os.ReadFile(mod)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		want := module
		if mod != "go.mod" {
			want = path.Join(module, filepath.ToSlash(filepath.Dir(mod)))
		}
		if !strings.HasPrefix(text, "module "+want+"\n") {
			t.Errorf("%s does not declare %s", mod, want)
		}
		if mod == "go.mod" && strings.Contains(text, "require") {
			t.Error("the root go.mod requires something; it is the standard library only")
		}
		if strings.Contains(text, "replace ") || strings.Contains(text, "v0.0.0-0001") {
			t.Errorf("%s has a replace or an invented version: nobody could install it", mod)
		}
	}
	work, err := os.ReadFile("go.work")
	if err != nil {
		t.Fatal(err)
	}
	for _, mod := range mods {
		if !strings.Contains(string(work), "./"+filepath.ToSlash(filepath.Dir(mod))+"\n") {
			t.Errorf("go.work does not use %s", mod)
		}
	}
}

// TestNoFileKnowsAPlaceOutside: the tree is all that its files may speak of. No
// absolute path of somebody's machine, and no way up and out.
func TestNoFileKnowsAPlaceOutside(t *testing.T) {
	out, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	home := regexp.MustCompile(`(^|[\s"'(=` + "`" + `])/(home|root|work|Users|workspace)/[a-z.]`)
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if name == "testdata/access.log" || strings.Contains(name, "/testdata/fuzz/") {
			continue // what strangers asked for
		}
		data, err := os.ReadFile(name)
		if err != nil {
			continue // deleted in the working tree
		}
		if where := home.Find(data); where != nil {
			t.Errorf("%s speaks of %q", name, where)
		}
		depth := strings.Count(name, "/")
		if out := strings.Repeat("../", depth+1) + "shared"; bytes.Contains(data, []byte(out)) {
			t.Errorf("%s leads out of the repository", name)
		}
	}
}

// TestLinksLeadSomewhere: every relative link of a document is a file here.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	adrs, err := filepath.Glob("docs/adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tops, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range slices.Concat(tops, docs, adrs) {
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(data, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), string(m[1]))); err != nil {
				t.Errorf("%s links to %s: %v", doc, m[1], err)
			}
		}
	}
}

// TestBothReadmesAreInStep: the two languages have the same headings in number
// and the same commands.
func TestBothReadmesAreInStep(t *testing.T) {
	shape := func(name string) (headings int, code []string) {
		data, err := fs.ReadFile(os.DirFS("."), name)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		for line := range strings.Lines(string(data)) {
			switch {
			case strings.HasPrefix(line, "```"):
				fenced = !fenced
			case fenced:
				if i := strings.Index(line, "#"); i >= 0 {
					line = line[:i] // a comment may be translated
				}
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					code = append(code, line)
				}
			case strings.HasPrefix(line, "#"):
				headings++
			}
		}
		return headings, code
	}
	h1, c1 := shape("README.md")
	h2, c2 := shape("README.zh-CN.md")
	if h1 != h2 {
		t.Errorf("README.md has %d headings, README.zh-CN.md %d", h1, h2)
	}
	if !slices.Equal(c1, c2) {
		t.Errorf("the code of the two READMEs differs:\n%s\n---\n%s", strings.Join(c1, "\n"), strings.Join(c2, "\n"))
	}
}
