// Package field reads the fields of a request that clients write and rules count
// by, the same way from a live request and from a line of a log.
package field

import (
	"bytes"
	"crypto/sha256"
	"strings"
)

// maxValue is the length in bytes up to which a value is a key as it is.
const maxValue = 1 << 10

// Bound makes a key of the value that dst holds from byte at on. What it cuts is
// longer than any value that it leaves, so no client can write the cut form of
// somebody else's value.
func Bound(dst []byte, at int) ([]byte, bool) {
	value := dst[at:]
	if len(value) > maxValue {
		value = bytes.TrimSpace(value)
		if len(value) > maxValue {
			sum := sha256.Sum256(value)
			value = append(value[:maxValue], sum[:]...)
		}
		dst = append(dst[:at], value...)
	}
	return dst, len(value) > 0
}

// Hostname is a Host field without port, brackets and the dot of the DNS root, in
// lower case: the names of one host.
func Hostname(host string) string {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else if i := strings.IndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i+1:], ':') < 0 {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
