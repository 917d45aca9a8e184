# `make` alone lists the targets. Parsing this file runs no program and uses no network.

.DEFAULT_GOAL := help
.SUFFIXES:
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# All builds have the same flags, so that they share Go's build cache. Without a VCS stamp, equal
# sources give equal binaries, so a commit alone does not change the content-based names of images.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

# Variables of `make e2e`, `make up` and `make publish`. Except for NODE_IMAGE, make reads them only
# from its command line, because their names are general: a variable that is exported for another
# program must not change a run. `note-ignored` prints the ignored variables.
export NODE_IMAGE
SETTINGS := RUN KEEP LEAVE LANE CONFIG MATRIX SOAK SEED REGISTRY ALIAS
IGNORED := $(strip $(foreach name,$(SETTINGS),$(if $(filter environment%,$(origin $(name))),$(name))))
export $(filter-out $(IGNORED),$(SETTINGS))
unexport $(IGNORED)
# The value of a variable, empty if it is ignored.
given = $(if $(filter $(1),$(IGNORED)),,$($(1)))
# The time for each fuzz test of `make fuzz`.
FUZZTIME ?= 1m
# ARGS are flags of `make bench-controller`, `make bench-cache`, `make nodeless` and `make dev`, the
# process of `make debug`, and the names of planted bugs for `make e2e-mutants`.
ARGS ?=
# The Skaffold command of `make dev`: dev, run, render or delete.
VERB ?= dev
# A $ in RUN belongs to the regular expression, not to make.
ifeq ($(origin RUN),command line)
override RUN := $(value RUN)
endif
note-ignored = @[ -z "$(IGNORED)" ] || echo "ignored from the environment: $(IGNORED); use: make $@ NAME=VALUE" >&2

LINT := bin/golangci-lint
ACTIONLINT := bin/actionlint
PROMTOOL := bin/promtool
SKAFFOLD := bin/skaffold
KUBECTL := bin/kubectl
DLV := bin/dlv
# The programs that the scenario inner-loop runs.
INNER_LOOP := $(SKAFFOLD) $(KUBECTL) bin/testbed
# What the scenario garden-published publishes.
RELEASE := images bin/publish
SEED_KUBECONFIG := .testbed/registry-cache/seed.kubeconfig
# Finds the files of the repository, without those that a run builds, downloads or creates.
FILES = find . -type d \( -name .git -o -name .testbed -o -name _artifacts -o -path ./bin \) -prune -o -type f

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

##@ Check

# golangci-lint runs all analyzers of vet. Without a build cache, go vet and the vet of go test would
# each analyze all dependencies once more.
.PHONY: test
test: format shellcheck unit nodeless lint ## Run all checks that need no nodes: gofmt, shellcheck, vet, unit tests, scenarios without nodes, lint

.PHONY: unit
unit: $(PROMTOOL) ## Run the unit tests of all packages
	go test -vet=off -timeout 15m ./...
	go -C tools/images test -vet=off ./...

.PHONY: nodeless
nodeless: bin/nodeless.test ## Run the scenarios that need no node, on API servers that run as processes (ARGS=-test.run=TestScenarios/two-shoots)
	@cd e2e/nodeless && exec ../../bin/nodeless.test -test.timeout=15m $(ARGS)

.PHONY: vet
vet: ## Run go vet, also on the scenarios
	go vet ./...
	go vet -tags e2e ./e2e/...

.PHONY: format
format: ## List the Go files that gofmt would change, and fail if there are any
	@files=$$(gofmt -l $$($(FILES) -name '*.go' -print)); \
	if [ -n "$$files" ]; then echo "gofmt would change these files; run: gofmt -w FILE" >&2; echo "$$files" >&2; exit 1; fi

.PHONY: lint
lint: $(LINT) $(ACTIONLINT) ## Run golangci-lint, which also checks the imports between layers, and actionlint
	$(LINT) run ./...
	$(ACTIONLINT)

.PHONY: shellcheck
shellcheck: ## Run shellcheck on every shell script; on Debian and Ubuntu, install a missing shellcheck
	@command -v shellcheck >/dev/null || .ci/setup shellcheck
	$(FILES) -exec awk 'FNR == 1 && /^#!.*sh/ {print FILENAME} {nextfile}' {} + | xargs -r shellcheck

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME=1m; failing inputs are written to testdata/fuzz
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file name; do \
		echo "==> $$(dirname $$file) $${name#func }" >&2; \
		go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" || exit 1; \
	done

.PHONY: bench-controller
bench-controller: bin/bench ## Measure the extension on a seed with up to 3,000 Shoots (ARGS='-n 10,100', ARGS=--extension=old,new)
	@exec ./bin/bench controller $(ARGS)

.PHONY: bench-cache
bench-cache: bin/bench ## Compare the cache with stock distribution, nginx and no cache, 15 min (ARGS=--quick)
	@exec ./bin/bench cache $(ARGS)

##@ The testbed

.PHONY: e2e
e2e: ## Create a testbed, run the scenarios of the fast lane, remove the testbed (RUN=regexp, KEEP=1 keeps the testbed, LEAVE=1 also its last state, NODE_IMAGE=kindest/node:...)
	$(note-ignored)
	@exec ./bin/e2e.test -test.timeout=60m

e2e: bin/e2e.test $(if $(if $(call given,RUN),$(findstring inner,$(call given,RUN)),$(filter full,$(call given,LANE))),$(INNER_LOOP)) $(if $(filter %/garden.yaml,$(call given,CONFIG)),$(RELEASE))

.PHONY: e2e-all
e2e-all: bin/e2e.test $(INNER_LOOP) $(RELEASE) ## Create a testbed, run all scenarios but failover-old and soak, with all field bugs (docs/field-bugs.md), and `make e2e-matrix`, remove the testbed (KEEP=1 keeps it)
	$(note-ignored)
	@exec tools/e2e-all

.PHONY: e2e-matrix
e2e-matrix: bin/e2e.test bin/testbed $(RELEASE) ## Run scenarios on testbeds that differ from the default in IP family, kube-proxy mode, containerd or number of workers (MATRIX=regexp, KEEP=1)
	$(note-ignored)
	@exec e2e/matrix/run

.PHONY: e2e-versions
e2e-versions: bin/e2e.test bin/testbed ## Run scenarios on other versions of Kubernetes and containerd (docs/versions.md); the first run compiles them (MATRIX=regexp, KEEP=1)
	$(note-ignored)
	@exec e2e/matrix/run versions/kubernetes-{1.34,1.36,1.37}

.PHONY: e2e-garden
e2e-garden: bin/e2e.test bin/testbed $(RELEASE) ## Run scenarios in a testbed with Gardener's own control plane (KEEP=1)
	$(note-ignored)
	@MATRIX='^garden$$' exec e2e/matrix/run

.PHONY: e2e-registries
e2e-registries: bin/e2e.test ## Pull through caches whose upstreams answer like known registries: cold, warm, without a valid token, in an outage (KEEP=1)
	$(note-ignored)
	@RUN='^registries' exec ./bin/e2e.test -test.timeout=60m

.PHONY: failover failover-midway failover-old
failover: bin/e2e.test ## Compare pulls during and after each failure of a cache with direct ones (KEEP=1)
	$(note-ignored)
	@RUN='^failover$$' exec ./bin/e2e.test -test.timeout=60m

failover-midway: bin/e2e.test ## Let a cache fail during pulls, in each way (KEEP=1)
	$(note-ignored)
	@RUN='^failover-midway$$' exec ./bin/e2e.test -test.timeout=60m

failover-old: bin/e2e.test ## Let a cache fail in each way while nodes have the configuration that Gardener writes (KEEP=1)
	$(note-ignored)
	@RUN='^failover-old$$' exec ./bin/e2e.test -test.timeout=60m

.PHONY: soak
soak: bin/e2e.test ## Let caches fail at random while each worker pulls every five seconds (SOAK=30m, SEED=n, KEEP=1)
	$(note-ignored)
	@RUN='^soak$$' exec ./bin/e2e.test -test.timeout=8h

.PHONY: e2e-mutants
e2e-mutants: bin/e2e.test bin/testbed ## Plant eighteen bugs, one after another, and check that scenarios fail. The testbed is kept, with a garden. (ARGS=cleaner-skipped plants only this bug, KEEP=1 leaves the last one)
	$(note-ignored)
	@go test -c -tags e2e -o bin/plantedbugs.test ./e2e/plantedbugs
	@cd e2e/plantedbugs && exec ../../bin/plantedbugs.test -test.v -test.run='^TestScenariosCatchBugs$$' -test.timeout=8h $(ARGS)

.PHONY: e2e-survival
e2e-survival: bin/survival.test bin/testbed ## Kill running commands and the engine, fill disks, check that `down` removes everything (15 min, dedicated machine, root)
	@exec e2e/survival/machine ./bin/survival.test -test.v -test.timeout=60m $(ARGS)

.PHONY: up
up: bin/testbed ## Create, update or repair the testbed, and keep it (NODE_IMAGE=...)
	@exec ./bin/testbed up

.PHONY: status
status: bin/testbed ## Show the state of the testbed
	@exec ./bin/testbed status

.PHONY: down
down: bin/testbed ## Remove the testbed
	@exec ./bin/testbed down

.PHONY: dev
dev: $(SKAFFOLD) $(KUBECTL) bin/testbed ## Build and deploy to the running testbed on each change of the sources, with Skaffold (VERB=run or VERB=delete instead of dev; ARGS are flags of Skaffold)
	@[ -e $(SEED_KUBECONFIG) ] || { echo "the testbed is not running; run: make up" >&2; exit 3; }
	@PATH="$(CURDIR)/bin:$$PATH" KUBECONFIG=$(SEED_KUBECONFIG) exec ./$(SKAFFOLD) $(VERB) $(ARGS)

.PHONY: debug
debug: $(DLV) ## Attach Delve, as root on the machine of the testbed, to the extension (ARGS=PID for another process, such as a cache)
	@exec ./$(DLV) attach $(or $(ARGS),"$$(pgrep -o -f '^/registry-cache-extension ')")

##@ Build

.PHONY: build
build: ## Build the programs in cmd/ into bin/
	go build -o bin/ ./cmd/...

.PHONY: images
images: bin/build-images ## Build the images of a release for amd64 and arm64, and their SBOMs, into bin/images, without Docker
	@exec ./bin/build-images

.PHONY: reproducible
reproducible: images ## Build the images of HEAD again, in another folder and without Go's build cache, and compare their digests
	@work=$$(mktemp -d); trap 'git worktree remove --force "$$work/tree"; rm -rf "$$work"' EXIT; \
	git worktree add --quiet --detach "$$work/tree"; (cd "$$work/tree"; GOCACHE="$$work/cache" "$(CURDIR)/bin/build-images"); \
	cmp "$$work/tree/bin/images/index.json" bin/images/index.json

.PHONY: publish
publish: $(RELEASE) ## Push images, SBOMs and charts (REGISTRY=registry.example.org/gardener, ALIAS=its name in clusters), see docs/operations.md
	$(note-ignored)
	@exec ./bin/publish --registry "$(call given,REGISTRY)" --alias "$(call given,ALIAS)"

.PHONY: release
release: ## Check that VERSION can be released, and print its notes (ARGS=--tag also creates the tag)
	@exec tools/release $(ARGS)

.PHONY: generate
generate: ## Generate Go files from the API types
	go generate ./...

.PHONY: golden
golden: ## Rewrite the golden files; review the diff afterwards
	UPDATE_GOLDEN=1 go test ./...

.PHONY: field-bugs
field-bugs: ## Generate docs/field-bugs.md from the catalog
	@UPDATE_GOLDEN=1 go test -run '^TestPage$$' ./cachetest/fieldbugs

.PHONY: failover-page
failover-page: ## Update docs/failover.md with the results in _artifacts
	@FAILOVER="$(wildcard $(CURDIR)/_artifacts/failover.json $(CURDIR)/_artifacts/*/failover.json)" UPDATE_GOLDEN=1 go test -count=1 -run '^TestPages$$/^failover$$' ./e2e/report

.PHONY: registries-page
registries-page: ## Update docs/registries.md with the results of the last `make e2e-registries`
	@REGISTRIES="$(wildcard $(CURDIR)/_artifacts/registries.json)" UPDATE_GOLDEN=1 go test -count=1 -run '^TestPages$$/^registries$$' ./e2e/report

.PHONY: tools
tools: ## Install shellcheck as a Debian package, and build golangci-lint and promtool
	.ci/setup
	$(MAKE) --no-print-directory $(LINT) $(PROMTOOL)

.PHONY: clean
clean: ## Remove bin/ and _artifacts/, but not the testbed (`make down`)
	rm -rf bin _artifacts

# golangci-lint must be built with at least the Go version in go.mod.
$(LINT): tools/golangci-lint/go.mod tools/golangci-lint/go.sum
	cd tools/golangci-lint && go build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(ACTIONLINT): tools/actionlint/go.mod tools/actionlint/go.sum
	cd tools/actionlint && go build -o ../../$@ github.com/rhysd/actionlint/cmd/actionlint

# The tag excludes Prometheus's service discovery, which needs the libraries of every cloud provider.
$(PROMTOOL): tools/promtool/go.mod tools/promtool/go.sum
	@echo "building promtool; the first build takes some minutes" >&2
	cd tools/promtool && go build -tags remove_all_sd -o ../../$@ github.com/prometheus/prometheus/cmd/promtool

bin/build-images: $(wildcard tools/images/*.go) tools/images/go.mod tools/images/go.sum
	@echo "building ko; the first build takes some minutes" >&2
	cd tools/images && go build -o ../../$@ .

# tools/skaffold/go.mod repeats the replace directives of Skaffold's go.mod.
$(SKAFFOLD): tools/skaffold/go.mod tools/skaffold/go.sum
	@echo "building skaffold; the first build takes some minutes" >&2
	cd tools/skaffold && version=$$(go list -m -f '{{.Version}}' github.com/GoogleContainerTools/skaffold/v2) && \
	go build -ldflags "-s -w -X github.com/GoogleContainerTools/skaffold/v2/pkg/skaffold/version.version=$$version" \
		-o ../../$@ github.com/GoogleContainerTools/skaffold/v2/cmd/skaffold

$(DLV): tools/delve/go.mod tools/delve/go.sum
	cd tools/delve && go build -ldflags '-s -w' -o ../../$@ github.com/go-delve/delve/cmd/dlv

# Skaffold runs kubectl. The version is the same as on every node.
$(KUBECTL): kind/nodeimage/modules/kubernetes/go.mod kind/nodeimage/modules/kubernetes/go.sum
	@echo "building kubectl; the first build takes some minutes" >&2
	cd kind/nodeimage/modules/kubernetes && IFS=v. read -r _ major minor patch <<<"$$(go list -m -f '{{.Version}}' k8s.io/kubernetes)" && \
	stamp="-X k8s.io/component-base/version" && \
	go build -ldflags "-s -w $$stamp.gitVersion=v$$major.$$minor.$$patch $$stamp.gitMajor=$$major $$stamp.gitMinor=$$minor" \
		-o ../../../../$@ k8s.io/kubernetes/cmd/kubectl

# Phony, because Go's build cache determines what must be rebuilt.
.PHONY: bin/e2e.test bin/nodeless.test bin/survival.test bin/testbed bin/bench bin/publish
bin/e2e.test:
	@[ -e $@ ] || echo "building the scenarios; the first build takes some minutes" >&2
	@go test -c -tags e2e -o $@ ./e2e
bin/nodeless.test:
	@[ -e $@ ] || echo "building the scenarios without nodes; the first build takes some minutes" >&2
	@go test -c -tags e2e -o $@ ./e2e/nodeless
bin/survival.test:
	@go test -c -tags e2e -o $@ ./e2e/survival
bin/testbed:
	@go build -o $@ ./cmd/testbed
bin/bench:
	@go build -o $@ ./cmd/bench
bin/publish:
	@go build -o $@ ./cmd/publish
