# What can be done here; `make` alone lists it.
# Parsing this file starts nothing and asks no network.

.DEFAULT_GOAL := help
.SUFFIXES:
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# One set of flags for every build, so that all of them share Go's build cache. Without the VCS stamp equal
# sources give equal binaries, and images that are named by their content stay the same from commit to commit.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

# Variables of `make e2e` and `make up`. All but NODE_IMAGE are read from make's command line alone: their names are general, and
# what a shell has set for another program must not change a run. What is left out so is said, see `note-ignored`.
export NODE_IMAGE
SETTINGS := RUN KEEP LANE CONFIG MATRIX MUTANT REPLACE
IGNORED := $(strip $(foreach name,$(SETTINGS),$(if $(filter environment%,$(origin $(name))),$(name))))
export $(filter-out $(IGNORED),$(SETTINGS))
unexport $(IGNORED)
# One of them, as it counts.
given = $(if $(filter $(1),$(IGNORED)),,$($(1)))
# How long `make fuzz` spends on each fuzz test.
FUZZTIME ?= 1m
# Flags of `make bench-controller`, such as ARGS=--quick, and of `make dev`, what `make debug` attaches to, and names of planted
# bugs for `make e2e-mutants`.
ARGS ?=
# What `make dev` lets Skaffold do: dev, run, render, delete.
VERB ?= dev
# A $ in RUN is a regular expression's, not make's.
ifeq ($(origin RUN),command line)
override RUN := $(value RUN)
endif
note-ignored = @[ -z "$(IGNORED)" ] || echo "not read from the environment: $(IGNORED); say: make $@ NAME=VALUE" >&2

LINT := bin/golangci-lint
PROMTOOL := bin/promtool
SKAFFOLD := bin/skaffold
KUBECTL := bin/kubectl
DLV := bin/dlv
# What the scenario inner-loop runs.
INNER_LOOP := $(SKAFFOLD) $(KUBECTL) bin/testbed
SEED_KUBECONFIG := .testbed/registry-cache/seed.kubeconfig
# Files of ours, with git or without: what is built, fetched or left behind by a run is not looked at.
FILES = find . -type d \( -name .git -o -name .testbed -o -name _artifacts -o -path ./bin \) -prune -o -type f

.PHONY: help
help: ## List these commands
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

##@ Check

.PHONY: test
test: format shellcheck vet unit lint ## Everything that needs no cluster: gofmt, vet, unit tests, lint, shellcheck

.PHONY: unit
unit: $(PROMTOOL) ## Unit tests of all packages, those that run the node script in bash among them
	go test -timeout 8m ./...

.PHONY: vet
vet: ## go vet, the scenarios included
	go vet ./...
	go vet -tags e2e ./e2e/...

.PHONY: format
format: ## Fail on Go files that gofmt would change, in every module of the repository
	@files=$$(gofmt -l $$($(FILES) -name '*.go' -print)); \
	if [ -n "$$files" ]; then echo "gofmt would change these files; run: gofmt -w FILE" >&2; echo "$$files" >&2; exit 1; fi

.PHONY: lint
lint: $(LINT) ## golangci-lint with .golangci.yaml
	$(LINT) run ./...

.PHONY: shellcheck
shellcheck: ## shellcheck on every file that starts with a shell's #! line
	@command -v shellcheck >/dev/null || { echo "shellcheck is not installed; run: make tools" >&2; exit 3; }
	$(FILES) -exec awk 'FNR == 1 && /^#!.*sh/ {print FILENAME} {nextfile}' {} + | xargs -r shellcheck

.PHONY: fuzz
fuzz: ## Every fuzz test in turn, FUZZTIME=1m each; a finding is stored below testdata/fuzz
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file name; do \
		echo "==> $$(dirname $$file) $${name#func }" >&2; \
		go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" || exit 1; \
	done

.PHONY: bench-controller
bench-controller: bin/bench-controller ## What the extension costs on a seed with up to 3,000 Shoots (ARGS=--quick, ARGS='--shoots=10,100')
	@exec ./bin/bench-controller $(ARGS)

##@ The testbed

.PHONY: e2e
e2e: bin/e2e.test $(if $(if $(call given,RUN),$(findstring inner,$(call given,RUN)),$(filter full,$(call given,LANE))),$(INNER_LOOP)) ## The scenarios of the fast lane from nothing, then clean up (RUN=regexp, KEEP=1, REPLACE=1, NODE_IMAGE=kindest/node:...)
	$(note-ignored)
	@exec ./bin/e2e.test -test.timeout=60m

# The matrix cleans up. Where it does not begin, since the lane was refused, had no testbed or broke off, what there is stays: it may be
# somebody's.
.PHONY: e2e-all
e2e-all: bin/e2e.test $(INNER_LOOP) ## Every scenario, every bug of the field (docs/field-bugs.md) and the matrix, from nothing, then clean up
	$(note-ignored)
	@cleanup() { [ "$${KEEP:-0}" != 0 ] || ./bin/testbed down || true; }; code=0; \
	trap 'trap "exit 130" INT TERM; cleanup; exit 130' INT TERM; \
	LANE=full KEEP=1 ./bin/e2e.test -test.timeout=80m || code=$$?; \
	case $$code in 2|3) echo 'the matrix does not begin; a testbed that is there stays: `make status` shows it, `make down` removes it' >&2; exit $$code ;; esac; \
	e2e/matrix/run || { matrix=$$?; [ "$$code" != 0 ] || code=$$matrix; [ "$$matrix" != 2 ] || cleanup; }; \
	exit "$$code"

.PHONY: e2e-matrix
e2e-matrix: bin/e2e.test bin/testbed ## Some scenarios on other testbeds: IP families, kube-proxy, containerd, workers (MATRIX=regexp, KEEP=1)
	$(note-ignored)
	@exec e2e/matrix/run

.PHONY: e2e-mutants
e2e-mutants: bin/testbed ## Plant ten bugs, one after another, and see that scenarios turn red; keeps the testbed (ARGS=cleaner-skipped)
	$(note-ignored)
	@exec ./bin/testbed mutate prove $(ARGS)

.PHONY: e2e-survival
e2e-survival: bin/survival.test bin/testbed ## Kill commands and the engine, fill disks, see that `down` leaves nothing: a quarter of an hour, on a machine of its own, as root
	@exec e2e/survival/machine ./bin/survival.test -test.v -test.timeout=60m $(ARGS)

.PHONY: up
up: bin/testbed ## Bring the testbed up, or repair it, and keep it (NODE_IMAGE=...)
	@exec ./bin/testbed up

.PHONY: status
status: bin/testbed ## Show the testbed on one screen
	@exec ./bin/testbed status

.PHONY: down
down: bin/testbed ## Remove the testbed and all that it started
	@exec ./bin/testbed down

.PHONY: dev
dev: $(SKAFFOLD) $(KUBECTL) bin/testbed ## Bring each change of the sources into the testbed that is up, as it is saved (VERB=run, VERB=delete, ARGS=--profile=debug)
	@[ -e $(SEED_KUBECONFIG) ] || { echo "the testbed is not up; run: make up" >&2; exit 3; }
	@PATH="$(CURDIR)/bin:$$PATH" KUBECONFIG=$(SEED_KUBECONFIG) exec ./$(SKAFFOLD) $(VERB) $(ARGS)

.PHONY: debug
debug: $(DLV) bin/testbed ## Let Delve attach to the extension, until Ctrl-C (ARGS=cache/alpha, ARGS='extension --port 4001')
	@exec ./bin/testbed debug $(or $(ARGS),extension)

##@ Build

.PHONY: build
build: ## Build every command into bin/
	go build -o bin/ ./cmd/...

.PHONY: generate
generate: ## Write what is generated from the API types anew: Go files and docs/api.md
	go generate ./...

.PHONY: golden
golden: ## Accept what the code renders now: rewrite the goldens, then look at the diff
	UPDATE_GOLDEN=1 go test ./...

.PHONY: field-bugs
field-bugs: ## Write docs/field-bugs.md anew, with what the last run of field bugs has shown
	@results=$(CURDIR)/_artifacts/field-bugs.json; [ -e "$$results" ] || results=; \
	FIELD_BUGS=$$results UPDATE_GOLDEN=1 go test -run '^TestPage$$' ./e2e/fieldbugs

.PHONY: tools
tools: ## Get what the checks need: shellcheck (Debian's package), golangci-lint and promtool (built from their modules)
	.ci/setup
	$(MAKE) --no-print-directory $(LINT) $(PROMTOOL)

.PHONY: clean
clean: ## Remove bin/ and _artifacts/; a running testbed stays, `make down` removes it
	rm -rf bin _artifacts

# golangci-lint must be built with a Go that is at least as new as the one go.mod names.
$(LINT): tools/golangci-lint/go.mod tools/golangci-lint/go.sum
	cd tools/golangci-lint && go build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# Without Prometheus's service discoveries, which would bring the libraries of every cloud.
$(PROMTOOL): tools/promtool/go.mod tools/promtool/go.sum
	@echo "building promtool; on a new machine this takes some minutes" >&2
	cd tools/promtool && go build -tags remove_all_sd -o ../../$@ github.com/prometheus/prometheus/cmd/promtool

# Skaffold's own go.mod replaces modules; a consumer has to do the same.
$(SKAFFOLD): tools/skaffold/go.mod tools/skaffold/go.sum
	@echo "building skaffold; on a new machine this takes some minutes" >&2
	cd tools/skaffold && version=$$(go list -m -f '{{.Version}}' github.com/GoogleContainerTools/skaffold/v2) && \
	go build -ldflags "-s -w -X github.com/GoogleContainerTools/skaffold/v2/pkg/skaffold/version.version=$$version" \
		-o ../../$@ github.com/GoogleContainerTools/skaffold/v2/cmd/skaffold

$(DLV): tools/delve/go.mod tools/delve/go.sum
	cd tools/delve && go build -ldflags '-s -w' -o ../../$@ github.com/go-delve/delve/cmd/dlv

# Skaffold runs kubectl; this is the one that is on every node.
$(KUBECTL): kind/nodeimage/modules/kubernetes/go.mod kind/nodeimage/modules/kubernetes/go.sum
	@echo "building kubectl; on a new machine this takes some minutes" >&2
	cd kind/nodeimage/modules/kubernetes && IFS=v. read -r _ major minor patch <<<"$$(go list -m -f '{{.Version}}' k8s.io/kubernetes)" && \
	stamp="-X k8s.io/component-base/version" && \
	go build -ldflags "-s -w $$stamp.gitVersion=v$$major.$$minor.$$patch $$stamp.gitMajor=$$major $$stamp.gitMinor=$$minor" \
		-o ../../../../$@ k8s.io/kubernetes/cmd/kubectl

# Always asked for: Go's own cache knows best what is up to date.
.PHONY: bin/e2e.test bin/survival.test bin/testbed bin/bench-controller
bin/e2e.test:
	@[ -e $@ ] || echo "building the scenarios; on a new machine this takes some minutes" >&2
	@go test -c -tags e2e -o $@ ./e2e
bin/survival.test:
	@go test -c -tags e2e -o $@ ./e2e/survival
bin/testbed:
	@go build -o $@ ./cmd/testbed
bin/bench-controller:
	@go build -o $@ ./cmd/bench-controller
