// Package token knows the tokens of HTTP, as names of headers and cookies are.
package token

import "strings"

// Valid reports whether s is a token of RFC 9110 section 5.6.2.
func Valid(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !alphanumeric && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
