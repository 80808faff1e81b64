package headers

import "strings"

type english struct{}

func (english) title(r Reason) string {
	if r == ReducedCapacity {
		return "The service is at capacity"
	}
	return "Too many requests"
}

func (english) colon() string { return ": " }
func (english) stop() string  { return "." }
func (english) gap() string   { return " " }

func (w english) limit(dst []byte, e escaping, l *Limit) []byte {
	dst = e.text(dst, `the limit "`)
	dst = e.text(dst, l.Policy)
	dst = e.text(dst, `" allows `)
	if l.Quota <= 0 {
		return e.text(dst, "no requests")
	}
	dst = e.number(dst, l.Quota)
	if l.countsRequests() {
		if l.Window <= 0 {
			return e.text(dst, " at once")
		}
	} else {
		dst = e.text(dst, " ")
		dst = e.text(dst, w.unit(l.Unit, l.Quota))
	}
	if l.Window <= 0 {
		return dst
	}
	dst = e.text(dst, " per ")
	n, u := inUnits(l.Window)
	if n == 1 {
		return e.text(dst, w.time(u, 1))
	}
	return w.count(dst, e, n, u)
}

// unit names n quota units. The names of units are plurals, as the draft's are.
func (english) unit(unit string, n int64) string {
	switch unit {
	case "content-bytes":
		unit = "bytes"
	case "concurrent-requests":
		unit = "concurrent requests"
	}
	if n == 1 {
		return strings.TrimSuffix(unit, "s")
	}
	return unit
}

func (english) time(u timeUnit, n int64) string {
	if n == 1 {
		return [...]string{"day", "hour", "minute", "second", "millisecond"}[u]
	}
	return [...]string{"days", "hours", "minutes", "seconds", "milliseconds"}[u]
}

func (w english) count(dst []byte, e escaping, n int64, u timeUnit) []byte {
	dst = e.number(dst, n)
	dst = e.text(dst, " ")
	return e.text(dst, w.time(u, n))
}

func (w english) wait(dst []byte, e escaping, seconds int64) []byte {
	n, u, m, v := waitUnits(seconds)
	dst = w.count(dst, e, n, u)
	if m == 0 {
		return dst
	}
	dst = e.text(dst, " and ")
	return w.count(dst, e, m, v)
}

func (english) again() (before, after string) { return "Try again in ", "." }

func (english) never(tooLarge bool) string {
	if tooLarge {
		return "This request asks for more than it can ever allow."
	}
	return "Trying again will not help."
}

func (english) ready() string { return "You can try again now." }
func (english) retry() string { return "Try again" }
