package headers_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/sf"
)

const maxInteger = 999_999_999_999_999

// FuzzFields: whatever the limit, both fields are strict structured fields that
// say what the limit says.
func FuzzFields(f *testing.F) {
	f.Add("login", int64(5), int64(time.Minute), int64(0), "", []byte(nil), int64(0), int64(0), int64(10.2e9), true)
	f.Add(everything, int64(-1), int64(1500e6), int64(1<<62), "content-bytes", []byte("\x00\xff"), int64(1<<62), int64(-1), int64(-1), false)
	f.Fuzz(func(t *testing.T, policy string, quota, window, burst int64, unit string, key []byte,
		remaining, reset, retry int64, refused bool) {
		l := headers.Limit{Policy: policy, Quota: quota, Window: time.Duration(window), Burst: burst, Unit: unit,
			Key: key, Remaining: remaining, Reset: time.Duration(reset), RetryAfter: time.Duration(retry), Refused: refused}
		known := map[string][]string{
			string(headers.AppendPolicy(nil, l, l)):    {"q", "w", "qu", "pk", "weir-burst", "weir-window"},
			string(headers.AppendRateLimit(nil, l, l)): {"r", "t", "pk"},
		}
		for field, params := range known {
			items, err := sf.ParseList(field)
			if err != nil {
				t.Fatal(err)
			}
			if len(items) != 2 {
				t.Fatalf("%d items in %q", len(items), field)
			}
			if name, err := url.PathUnescape(items[0].Value); err != nil || name != policy {
				t.Fatalf("policy %q came out as %q (%v)", policy, items[0].Value, err)
			}
			for key, value := range items[0].Params {
				n, isInt := value.(int64)
				if !slices.Contains(params, key) || isInt && n > maxInteger || key == "w" && n < 1 {
					t.Fatalf("parameter %s=%v in %q", key, value, field)
				}
			}
			if pk, ok := items[0].Params["pk"]; ok != (len(key) > 0 && len(key) <= headers.MaxKey) || ok && string(pk.([]byte)) != string(key) {
				t.Fatalf("key %q came out as %q", key, pk)
			}
		}
	})
}

// FuzzProblem: the document is always valid and byte for byte that of
// encoding/json.
func FuzzProblem(f *testing.F) {
	f.Add(everything, everything, everything, everything)
	f.Add("login", "", "", "")
	f.Fuzz(func(t *testing.T, policy, title, detail, instance string) {
		p := headers.Problem{Status: 429, Title: title, Detail: detail, Instance: instance,
			Refusal: headers.Refusal{Limits: []headers.Limit{{Policy: policy, Quota: 1, RetryAfter: never, Refused: true}}}}
		raw := headers.AppendProblem(nil, p)
		if !json.Valid(raw) || !utf8.Valid(raw) {
			t.Fatalf("not JSON: %q", raw)
		}
		if title != "" && detail != "" {
			if want := wantProblem(t, p); string(raw) != want {
				t.Fatalf("got  %s\nwant %s", raw, want)
			}
		}
	})
}

// FuzzPage: no text leaves its place.
func FuzzPage(f *testing.F) {
	f.Add("en", "", "", "login", "")
	f.Add("zh", everything, everything, everything, everything)
	f.Add(`"><script>`, "</title>", "<!--", "-->", "&#34")
	f.Fuzz(func(t *testing.T, lang, title, message, policy, unit string) {
		if strings.EqualFold(unit, "requests") {
			t.Skip("the default unit has words of its own")
		}
		checkEscaped(t, lang, title, message, policy, unit)
	})
}

// FuzzAccept: no field makes Language leave what is available, or either
// function panic.
func FuzzAccept(f *testing.F) {
	f.Add("zh-CN,zh;q=0.9,en;q=0.8", "text/html,*/*;q=0.8")
	f.Add("*;q=0,\"", `text/html;a="\`)
	f.Fuzz(func(t *testing.T, language, accept string) {
		available := []string{"fr", "zh-Hans", "en"}
		if got := headers.Language(language, available); !slices.Contains(available, got) {
			t.Fatalf("language %q", got)
		}
		if headers.WantsHTML(accept) && !strings.Contains(strings.ToLower(accept), "text/") {
			t.Fatalf("HTML for %q", accept)
		}
	})
}
