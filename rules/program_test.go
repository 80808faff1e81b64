package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
)

// keyOf is the partition key of rule 0 for a request, with "missing:" before the
// fallback's.
func keyOf(p *rules.Program[*request], r *request) string {
	rule := &p.Ruleset.Rules[0]
	if rule.Key == nil {
		return "global"
	}
	key, ok := rule.Key(nil, r)
	if ok {
		return string(key)
	}
	if rule.Fallback == nil {
		return fmt.Sprintf("missing:%d", rule.NoKey)
	}
	key, ok = rule.Fallback(nil, r)
	return fmt.Sprintf("missing:%s:%v", key, ok)
}

func keyed(key, more string) string {
	return fmt.Sprintf(`{"rules": [{"name": "login", "match": {"paths": ["/u/{id}", "/files/{id...}"]}, "key": %s, "limit": "1/m"%s}]}`, key, more)
}

func TestKeys(t *testing.T) {
	req := &request{method: "GET", host: "a.com", path: "/u/a%40B", ip: "192.0.2.1", header: map[string]string{"X-User": " ZhangSan "}}
	for _, c := range []struct{ key, more, want string }{
		{`"global"`, "", "global"},
		{`"rule"`, "", "login"},
		{`"ip"`, "", "192.0.2.1"},
		{`"method"`, "", "GET"},
		{`"host"`, "", "a.com"},
		{`"path"`, "", "/u/a@B"},
		{`"path:id"`, "", "a@B"},
		{`"path:id"`, `, "ignore_case": true`, "a@b"},
		{`"header:X-User"`, "", " ZhangSan "},
		{`"lower(trim(header:X-User))"`, "", "zhangsan"},
		{`"trim(header:X-User)"`, "", "ZhangSan"},
		{`["ip", "method"]`, "", "\x00\x00\x00\x09192.0.2.1\x00\x00\x00\x03GET"},
		{`"header:X-None"`, "", "missing:192.0.2.1:true"},
		{`["ip", "header:X-None"]`, "", "missing:192.0.2.1:true"},
		{`"header:X-None"`, `, "on_missing_key": "skip"`, fmt.Sprint("missing:", weir.SkipRule)},
		{`"header:X-None"`, `, "on_missing_key": "shared"`, fmt.Sprint("missing:", weir.SharePartition)},
		{`"header:X-None"`, `, "on_missing_key": "refuse"`, fmt.Sprint("missing:", weir.RefuseRequest)},
	} {
		if got := keyOf(compile(t, keyed(c.key, c.more)), req); got != c.want {
			t.Errorf("key %s%s: got %q, want %q", c.key, c.more, got, c.want)
		}
	}
}

// Case B27: who has no address either is counted with the like.
func TestMissingKeyAndAddressIsStillCounted(t *testing.T) {
	p := compile(t, keyed(`"header:X-None"`, ""))
	if got := keyOf(p, &request{path: "/u/1"}); got != "missing:unknown:true" {
		t.Error(got)
	}
}

// Case B28.
func TestPartsOfACompositeKeyNeverMeet(t *testing.T) {
	p := compile(t, keyed(`["header:a", "header:b"]`, ""))
	seen := map[string]bool{}
	for _, v := range [][2]string{{"aa", "b"}, {"a", "ab"}, {"a:b", "c"}, {"a", "b:c"}, {"", "ab"}, {"ab", ""}} {
		key := keyOf(p, &request{header: map[string]string{"a": v[0], "b": v[1]}})
		if seen[key] {
			t.Errorf("%q meets another", v)
		}
		seen[key] = true
	}
}

// Case S29: six spellings of one account are one key.
func TestLowerAndTrimMakeOneKeyOfOneAccount(t *testing.T) {
	p := compile(t, keyed(`"lower(trim(header:user))"`, ""))
	for _, spelling := range []string{"zhangsan", "ZhangSan", "zhangsan ", "\u00a0ZHANGSAN", "\tzhangſan\n", "\u3000ZhAnGsAn\u2028"} {
		if got := keyOf(p, &request{header: map[string]string{"user": spelling}}); got != "zhangsan" {
			t.Errorf("%q is %q", spelling, got)
		}
	}
	for in, want := range map[string]string{"ΣΊΣΥΦΟΣ": "σίσυφοσ", "ÉCOLE": "école", "\u212Aelvin": "kelvin", "\xffA\xc3": "\xffa\xc3", "Ⱥx": "ⱥx", "张三": "张三", "  ": ""} {
		if got := keyOf(p, &request{header: map[string]string{"user": in}}); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// Case B29: one resource has one key, however its path is spelt.
func TestPathKeyIsOneForOneResource(t *testing.T) {
	p := compile(t, keyed(`"path"`, `, "ignore_case": true, "ignore_trailing_slash": true`))
	for _, path := range []string{"/u/a@b", "/u/a%40b", "/U/A%40B", "/u/a@b/"} {
		if got := keyOf(p, &request{path: path}); got != "/u/a@b" {
			t.Errorf("%s is %q", path, got)
		}
	}
	if a, b := keyOf(p, &request{path: "/files/a%2Fb"}), keyOf(p, &request{path: "/files/a/b"}); a == b {
		t.Errorf("%q is two resources", a)
	}
	if a, b := keyOf(p, &request{path: "/files/a%252Fb"}), keyOf(p, &request{path: "/files/a%2Fb"}); a == b {
		t.Errorf("%q is two resources", a)
	}
}

// Case B23: the version and the identity of counters say nothing that is local.
func TestVersionDependsOnlyOnWhatTheDocumentSays(t *testing.T) {
	a := compile(t, `{"rules": [{"name": "a", "key": "ip", "limit": "60/60s", "mode": "enforce", "message": {"en": "x", "de": "y"}}]}`)
	b := compile(t, ` {"rules":[{"limit":{"window":"1m","quota":60},"message":{"de":"y","en":"x"},"key":["ip"],"name":"a"}]}`)
	c := compile(t, `{"rules": [{"name": "a", "key": "ip", "limit": "61/60s"}]}`)
	if a.Ruleset.Version != b.Ruleset.Version || a.Ruleset.Version == c.Ruleset.Version || len(a.Ruleset.Version) != 12 {
		t.Error(a.Ruleset.Version, b.Ruleset.Version, c.Ruleset.Version)
	}
}

func TestRuleFields(t *testing.T) {
	p := compile(t, `{"rules": [{"name": "a", "key": "ip", "limits": ["5/m", {"quota": 9, "window": "1h", "algorithm": "sliding_log"}], "cost": 2,
		"unit": "tokens", "mode": "shadow", "rollout": "12.5%", "final": true, "store": "fast", "on_store_error": "closed", "message": {"en": "slow down"}, "status": 503, "body": "no", "content_type": "text/html"},
		{"name": "b", "limit": "unlimited", "final": true}]}`)
	r := p.Ruleset.Rules[0]
	if len(r.Limits) != 2 || r.Limits[1].Algorithm != weir.SlidingLog || r.Limits[1].Quota != 9 || r.Cost(nil) != 2 || r.Unit != "tokens" ||
		r.Mode != weir.Shadow || r.Rollout != 1250 || !r.Final || !r.Fast || r.OnOutage != weir.FailClosed {
		t.Errorf("%+v", r)
	}
	answer, ok := r.Tag.(*rules.Answer)
	if !ok || answer.Messages["en"] != "slow down" || answer.Status != 503 || answer.Body != "no" || answer.ContentType != "text/html" {
		t.Errorf("%+v", r.Tag)
	}
	if b := p.Ruleset.Rules[1]; len(b.Limits) != 0 || !b.Final || b.Tag != nil || b.Cost != nil || b.Fast {
		t.Errorf("%+v", b)
	}
}

func TestWhatADoorLacksIsAnErrorAtLoad(t *testing.T) {
	for doc, want := range map[string]string{
		`{"rules": [{"name": "a", "match": "POST a.com/x", "key": "global", "limit": "1/s"}]}`: "no method|no host|no path",
		`{"rules": [{"name": "a", "key": "path", "limit": "1/s"}]}`:                            "no path",
		`{"rules": [{"name": "a", "key": "header:X", "limit": "1/s"}]}`:                        "unknown key",
	} {
		d, problems := rules.LoadJSON("r.json", []byte(doc))
		if problems != nil {
			t.Fatal(problems.Error())
		}
		_, err := rules.Compile(d, rules.Binding[string]{})
		if !errors.As(err, &problems) {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "r.json:1:") {
				t.Errorf("%s: %v", doc, err)
			}
		}
		var problem rules.Problem
		if !errors.As(err, &problem) {
			t.Error("errors.As finds no Problem")
		}
	}
	// Without addresses, the default of on_missing_key cannot work; the others can.
	noIP := rules.Binding[string]{Key: func(name string) (weir.KeyFunc[string], error) {
		if name == "ip" {
			return nil, rules.UnknownKey(name, "user:NAME")
		}
		return weir.Constant[string]("x"), nil
	}}
	for more, ok := range map[string]bool{"": false, `, "on_missing_key": "skip"`: true, `, "on_missing_key": "ip"`: false} {
		d, _ := rules.LoadJSON("", []byte(`{"rules": [{"name": "a", "key": "user:id", "limit": "1/s"`+more+`}]}`))
		if _, err := rules.Compile(d, noIP); (err == nil) != ok {
			t.Errorf("%q: %v", more, err)
		}
	}
}

func TestExplain(t *testing.T) {
	p := compile(t, `{"rules": [
		{"name": "off", "key": "ip", "limit": "1/s", "mode": "off", "final": true},
		{"name": "login", "match": "POST /login", "key": ["ip", "header:X-User"], "limit": "5/m"},
		{"name": "api", "match": "a.com/api/**", "key": "header:X-User", "limits": ["10/s", "100/h"], "rollout": "25%", "final": true},
		{"name": "skip", "key": "header:X-None", "limit": "5/m", "on_missing_key": "skip"},
		{"name": "rest", "key": "global", "limit": "9/s"}]}`)
	lines := func(r *request) string {
		var b strings.Builder
		for _, e := range p.Explain(r) {
			fmt.Fprintf(&b, "%s %v: %s [%s%s]\n", e.Rule, e.Applies, e.Why, e.Key, e.Missing)
		}
		return b.String()
	}
	r := &request{method: "GET", host: "a.com", path: "/api/x", ip: "192.0.2.1", header: map[string]string{"X-User": "a,b"}}
	want := `off false: the mode is off []
login false: method "GET" is not POST; path "/api/x" does not fit /login []
api true: path fits /api/** ["a,b"]
skip false: rule "api" above matched and is final []
rest false: rule "api" above matched and is final []
`
	if got := lines(r); got != want {
		t.Errorf("got\n%s", got)
	}
	r = &request{method: "POST", host: "b.com", path: "/login", ip: "192.0.2.1", header: map[string]string{"X-User": "eve\n"}}
	want = `off false: the mode is off []
login true: path fits /login [ip=192.0.2.1, header:X-User="eve\n"]
api false: host "b.com" is not a.com; path "/login" does not fit /api/** []
skip false: matches every request; the request has no header:X-None [skip]
rest true: matches every request [global]
`
	if got := lines(r); got != want {
		t.Errorf("got\n%s", got)
	}
	e := p.Explain(r)[2]
	if fmt.Sprint(e.Limits) != "[10/s 100/h]" || e.Rollout != "25%" || e.Bounds[0] != "at most 20 in any 1s (burst 10 + quota 10 per 1s)" {
		t.Errorf("%+v", e)
	}
}

// Cases B07 and S55.
func TestBounds(t *testing.T) {
	for limit, want := range map[string]string{
		`"5/m"`:    "at most 10 in any 1m (burst 5 + quota 5 per 1m)",
		`"0/m"`:    "refuses everything that costs something",
		`"17/30s"`: "at most 34 in any 30s (burst 17 + quota 17 per 30s)",
		`{"quota": 5, "window": "1m", "burst": 1}`:                              "at most 6 in any 1m (burst 1 + quota 5 per 1m)",
		`{"quota": 5, "window": "1m", "algorithm": "fixed_window"}`:             "at most 10 in any 1m (quota 5 twice, around the edge of two windows)",
		`{"quota": 5, "window": "1m", "algorithm": "sliding_log"}`:              "at most 5 in any 1m (exact)",
		`{"quota": 5, "window": "1m", "algorithm": "sliding_window"}`:           "at most 9 in any 1m (quota 5 twice less one, if use leaps; even use gets 5)",
		`{"quota": 5, "window": "1m", "algorithm": "leaky_queue", "queue": 10}`: "at most 6 in any 1m (one by one at 5 per 1m; up to 10 wait)",
	} {
		doc, problems := rules.LoadJSON("", []byte(fmt.Sprintf(`{"rules": [{"name": "a", "key": "ip", "limit": %s}]}`, limit)))
		if problems != nil {
			t.Fatal(problems.Error())
		}
		if got := doc.Rules[0].Bounds(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", limit, got, want)
		}
	}
}

// many is a program of n rules with paths of their own, and some that apply to all.
func many(t testing.TB, n int) *rules.Program[*request] {
	var b strings.Builder
	b.WriteString(`{"rules": [{"name": "all", "key": "ip", "limit": "1000/s"}`)
	for i := range n {
		fmt.Fprintf(&b, `, {"name": "r%d", "match": "GET /api/v1/thing%d/{id}", "ignore_case": %v, "key": ["lower(trim(header:X-User))", "path:id"], "limit": "5/m"}`, i, i, i%2 == 0)
	}
	b.WriteString("]}")
	return compile(t, b.String())
}

func typical(n int) *request {
	return &request{method: "GET", host: "a.com", path: fmt.Sprintf("/api/v1/thing%d/a%%2Bb", n/2), ip: "192.0.2.1", header: map[string]string{"X-User": " ZhangSan "}}
}

func TestSelectMatchAndKeyDoNotAllocate(t *testing.T) {
	// Without Decode: unescaping a string allocates, as any binding's may.
	doc, _ := rules.LoadJSON("", []byte(`{"rules": [
		{"name": "a", "match": "POST *.a.com/Api/{id}/x/**", "ignore_case": true, "ignore_trailing_slash": true, "key": ["ip", "lower(trim(header:X-User))", "path:id", "path", "method"], "limit": "1/s"},
		{"name": "b", "match": "/api/", "key": "header:X-None", "limit": "1/s"}]}`))
	b := binding()
	b.Decode = nil
	p, err := rules.Compile(doc, b)
	if err != nil {
		t.Fatal(err)
	}
	r := &request{method: "POST", host: "x.a.com", path: "/API/1%402/x/y", ip: "192.0.2.1", header: map[string]string{"X-User": " ZhangSán "}}
	picked, key := make([]int, 0, 8), make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		picked = p.Ruleset.Select(picked[:0], r)
		for _, i := range picked {
			rule := &p.Ruleset.Rules[i]
			if !rule.Match(r) {
				continue
			}
			if _, ok := rule.Key(key[:0], r); !ok {
				rule.Fallback(key[:0], r)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(picked) != 1 {
		t.Errorf("picked %v", picked)
	}
}

func BenchmarkSelect(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, r := many(b, n), typical(n)
			var picked []int
			b.ReportAllocs()
			for b.Loop() {
				picked = p.Ruleset.Select(picked[:0], r)
			}
			if len(picked) != 2 {
				b.Fatal(picked)
			}
		})
	}
}
