#!/usr/bin/env bash
# Feeds a fuzz target of a crate with bytes, with AddressSanitizer watching.
#
# Usage: fuzz.sh CRATE TARGET [SECONDS]      300 seconds by default; works from any directory
#
# Needs a nightly toolchain and cargo-fuzz. Starts from the seeds, knows the words of `TARGET.dict` where there is one, and
# leaves nothing behind but what failed: that is in the crate's `fuzz/artifacts`, and `cargo +nightly fuzz run TARGET FILE` runs
# it again.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { echo "usage: fuzz.sh CRATE TARGET [SECONDS]" >&2; exit 2; }
crate=${1:-} target=${2:-} seconds=${3:-300}
[[ -f $crate/fuzz/fuzz_targets/$target.rs && $seconds =~ ^[1-9][0-9]*$ ]] || usage
cd "$crate/fuzz"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/found"
words=()
if [[ -f $target.dict ]]; then words=(-dict="$target.dict"); fi

if ! cargo +nightly fuzz run --fuzz-dir . "$target" "$work/found" "seeds/$target" -- \
  -max_total_time="$seconds" -max_len=600 "${words[@]}" -print_final_stats=1 -verbosity=0 >"$work/log" 2>&1; then
  tail -n 60 "$work/log" >&2
  echo "FAILED: $target of $crate does not build, or there is an input with which the crate does not do what it should" >&2
  exit 1
fi
inputs=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)$/\1/p' "$work/log")
((inputs > 0)) || { cat "$work/log" >&2; echo "FAILED: nothing ran" >&2; exit 1; }
echo "fuzz took $seconds s, and kept $(find "$work/found" -type f | wc -l) inputs that reached something new"
echo "fuzz: $inputs passed, 0 failed"
