package weirredis

import (
	"testing"

	"github.com/weirhq/weir/internal/redistest"
)

// server starts a redis-server and returns where it is.
func server(t testing.TB) string { return redistest.Single(t).Addr }
