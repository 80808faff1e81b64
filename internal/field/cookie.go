package field

import "strings"

// Cookie returns the first cookie of a name that http.Request.Cookie would find,
// without making a list of all of them. Cookies with bytes that have no place in a
// value are none there and none here.
func Cookie(lines []string, name string) (value string, ok bool) {
	for _, line := range lines {
		for more := true; more; {
			var part string
			part, line, more = strings.Cut(line, ";")
			key, value, _ := strings.Cut(strings.Trim(part, " \t\r\n"), "=")
			if strings.Trim(key, " \t\r\n") != name {
				continue
			}
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			if isCookieValue(value) {
				return value, true
			}
		}
	}
	return "", false
}

func isCookieValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
