//go:build !race

package smooth_test

import (
	"testing"

	"github.com/weirhq/weir/smooth"
)

// The race detector allocates on its own, so this is not built under it.
func TestTryAcquireAllocatesNothing(t *testing.T) {
	free, busy := newBursty(t, 1e9, smooth.Options{}), newBursty(t, 1e-9, smooth.Options{})
	if _, err := busy.TryAcquire(1, 0); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		l    *smooth.Limiter
		want bool
	}{"granted": {free, true}, "refused": {busy, false}} {
		got := testing.AllocsPerRun(1000, func() {
			if ok, err := c.l.TryAcquire(1, 0); ok != c.want || err != nil {
				t.Fatal(ok, err)
			}
		})
		if got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
