# Every target works from a fresh clone with Go alone, but that race needs a C
# compiler, and whatever runs tests needs PostgreSQL's programs, which .ci/postgres
# installs where it may. Tools are pinned in go.mod and run by "go tool".

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
export GOFLAGS := $(GOFLAGS) -mod=readonly
export CGO_ENABLED := 0

# One of each operating system, and both processors: every further one compiles all
# dependencies once more.
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64

FUZZTIME ?= 10s
FUZZJOBS ?= 1
# A run of the simulator or of a kit follows from SEED.
SEED ?= 1
RUNS ?= 200000
REPEAT ?= 1
SOAK ?= 10m
SOAK_RUNS ?=
BENCH ?= .
BENCHTIME ?= 1s
PEERS ?=
TIMEOUT ?= 5m
# RACE: auto uses the race detector if there is a C compiler, on demands it,
# off does without.
RACE ?= auto

# Packages without a goroutine, clock, file or socket: internal/archtest holds
# them to that, and the race detector has nothing to find in them. Every other
# package, a new one too, is tested under it.
PURE := github.com/agentic-go/agentic(/internal/(strictjson|escape|inputschema|archtest))?
have_cc = $(shell command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo yes)
race_flags = $(if $(filter on,$(RACE))$(if $(filter auto,$(RACE)),$(have_cc)),-race)

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the static binary ./agentic, stamped with the version of its commit
	$(GO) build -trimpath -buildvcs=auto -ldflags '-s -w' -o ./ ./cmd/agentic

.PHONY: postgres-programs
postgres-programs:
	@.ci/postgres

.PHONY: test
test: postgres-programs ## run all tests, the concurrent packages under the race detector (RACE=auto|on|off)
	@$(if $(race_flags),,echo "make: no race detector in this run (RACE=$(RACE), C compiler: $(or $(have_cc),none))" >&2)
	@pure=$$($(GO) list ./... | grep -xE '$(PURE)'); \
		other=$$($(GO) list ./... | grep -vxE '$(PURE)'); \
		rc=0; \
		$(GO) test -count=1 -timeout $(TIMEOUT) $$pure || rc=1; \
		CGO_ENABLED=$(if $(race_flags),1,0) $(GO) test -count=1 -timeout $(TIMEOUT) $(race_flags) $$other || rc=1; \
		exit $$rc

.PHONY: race
race: postgres-programs ## run every test under the race detector
	CGO_ENABLED=1 $(GO) test -count=1 -timeout $(TIMEOUT) -race ./...

.PHONY: lint
lint: lint-fmt lint-vet lint-static lint-rules lint-mod lint-build ## run every check that is not a test

.PHONY: lint-fmt
lint-fmt: ## gofmt has nothing to change
	@files=$$(gofmt -l .); [ -z "$$files" ] || { printf 'gofmt would change:\n%s\n' "$$files" >&2; exit 1; }

.PHONY: lint-vet
lint-vet: ## go vet, tests included, on each operating system
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=windows GOARCH=amd64 $(GO) vet ./...

.PHONY: lint-static
lint-static: ## staticcheck
	$(GO) tool staticcheck ./...

.PHONY: lint-rules
lint-rules: ## the import rule and the rest of internal/archtest
	$(GO) test -count=1 ./internal/archtest

.PHONY: lint-mod
lint-mod: ## go.mod and go.sum are tidy and the modules are unchanged
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: lint-build
lint-build: ## the product builds without cgo on every platform
	@for p in $(PLATFORMS); do \
		echo "GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./..."; \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./...; \
	done

# Fuzz targets and benchmarks are found by their names, so none can be left out.
find_tests = find . -name '*_test.go' ! -path '*/testdata/*' ! -path './.*' -exec grep -lE '^func $(1)[A-Z_0-9][A-Za-z0-9_]*\(' {} + | LC_ALL=C sort

.PHONY: proof
proof: postgres-programs ## kill a publisher 1000 times, lose answers among 1000 tool calls, and try 10000 requests by a fleet under faults, which takes minutes
	AGENTIC_PROOF_KILLS=1000 $(GO) test -count=1 -timeout 30m -run '^TestServiceKilledUnderLoad$$' ./internal/proof
	AGENTIC_PROOF_REQUESTS=10000 $(GO) test -count=1 -timeout 45m -v -run '^TestFleet$$' ./internal/proof/hosts
	AGENTIC_PROOF_CALLS=1000 $(GO) test -count=1 -timeout 30m -v -run '^TestLosses$$' ./internal/proof/mcp

.PHONY: program
program:
	@mkdir -p dist
	@$(GO) build -trimpath -buildvcs=auto -o dist/ ./cmd/agentic

.PHONY: conformance
conformance: postgres-programs ## our client and service through the kits, REPEAT times, reports into dist/conformance
	@mkdir -p dist/conformance
	AGENTIC_PROOF_REPORTS='$(CURDIR)/dist/conformance' AGENTIC_PROOF_REPEAT=$(REPEAT) AGENTIC_PROOF_SEED=$(SEED) \
		$(GO) test -count=1 -timeout 60m -v ./internal/proof/kits
	@ls dist/conformance

.PHONY: simulate
simulate: program ## RUNS simulated runs (default 200000) with the seeds from SEED (default 1)
	dist/agentic conformance simulate --seed $(SEED) --runs $(RUNS) --trace dist/simulated-trace.txt

.PHONY: soak
soak: program postgres-programs ## simulator, kits, wire level and fuzzing with fresh seeds for SOAK (10m, 8h), or SOAK_RUNS simulated runs
	@SOAK='$(SOAK)' SOAK_RUNS='$(SOAK_RUNS)' SEED='$(if $(filter file,$(origin SEED)),,$(SEED))' GO='$(GO)' MAKE='$(MAKE)' .ci/soak

# The clients are other people's programs, pinned by their lock; nothing of them is run
# to install them.
.PHONY: mcp-clients
mcp-clients: ## drive 'agentic mcp' by MCP clients from npm, which needs npm and a network
	cd internal/proof/mcpclients && timeout 10m npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	AGENTIC_MCP_CLIENTS=1 $(GO) test -count=1 -timeout 15m -v ./internal/proof/mcpclients

.PHONY: fuzz-targets
fuzz-targets:
	@$(call find_tests,Fuzz) | while read -r file; do \
		sed -nE "s|^func (Fuzz[A-Za-z0-9_]+)\(.*|$${file%/*} \1|p" "$$file"; \
	done

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME each (default 10s), FUZZJOBS of them at once
	@$(MAKE) --no-print-directory -s fuzz-targets | GO='$(GO)' FUZZTIME=$(FUZZTIME) FUZZJOBS=$(FUZZJOBS) xargs -P $(FUZZJOBS) -L 1 .ci/fuzz

.PHONY: bench
bench: postgres-programs ## run the benchmarks, one package at a time (BENCH=regexp BENCHTIME=1s)
	@dirs=$$($(call find_tests,Benchmark) | xargs -n 1 dirname | sort -u); \
		$(GO) test -p 1 -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 30m $$dirs

# bench/ is a module of its own, so that what it compares with stays out of this one.
.PHONY: bench-peers
bench-peers: postgres-programs ## compare with durable workflows of a peer, and hold 5000 requests in flight (PEERS=flags)
	cd bench && $(GO) vet ./... && $(GO) test -count=1 -timeout $(TIMEOUT) ./... && $(GO) run . $(PEERS) && $(GO) run ./inflight

.PHONY: cover
cover: postgres-programs ## measure coverage of the whole by all tests, into dist/cover.html
	mkdir -p dist
	$(GO) test -count=1 -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=dist/cover.out ./...
	$(GO) tool cover -html=dist/cover.out -o dist/cover.html
	$(GO) tool cover -func=dist/cover.out | tail -n 1
