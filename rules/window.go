package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units are the units of a duration, the longest first. A month or a year has no
// fixed length, so there is none.
var units = [...]struct {
	name   string
	length time.Duration
}{
	{"w", 7 * 24 * time.Hour},
	{"d", 24 * time.Hour},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
	{"ms", time.Millisecond},
	{"us", time.Microsecond},
}

// ParseWindow reads a duration as documents have it: whole numbers with the units
// w, d, h, m, s, ms and us (or µs), such as 30s, 1m30s or 7d. A unit alone counts
// once, so that "5/m" is five a minute. At most 292 years fit.
func ParseWindow(s string) (time.Duration, error) {
	bad := func() (time.Duration, error) {
		return 0, fmt.Errorf("%s is not a duration; write whole numbers with the units w, d, h, m, s, ms or us, such as 1m30s", quote(s))
	}
	if s == "" {
		return bad()
	}
	var total time.Duration
	for rest := s; rest != ""; {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits == 0 && rest != s {
			return bad()
		}
		count := int64(1)
		if digits > 0 {
			var err error
			if count, err = strconv.ParseInt(rest[:digits], 10, 64); err != nil {
				count = math.MaxInt64 // too long for any unit
			}
		}
		rest = rest[digits:]
		letters := strings.IndexAny(rest, "0123456789")
		if letters < 0 {
			letters = len(rest)
		}
		unit := unitLength(rest[:letters])
		rest = rest[letters:]
		if unit == 0 {
			return bad()
		}
		if count > int64(math.MaxInt64-total)/int64(unit) {
			return 0, fmt.Errorf("%s is longer than 292 years", quote(s))
		}
		total += time.Duration(count) * unit
	}
	return total, nil
}

// unitLength is the length of a unit by its name, or 0.
func unitLength(name string) time.Duration {
	if name == "µs" || name == "μs" {
		name = "us"
	}
	for _, u := range units {
		if u.name == name {
			return u.length
		}
	}
	return 0
}

// FormatWindow writes a duration as [ParseWindow] reads it, in days and shorter
// units. What is below a microsecond is written as Go does and not read back.
func FormatWindow(d time.Duration) string {
	if d <= 0 || d%time.Microsecond != 0 {
		return d.String()
	}
	var b []byte
	for _, u := range units[1:] {
		if n := d / u.length; n > 0 {
			b = append(strconv.AppendInt(b, int64(n), 10), u.name...)
			d -= n * u.length
		}
	}
	return string(b)
}
