#!/usr/bin/env bash
# Changes the crate in every small way that cargo-mutants knows, and demands that a test fails, or that `mutants.txt`
# says why none can.
#
# Usage: mutants.sh [ARGUMENTS...]      with arguments for cargo-mutants, such as `--shard 0/8`, only a part of what ships is
#                                       changed: then a survivor on the list that does not turn up is no fault, and what
#                                       only a build without `std` has survives
#
# Works from any directory, in about 20 minutes. Needs cargo-mutants and cargo-nextest, and a tree that nobody edits
# meanwhile: the changes are made in a copy. A mutant survives if it does so in every build that it was tried in. Tests that
# read the sources (`claims`) have no say: to notice that a line has changed is not to notice what it does. A mutant whose
# tests do not end is killed after five times what they take unchanged, and not before two minutes, so that a busy machine kills none.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_DEBUG=0
tried=0
started=$SECONDS

try() { # NAME CARGO-MUTANTS-ARGUMENTS...
  local name=$1 code=0 begun=$SECONDS out
  shift
  out=$work/$name/mutants.out
  mkdir "$work/$name"
  # Exit codes: 0 all killed, 2 some survive, 3 some did not end. Anything else is not about mutants.
  cargo mutants --package callback-slot --test-tool nextest --minimum-test-timeout 120 --colors never \
    --output "$work/$name" "$@" --cargo-test-arg=--lib --cargo-test-arg=--test=it \
    --cargo-test-arg=-E --cargo-test-arg='not test(/^claims::/)' >"$work/log" 2>&1 || code=$?
  if ((code != 0 && code != 2 && code != 3)); then
    cat "$work/log" >&2
    echo "FAILED: cargo-mutants on the build $name" >&2
    exit 1
  fi
  cat "$out/missed.txt" >>"$work/missed"
  cat "$out/caught.txt" "$out/timeout.txt" >>"$work/killed"
  tried=$((tried + $(cat "$out/missed.txt" "$out/caught.txt" "$out/timeout.txt" | wc -l)))
  echo "$name: $(tail -n 1 "$work/log") ($((SECONDS - begun)) s)"
}

# What ships; what is compiled without `std` only; and the stand-in over `core`'s atomic pointer.
try all-features --all-features --exclude '**/pointer.rs' "$@"
if ((!$#)); then
  try no-features --file '**/unwind.rs'
  RUSTFLAGS="--cfg callback_slot_strict_provenance" try strict-provenance --all-features --file '**/pointer.rs'
fi

# Lines may move, so the list names file and change alone. A name may stand there as often as it survives.
sort "$work/missed" | comm -23 - <(sort "$work/killed") | sed -E 's/:[0-9]+:[0-9]+:/:/' | sort >"$work/survivors"
grep -v '^#' callback-slot/mutants.txt | grep . | sort >"$work/listed"
unlisted=$(comm -23 "$work/survivors" "$work/listed")
gone=$(comm -13 "$work/survivors" "$work/listed")

failed=0
if [[ -n $unlisted ]]; then
  failed=$(wc -l <<<"$unlisted")
  printf 'SURVIVED, and nobody says why:\n%s\n' "$unlisted" >&2
fi
if [[ -n $gone ]] && ((!$#)); then
  failed=$((failed + $(wc -l <<<"$gone")))
  printf 'ON THE LIST, but killed or gone:\n%s\n' "$gone" >&2
fi
echo "mutants took $((SECONDS - started)) s; $(wc -l <"$work/survivors") survive"
echo "mutants: $((tried - $(wc -l <"$work/survivors"))) passed, $failed failed"
((failed == 0 && tried > 0))
