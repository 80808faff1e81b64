package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/config"
)

func load(t *testing.T, text string) *config.Config {
	t.Helper()
	c, problems := config.Load("weir.yaml", []byte(text))
	if c == nil {
		t.Fatalf("problems in\n%s\n%v", text, problems)
	}
	return c
}

const oneRule = "rules: [{name: a, key: ip, limit: 5/m}]\n"

func TestEverySectionIsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, string(text))
	g := c.Gateway
	if g.Listen != "127.0.0.1:8080" || len(g.Routes) != 2 || g.Routes[0].Match.Pattern != "GET /blog/**" {
		t.Errorf("gateway is %+v", g)
	}
	if u := g.Routes[0].Upstreams; len(u) != 2 || u[1].String() != "https://[::1]:9443" {
		t.Errorf("upstreams are %v", u)
	}
	want := config.Timeouts{Header: 5 * time.Second, Body: time.Minute, Send: time.Minute, Idle: 2 * time.Minute,
		Connect: 5 * time.Second, Response: 2 * time.Minute, Shutdown: 30 * time.Second}
	if g.Timeouts != want {
		t.Errorf("timeouts are %+v, want %+v", g.Timeouts, want)
	}
	if c.Admin.Listen != "[::1]:6070" || c.Store.Memory.MaxKeys != 1000 || c.Headers != (config.Headers{X: true}) {
		t.Errorf("admin %v, store %v, headers %v", c.Admin, c.Store, c.Headers)
	}
	if ip := c.ClientIP; len(ip.TrustedProxies) != 2 || ip.TrustedProxies[1].String() != "192.0.2.1/32" || ip.IPv6Prefix != 56 {
		t.Errorf("client_ip is %+v", ip)
	}
	r, err := c.ClientIP.Resolver()
	if err != nil || r.Header() != "Cf-Connecting-Ip" {
		t.Errorf("resolver of %v, %v", r, err)
	}
}

func TestWhatIsLeftOutHasDefaults(t *testing.T) {
	c := load(t, oneRule)
	if c.Gateway != nil || c.Admin != nil {
		t.Error("a door that is not named opened")
	}
	if c.Headers != (config.Headers{IETF: true}) || c.Store.Memory.MaxKeys != 0 {
		t.Errorf("headers %v, store %v", c.Headers, c.Store)
	}
	if c = load(t, "headers: []\nstore: memory\n"+oneRule); c.Headers != (config.Headers{}) {
		t.Errorf("headers: [] became %v", c.Headers)
	}
}

// TestEveryProblemIsSaidAtOnce holds case B37 (a misspelt key is not ignored) and
// S58 for the whole file, case B38 for its numbers, and that sections of later
// versions say so.
func TestEveryProblemIsSaidAtOnce(t *testing.T) {
	golden(t, "testdata/wrong.yaml", "testdata/wrong.txt")
}

func golden(t *testing.T, input, output string) {
	text, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	c, problems := config.Load(filepath.Base(input), text)
	if c != nil {
		t.Error("a configuration came of it all the same")
	}
	got := problems.Error() + "\n"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(output, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(output)
	if err != nil || got != string(want) {
		t.Errorf("got\n%swant\n%s(%v); UPDATE=1 rewrites it", got, want, err)
	}
}

func TestAFileWithoutRulesIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"admin: {listen: 127.0.0.1:1}": "rules: is missing",
		oneRule + "rules_file: x.yaml": "stands beside rules",
		"rules_file: \"\"":             "is empty",
		"rules: []\nrules: []":         "rules",
		"rules: {name: a}":             "rules",
		"":                             "",
		"[1, 2]":                       "",
		"rules: [{name: a, key: ip}]":  "rules[0]",
		"gateway: [1]\n" + oneRule:     "gateway",
		"gateway: {listen: 1}\nstore: {}\n" + oneRule: "store",
	} {
		c, problems := config.Load("f", []byte(text))
		if c != nil || problems.Err() == nil || !strings.Contains(problems.Error(), want) {
			t.Errorf("%q: config %v, problems %v; want %q", text, c, problems, want)
		}
	}
}

func TestAdminStaysOnThisMachine(t *testing.T) {
	for listen, ok := range map[string]bool{
		"127.0.0.1:6070": true, "127.9.9.9:0": true, "[::1]:6070": true, "localhost:6070": true,
		":6070": false, "0.0.0.0:6070": false, "[::]:6070": false, "192.0.2.1:6070": false, "example.com:6070": false,
		"[::ffff:127.0.0.1]:6070": true,
	} {
		c, problems := config.Load("f", []byte("admin: {listen: \""+listen+"\"}\n"+oneRule))
		if (c != nil) != ok {
			t.Errorf("listen %s: %v", listen, problems)
		}
	}
}

func TestRulesFileIsBesideTheConfiguration(t *testing.T) {
	c, problems := config.Load("/etc/weir/weir.yaml", []byte("rules_file: conf.d"))
	if c == nil || c.RulesFile != "/etc/weir/conf.d" || c.Rules != nil {
		t.Errorf("got %+v, %v", c, problems)
	}
	if c, _ = config.Load("weir.yaml", []byte("rules_file: /rules.yaml")); c == nil || c.RulesFile != "/rules.yaml" {
		t.Errorf("got %+v", c)
	}
}

func TestInstalledNamesWhatChanged(t *testing.T) {
	a := load(t, "gateway: {listen: \":1\", routes: [{match: /**, upstreams: [http://h]}]}\nheaders: [x]\n"+oneRule)
	b := load(t, "# moved\nheaders:   [x]\ngateway:\n  listen: ':2'\n  routes: [{match: /**, upstreams: [http://h]}]\nadmin: {listen: 127.0.0.1:1}\nrules: []\n")
	if got := strings.Join(config.Installed(a, b), " "); got != "admin gateway" {
		t.Errorf("changed: %s, want admin gateway", got)
	}
	if got := config.Installed(a, a); len(got) != 0 {
		t.Errorf("nothing changed, and yet %v", got)
	}
}

func TestRulesOfADirectoryAreOneSet(t *testing.T) {
	one := config.Part{Name: "d/1.yaml", Data: []byte(oneRule)}
	set, problems := config.LoadRules(one, config.Part{Name: "d/2.yaml", Data: []byte("rules: [{name: b, key: ip, limit: 5/m}]")})
	if set == nil || len(set.Rules) != 2 || set.Rules[1].Name != "b" {
		t.Fatalf("got %v, %v", set, problems)
	}
	set, problems = config.LoadRules(one, config.Part{Name: "d/2.yaml", Data: []byte("\nrules: [{name: a, key: ip, limit: 5/m}]")})
	if set != nil || !strings.HasPrefix(problems.Error(), "d/2.yaml:2:16: ") {
		t.Errorf("the same name twice: %v, %v", set, problems)
	}
}

func TestDoubtsAreWarnings(t *testing.T) {
	c := load(t, "client_ip: {header: X-Real-IP}\nrules: [{name: a, key: 'header:User-Agent', limit: 5/m}]")
	warnings := c.Warn()
	if len(warnings) < 2 || warnings.Err() != nil {
		t.Errorf("warnings are %v; a header that nobody is trusted to write, and a key that clients choose (S53)", warnings)
	}
}

func FuzzLoad(f *testing.F) {
	for _, name := range []string{"testdata/full.yaml", "testdata/wrong.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, problems := config.Load("f", text)
		if (c == nil) != (problems.Err() != nil) {
			t.Fatalf("config %v with problems %v", c, problems)
		}
		if c == nil {
			return
		}
		if len(config.Installed(c, c)) != 0 {
			t.Error("a configuration differs from itself")
		}
		if _, err := c.ClientIP.Resolver(); err != nil {
			t.Error(err)
		}
		var _ rules.Problems = c.Warn()
	})
}

func ExampleLoad() {
	_, problems := config.Load("weir.yaml", []byte("admin: {listen: \":6070\"}\nruls: []\n"))
	os.Stdout.WriteString(problems.Error())
	// Output:
	// weir.yaml:1:1: rules: is missing; write the rules here, or where they are as rules_file
	// weir.yaml:1:17: admin.listen: ":6070" can be reached from outside, and the admin door asks for no credential in this version; listen on 127.0.0.1 or [::1]
	// weir.yaml:2:1: ruls: unknown key; did you mean "rules"?
}
