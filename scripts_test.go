package weir_test

import (
	"os"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

func openMemory(_ testing.TB, c weir.Clock) weir.Store {
	return weir.NewMemory(weir.MemoryOptions{Clock: c})
}

// TestScripts runs the behaviour of limits as it is written in testdata.
func TestScripts(t *testing.T) {
	weirtest.RunScripts(t, os.DirFS("testdata/decisions"), openMemory)
}
