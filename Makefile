# The commands of a newcomer. Each one installs what it needs and is missing (scripts/need), then does its work.
# Nothing is built inside the clone: set CARGO_TARGET_DIR or HOLDFAST_TOOLS to build or keep tools elsewhere.

export CARGO_TARGET_DIR ?= $(HOME)/.cache/holdfast-target
export HOLDFAST_TOOLS ?= $(HOME)/.cache/holdfast-tools
# Where the tests find the Python of their own that has the packages they check exports with.
export HOLDFAST_PYTHON ?= $(HOLDFAST_TOOLS)/python/bin/python
export PATH := $(PATH):/usr/sbin:/sbin:$(HOME)/.cargo/bin:$(HOLDFAST_TOOLS)/bin

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
BIN := $(CARGO_TARGET_DIR)/release

.DEFAULT_GOAL := help
.PHONY: help demo module test test-full lint targets bench beside figures install build fuzz \
	deps-build deps-test deps-bench deps-lint

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: build ## Record live traffic, hold some of it, show that it outlives the rest (about a minute, cleans up)
	@scripts/need demo
	@scripts/demo $(BIN)

module: deps-build ## Build holdfast-module, which runs modules in WebAssembly (some minutes)
	cargo build --release --locked -p holdfast-module

test: deps-test ## Run every test
	cargo nextest run --workspace --locked

test-full: deps-test ## Run every test with ten times the seeds and generated cases (hours)
	HOLDFAST_SEEDS=10 PROPTEST_CASES=2560 cargo nextest run --workspace --locked --profile full

lint: deps-lint ## Check format, lints, docs, scripts, licences and sources of dependencies
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	@if command -v shellcheck >/dev/null; then shellcheck scripts/* .ci/run; else echo "scripts: no shellcheck, not checked"; fi
	cargo deny --locked check licenses bans sources
	@if timeout 60 cargo deny fetch db 2>/dev/null; then cargo deny --locked check advisories; \
	else echo "advisories: their database is out of reach, not checked"; fi

targets: ## Check that the programs compile for Linux on ARM64, and the client of sites for macOS (some minutes)
	@scripts/need targets
	PATH="$(HOLDFAST_TOOLS)/python/bin:$$PATH" cargo-zigbuild check --target aarch64-unknown-linux-gnu --locked \
	  -p holdfast-cli -p holdfast-recorder
	PATH="$(HOLDFAST_TOOLS)/python/bin:$$PATH" cargo-zigbuild check --target aarch64-apple-darwin --locked -p holdfast-remote

bench: deps-bench ## Measure speed and memory next to other tools (some minutes, wants a quiet machine)
	HOLDFAST_CELLS=none cargo bench --workspace --locked

beside: deps-bench ## Compare with file systems and a database on an emulated drive, hours (HOLDFAST_CELLS=daily: one); goes on where it was
	cargo bench --locked -p holdfast-bench --bench beside

figures: deps-build ## Draw the figures of that comparison into docs/figures
	cargo run --quiet --release --locked -p holdfast-bench --example figures

install: build ## Build and install to PREFIX (/usr/local)
	install -D -m 755 -t "$(DESTDIR)$(PREFIX)/bin" "$(BIN)/holdfast" "$(BIN)/holdfast-recorder" $(wildcard $(BIN)/holdfast-module)
	@echo "installed holdfast and holdfast-recorder in $(DESTDIR)$(PREFIX)/bin"

build: deps-build ## Build the two programs
	cargo build --release --bins --locked -p holdfast-cli -p holdfast-recorder
	@echo "built in $(BIN)"

fuzz: ## Fuzz every parser for FUZZ_SECONDS each (needs a nightly toolchain and cargo-fuzz)
	@scripts/need fuzz
	cargo run --quiet --package holdfast-fuzz --example seeds -- fuzz/corpus
	@set -e; for target in $$(cargo +nightly fuzz list); do \
	  echo "== $$target"; \
	  cargo +nightly fuzz run --features libfuzzer "$$target" -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536; \
	done

deps-build: ## Install what building needs
	@scripts/need build

deps-test: ## Install what the tests need
	@scripts/need test

deps-bench: ## Install what the benches need
	@scripts/need bench

deps-lint:
	@scripts/need lint
