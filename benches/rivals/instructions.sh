#!/bin/sh
# Instructions per operation, counted by callgrind: the difference of a long and a short run, divided. Unlike time, this
# repeats. It counts an atomic swap as one, and says nothing about cache misses.
set -eu
cd "$(dirname "$0")"

command -v valgrind >/dev/null || { echo "instructions.sh: valgrind is not installed" >&2; exit 1; }
cargo build --release --quiet --bin rivals
rivals="${CARGO_TARGET_DIR:-target}/release/rivals"
out="$(mktemp -d)"
trap 'rm -rf "$out"' EXIT

few=1000
many=3000

# Instructions of a whole run, from callgrind's summary line.
run() {
    valgrind --tool=callgrind --callgrind-out-file="$out/callgrind" "$rivals" once "$1" "$2" "$3" >"$out/log" 2>&1 ||
        { cat "$out/log" >&2; exit 1; }
    sed -n 's/^summary: *\([0-9]*\).*/\1/p' "$out/callgrind"
}

echo "| case | contender | instructions per operation |"
echo "|---|---|---|"
"$rivals" list | while IFS="$(printf '\t')" read -r case rival; do
    case "$case" in life-* | must-call-drop | lose | poll | shared-life) ;; *) continue ;; esac
    case "$rival" in limit* | *CallbackSlot | SharedSlot | InPlaceSlot* | *Mutex | "Arc of the limit") ;; *) continue ;; esac
    short="$(run "$case" "$rival" "$few")"
    long="$(run "$case" "$rival" "$many")"
    awk -v c="$case" -v r="$rival" -v d="$((long - short))" -v n="$((many - few))" \
        'BEGIN { printf "| %s | %s | %.1f |\n", c, r, d / n }'
done
