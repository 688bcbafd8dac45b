#!/usr/bin/env bash
# Breaks the crate in one way at a time and demands that the named model notices.
#
# Usage: mutations.sh [NAME...]      (all mutations by default; works from any directory)
#
# Needs a nightly toolchain (for flags on one package only, so that loom itself is built once) and cargo-nextest.
set -euo pipefail
cd "$(dirname "$0")/../loom-tests"

# mutation                  what it breaks                                               killed by (binary, model)
mutations=(
  "publish_relaxed          arming no longer releases the callback                       slot_plain edge_armed_there_completed_here"
  "swap_without_acquire     the taker no longer acquires the callback                    slot_plain edge_armed_there_taken_and_called_here"
  "swap_without_acquire     the dropper no longer acquires the callback                  slot_plain edge_armed_there_taken_and_dropped_here"
  "swap_without_release     a value put into a cell is no longer released                slot_option_cell put_there_taken_here"
  "ring_without_release     the bell no longer releases the reply's value                slot_reply waits_until_called"
  "observe_relaxed          the reply no longer acquires its value                       slot_reply asks_without_waiting"
  "register_relaxed         a reply no longer releases its waiter                        slot_reply polled_until_called"
  "ring_without_acquire     the bell no longer acquires the waiter                       slot_reply polled_until_called"
  "rung_is_silent           a waiter is put where the sender takes one out               slot_reply polled_until_called"
  "share_goes_first         the sender gives up its share before it has finished         slot_reply reply_goes_while_called"
  "handle_drop_relaxed      a handle's drop no longer releases what its owner did        slot_shared must_call::pair_leave_leave"
  "sole_owner_relaxed       the sole owner no longer acquires what others did            slot_shared plain::pair_complete_leave"
  "last_owner_relaxed       the last of two no longer acquires what the other did        slot_shared must_call::pair_leave_leave"
  "take_is_load_then_store  two takers both win                                          slot_plain pair_complete_complete"
  "drop_nothing             an uncalled callback leaks, or is not called                 slot_plain pair_leave_leave"
  "fallback_forgotten       a must-call falls silent                                     slot_shared must_call::pair_leave_leave"
  "free_too_early           the node goes while a handle is left                         slot_shared plain::pair_leave_leave"
  "free_never               the node stays                                               slot_shared plain::pair_complete_complete"
)

export RUSTFLAGS="--cfg callback_slot_loom --cfg storage_pipeline_loom"
killed=0
survivors=0
started=$SECONDS

# nextest's exit code when a test has run and failed. Anything else, such as 4 for "no such test", is not a kill.
readonly failed=100

run() { # MUTATION BINARY MODEL, or none for the whole crate as it is
  cargo +nightly nextest run -Z profile-rustflags \
    --config "profile.test.package.callback-slot.rustflags=['--cfg', 'callback_slot_mutation=\"$1\"']" \
    --test "$2" --status-level none --final-status-level none --failure-output never \
    -E "test(=$3)"
}

# Splits an entry into NAME, WHY, BINARY and MODEL; false if it was not asked for.
parse() { # ENTRY ARGUMENTS...
  local rest
  read -r name rest <<<"$1"
  shift
  model=${rest##* }
  rest=${rest% *}
  binary=${rest##* }
  why=$(sed -E 's/ +[^ ]+ *$//' <<<"$rest")
  ((!$#)) || [[ " $* " == *" $name "* ]]
}

# Each model passes as long as nothing is broken; otherwise its failure would say nothing.
for entry in "${mutations[@]}"; do
  parse "$entry" "$@" || continue
  if ! log=$(run none "$binary" "$model" 2>&1); then
    printf '%s\n' "$log" >&2
    echo "error: $binary $model fails, or does not exist, without a mutation" >&2
    exit 1
  fi
done

for entry in "${mutations[@]}"; do
  parse "$entry" "$@" || continue
  code=0
  log=$(run "$name" "$binary" "$model" 2>&1) || code=$?
  if ((code == failed)); then
    killed=$((killed + 1))
    echo "killed    $name ($why) by $binary $model"
  else
    survivors=$((survivors + 1))
    printf '%s\n' "$log" | tail -n 20 >&2
    echo "SURVIVED  $name ($why): $binary $model, exit code $code" >&2
  fi
done

echo "mutations took $((SECONDS - started)) s"
echo "mutations: $killed passed, $survivors failed"
((killed > 0 && survivors == 0))
