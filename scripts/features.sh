#!/usr/bin/env bash
# Lints every set of features that somebody may build with, tests and examples too: what compiles with all features may not with
# some, or may leave code that nobody uses.
#
# Usage: features.sh [CRATE...]     (all crates by default; works from any directory)
#
# Of callback-slot, whose features add up freely, every set; of the others each feature alone and none, but for `protocol`, which
# is what `client` and `server` share. All features of all crates at once are `make lint`'s own.
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0
started=$SECONDS

features_of() { # CRATE
  sed -n '/^\[features\]$/,/^\[[a-z-]*\]$/p' "$1/Cargo.toml" | sed -nE 's/^([a-z-]+) = .*/\1/p' | grep -vxE "default|protocol"
}

lint() { # CRATE FEATURES
  echo "$1 with features: ${2:-none}"
  cargo clippy --quiet -p "$1" --all-targets --no-default-features --features "$2" -- -D warnings
  passed=$((passed + 1))
}

every_set() { # CRATE
  local features set bit chosen
  mapfile -t features < <(features_of "$1")
  # Each number's bits say which features are in the set.
  for ((set = 0; set < 1 << ${#features[@]}; set++)); do
    chosen=
    for ((bit = 0; bit < ${#features[@]}; bit++)); do
      if ((set >> bit & 1)); then chosen+="${features[bit]} "; fi
    done
    lint "$1" "${chosen% }"
  done
}

each_alone() { # CRATE
  local feature
  lint "$1" ""
  for feature in $(features_of "$1"); do
    lint "$1" "$feature"
  done
}

crates=("$@")
if ((!$#)); then crates=(callback-slot storage-pipeline benches); fi
for crate in "${crates[@]}"; do
  before=$passed
  if [[ $crate == callback-slot ]]; then every_set "$crate"; else each_alone "$crate"; fi
  ((passed > before + 1)) || { echo "FAILED: the manifest of $crate has no features" >&2; exit 1; }
done

echo "features took $((SECONDS - started)) s"
echo "features: $passed passed, 0 failed"
