#!/usr/bin/env bash
# Breaks a copy of the pipeline in one way at a time and demands that the named model notices.
#
# Usage: pipeline-mutations.sh [NAME...]      (all of pipeline-mutations/ by default; works from any directory)
#
# Each patch says what it breaks and which models, by binary and name, have to fail. Needs cargo-nextest.
set -euo pipefail
cd "$(dirname "$0")"

names=("$@")
((${#names[@]})) || mapfile -t names < <(basename -as .patch pipeline-mutations/*.patch)

# The models' own build results serve the copy too: only the crates of this repository are built again.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
export RUSTFLAGS="--cfg callback_slot_loom --cfg storage_pipeline_loom"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
(cd .. && tar -cf - --exclude target Cargo.toml callback-slot storage-pipeline loom-tests) | tar -xf - -C "$copy"
# The copy has the members that the models need.
sed -i -E 's/^members = .*/members = ["callback-slot", "storage-pipeline"]/' "$copy/Cargo.toml"

killed=0
survivors=0
started=$SECONDS

# nextest's exit code when a test has run and failed. Anything else, such as 4 for "no such test", is not a kill.
readonly failed=100

run() { # BINARY MODEL
  (cd "$copy/loom-tests" && cargo nextest run --test "$1" --status-level none --final-status-level none \
    --failure-output never -E "test(=$2)")
}

killers() { # NAME: a line with BINARY and MODEL for each
  sed -n 's/^killed by: //p' "pipeline-mutations/$1.patch"
}

# Each model passes as long as nothing is broken; otherwise its failure would say nothing.
while read -r binary model; do
  if ! log=$(run "$binary" "$model" 2>&1 </dev/null); then
    printf '%s\n' "$log" >&2
    echo "error: $binary $model fails, or does not exist, without a mutation" >&2
    exit 1
  fi
done < <(for name in "${names[@]}"; do killers "$name"; done | sort -u)

for name in "${names[@]}"; do
  patch=$PWD/pipeline-mutations/$name.patch
  why=$(sed -n 's/^breaks: //p' "$patch")
  if ! (cd "$copy" && git apply "$patch"); then
    survivors=$((survivors + 1))
    echo "STALE     $name ($why): the code has moved on; write the patch anew" >&2
    continue
  fi
  while read -r binary model; do
    code=0
    log=$(run "$binary" "$model" 2>&1 </dev/null) || code=$?
    if ((code == failed)); then
      killed=$((killed + 1))
      echo "killed    $name ($why) by $binary $model"
    else
      survivors=$((survivors + 1))
      printf '%s\n' "$log" | tail -n 20 >&2
      echo "SURVIVED  $name ($why): $binary $model, exit code $code" >&2
    fi
  done < <(killers "$name")
  (cd "$copy" && git apply --reverse "$patch")
done

echo "mutations took $((SECONDS - started)) s"
echo "mutations: $killed passed, $survivors failed"
((killed > 0 && survivors == 0))
