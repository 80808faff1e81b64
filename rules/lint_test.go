package rules_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/rules"
)

// TestLintNodes: what is doubtful of a rule depends on whether nodes share the store.
func TestLintNodes(t *testing.T) {
	const memory, hint = "fast changes nothing", "store: fast lets nodes decide"
	for _, c := range []struct {
		rule          string
		alone, shared string // part of the warning, or none
	}{
		{`"key": "global", "limit": "1000/s"`, "", hint},
		{`"key": "global", "limit": "999/s"`, "", ""},
		{`"key": "global", "limit": "60000/m"`, "", hint},
		{`"key": "global", "limit": "59999/m"`, "", ""},
		{`"key": ["rule", "lower(host)", "method"], "limit": "1000/s"`, "", hint},
		{`"key": ["rule", "ip"], "limit": "1000/s"`, "", ""},
		{`"key": "header:X-Tenant", "limit": "1000/s"`, "", ""},
		{`"key": "path", "limit": "1000/s"`, "", ""},
		{`"key": "global", "limits": ["10/m", "2000/s"]`, "", hint},
		{`"key": "global", "limit": "1000/s", "mode": "shadow"`, "", hint},
		{`"key": "global", "limit": "1000/s", "mode": "off"`, "", ""},
		{`"key": "global", "limit": {"quota": 4000, "window": "1s", "algorithm": "sliding_log"}`, "", ""},
		{`"key": "global", "limit": "1000/s", "store": "fast"`, memory, ""},
		{`"key": "ip", "limit": "100/s", "store": "fast"`, memory, ""},
		{`"key": "ip", "limit": "5/m", "store": "fast"`, "", ""}, // Lint says it
		{`"limit": "unlimited", "final": true`, "", ""},
	} {
		doc, problems := rules.LoadJSON("rules.json", []byte(`{"rules": [{"name": "a", `+c.rule+`}]}`))
		if problems != nil {
			t.Fatalf("%s: %v", c.rule, problems)
		}
		for shared, want := range map[bool]string{false: c.alone, true: c.shared} {
			got := doc.LintNodes(shared)
			if want == "" && len(got) == 0 {
				continue
			}
			if want == "" || len(got) != 1 || !got[0].Warning || got[0].Line != 1 || !strings.Contains(got[0].Error(), want) {
				t.Errorf("%s, shared %v: got %v, want %q", c.rule, shared, got, want)
			}
		}
	}
}
