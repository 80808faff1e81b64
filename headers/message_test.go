package headers_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
)

func refusedLimit(policy string, quota int64, window, retry time.Duration) headers.Limit {
	return headers.Limit{Policy: policy, Quota: quota, Window: window, RetryAfter: retry, Refused: true}
}

func withUnit(l headers.Limit, unit string) headers.Limit {
	l.Unit = unit
	return l
}

func TestMessages(t *testing.T) {
	const s, m, h, d = time.Second, time.Minute, time.Hour, 24 * time.Hour
	for _, c := range []struct {
		limit  headers.Limit
		en, zh string
	}{
		{refusedLimit("login", 5, m, 11*s),
			`Too many requests: the limit "login" allows 5 per minute. Try again in 11 seconds.`,
			`请求过于频繁：限制“login”每分钟允许 5 次。请在 11 秒后重试。`},
		{refusedLimit("once", 1, s, 200*time.Millisecond),
			`Too many requests: the limit "once" allows 1 per second. Try again in 1 second.`,
			`请求过于频繁：限制“once”每秒允许 1 次。请在 1 秒后重试。`},
		{refusedLimit("quarter", 100, 15*m, 119*s),
			`Too many requests: the limit "quarter" allows 100 per 15 minutes. Try again in 119 seconds.`,
			`请求过于频繁：限制“quarter”每 15 分钟允许 100 次。请在 119 秒后重试。`},
		{refusedLimit("x", 2, 90*s, 2*m),
			`Too many requests: the limit "x" allows 2 per 90 seconds. Try again in 2 minutes.`,
			`请求过于频繁：限制“x”每 90 秒允许 2 次。请在 2 分钟后重试。`},
		{refusedLimit("x", 2, h, 2*m+1),
			`Too many requests: the limit "x" allows 2 per hour. Try again in 2 minutes and 1 second.`,
			`请求过于频繁：限制“x”每小时允许 2 次。请在 2 分钟 1 秒后重试。`},
		{refusedLimit("x", 2, d, h),
			`Too many requests: the limit "x" allows 2 per day. Try again in 1 hour.`,
			`请求过于频繁：限制“x”每天允许 2 次。请在 1 小时后重试。`},
		{refusedLimit("x", 2, 30*d, h+1),
			`Too many requests: the limit "x" allows 2 per 30 days. Try again in 1 hour and 1 minute.`,
			`请求过于频繁：限制“x”每 30 天允许 2 次。请在 1 小时 1 分钟后重试。`},
		{refusedLimit("x", 2, 2*h, d-s),
			`Too many requests: the limit "x" allows 2 per 2 hours. Try again in 1 day.`,
			`请求过于频繁：限制“x”每 2 小时允许 2 次。请在 1 天后重试。`},
		{refusedLimit("x", 2, 100*time.Millisecond, 3*d+4*h),
			`Too many requests: the limit "x" allows 2 per 100 milliseconds. Try again in 3 days and 4 hours.`,
			`请求过于频繁：限制“x”每 100 毫秒允许 2 次。请在 3 天 4 小时后重试。`},
		{refusedLimit("closed", 0, m, never),
			`Too many requests: the limit "closed" allows no requests. Trying again will not help.`,
			`请求过于频繁：限制“closed”不允许任何请求。重试不会成功。`},
		{withUnit(refusedLimit("bulk", 10, m, never), "requests"),
			`Too many requests: the limit "bulk" allows 10 per minute. This request asks for more than it can ever allow.`,
			`请求过于频繁：限制“bulk”每分钟允许 10 次。此请求超出了该限制所能允许的上限。`},
		{refusedLimit("pool", 8, 0, s),
			`Too many requests: the limit "pool" allows 8 at once. Try again in 1 second.`,
			`请求过于频繁：限制“pool”同时允许 8 次。请在 1 秒后重试。`},
		{withUnit(refusedLimit("pool", 1, 0, s), "concurrent-requests"),
			`Too many requests: the limit "pool" allows 1 concurrent request. Try again in 1 second.`,
			`请求过于频繁：限制“pool”允许 1 个并发请求。请在 1 秒后重试。`},
		{withUnit(refusedLimit("up", 4096, m, s), "content-bytes"),
			`Too many requests: the limit "up" allows 4096 bytes per minute. Try again in 1 second.`,
			`请求过于频繁：限制“up”每分钟允许 4096 字节。请在 1 秒后重试。`},
		{withUnit(refusedLimit("llm", 1, m, s), "tokens"),
			`Too many requests: the limit "llm" allows 1 token per minute. Try again in 1 second.`,
			`请求过于频繁：限制“llm”每分钟允许 1 tokens。请在 1 秒后重试。`},
		{refusedLimit("", 5, m, 11*s),
			`Too many requests. Try again in 11 seconds.`,
			`请求过于频繁。请在 11 秒后重试。`},
	} {
		r := headers.Refusal{Limits: []headers.Limit{c.limit}}
		for lang, want := range map[string]string{"en": c.en, "": c.en, "fr": c.en, "zh": c.zh, "zh-Hans": c.zh, "ZH-CN": c.zh} {
			if got := string(headers.AppendMessage(nil, lang, r)); got != want {
				t.Errorf("%q:\n got %s\nwant %s", lang, got, want)
			}
		}
	}
}

func TestMessageOfOverload(t *testing.T) {
	r := headers.Refusal{Reason: headers.ReducedCapacity, RetryAfter: 1500 * time.Millisecond}
	for lang, want := range map[string]string{
		"en": "The service is at capacity. Try again in 2 seconds.",
		"zh": "服务繁忙。请在 2 秒后重试。",
	} {
		if got := string(headers.AppendMessage(nil, lang, r)); got != want {
			t.Errorf("%s: %s, want %s", lang, got, want)
		}
	}
}

func TestMessageNamesTheLimitThatIsWaitedFor(t *testing.T) {
	r := headers.Refusal{Limits: []headers.Limit{
		refusedLimit("short", 10, time.Second, time.Second),
		refusedLimit("long", 100, time.Hour, time.Minute),
		{Policy: "allowed", Quota: 1, Window: time.Hour, RetryAfter: time.Hour},
	}}
	want := `Too many requests: the limit "long" allows 100 per hour. Try again in 60 seconds.`
	if got := string(headers.AppendMessage(nil, "en", r)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// People too must not come too early: the words are read back and compared.
func TestMessageWaitIsNeverShorterThanTheRealOne(t *testing.T) {
	r := seededRand(t)
	part := regexp.MustCompile(`(\d+) (day|hour|minute|second)s?`)
	length := map[string]int64{"day": 86400, "hour": 3600, "minute": 60, "second": 1}
	for range 20_000 {
		wait := randomWait(r)
		text := string(headers.AppendMessage(nil, "en", headers.Refusal{RetryAfter: wait}))
		var told int64
		var smallest string
		for _, m := range part.FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			told += n * length[m[2]]
			smallest = m[2]
		}
		real := int64(wait / time.Second)
		if told < real || told == real && wait%time.Second > 0 {
			t.Fatalf("wait %v: %s", wait, text)
		}
		if told > real+max(length[smallest], 1) {
			t.Fatalf("wait %v is much shorter than %s", wait, text)
		}
	}
}

func TestMessageIsOneLineWhateverTheName(t *testing.T) {
	l := refusedLimit("a\r\n\x00\x1b[31m\u0085\x7f\xff", 5, time.Minute, time.Second)
	got := string(headers.AppendMessage(nil, "en", headers.Refusal{Limits: []headers.Limit{l}}))
	want := "Too many requests: the limit \"a\uFFFD\uFFFD\uFFFD\uFFFD[31m\uFFFD\uFFFD\uFFFD\" allows 5 per minute. Try again in 1 second."
	if got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
