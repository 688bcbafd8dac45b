# The two commands are `make demo` and `make test`. `make help` lists all of them.
# Each target is one stage; stages print their seconds and their number of tests.
.POSIX:
.DELETE_ON_ERROR:
.PHONY: help setup demo cluster test lint unit doc loom miri simulator instructions sim long bench-report clean

# Passed on to the demo, for example: make demo ARGS='--secs 1 --threads 1,16 --modes ApplyNotify'
ARGS =
# Passed on to the set-up, for example: make test SETUP=--no-install
SETUP =

# How long clusters are simulated with fresh seeds, in seconds.
SECS = 60

# How much is measured: quick (five minutes) or full (an hour at most, and it goes on where it was interrupted).
FORM = full
# Where results and the page go, and where the measured stores are made for a while: on the disk that is to be measured.
RESULTS = bench-results
BENCH_DIR = /tmp

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

setup: ## install what is missing and find RocksDB
	@scripts/setup.sh $(SETUP)

demo: setup ## run the main job in every completion mode and print the table
	cargo run --release --package benches --bin demo -- $(ARGS)

cluster: setup ## three nodes on this machine, until ctrl-C
	@scripts/cluster.sh

test: ## every test that CI runs
	@scripts/setup.sh --tests $(SETUP)
	@scripts/stage.sh lint
	@scripts/stage.sh unit
	@scripts/stage.sh doc
	@scripts/stage.sh loom
	@scripts/stage.sh miri
	@scripts/stage.sh simulator
	@scripts/stage.sh instructions

lint unit doc loom miri simulator instructions long: ## one stage of the tests, without the set-up
	@scripts/stage.sh $@

sim: setup ## simulate clusters with fresh seeds for SECS seconds
	cargo run --release --package storage-pipeline --features simulator --bin simulator -- --secs $(SECS)

bench-report: setup ## measure every mode under every workload and write the report
	cargo build --release --package benches --bins
	@mkdir -p $(RESULTS)
	cargo run --release --package benches --bin matrix -- --form $(FORM) --out $(RESULTS)/$(FORM).jsonl --dir $(BENCH_DIR)
	cargo run --release --package benches --bin report -- --results $(RESULTS)/$(FORM).jsonl \
		--html $(RESULTS)/report.html --markdown docs/pipeline-benchmarks.md

clean: ## remove build results
	cargo clean
