package headers_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/headers"
)

// A door turns its decision into limits and sends what they say.
func Example() {
	limits := []headers.Limit{
		{Policy: "login", Quota: 5, Window: time.Minute, RetryAfter: 10200 * time.Millisecond, Refused: true},
		{Policy: "day", Quota: 1000, Window: 24 * time.Hour, Remaining: 421, Reset: 9 * time.Hour},
	}
	var buf []byte
	buf = headers.AppendPolicy(buf[:0], limits...)
	fmt.Printf("%s: %s\n", headers.PolicyField, buf)
	buf = headers.AppendRateLimit(buf[:0], limits...)
	fmt.Printf("%s: %s\n", headers.RateLimitField, buf)
	if wait, refused := headers.RetryAfter(limits); refused {
		if buf, ok := headers.AppendRetryAfter(buf[:0], wait); ok {
			fmt.Printf("%s: %s\n", headers.RetryAfterField, buf)
		}
	}
	lang := headers.Language("zh-CN, en;q=0.8", nil)
	fmt.Printf("%s\n", headers.AppendMessage(nil, lang, headers.Refusal{Limits: limits}))
	// Output:
	// RateLimit-Policy: "login";q=5;w=60, "day";q=1000;w=86400
	// RateLimit: "login";r=0;t=11, "day";r=421;t=32400
	// Retry-After: 11
	// 请求过于频繁：限制“login”每分钟允许 5 次。请在 11 秒后重试。
}

func ExampleAppendProblem() {
	p := headers.Problem{Refusal: headers.Refusal{Limits: []headers.Limit{
		{Policy: "login", Quota: 5, Window: time.Minute, RetryAfter: 10200 * time.Millisecond, Refused: true},
	}}}
	fmt.Printf("%s\n", headers.AppendProblem(nil, p))
	// Output:
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too many requests","status":429,"detail":"Too many requests: the limit \"login\" allows 5 per minute. Try again in 11 seconds.","violated-policies":["login"],"retry-after":11}
}
