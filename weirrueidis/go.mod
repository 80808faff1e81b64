module github.com/weirhq/weir/weirrueidis

go 1.26.0

require (
	github.com/redis/rueidis v1.0.80
	github.com/weirhq/weir v0.1.0
)

require golang.org/x/sys v0.50.0 // indirect
