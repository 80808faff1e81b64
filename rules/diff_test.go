package rules_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/rules"
)

func diff(t *testing.T, before, after string) string {
	t.Helper()
	var docs [2]*rules.Document
	for i, text := range []string{before, after} {
		doc, problems := rules.LoadJSON("", []byte(`{"rules": [`+text+`]}`))
		if problems != nil {
			t.Fatal(problems.Error())
		}
		docs[i] = doc
	}
	var lines []string
	for _, c := range rules.Diff(docs[0], docs[1]) {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}

// Case B42: what a reload changes, and where it forgets what was used.
func TestDiff(t *testing.T) {
	rule := func(name, rest string) string { return `{"name": "` + name + `", "key": "ip", ` + rest + `}` }
	a, b, c := rule("a", `"limit": "5/m"`), rule("b", `"limit": "6/m"`), rule("c", `"limit": "7/m"`)
	with := func(limit string) string { return rule("a", `"limit": `+limit) }
	for _, x := range []struct{ name, before, after, want string }{
		{"nothing", a + "," + b, a + "," + b, ""},
		{"spelling", a, with(`{"quota": 5, "window": "60s", "algorithm": "token_bucket"}`), ""},
		{"quota keeps use", a, with(`"10/m"`), `changed rule "a": limit.quota from 5 to 10`},
		{"bucket window keeps use", a, with(`"5/h"`), `changed rule "a": limit.window from 1m to 1h`},
		{"burst", a, with(`{"quota": 5, "window": "1m", "burst": 9}`), `changed rule "a": limit.burst 9 added`},
		{"algorithm", a, with(`{"quota": 5, "window": "1m", "algorithm": "sliding_log"}`),
			`changed rule "a": limit.algorithm from token_bucket to sliding_log; counters start anew: another algorithm counts in another way`},
		{"log window keeps use", with(`{"quota": 5, "window": "1m", "algorithm": "sliding_log"}`), with(`{"quota": 5, "window": "1h", "algorithm": "sliding_log"}`),
			`changed rule "a": limit.window from 1m to 1h`},
		{"fixed window", with(`{"quota": 5, "window": "1m", "algorithm": "fixed_window"}`), with(`{"quota": 5, "window": "1h", "algorithm": "fixed_window"}`),
			`changed rule "a": limit.window from 1m to 1h; counters start anew: windows of another length share no edges (fixed_window)`},
		{"key", a, `{"name": "a", "key": ["ip", "method"], "limit": "5/m"}`, `changed rule "a": key from ip to ["ip","method"]; counters start anew: other keys, other counters`},
		{"mode", a, rule("a", `"limit": "5/m", "mode": "shadow"`), `changed rule "a": mode from enforce to shadow`},
		{"unlimited", a, with(`"unlimited"`), `changed rule "a": limit from 5/m to unlimited`},
		{"second limit", a, rule("a", `"limits": ["5/m", "9/h"]`), `changed rule "a": limits[1] 9/h added`},
		{"added and removed", a + "," + b, a + "," + c, "added rule \"c\"\nremoved rule \"b\""},
		{"renamed", a, rule("z", `"limit": "5/m"`), `renamed rule "a" from a to z; counters start anew: counters are kept by the rule's name`},
		{"moved", a + "," + b + "," + c, c + "," + a + "," + b, `moved rule "c" from 3 to 1`},
		{"path key spelling", `{"name": "a", "key": "path", "limit": "1/s"}`, `{"name": "a", "key": "path", "limit": "1/s", "ignore_case": true}`,
			`changed rule "a": ignore_case true added; counters start anew: the key is written in another way`},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := diff(t, x.before, x.after); got != x.want {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
		})
	}
}
