package weirtest_test

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

// A script runs without a *testing.T, too.
func ExampleRun() {
	script, err := weirtest.Parse("login.weir", []byte(`
policy login  5 per 1m
at 0s   take alice x5   ok      remaining 0
at 1s   take alice      refuse  retry 12s
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var clock weirtest.Clock
	store := weir.NewMemory(weir.MemoryOptions{Clock: &clock})
	fmt.Println(weirtest.Run(context.Background(), script, &clock, weirtest.OnStore(store)))
	// Output:
	// login.weir:4: at 1s   take alice      refuse  retry 12s
	// 	at   1s
	// 	want retry 12s
	// 	got  refuse by login retry 11s (login: remaining 0, reset 59s, over, retry 11s)
}
