#!/usr/bin/env bash
# Drives random programs of operations on every form against a plain model, with AddressSanitizer watching.
#
# Usage: fuzz.sh [SECONDS]      300 seconds by default; works from any directory
#
# Needs a nightly toolchain and cargo-fuzz. Starts from the seeds, and leaves nothing behind but what failed: that is in
# `fuzz/artifacts`, as text, and `cargo +nightly fuzz run operations FILE` runs it again.
set -euo pipefail
cd "$(dirname "$0")/fuzz"

seconds=${1:-300}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: fuzz.sh [SECONDS]" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/found"

# Names of operations, so that libFuzzer need not guess letters.
for name in m c d a t e r z x s u k f g i v w y p q b o l n; do
  echo "\"${name}00\""
done >"$work/names.dict"

if ! cargo +nightly fuzz run --fuzz-dir . operations "$work/found" seeds/operations -- \
  -max_total_time="$seconds" -max_len=600 -dict="$work/names.dict" -print_final_stats=1 -verbosity=0 >"$work/log" 2>&1; then
  tail -n 60 "$work/log" >&2
  echo "FAILED: a program did what the model does not say" >&2
  exit 1
fi
programs=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)$/\1/p' "$work/log")
((programs > 0)) || { cat "$work/log" >&2; echo "FAILED: no program ran" >&2; exit 1; }
echo "fuzz took $seconds s, and kept $(find "$work/found" -type f | wc -l) programs that reached something new"
echo "fuzz: $programs passed, 0 failed"
