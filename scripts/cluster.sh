#!/usr/bin/env bash
# Three nodes on this machine in a temporary directory, until ctrl-C, SIGTERM or the end of the terminal; then they stop one after the other and the
# directory goes. PORT is the first of three ports, DIR a directory that is kept, ARGS further flags for every node, LOG what
# they log, BIN a binary that is there already.
set -euo pipefail
cd "$(dirname "$0")/.."

port=${PORT:-20160}
dir=${DIR:-}
if [ -z "$dir" ]; then
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir"

bin=${BIN:-}
if [ -z "$bin" ]; then
    cargo build --release --quiet -p storage-pipeline --features server --bin storage-pipeline
    bin="${CARGO_TARGET_DIR:-target}/release/storage-pipeline"
fi

cat >"$dir/cluster.toml" <<TOML
cluster_id = 1

[peers]
1 = "127.0.0.1:$port"
2 = "127.0.0.1:$((port + 1))"
3 = "127.0.0.1:$((port + 2))"
TOML

nodes=()
stop() {
    trap '' INT TERM HUP
    for node in "${nodes[@]}"; do
        kill -TERM "$node" 2>/dev/null || true
    done
}
trap stop INT TERM HUP

for id in 1 2 3; do
    # In a session of its own, so that ctrl-C reaches a node through this script only, once.
    # shellcheck disable=SC2086 # the words of ARGS are its arguments
    setsid "$bin" --log "${LOG:-warn}" serve --config "$dir/cluster.toml" --node-id "$id" \
        --listen "127.0.0.1:$((port + id - 1))" --dir "$dir/node-$id" ${ARGS:-} &
    nodes+=("$!")
done
echo "three nodes on 127.0.0.1:$port to $((port + 2)), in $dir; ctrl-C stops them"

# A signal ends a wait before its node has ended; the second wait then has its status.
status=0
for node in "${nodes[@]}"; do
    while kill -0 "$node" 2>/dev/null; do
        wait "$node" || true
    done
    wait "$node" || status=1
done
exit "$status"
