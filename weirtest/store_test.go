package weirtest_test

import (
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

func TestMemoryKeepsEveryPromise(t *testing.T) {
	weirtest.TestStore(t, func(_ testing.TB, c weir.Clock) weir.Store {
		return weir.NewMemory(weir.MemoryOptions{Clock: c})
	})
}

// TestASmallMemoryKeepsEveryPromise: one shard that is swept at every turn.
func TestASmallMemoryKeepsEveryPromise(t *testing.T) {
	weirtest.TestStore(t, func(_ testing.TB, c weir.Clock) weir.Store {
		return weir.NewMemory(weir.MemoryOptions{Clock: c, MaxKeys: 1000})
	})
}
