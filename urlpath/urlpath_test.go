package urlpath_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirhq/weir/urlpath"
)

// Case B29: all spellings of one resource are one path.
func TestSpellingsOfOneResourceAreOnePath(t *testing.T) {
	for want, spellings := range map[string][]string{
		"/login": {
			"/login", "//login", "/%6Cogin", "/%6cogin", "/./login", "/x/../login", "login", "///login", "/%2e/login", "/x/%2E%2e/login",
			"/../login", "/../../login", "/%2e%2e/login", "/x//../login", "/x/y/../../login", "/.//login", "/%6C%6F%67%69%6E",
		},
		"/login/":             {"/login/", "/login//", "/login/.", "/login/./", "/login/x/..", "/login/x/../", "/login/%2e"},
		"/":                   {"", "/", "//", "/.", "/..", "/../", "/x/..", "/%2e%2e", "./", ".", ".."},
		"*":                   {"*"},
		"/*":                  {"/*", "//*", "/x/../*"},
		"/api/auth/login":     {"/api/auth/login", "/api/auth/%6Cogin", "/api//auth/login"},  // case S11
		"/api/auth/login/":    {"/api/auth/login/"},                                          // case S11
		"/login;x=1":          {"/login;x=1", "//login;x=1", "/./login;x=1", "/login;%78=1"}, // case S11
		"/a/;x/b":             {"/a/;x/b"},
		"/Login":              {"/Login", "/%4Cogin"},
		"/.well-known/a.b":    {"/.well-known/a.b", "/%2ewell-known/a%2Eb"},
		"/.../a":              {"/.../a", "/%2e../a"},
		"/..a/.b":             {"/..a/.b"},
		"/%252e%252e/login":   {"/%252e%252e/login", "/%25%32e%252e/login"},
		"/caf%C3%A9":          {"/caf%C3%A9", "/caf%c3%a9", "/café"},
		"/%FF":                {"/%FF", "/%ff", "/\xff"},
		"/%C0%AE%C0%AE/a":     {"/%c0%ae%c0%ae/a"}, // overlong dots are bytes like others
		"/a%20b":              {"/a%20b", "/a b"},
		"/a+b":                {"/a+b"},
		"/a%2Bb":              {"/a%2Bb", "/a%2bb"},
		"/users:get":          {"/users:get"},
		"/users%3Aget":        {"/users%3Aget", "/users%3aget"},
		"/%7B%7D%5B%5D%3F%23": {"/{}[]?#", "/%7b%7d%5b%5d%3f%23"},
		"/!$&'()*+,;=:@-._~":  {"/!$&'()*+,;=:@-._~", "/!$&'()*+,;=:@%2d%2E%5f%7E"},
		"/%2525":              {"/%2525"},
		"/a/b":                {"/a/b", "a/b", "/a/./b", "/a//b", "/a/c/../b", "/a///././/b", "/a/b/c/../../b"},
	} {
		for _, s := range spellings {
			if got, err := urlpath.Clean(s); got != want || err != nil {
				t.Errorf("Clean(%q) = %q, %v, want %q", s, got, err, want)
			}
		}
	}
}

func TestWhatServersDisagreeOnIsRefused(t *testing.T) {
	for _, c := range []struct {
		path   string
		reason error
		offset int
	}{
		{"/a%2Fb", urlpath.ErrSlash, 2},
		{"/a%2fb", urlpath.ErrSlash, 2},
		{"/..%2Flogin", urlpath.ErrSlash, 3},
		{"/a%5Cb", urlpath.ErrBackslash, 2},
		{"/a%5cb", urlpath.ErrBackslash, 2},
		{`/a\b`, urlpath.ErrBackslash, 2},
		{`/..\login`, urlpath.ErrBackslash, 3},
		{"/a/b%00", urlpath.ErrControl, 4},
		{"/a/b\x00", urlpath.ErrControl, 4},
		{"/a%0d%0ab", urlpath.ErrControl, 2},
		{"/a\nb", urlpath.ErrControl, 2},
		{"/a\x7f", urlpath.ErrControl, 2},
		{"/a%7F", urlpath.ErrControl, 2},
		{"/a%1f", urlpath.ErrControl, 2},
		{"/%", urlpath.ErrEscape, 1},
		{"/a%2", urlpath.ErrEscape, 2},
		{"/a%2/b", urlpath.ErrEscape, 2},
		{"/a%zz", urlpath.ErrEscape, 2},
		{"/a%4g", urlpath.ErrEscape, 2},
		{"/a%u006C", urlpath.ErrEscape, 2},
		{"/100%", urlpath.ErrEscape, 4},
		{"/a/..;/login", urlpath.ErrDots, 3},
		{"/a/..;x=1/login", urlpath.ErrDots, 3},
		{"/.;x/login", urlpath.ErrDots, 1},
		{"/%2e%2e;x/login", urlpath.ErrDots, 1},
		{"/..%3bx/login", urlpath.ErrDots, 1},
		{"/a/b/..;", urlpath.ErrDots, 5},
		{"//a/b%00/../..", urlpath.ErrControl, 5}, // even if .. removes it
		{"a%00", urlpath.ErrControl, 1},
	} {
		got, err := urlpath.Clean(c.path)
		if got != "" || !errors.Is(err, c.reason) {
			t.Errorf("Clean(%q) = %q, %v, want %v", c.path, got, err, c.reason)
			continue
		}
		if e, ok := errors.AsType[*urlpath.Error](err); !ok || e.Offset != c.offset || e.Path != c.path {
			t.Errorf("Clean(%q): %#v, want the path and offset %d", c.path, err, c.offset)
		}
	}
}

func TestErrorCannotForgeALogLine(t *testing.T) {
	_, err := urlpath.Clean("/\n2026-01-01 level=error msg=forged" + strings.Repeat("x", 1<<20))
	if msg := err.Error(); strings.ContainsAny(msg, "\n\x1b") || len(msg) > 256 {
		t.Errorf("message of %d bytes: %.100q", len(msg), msg)
	}
	_, err = urlpath.Clean("/a%2Fb")
	if got, want := err.Error(), `urlpath: escaped slash (separate segments with /) at byte 2 of "/a%2Fb"`; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestDecode(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "alice": "alice", "a%20b": "a b", "%40alice": "@alice", "a%2Fb": "a/b", "a%2fb": "a/b", "%252F": "%2F", "caf%C3%A9": "café",
		"%ff": "\xff", "a+b": "a+b", "100%": "100%", "%": "%", "%4": "%4", "%4g": "%4g", "%%41": "%A", "%zz%41": "%zzA", "/a%3Ab/c": "/a:b/c",
	} {
		if got := urlpath.Decode(s); got != want {
			t.Errorf("Decode(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestWithoutParams(t *testing.T) {
	for s, want := range map[string]string{
		"/login": "/login", "/login;x=1": "/login", "/login;x=1/": "/login/", "/a;x/b;y;z": "/a/b", "/a/;x/b": "/a/b", "/;x": "/", "/a/;x": "/a/", "/;x/": "/",
		"*": "*", "/": "/", "/a%3Bx": "/a%3Bx",
	} {
		if got := urlpath.WithoutParams(s); got != want {
			t.Errorf("WithoutParams(%q) = %q, want %q", s, got, want)
		}
	}
}

var oddPaths = []string{
	"", "/", "*", "//login", "/%6Cogin", "/./login", "/x/../login", "/a/b/..", "/a//../b", "/..;/a", "/a;x=1/b", "/;x/;y", "/%2e%2e/", "/a%2Fb", `/a\b`,
	"/%00", "/%zz", "/café", "/%c0%ae", "/.../..a/.b", "/[x]{y}?#", "/%25%32e", "a/../../b/.", "/.%2e/%2e./.",
}

func FuzzCleanIsANormalForm(f *testing.F) {
	for _, s := range oddPaths {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean, err := urlpath.Clean(s)
		if err != nil {
			e, ok := errors.AsType[*urlpath.Error](err)
			if !ok || clean != "" || e.Offset < 0 || e.Offset >= len(s) || e.Path != s {
				t.Fatalf("Clean(%q) = %q, %#v", s, clean, err)
			}
			return
		}
		checkClean(t, s, clean)
		if bare := urlpath.WithoutParams(clean); strings.Contains(bare, ";") {
			t.Errorf("%q keeps parameters", bare)
		} else {
			checkClean(t, clean+" without parameters", bare)
		}
	})
}

func checkClean(t *testing.T, from, clean string) {
	t.Helper()
	if again, err := urlpath.Clean(clean); again != clean || err != nil {
		t.Errorf("%q became %q, which becomes %q, %v", from, clean, again, err)
	}
	if clean == "*" {
		return
	}
	if !strings.HasPrefix(clean, "/") {
		t.Errorf("%q became %q, without leading slash", from, clean)
	}
	for _, bad := range []string{"/./", "/../", "\\", "\x00", "%2F", "%5C", "%00", "%2E", "/..;"} {
		if strings.Contains(clean+"/", bad) {
			t.Errorf("%q became %q, which contains %q", from, clean, bad)
		}
	}
	if strings.Contains(clean, "//") {
		t.Errorf("%q became %q, which contains //", from, clean)
	}
	for i := range len(clean) {
		if c := clean[i]; c <= ' ' || c >= 0x7f {
			t.Errorf("%q became %q with a raw byte %#x", from, clean, c)
		}
	}
	// Decoding cannot make or lose a segment.
	if d := urlpath.Decode(clean); strings.Count(d, "/") != strings.Count(clean, "/") {
		t.Errorf("%q decodes to other segments: %q", clean, d)
	}
}
