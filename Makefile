# Every target says what it does: `make` prints the list.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO      ?= go
MODULES := . weirrueidis weirgoredis weiryaml server bench chaos
# What the tests run against, installed by `make test` only where it is missing.
TOOLS   := nginx chromium redis-server redis-sentinel

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 16

build: ## build bin/weir
	$(GO) build -trimpath -o bin/weir ./server/cmd/weir

run: build ## start the gateway of examples/quickstart.yaml with a demo site behind it, on 127.0.0.1:8080
	bin/weir serve --config examples/quickstart.yaml --demo

test: tools ## install what the tests need, then run all checks and all tests (once plain, once under the race detector)
	$(MAKE) --no-print-directory check
	for m in $(MODULES); do (cd $$m && $(GO) test ./...); done
	for m in . weirrueidis weirgoredis weiryaml server; do (cd $$m && $(GO) test -race ./...); done

check: ## gofmt, go vet and staticcheck, in every module
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo 'gofmt these:'; gofmt -l $$(git ls-files '*.go'); exit 1; }
	for m in $(MODULES); do (cd $$m && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...); done

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

tools: ## install, by apt and only if missing, the programs the tests run against
	@missing=$$(for t in $(TOOLS); do command -v $$t >/dev/null || echo $$t; done); \
	if [ -n "$$missing" ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; fi

scripts: ## run the behaviour scripts of testdata/decisions and show each
	$(GO) test -v -run Scripts . ./weirtest/...

fuzz: ## fuzz every parser and the arithmetic for FUZZTIME each (default 30s)
	@set -e; for m in . weiryaml server; do for f in $$(cd $$m && grep -rlE '^func Fuzz' --include='*_test.go' .); do \
	  for t in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$m/$$f); do \
	    echo "== $$m $$f $$t"; (cd $$m && $(GO) test -run '^$$' -fuzz "^$$t\$$" -fuzztime $${FUZZTIME:-30s} -fuzzminimizetime 10x ./$$(dirname $$f)); \
	  done; done; done

bench: ## measure Memory and Limiter beside other limiters, in one run (about ten minutes)
	cd bench && $(GO) run ./cmd/table

bench-redis: ## measure Redis beside other limiters on it, in one run (about ten minutes)
	cd bench && $(GO) run ./cmd/redis

chaos: tools ## let Redis and nodes die in every way under load, for minutes, and write dist/chaos.md
	mkdir -p dist
	cd chaos && $(GO) test -count=1 -timeout 60m -v . -span $${SPAN:-5s} -report ../dist/chaos.md

replay: build ## replay the 10,000 requests of testdata/access.log through examples/access-log.yaml
	bin/weir replay --rules examples/access-log.yaml testdata/access.log

tidy: ## go mod tidy in every module, with the modules of this tree standing in for their releases
	for m in weirrueidis weirgoredis weiryaml server bench chaos; do (cd $$m && cp go.mod tidy.mod && { cp go.sum tidy.sum 2>/dev/null || true; } \
	  && $(GO) mod edit -replace github.com/weirhq/weir=.. -replace github.com/weirhq/weir/weiryaml=../weiryaml -replace github.com/weirhq/weir/weirrueidis=../weirrueidis -replace github.com/weirhq/weir/weirgoredis=../weirgoredis tidy.mod \
	  && GOWORK=off $(GO) mod tidy -modfile=tidy.mod \
	  && $(GO) mod edit -dropreplace github.com/weirhq/weir -dropreplace github.com/weirhq/weir/weiryaml -dropreplace github.com/weirhq/weir/weirrueidis -dropreplace github.com/weirhq/weir/weirgoredis tidy.mod \
	  && mv tidy.mod go.mod && mv tidy.sum go.sum); done

clean: ## remove what build leaves
	rm -rf bin dist

.PHONY: help build run test check tools scripts fuzz bench bench-redis chaos replay tidy clean
