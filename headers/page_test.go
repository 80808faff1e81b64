package headers_test

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
)

func login() headers.Refusal {
	return headers.Refusal{Limits: []headers.Limit{refusedLimit("login", 5, time.Minute, 10200*time.Millisecond)}}
}

func page(p headers.Page) string { return string(headers.AppendPage(nil, p)) }

func TestPageSaysTheWaitWithoutAScript(t *testing.T) {
	for _, c := range []struct {
		page headers.Page
		want []string
	}{
		{headers.Page{Refusal: login()}, []string{
			`<html lang="en">`, `<title>Too many requests</title>`, `<h1>Too many requests</h1>`,
			`<p>The limit &#34;login&#34; allows 5 per minute.</p>`,
			`data-seconds="11">Try again in <b id="left" role="timer">11 seconds</b>.</p>`,
			`<a id="retry" href="">Try again</a>`}},
		{headers.Page{Refusal: login(), Lang: "zh-Hans"}, []string{
			`<html lang="zh-Hans">`, `<title>请求过于频繁</title>`, `<p>限制“login”每分钟允许 5 次。</p>`,
			`请在 <b id="left" role="timer">11 秒</b>后重试。</p>`}},
		{headers.Page{Refusal: login(), Title: "Slow down", Message: "Call us."}, []string{
			`<title>Slow down</title>`, `<h1>Slow down</h1>`, `<p>Call us.</p>`}},
		{headers.Page{Refusal: headers.Refusal{Reason: headers.ReducedCapacity}}, []string{
			"<h1>The service is at capacity</h1>\n<p id=\"wait\" data-seconds=\"1\">"}},
	} {
		got := page(c.page)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
}

func TestPageReloadsOnlyIfAsked(t *testing.T) {
	const mark = `data-reload="yes"`
	if got := page(headers.Page{Refusal: login()}); strings.Contains(got, mark) {
		t.Error("a page for POST would reload")
	}
	if got := page(headers.Page{Refusal: login(), Reload: true}); !strings.Contains(got, mark) {
		t.Error("a page for GET would not reload")
	}
}

func TestPageOfAnEndlessWaitCountsNothing(t *testing.T) {
	got := page(headers.Page{Refusal: headers.Refusal{RetryAfter: never}, Reload: true})
	if strings.Contains(got, "<script") || strings.Contains(got, "Try again in") {
		t.Errorf("counts down to never:\n%s", got)
	}
	if !strings.Contains(got, "Trying again will not help.") {
		t.Errorf("does not say so:\n%s", got)
	}
}

// The policy names the style and script by hash: changing one byte of them
// without changing PageCSP would switch them off in every browser.
func TestPageCSPAllowsExactlyThisPage(t *testing.T) {
	got := page(headers.Page{Refusal: login(), Reload: true})
	for _, tag := range []string{"style", "script"} {
		_, rest, _ := strings.Cut(got, "<"+tag+">")
		inside, _, ok := strings.Cut(rest, "</"+tag+">")
		if !ok {
			t.Fatalf("no <%s>", tag)
		}
		sum := sha256.Sum256([]byte(inside))
		want := tag + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		if !strings.Contains(headers.PageCSP, want) {
			t.Errorf("PageCSP lacks %s", want)
		}
	}
	if !strings.Contains(headers.PageCSP, "default-src 'none'") {
		t.Error("PageCSP lets the page load other things")
	}
	for _, forbidden := range []string{"http:", "https:", "javascript:", " src=", "url(", "@import", " style="} {
		if strings.Contains(got, forbidden) {
			t.Errorf("the page has %q, which the policy forbids", forbidden)
		}
	}
	if handler := regexp.MustCompile(`<[^>]*\son\w+=`).FindString(stripRaw(got)); handler != "" {
		t.Errorf("the page has a handler the policy forbids: %s", handler)
	}
}

func TestPageFollowsLightAndDark(t *testing.T) {
	if !strings.Contains(page(headers.Page{}), "color-scheme: light dark") {
		t.Error("one colour scheme only")
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// skeleton is a page's tags without what its attributes hold. It is the same
// for every text, unless a text has broken out of its place.
func skeleton(html string) []string {
	var out []string
	quoted := regexp.MustCompile(`"[^"]*"`)
	for _, tag := range tags.FindAllString(stripRaw(html), -1) {
		out = append(out, quoted.ReplaceAllString(tag, `""`))
	}
	return out
}

// stripRaw removes style and script, whose constant text is not HTML.
func stripRaw(html string) string {
	for _, tag := range []string{"style", "script"} {
		before, rest, ok := strings.Cut(html, "<"+tag+">")
		if !ok {
			continue
		}
		_, after, _ := strings.Cut(rest, "</"+tag+">")
		html = before + after
	}
	return html
}

// checkEscaped fails if the texts changed anything but text.
func checkEscaped(t *testing.T, lang, title, message, policy, unit string) {
	t.Helper()
	build := func(lang, title, message, policy, unit string) string {
		l := withUnit(refusedLimit(policy, 5, time.Minute, time.Second), unit)
		return page(headers.Page{Refusal: headers.Refusal{Limits: []headers.Limit{l}},
			Lang: lang, Title: title, Message: message})
	}
	mark := func(s string) string { // keeps empty what is empty
		if s == "" {
			return ""
		}
		return "x"
	}
	got := build(lang, title, message, policy, unit)
	plain := build("en", mark(title), mark(message), mark(policy), mark(unit))
	if g, p := skeleton(got), skeleton(plain); !slices.Equal(g, p) {
		t.Fatalf("the tags changed:\n got %q\nwant %q", g, p)
	}
	body := stripRaw(got)
	text := tags.ReplaceAllString(body, "")
	if strings.ContainsAny(text, "<>\"'\x00\r\x7f") {
		t.Fatalf("unescaped text %q", text)
	}
	for _, after := range strings.Split(body, "&")[1:] {
		if !strings.HasPrefix(after, "amp;") && !strings.HasPrefix(after, "lt;") && !strings.HasPrefix(after, "gt;") &&
			!strings.HasPrefix(after, "#34;") && !strings.HasPrefix(after, "#39;") {
			t.Fatalf("bare ampersand before %.10q", after)
		}
	}
}

func TestPageEscapesEverything(t *testing.T) {
	for _, s := range []string{
		everything, `<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onload='x`, `</title><b>`,
		`</style>`, `&lt;`, "&", "\x00<", "\xff\"", "</ma\x00in>",
	} {
		checkEscaped(t, s, s, s, s, s)
		checkEscaped(t, s, "", "", s, s)
		checkEscaped(t, "zh-"+s, "", "", s, s)
	}
}
