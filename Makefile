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
.PHONY: help demo programs module test test-real test-full lint targets bench beside figures install build fuzz \
	deps-build deps-test deps-bench deps-lint

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: programs ## Record live traffic, hold some of it, show that it outlives the rest (about a minute, cleans up)
	@scripts/need demo
	@scripts/demo "$(CARGO_TARGET_DIR)/debug"

# With the features that the whole workspace needs, so that the tests use the same dependencies.
programs: deps-build ## Build the two programs as the tests have them, for a first look: faster to build, slower to run
	cargo build --workspace --locked --bin holdfast --bin holdfast-recorder

module: deps-build ## Build holdfast-module, which runs modules in WebAssembly (some minutes)
	cargo build --release --locked -p holdfast-module
	@scripts/split-debug "$(BIN)/holdfast-module"

test: deps-test ## Run every test
	env -u HOLDFAST_TEST_DATA cargo nextest run --workspace --locked

test-real: deps-test ## Run the tests that use real inputs with those of the folder HOLDFAST_TEST_DATA
	@test -d "$(HOLDFAST_TEST_DATA)" || { echo "set HOLDFAST_TEST_DATA to the folder of real inputs" >&2; exit 2; }
	HOLDFAST_TEST_DATA="$(abspath $(HOLDFAST_TEST_DATA))" cargo nextest run --workspace --locked --profile real-inputs

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

install: build ## Build release programs, and install them with documents and SDK in PREFIX (/usr/local)
	@set -e; for program in holdfast holdfast-recorder holdfast-module; do \
	  [ -e "$(BIN)/$$program" ] || continue; \
	  scripts/split-debug "$(BIN)/$$program"; \
	  install -D -m 755 -t "$(DESTDIR)$(PREFIX)/bin" "$(BIN)/$$program"; \
	  install -D -m 644 -t "$(DESTDIR)$(PREFIX)/bin/.debug" "$(BIN)/$$program.debug"; \
	done
	install -d "$(DESTDIR)$(PREFIX)/share/holdfast/docs/figures"
	cp -R sdk "$(DESTDIR)$(PREFIX)/share/holdfast/"
	install -m 644 -t "$(DESTDIR)$(PREFIX)/share/holdfast" README.md ARCHITECTURE.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT
	install -m 644 -t "$(DESTDIR)$(PREFIX)/share/holdfast/docs" docs/*.md
	install -m 644 -t "$(DESTDIR)$(PREFIX)/share/holdfast/docs/figures" docs/figures/*.md docs/figures/*.svg
	@echo "installed holdfast and holdfast-recorder in $(DESTDIR)$(PREFIX)/bin, documents and SDK in $(DESTDIR)$(PREFIX)/share/holdfast"

build: deps-build ## Build the two release programs, for use: optimised, which takes longer than `make programs`
	cargo build --release --bins --locked -p holdfast-cli -p holdfast-recorder
	@scripts/split-debug "$(BIN)/holdfast" "$(BIN)/holdfast-recorder"
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
