package weirredis

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

// opener makes stores that share a server and know nothing of each other's keys.
func opener(t testing.TB, o Options) func(testing.TB, weir.Clock) weir.Store {
	c := dial(t, server(t))
	var n atomic.Int64
	return func(_ testing.TB, clock weir.Clock) weir.Store {
		o := o
		o.Clock, o.Prefix = clock, fmt.Sprintf("{%s/%d}", t.Name(), n.Add(1))
		return New(c, o)
	}
}

func TestTheStoreKeepsEveryPromise(t *testing.T) { weirtest.TestStore(t, opener(t, Options{})) }

func TestEveryScriptOfTheArithmetic(t *testing.T) {
	weirtest.RunScripts(t, os.DirFS("../testdata/decisions"), opener(t, Options{}))
}
