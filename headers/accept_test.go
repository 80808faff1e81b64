package headers_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/headers"
)

func TestWantsHTML(t *testing.T) {
	for _, c := range []struct {
		accept string
		want   bool
	}{
		{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", true}, // browsers
		{"text/html", true},
		{"TEXT/HTML ; Q=0.5", true},
		{"text/html, */*", true},
		{"text/*", true},
		{"text/html;charset=utf-8", true},
		{`text/html;a="x,y;q=0";q=0.5`, true},
		{"text/html, application/json;q=0.9", true},
		{"application/json;q=0.1, text/html;q=0.101", true},
		{"application/json;q=0.101, text/html;q=0.1", false},
		{`text/html;a="x;q=0"`, true}, // quoted strings are one piece
		{`text/html;a="\";q=0"`, true},
		{`text/plain;a="b,text/html,c"`, false},
		{"*/*", false},                               // curl, fetch
		{"application/json, text/plain, */*", false}, // axios
		{"application/json, text/html", false},       // both alike: a program
		{"application/problem+json, text/html", false},
		{"text/html;q=0.9, application/json", false},
		{"text/html;q=0.5, application/*", false},
		{"text/html;q=0", false},
		{"text/html;q=0, text/*", false}, // the more precise range counts
		{"", false},
		{"text/html;q=2", false}, // malformed q
		{"text/html;q=.5", false},
		{"text/html;q=0.5555", false},
		{"text/html;q=NaN", false},
		{"text/html;q=1.001", false},
		{"text/html;q=", false},
		{"html, text, /, ;;;,,,=", false},
		{`"text/html`, false},
		{strings.Repeat("a/b,", 300) + "text/html", false}, // beyond what is read
		{"text/html," + strings.Repeat("a/b,", 300), true},
		{strings.Repeat("x", 5000), false},
	} {
		if got := headers.WantsHTML(c.accept); got != c.want {
			t.Errorf("WantsHTML(%.80q) = %v", c.accept, got)
		}
	}
}

func TestLanguage(t *testing.T) {
	for _, c := range []struct {
		accept    string
		available string
		want      string
	}{
		{"", "", "en"},
		{"zh", "", "zh"},
		{"zh-CN,zh;q=0.9,en;q=0.8", "", "zh"},
		{"zh-Hans-CN", "", "zh"},
		{"ZH-hans", "", "zh"},
		{"en-GB, zh;q=0.9", "", "en"},
		{"en;q=0.5, zh;q=0.6", "", "zh"},
		{"en;q=0.5, zh;q=0.5", "", "en"},
		{"zh;q=0.5, en;q=0.5", "", "zh"},
		{"fr, de;q=0.9", "", "en"},
		{"fr, zh;q=0.1", "", "zh"},
		{"*", "", "en"},
		{"zh;q=0.2, *", "", "en"},
		{"en;q=0.1, *", "", "zh"},
		{"en;q=0, *", "", "zh"},
		{"en;q=0", "", "en"}, // nothing is left: the default
		{"zh;q=0, zh-CN", "", "en"},
		{"zh;q=0", "", "en"},
		{"zh;q=1.5", "", "en"},
		{"zh;q=-1", "", "en"},
		{"zhang", "", "en"},
		{";;q=1,,=,\x00\xff-", "", "en"},
		{strings.Repeat("x,", 40) + "zh", "", "en"}, // beyond what is read
		{strings.Repeat("fr-CA-quebec,", 200) + "zh", "", "en"},
		{"zh", "de", "de"},
		{"zh", "de en", "en"},
		{"zh", "en zh-Hans", "zh-Hans"},
		{"zh-CN", "en zh-Hant zh-Hans", "zh-Hans"},
		{"zh-SG", "en zh-Hant zh-CN", "zh-CN"},
		{"zh-TW", "en zh-Hans zh-Hant", "zh-Hant"},
		{"zh-TW", "en zh zh-Hant", "zh-Hant"},
		{"zh-Hans-HK", "en zh-Hant zh-Hans", "zh-Hans"},
		{"zh-TW", "en zh", "zh"}, // readable, and asked for before English
		{"en-GB", "zh en-US", "en-US"},
		{"pt-BR", "en pt pt-BR", "pt-BR"},
		{"pt-BR", "en pt-PT pt", "pt"},
		{"pt;q=0, *", "pt-BR fr", "fr"},
	} {
		if got := headers.Language(c.accept, strings.Fields(c.available)); got != c.want {
			t.Errorf("Language(%.60q, %q) = %q, want %q", c.accept, c.available, got, c.want)
		}
	}
}
