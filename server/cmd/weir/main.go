// Command weir limits the rate of requests to an API. weir --help says how.
package main

import (
	"context"
	"os"

	"github.com/weirhq/weir/server/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
