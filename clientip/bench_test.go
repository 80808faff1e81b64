package clientip_test

import (
	"strings"
	"testing"
)

func BenchmarkResolve(b *testing.B) {
	for _, c := range []struct {
		name, header string
		lines        []string
	}{
		{"list", "X-Forwarded-For", []string{"192.0.2.1, 203.0.113.7, 10.0.0.9"}},
		{"forwarded", "Forwarded", []string{`for=192.0.2.1, for="[2001:db8::1]:443";proto=https, for=10.0.0.9`}},
		{"megabyte", "X-Forwarded-For", []string{strings.Repeat("1", 1<<20)}},
		{"megabyte of quotes", "Forwarded", []string{strings.Repeat(`\"`, 1<<19)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r, peer := resolver(b, c.header, "10.0.0.0/8", "192.168.0.0/16"), addr("10.0.0.1")
			b.ReportAllocs()
			for b.Loop() {
				r.Resolve(peer, c.lines)
			}
		})
	}
}
