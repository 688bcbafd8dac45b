#!/bin/sh
# The whole measurement: counts allocations, then measures time with both allocators. Options go to `rivals`.
#   ./measure.sh OUT-DIR [--quick] [--filter TEXT]
set -eu
out="${1:?where to put the tables}"
shift
mkdir -p "$out"
out="$(cd "$out" && pwd)"
cd "$(dirname "$0")"

built="${CARGO_TARGET_DIR:-target}/release"
cargo build --release --quiet --features jemalloc --bin rivals
cp "$built/rivals" "$out/rivals-jemalloc"
cargo build --release --quiet
cp "$built/rivals" "$out/rivals-system"
"$built/count" --json >"$out/counts.json"

for allocator in system jemalloc; do
    "$out/rivals-$allocator" --counts "$out/counts.json" --json "$out/$allocator.json" "$@" >"$out/$allocator.md"
done
