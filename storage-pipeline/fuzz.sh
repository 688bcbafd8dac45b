#!/usr/bin/env bash
# Decodes arbitrary bytes as everything that the pipeline stores and is given, with AddressSanitizer watching.
#
# Usage: fuzz.sh [SECONDS]      300 seconds by default; works from any directory
#
# Needs a nightly toolchain and cargo-fuzz. Starts from the seeds, and leaves nothing behind but what failed: that is in
# `fuzz/artifacts`, and `cargo +nightly fuzz run records FILE` runs it again.
set -euo pipefail
cd "$(dirname "$0")/fuzz"

seconds=${1:-300}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: fuzz.sh [SECONDS]" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/found"

if ! cargo +nightly fuzz run --fuzz-dir . records "$work/found" seeds/records -- \
  -max_total_time="$seconds" -max_len=600 -print_final_stats=1 -verbosity=0 >"$work/log" 2>&1; then
  tail -n 60 "$work/log" >&2
  echo "FAILED: some bytes were neither refused nor taken as they were" >&2
  exit 1
fi
inputs=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)$/\1/p' "$work/log")
((inputs > 0)) || { cat "$work/log" >&2; echo "FAILED: nothing ran" >&2; exit 1; }
echo "fuzz took $seconds s, and kept $(find "$work/found" -type f | wc -l) inputs that reached something new"
echo "fuzz: $inputs passed, 0 failed"
