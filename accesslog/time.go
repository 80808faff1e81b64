package accesslog

import (
	"math"
	"strconv"
	"strings"
)

const (
	second = 1_000_000 // in microseconds, as all times here
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// parseTime reads a time into microseconds since 1970: as the common log format
// has it, in the notations of ISO 8601 that loggers use, with / for - too, or as
// a number. Digits past the microsecond are cut off. A time without a zone is UTC.
func parseTime(s string) (int64, bool) {
	var date int64
	switch {
	case len(s) >= len("02/Jan/2006:15:04:05") && s[2] == '/' && s[6] == '/' && s[11] == ':':
		date = days(digits(s[7:11]), month(s[3:6]), digits(s[:2]))
		s = s[12:]
	case len(s) >= len("2006-01-02T15:04:05") && (s[4] == '-' || s[4] == '/') && s[7] == s[4] && (s[10] == 'T' || s[10] == ' '):
		date = days(digits(s[:4]), digits(s[5:7]), digits(s[8:10]))
		s = s[11:]
	default:
		return parseEpoch(s)
	}

	// s is hh:mm:ss and more. A leap second is counted to the next minute.
	h, m, sec := digits(s[:2]), digits(s[3:5]), digits(s[6:8])
	if date < 0 || s[2] != ':' || s[5] != ':' || h < 0 || h > 23 || m < 0 || m > 59 || sec < 0 || sec > 60 {
		return 0, false
	}
	at := date*day + int64(h)*hour + int64(m)*minute + int64(sec)*second
	s = s[8:]
	if s != "" && (s[0] == '.' || s[0] == ',') {
		micros, n := fraction(s[1:])
		if n == 0 {
			return 0, false
		}
		at += micros
		s = s[1+n:]
	}
	offset, ok := parseZone(s)
	at -= offset
	return at, ok && at >= 0
}

// parseZone reads what follows the seconds: nothing, Z, +hhmm, +hh:mm or +hh,
// perhaps after a space.
func parseZone(s string) (int64, bool) {
	if s != "" && s[0] == ' ' {
		s = s[1:]
	}
	if s == "" || s == "Z" || s == "z" {
		return 0, true
	}
	sign := int64(1)
	if s[0] == '-' {
		sign = -1
	} else if s[0] != '+' {
		return 0, false
	}
	h, m := -1, 0
	switch s = s[1:]; {
	case len(s) == 4:
		h, m = digits(s[:2]), digits(s[2:])
	case len(s) == 5 && s[2] == ':':
		h, m = digits(s[:2]), digits(s[3:])
	case len(s) == 2:
		h = digits(s)
	}
	if h < 0 || h > 23 || m < 0 || m > 59 {
		return 0, false
	}
	return sign * (int64(h)*hour + int64(m)*minute), true
}

// parseEpoch reads a time since 1970 as a number. Its size tells the unit: 12
// digits before the point would be the year 5138 in seconds, so from there on it
// is milliseconds, and so on by thousands down to nanoseconds.
func parseEpoch(s string) (int64, bool) {
	whole, rest, _ := strings.Cut(s, ".")
	if strings.ContainsAny(s, "eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0 && f < 1e11) {
			return 0, false
		}
		return int64(math.Round(f * second)), true
	}
	n := digits64(whole)
	if n < 0 {
		return 0, false
	}
	micros, width := fraction(rest)
	if width != len(rest) {
		return 0, false
	}
	switch {
	case len(whole) < 12:
		return n*second + micros, true
	case len(whole) < 15:
		return n*1000 + micros/1000, true
	case len(whole) < 18:
		return n, true
	}
	return n / 1000, true
}

// fraction reads the digits that s begins with as those after a point, in
// microseconds, and tells how many there are.
func fraction(s string) (micros int64, n int) {
	unit := int64(second)
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		unit /= 10
		micros += int64(s[n]-'0') * unit
		n++
	}
	return micros, n
}

// days counts the days from 1970-01-01 to a date of the Gregorian calendar, and
// is negative if there is no such date or it is before. Years begin in March
// here, so that the leap day is the last of its year; see Howard Hinnant,
// "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
func days(year, month, day int) int64 {
	if year < 1970 || month < 1 || month > 12 || day < 1 || day > monthLength(year, month) {
		return -1
	}
	m := month - 3
	if m < 0 {
		m += 12
		year--
	}
	era := year / 400
	ofEra := year % 400
	ofYear := (153*m+2)/5 + day - 1
	return int64(era*146097 + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - 719468)
}

func monthLength(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// month returns the number of an English month's first three letters, 0 if s is
// none.
func month(s string) int {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for i := 0; i < len(names); i += 3 {
		if names[i:i+3] == s {
			return i/3 + 1
		}
	}
	return 0
}

// digits reads a short number, and returns -1 if s is anything else.
func digits(s string) int {
	if len(s) > 9 {
		return -1
	}
	return int(digits64(s))
}

// digits64 reads a number of up to 19 digits below 2^63, and returns -1 if s is
// anything else.
func digits64(s string) int64 {
	if s == "" || len(s) > 19 {
		return -1
	}
	var n int64
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return -1
		}
		n = n*10 + int64(c)
	}
	// Nineteen digits reach 2^63, and fall short of twice that: it shows as a sign.
	return max(n, -1)
}
