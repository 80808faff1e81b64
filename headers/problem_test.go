package headers_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
)

// wantProblem is the same document as encoding/json writes it.
func wantProblem(t testing.TB, p headers.Problem) string {
	t.Helper()
	doc := struct {
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Status   int      `json:"status"`
		Detail   string   `json:"detail"`
		Instance string   `json:"instance,omitempty"`
		Violated []string `json:"violated-policies"`
	}{p.Reason.Type(), p.Title, p.Status, p.Detail, p.Instance, []string{}}
	for _, l := range p.Limits {
		if l.Refused {
			doc.Violated = append(doc.Violated, l.Policy)
		}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// everything holds what JSON writers get wrong.
const everything = "a\"b\\c/<script>&'\b\f\n\r\t\x00\x1f\x7f\u0085\u2028\u2029\uFFFD\xff\xc3 登录 \U0001F600"

func TestProblemIsByteForByteWhatEncodingJSONWrites(t *testing.T) {
	p := headers.Problem{
		Refusal: headers.Refusal{RetryAfter: never, Limits: []headers.Limit{
			{Policy: everything, Refused: true}, {Policy: "allowed"}, {Policy: "second", Refused: true}}},
		Status: 403, Title: everything, Detail: everything, Instance: everything,
	}
	if got, want := string(headers.AppendProblem(nil, p)), wantProblem(t, p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProblemOfNothingIsStillWhole(t *testing.T) {
	want := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too many requests",` +
		`"status":429,"detail":"Too many requests. Try again in 1 second.","violated-policies":[],"retry-after":1}`
	if got := string(headers.AppendProblem(nil, headers.Problem{})); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProblemSpeaksTheLanguage(t *testing.T) {
	p := headers.Problem{Lang: "zh", Refusal: headers.Refusal{Limits: []headers.Limit{
		refusedLimit("登录", 5, time.Minute, 11*time.Second)}}}
	want := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"请求过于频繁",` +
		`"status":429,"detail":"请求过于频繁：限制“登录”每分钟允许 5 次。请在 11 秒后重试。","violated-policies":["登录"],"retry-after":11}`
	if got := string(headers.AppendProblem(nil, p)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProblemTellsTheLongestWait(t *testing.T) {
	limits := []headers.Limit{refusedLimit("a", 5, time.Minute, 3*time.Second)}
	for _, c := range []struct {
		wait time.Duration
		want any
	}{{0, 3.0}, {2 * time.Second, 3.0}, {3500 * time.Millisecond, 4.0}, {never, nil}} {
		var got map[string]any
		raw := headers.AppendProblem(nil, headers.Problem{Refusal: headers.Refusal{Limits: limits, RetryAfter: c.wait}})
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		if got["retry-after"] != c.want {
			t.Errorf("wait %v: retry-after %v, want %v", c.wait, got["retry-after"], c.want)
		}
	}
}
