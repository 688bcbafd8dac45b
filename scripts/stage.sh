#!/usr/bin/env bash
# Runs one stage of the tests and prints its seconds and its number of tests. A stage that runs no test has failed.
# Where a tool is missing the stage says what it skips; with REQUIRE_ALL set, as CI does, it fails instead.
set -euo pipefail
cd "$(dirname "$0")/.."

stage=${1:?usage: scripts/stage.sh lint|unit|doc|loom|miri|simulator|instructions|long}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$(date +%s)
checks=0

say() { printf '== %s: %s\n' "$stage" "$*"; }

# Runs a command and keeps its output for the count.
run() {
    printf '$ %s\n' "$*"
    "$@" 2>&1 | tee -a "$log"
}

# A check that is a test of its own: formatting, lints, documentation.
check() {
    run "$@"
    checks=$((checks + 1))
}

# Says that a tool is missing. Fails where nothing may be skipped.
missing() {
    say "skipped: $*"
    if [ -n "${REQUIRE_ALL:-}" ]; then
        say "nothing may be skipped here"
        exit 1
    fi
    exit 0
}

# The number of tests in the log, as cargo test and nextest print it.
count() {
    sed -e 's/\x1b\[[0-9;]*m//g' "$log" | awk -v checks="$checks" '
        /^test result: ok\. [0-9]+ passed/ { n += $4 }
        /^[a-z]+: [0-9]+ passed, 0 failed$/ { n += $2 }
        /Summary \[.*\] +[0-9]+ tests? run: [0-9]+ passed/ { for (i = 1; i < NF; i++) if ($i == "run:") n += $(i + 1) }
        END { print n + checks }'
}

have_nextest() { cargo nextest --version >/dev/null 2>&1; }

# Tests of packages, one process each where nextest is there.
tests() {
    if have_nextest; then
        run cargo nextest run --no-fail-fast "$@"
    else
        run cargo test --no-fail-fast --lib --bins --tests --examples "$@"
    fi
}

# Clusters in virtual time. What it prints first says how to replay a seed that fails.
simulate() {
    run cargo run --quiet --release -p storage-pipeline --features simulator --bin simulator -- "$@"
}

case $stage in
lint)
    check cargo fmt --all --check
    check cargo fmt --manifest-path loom-tests/Cargo.toml --check
    check cargo fmt --manifest-path benches/rivals/Cargo.toml --all --check
    check cargo fmt --manifest-path benches/stores/Cargo.toml --check
    check cargo fmt --manifest-path benches/wire/Cargo.toml --check
    check cargo fmt --manifest-path callback-slot/fuzz/Cargo.toml --check
    check cargo fmt --manifest-path storage-pipeline/fuzz/Cargo.toml --check
    check cargo clippy --workspace --all-targets --all-features --quiet -- -D warnings
    # They are outside of the workspace, and use what it exports.
    check cargo clippy --manifest-path benches/stores/Cargo.toml --all-targets --quiet -- -D warnings
    check cargo clippy --manifest-path benches/wire/Cargo.toml --all-targets --quiet -- -D warnings
    check cargo clippy --manifest-path callback-slot/fuzz/Cargo.toml --all-targets --quiet -- -D warnings
    check cargo clippy --manifest-path storage-pipeline/fuzz/Cargo.toml --all-targets --quiet -- -D warnings
    # The sets that others build upon; `long` goes through all.
    run scripts/features.sh callback-slot
    check cargo clippy -p storage-pipeline --all-targets --no-default-features --quiet -- -D warnings
    check cargo clippy -p storage-pipeline --all-targets --no-default-features --features client --quiet -- -D warnings
    check env RUSTDOCFLAGS='-D warnings' cargo doc --workspace --all-features --no-deps --quiet
    ;;
unit)
    tests --workspace --all-features
    ;;
doc)
    run cargo test --doc --workspace --all-features
    ;;
loom)
    # One process per model: a model that fails inside a destructor aborts its process.
    cd loom-tests
    export RUSTFLAGS="--cfg callback_slot_loom --cfg storage_pipeline_loom"
    tests --workspace
    ;;
simulator)
    simulate --from 1 --seeds 100
    simulate --planted all --at-most 400
    ;;
miri)
    cargo +nightly miri --version >/dev/null 2>&1 || missing "Miri (rustup component add miri rust-src --toolchain nightly)"
    run callback-slot/miri.sh
    ;;
instructions)
    command -v valgrind >/dev/null || missing "counts of instructions (valgrind is not installed)"
    # Another compiler makes other code.
    made_with=$(sed -n 's/^# made with: //p' benches/instructions.txt)
    [ "$(rustc --version)" = "$made_with" ] || missing "counts of instructions (their baseline is of $made_with)"
    run cargo run --quiet --release -p benches --bin instructions
    ;;
long)
    run scripts/features.sh
    run callback-slot/no_std.sh
    run callback-slot/package.sh
    # Every triple of what a slot's holders do: CI runs those that take no more than a moment.
    (
        cd loom-tests
        export RUSTFLAGS="--cfg callback_slot_loom --cfg storage_pipeline_loom --cfg callback_slot_loom_long"
        tests --test slot_plain --test slot_shared
    )
    run callback-slot/mutations.sh
    run callback-slot/mutants.sh
    run callback-slot/tsan.sh
    # The rivals, and the responder that plugs the slot into openraft.
    check cargo clippy --manifest-path benches/rivals/Cargo.toml --workspace --all-targets --quiet -- -D warnings
    run cargo test --manifest-path benches/rivals/Cargo.toml --workspace
    run cargo test --manifest-path benches/stores/Cargo.toml
    run cargo test --manifest-path benches/wire/Cargo.toml
    run cargo test --manifest-path callback-slot/fuzz/Cargo.toml
    run scripts/fuzz.sh callback-slot operations 120
    run cargo test --manifest-path storage-pipeline/fuzz/Cargo.toml
    run scripts/fuzz.sh storage-pipeline records 120
    run scripts/fuzz.sh storage-pipeline logs 120
    run scripts/fuzz.sh storage-pipeline messages 120
    run scripts/fuzz.sh storage-pipeline node_config 120
    run storage-pipeline/tsan.sh
    run loom-tests/pipeline-mutations.sh
    simulate --secs 600
    run callback-slot/miri.sh --targets 256
    run env KILL_ROUNDS=60 KILL_SEED="$(date +%s)" cargo test -p storage-pipeline --features raft-engine --test it kills
    run env NODE_KILL_ROUNDS=20 cargo test -p storage-pipeline --features client,server --test it -- server::kills server::client_kills
    run env POWER_LOSS_POINTS=600 cargo test -p storage-pipeline --features raft-engine --test it power_loss
    ;;
*)
    say "no such stage"
    exit 2
    ;;
esac

tests=$(count)
say "$tests tests in $(($(date +%s) - started)) s"
if [ "$tests" -eq 0 ]; then
    say "no test ran"
    exit 1
fi
