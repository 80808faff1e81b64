//go:build !race

package urlpath_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/urlpath"
)

func TestCleanPathsAllocateNothing(t *testing.T) {
	for _, path := range []string{"/", "*", "/api/v1/users/42", "/.well-known/x/", "/a%20b/caf%C3%A9;x=1", "/" + strings.Repeat("segment/", 1000)} {
		got := testing.AllocsPerRun(100, func() {
			if clean, err := urlpath.Clean(path); clean != path || err != nil {
				t.Fatalf("Clean(%q) = %q, %v", path, clean, err)
			}
			urlpath.WithoutParams("/api/v1/users/42")
			urlpath.Decode("alice")
		})
		if got != 0 {
			t.Errorf("%.20q: %v allocations, want 0", path, got)
		}
	}
}
