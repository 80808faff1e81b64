module github.com/weirhq/weir/bench

go 1.26.0

require (
	github.com/go-chi/httprate v0.16.1
	github.com/maypok86/otter/v2 v2.4.0
	github.com/sethvargo/go-limiter v1.0.0
	github.com/throttled/throttled/v2 v2.15.0
	github.com/ulule/limiter/v3 v3.11.2
	github.com/weirhq/weir v0.1.0
	golang.org/x/time v0.16.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/rueidis v1.0.80 // indirect
	go.uber.org/atomic v1.12.0 // indirect
)

require (
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/hashicorp/golang-lru v0.5.4 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/redis/go-redis/v9 v9.24.0
	github.com/weirhq/weir/weirrueidis v0.1.0
	github.com/zeebo/xxh3 v1.1.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
