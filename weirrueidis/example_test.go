package weirrueidis_test

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirrueidis"
)

// Ten requests a second for each client, counted by all processes that share a Redis.
func Example() {
	client, err := weirrueidis.New(weirrueidis.Options{Addresses: []string{"127.0.0.1:6379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	limiter, err := weir.New(weirredis.New(client, weirredis.Options{}), weir.Ruleset[string]{
		Rules: []weir.Rule[string]{{
			Name:   "api",
			Limits: []weir.Limit{weir.PerSecond(10)},
			Key:    func(dst []byte, addr string) ([]byte, bool) { return append(dst, addr...), true },
		}},
	}, weir.Options[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// While Redis cannot be asked, each process decides by itself.
	d, err := limiter.Take(context.Background(), "203.0.113.9")
	fmt.Println(d.Allowed, err)
	// Output:
	// true <nil>
}
