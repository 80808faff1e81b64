package headers

import (
	"strings"
	"time"
)

// AppendMessage appends what a person is told about r, in lang ("zh…" is
// 简体中文, anything else English):
//
//	Too many requests: the limit "login" allows 5 per minute. Try again in 11 seconds.
//
// It names the refused limit with the longest wait, the one waited for. The
// text is plain: control characters in names become U+FFFD, and HTML or JSON
// around it must escape it; [AppendPage] and [AppendProblem] do.
func AppendMessage(dst []byte, lang string, r Refusal) []byte {
	return appendMessage(dst, plain, lang, &r)
}

func appendMessage(dst []byte, e escaping, lang string, r *Refusal) []byte {
	w := wordsOf(lang)
	dst = e.text(dst, w.title(r.Reason))
	i := longest(r.Limits)
	if i >= 0 && r.Limits[i].Policy != "" {
		dst = e.text(dst, w.colon())
		dst = w.limit(dst, e, &r.Limits[i])
	}
	dst = e.text(dst, w.stop())
	dst = e.text(dst, w.gap())
	if wait := r.wait(); wait >= 0 {
		before, after := w.again()
		dst = e.text(dst, before)
		dst = w.wait(dst, e, retrySeconds(wait))
		return e.text(dst, after)
	}
	return e.text(dst, w.never(r.tooLarge()))
}

// tooLarge says whether a smaller request could have been allowed: the policy
// that never allows this one does have a quota.
func (r *Refusal) tooLarge() bool {
	i := longest(r.Limits)
	return i >= 0 && r.Limits[i].RetryAfter < 0 && r.Limits[i].Quota > 0
}

// words are the parts of the answers that depend on the language.
type words interface {
	title(Reason) string
	colon() string // between title and limit
	stop() string  // after a sentence
	gap() string   // between sentences

	// limit appends a clause like: the limit "login" allows 5 per minute.
	limit(dst []byte, e escaping, l *Limit) []byte

	// wait appends a duration, two units long at most and rounded up to the
	// second of them.
	wait(dst []byte, e escaping, seconds int64) []byte

	again() (before, after string) // around the wait
	never(tooLarge bool) string
	ready() string // the page, when the wait is over
	retry() string // the page's link
}

func wordsOf(lang string) words {
	if primary, _, _ := strings.Cut(lang, "-"); strings.EqualFold(primary, "zh") {
		return chinese{}
	}
	return english{}
}

// timeUnit is a unit people count time in, from the longest to the shortest.
type timeUnit uint8

const (
	day timeUnit = iota
	hour
	minute
	second
	millisecond
)

func (u timeUnit) length() time.Duration {
	return [...]time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond}[u]
}

// inUnits returns d in the longest unit it is a whole number of, in
// milliseconds rounded up if there is none. 90 s stay 90 s.
func inUnits(d time.Duration) (n int64, u timeUnit) {
	for u = day; u < millisecond; u++ {
		if d%u.length() == 0 {
			return int64(d / u.length()), u
		}
	}
	return ceilMilliseconds(d), millisecond
}

// minutesFrom is the number of seconds from which a wait is told in minutes.
const minutesFrom = 120

// waitUnits splits a wait into n of u and m of v, m being 0 if n of u says it
// all. It rounds up to the last unit: people too must not come too early.
func waitUnits(seconds int64) (n int64, u timeUnit, m int64, v timeUnit) {
	if seconds < minutesFrom {
		return seconds, second, 0, second
	}
	for u = minute; u > day; u-- {
		v = u + 1
		big, small := int64(u.length()/time.Second), int64(v.length()/time.Second)
		parts := seconds / small
		if seconds%small > 0 {
			parts++
		}
		// 23 h 59 min 59 s round up to 24 h 0 min, which is the next unit's.
		if next := u - 1; parts*small < int64(next.length()/time.Second) {
			return parts * small / big, u, parts % (big / small), v
		}
	}
	hours := seconds / 3600
	if seconds%3600 > 0 {
		hours++
	}
	return hours / 24, day, hours % 24, hour
}
