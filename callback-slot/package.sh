#!/usr/bin/env bash
# Packs the crate and tests what was packed, alone, in a folder outside the workspace: with the usual toolchain, and with the
# oldest one that the manifest promises. Shows that one version older does not do.
#
# Works from any directory. Needs rustup, which installs the two old toolchains if they are not there, and cargo 1.84 or newer.
set -euo pipefail
cd "$(dirname "$0")"

passed=0
started=$SECONDS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rust=$(sed -nE 's/^rust-version = "1\.([0-9]+)"$/\1/p' Cargo.toml)
oldest=1.$rust.0
too_old=1.$((rust - 1)).0

done_with() {
  passed=$((passed + 1))
  echo "$* ($((SECONDS - started)) s)"
}

CARGO_TARGET_DIR=$work/pack cargo package -q -p callback-slot --no-verify --allow-dirty
tar xf "$work"/pack/package/callback-slot-*.crate -C "$work"
cd "$work"/callback-slot-*/
# One folder for each toolchain: they cannot use each other's results.
export CARGO_TARGET_DIR=$work/usual

cargo test -q --all-features >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
passed=$(awk '/^test result: ok/ { n += $4 } END { print n + 0 }' "$work/log")
done_with "the packed crate passes its tests alone"
RUSTDOCFLAGS=-Dwarnings cargo doc -q --no-deps
RUSTDOCFLAGS=-Dwarnings cargo doc -q --no-deps --all-features
done_with "its documentation has no warning, without features and with all"

export CARGO_TARGET_DIR=$work/oldest
rustup -q toolchain install "$oldest" "$too_old" --profile minimal >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for features in "" std wait future "wait future"; do
  RUSTFLAGS=-Dwarnings cargo "+$oldest" check -q --features "$features"
  done_with "Rust $oldest builds it with features: ${features:-none}"
done
cargo "+$oldest" test -q --all-features --lib --tests >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
done_with "Rust $oldest passes its tests"

export CARGO_TARGET_DIR=$work/too-old
# Its cargo does not read the manifest to the end; its compiler is what counts.
RUSTC=$(rustup which --toolchain "$too_old" rustc)
export RUSTC
if cargo check -q --ignore-rust-version >"$work/log" 2>&1; then
  echo "FAILED: Rust $too_old builds it as well, so the manifest asks for too much" >&2
  exit 1
fi
grep -qE 'expose_provenance|exposed_provenance' "$work/log" || { cat "$work/log" >&2; echo "FAILED: not for the stated reason" >&2; exit 1; }
done_with "Rust $too_old does not know exposed provenance"

echo "package: $passed passed, 0 failed"
