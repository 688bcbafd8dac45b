#!/usr/bin/env bash
# Runs the races and the stress of all forms under ThreadSanitizer, which watches the machine's own interleavings.
#
# Works from any directory. Needs a nightly toolchain with rust-src: the standard library is built with the sanitizer too,
# or its own synchronisation would not be seen. x86-64 only.
#
# Afterwards it weakens one ordering at a time, as mutations.sh does for loom, in the build over `core`'s atomic pointer,
# and demands a report: a sanitizer that reports nothing has to be one that can.
set -euo pipefail
cd "$(dirname "$0")"

# mutation               what it breaks                                      reported by
mutations=(
  "none                  nothing: no report may come                         stress_"
  "publish_relaxed       arming no longer releases the callback              stress_slots_that_a_crowd"
  "swap_without_acquire  the taker no longer acquires the callback           stress_slots_that_a_crowd"
  "swap_without_release  a value put into a cell is no longer released       stress_option_cells"
  "observe_relaxed       the reply no longer acquires its value              stress_replies"
  "ring_without_release  the bell no longer releases the reply's value       stress_replies"
  "handle_drop_relaxed   a handle's drop no longer releases                  stress_handles"
)

export RUSTFLAGS="-Zsanitizer=thread"
export TSAN_OPTIONS="halt_on_error=1"
passed=0
failed=0
started=$SECONDS
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() { # CARGO-ARGUMENTS... -- TEST-ARGUMENTS...
  cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu -p callback-slot --all-features --test it "$@" >"$log" 2>&1
}

# The crate as it ships. `CARGO_BUILD_JOBS` and the like are the caller's.
if ! run -- race_ stress_; then
  cat "$log" >&2
  echo "FAILED: the crate as it ships" >&2
  exit 1
fi
count=$(sed -nE 's/^test result: ok\. ([0-9]+) passed.*/\1/p' "$log")
((count > 0)) || { echo "FAILED: no test ran" >&2; exit 1; }
passed=$((passed + count))
echo "as it ships: $count tests in $((SECONDS - started)) s"

for entry in "${mutations[@]}"; do
  read -r name rest <<<"$entry"
  test=${rest##* }
  why=$(sed -E 's/ +[^ ]+ *$//' <<<"$rest")
  flags="'--cfg', 'callback_slot_strict_provenance', '--cfg', 'callback_slot_mutation=\"$name\"'"
  code=0
  run -Z profile-rustflags --config "profile.test.package.callback-slot.rustflags=[$flags]" -- "$test" || code=$?
  reported=$(grep -c 'WARNING: ThreadSanitizer' "$log" || true)
  if [[ $name == none ]]; then
    as_wanted=$((code == 0 && reported == 0))
  else
    as_wanted=$((code != 0 && reported > 0))
  fi
  if ((as_wanted)); then
    passed=$((passed + 1))
    echo "as wanted $name ($why) by $test: $(grep -m1 -oE 'ThreadSanitizer: [a-z -]+' "$log" || echo 'no report')"
  else
    failed=$((failed + 1))
    tail -n 30 "$log" >&2
    echo "NOT SO    $name ($why): $test, exit code $code, $reported reports" >&2
  fi
done

echo "tsan took $((SECONDS - started)) s"
echo "tsan: $passed passed, $failed failed"
((failed == 0))
