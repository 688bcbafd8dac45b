#!/usr/bin/env bash
# Runs the tests under Miri, on both paths: what ships (exposed provenance) and the stand-in (strict provenance).
#
# Usage: miri.sh [SEEDS]             32 seeds by default; works from any directory
#        miri.sh --targets [SEEDS]   the same for 32-bit (i686) and big-endian (s390x) targets too, 256 seeds by default
#
# The races (tests named `race_*`) run once per seed, each seed a schedule of its own; with --targets twice, and on what ships
# for as many seeds again under tree borrows. All other tests run once, under stacked borrows and, on what ships, under tree
# borrows too. Needs a nightly toolchain with miri and rust-src.
set -euo pipefail
cd "$(dirname "$0")"

targets=(x86_64-unknown-linux-gnu)
default=32
long=
# The usual test runner would be interpreted too, for each seed, and costs more than the races do.
plain="--cfg callback_slot_plain_runner"
if [[ ${1:-} == --targets ]]; then
  targets+=(i686-unknown-linux-gnu s390x-unknown-linux-gnu)
  default=256
  long=1
  plain+=" --cfg callback_slot_two_rounds"
  shift
fi
seeds=${1:-$default}
[[ $seeds =~ ^[1-9][0-9]*$ ]] || { echo "usage: miri.sh [--targets] [SEEDS]" >&2; exit 2; }

strict="$plain --cfg callback_slot_strict_provenance"
passed=0
started=$SECONDS
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() { # NAME TARGET RUSTFLAGS MIRIFLAGS TEST-ARGUMENTS...
  local name=$1 target=$2 rustflags=$3 miriflags=$4 begun=$SECONDS count
  shift 4
  if ! RUSTFLAGS=$rustflags MIRIFLAGS=$miriflags cargo +nightly miri test --target "$target" -p callback-slot \
    --all-features --test it -- "$@" >"$log" 2>&1; then
    cat "$log" >&2
    echo "FAILED: $name on $target" >&2
    exit 1
  fi
  # Many seeds print at the same time, so their lines may be torn: one whole line gives the number of tests of a seed.
  # The exit code is zero only if every seed passed.
  count=$(grep -oE 'ok\. [0-9]+ passed' "$log" | grep -oE '[0-9]+' | sort -n | tail -n 1)
  ((count > 0)) || { cat "$log" >&2; echo "FAILED: $name on $target ran no test" >&2; exit 1; }
  if [[ $miriflags == *many-seeds* ]]; then count=$((count * seeds)); fi
  passed=$((passed + count))
  echo "$name on $target: $count tests in $((SECONDS - begun)) s"
}

for target in "${targets[@]}"; do
  many=-Zmiri-many-seeds=0..$seeds
  exposed=-Zmiri-permissive-provenance
  checked="-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check"
  run "shipped path, races, $seeds seeds" "$target" "$plain" "$exposed $many" race_
  run "strict path, races, $seeds seeds" "$target" "$strict" "$checked $many" race_
  if [[ $long ]]; then
    run "shipped path, tree borrows, races, $seeds seeds" "$target" "$plain" "$exposed -Zmiri-tree-borrows $many" race_
  fi
  run "shipped path, the rest" "$target" "$plain" "$exposed" --skip race_
  run "shipped path, tree borrows" "$target" "$plain" "$exposed -Zmiri-tree-borrows"
  run "strict path, the rest" "$target" "$strict" "$checked" --skip race_
done

echo "miri took $((SECONDS - started)) s"
echo "miri: $passed passed, 0 failed"
