//go:build !race

package headers_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
)

// Not under -race, which allocates on its own.
func TestAppendersDoNotAllocate(t *testing.T) {
	limits := []headers.Limit{
		{Policy: "login 登录", Quota: 5, Window: 1500 * time.Millisecond, Burst: 9, Unit: "tokens",
			Key: []byte("0123456789abcdef"), RetryAfter: 11 * time.Second, Refused: true},
		{Policy: "day", Quota: 1000, Window: 24 * time.Hour, Remaining: 400, Reset: time.Hour},
	}
	refusal := headers.Refusal{Limits: limits}
	available := []string{"en", "zh"}
	dst := make([]byte, 0, 8192)
	for name, run := range map[string]func(){
		"AppendPolicy":     func() { headers.AppendPolicy(dst, limits...) },
		"AppendRateLimit":  func() { headers.AppendRateLimit(dst, limits...) },
		"AppendRetryAfter": func() { headers.AppendRetryAfter(dst, 11*time.Second) },
		"AppendX": func() {
			l := &limits[headers.Tightest(limits)]
			headers.AppendXLimit(dst, l)
			headers.AppendXRemaining(dst, l)
			headers.AppendXReset(dst, l)
		},
		"AppendMessage": func() { headers.AppendMessage(dst, "zh", refusal) },
		"AppendProblem": func() { headers.AppendProblem(dst, headers.Problem{Refusal: refusal, Lang: "zh"}) },
		"AppendPage":    func() { headers.AppendPage(dst, headers.Page{Refusal: refusal, Reload: true}) },
		"Language":      func() { headers.Language("fr;q=0.9, zh-CN;q=0.8, *;q=0.1", available) },
		"WantsHTML":     func() { headers.WantsHTML("text/html,application/xml;q=0.9,*/*;q=0.8") },
	} {
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkAppendFields(b *testing.B) {
	limits := []headers.Limit{
		{Policy: "second", Quota: 10, Window: time.Second, Remaining: 7, Reset: 300 * time.Millisecond},
		{Policy: "day", Quota: 1000, Window: 24 * time.Hour, Remaining: 400, Reset: time.Hour},
	}
	dst := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		dst = headers.AppendPolicy(dst[:0], limits...)
		dst = headers.AppendRateLimit(dst[:0], limits...)
	}
}
