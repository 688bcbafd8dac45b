#!/usr/bin/env bash
# Runs groups of replicas in memory, and the unit tests of what threads share, under ThreadSanitizer.
#
# Usage: tsan.sh [TEST...]      (names or parts of them; works from any directory)
#
# Needs a nightly toolchain with rust-src: the standard library is built with the sanitizer too, or its own synchronisation
# would not be seen. x86-64 only. RocksDB is C++ that is not built with it, so what is run here keeps data and log in memory:
# the threads, mailboxes, latches, books, slots and the raft between them are the same.
#
# Afterwards it weakens the hand-over of a reply, in the build over `core`'s atomic pointer, and demands a report: a
# sanitizer that reports nothing has to be one that can.
set -euo pipefail
cd "$(dirname "$0")"

# Tests whose stores are in memory.
tests=("$@")
((${#tests[@]})) || tests=(replication:: leader_loss:: members:: snapshots:: a_callback_that_outlasts)
units=(mailbox:: scheduler:: local_reader:: apply:: raftstore::peer patience:: client::oracle engine::memory)

# Where a test panics on purpose, a backtrace would take longer than the test waits.
export RUST_BACKTRACE=0 RUSTFLAGS="-Zsanitizer=thread"
export TSAN_OPTIONS="halt_on_error=1"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$SECONDS
passed=0

run() { # CARGO-ARGUMENTS... -- TEST-ARGUMENTS...
  cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu -p storage-pipeline "$@" >"$log" 2>&1
}

shipped() { # WHAT, CARGO-ARGUMENTS...
  local what=$1 count
  shift
  if ! run "$@"; then
    cat "$log" >&2
    echo "FAILED: $what" >&2
    exit 1
  fi
  count=$(sed -nE 's/^test result: ok\. ([0-9]+) passed.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
  ((count > 0)) || { echo "FAILED: no test of $what ran" >&2; exit 1; }
  passed=$((passed + count))
  echo "$what: $count tests, no report, after $((SECONDS - started)) s"
}

(($#)) || shipped "units" --lib -- --test-threads 2 "${units[@]}"
shipped "groups" --test it -- --test-threads 1 "${tests[@]}"

flags="'--cfg', 'callback_slot_strict_provenance', '--cfg', 'callback_slot_mutation=\"ring_without_release\"'"
# Whoever sleeps until the reply comes is woken, which orders the two all the same: only one who finds it there by a look shows the
# fault, and whether anybody does is chance.
code=0
for _ in {1..20}; do
  run -Z profile-rustflags --config "profile.test.package.callback-slot.rustflags=[$flags]" --test it -- \
    --test-threads 1 what_the_leader_acknowledges_reaches_every_replica || code=$?
  ((code == 0)) || break
done
if ((code == 0)) || ! grep -q 'WARNING: ThreadSanitizer: data race' "$log"; then
  tail -n 40 "$log" >&2
  echo "FAILED: a reply that is not released was not reported (exit code $code)" >&2
  exit 1
fi
echo "as wanted: a reply that is not released is reported"
echo "tsan took $((SECONDS - started)) s"
echo "tsan: $((passed + 1)) passed, 0 failed"
