package urlpath_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/urlpath"
)

func BenchmarkClean(b *testing.B) {
	for _, c := range []struct{ name, path string }{
		{"clean", "/api/v1/users/42/orders"},
		{"escaped", "/api/v1/caf%C3%A9/a%20b"},
		{"odd", "/api/./v1//x/../%75sers/42"},
		{"64 KiB of dots", strings.Repeat("/a/..", 1<<16/5)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := urlpath.Clean(c.path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
