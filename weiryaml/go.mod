module github.com/weirhq/weir/weiryaml

go 1.26.0

require (
	github.com/weirhq/weir v0.1.0
	go.yaml.in/yaml/v4 v4.0.0
)
