#!/usr/bin/env bash
# The set-up: finds out which packages are missing, prints the one command that installs them and runs it where that needs no
# password, then tells cargo where the system's RocksDB is. Quiet where nothing is to do.
#
#   scripts/setup.sh [--tests] [--no-install]
#
#   --tests       also what `make test` needs besides: valgrind, and Miri and the library sources of a nightly toolchain
#   --no-install  print what is missing and go on without it
set -euo pipefail
cd "$(dirname "$0")/.."

tests=
install=1
for arg; do
    case $arg in
    --tests) tests=1 ;;
    --no-install) install= ;;
    *)
        echo "setup: unknown option $arg (known: --tests, --no-install)" >&2
        exit 2
        ;;
    esac
done

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root: directly, or through sudo where that asks for no password.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo && sudo -n true 2>/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

# The folder of the system's RocksDB library, if it has one.
rocksdb_lib_dir() {
    local dir
    for dir in "/usr/lib/$(gcc -print-multiarch 2>/dev/null)" /usr/lib64 /usr/lib /usr/local/lib; do
        if [ -e "$dir/librocksdb.so" ]; then
            printf '%s' "$dir"
            return
        fi
    done
}

# Version 7 of the library is what the crate in Cargo.lock compiles against.
is_usable_rocksdb() {
    [ -n "$(rocksdb_lib_dir)" ] || return 1
    local header=/usr/include/rocksdb/version.h
    [ -e "$header" ] || header=/usr/local/include/rocksdb/version.h
    grep -q '^#define ROCKSDB_MAJOR 7$' "$header" 2>/dev/null
}

missing=()
for tool in cargo git cc; do
    have "$tool" || {
        echo "setup: $tool is not there; Rust, git, make and a C compiler have to be" >&2
        exit 1
    }
done
# protoc compiles raft's and the server's messages; clang's library reads RocksDB's headers.
have protoc || missing+=(protobuf-compiler)
have clang || missing+=(clang)
ls /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so >/dev/null 2>&1 || missing+=(libclang-dev)
have c++ || missing+=(g++)
if have apt-cache && ! is_usable_rocksdb; then
    version=$(apt-cache policy librocksdb-dev 2>/dev/null | sed -n 's/.*Candidate: \([0-9]*\)\..*/\1/p')
    # An old package list, or none, does not know the package; the installation below brings the list up to date.
    case $version in
    7 | '') missing+=(librocksdb-dev) ;;
    *) echo "setup: this system's RocksDB $version does not fit the crate in Cargo.lock" ;;
    esac
fi

# It counts instructions.
[ -z "$tests" ] || have valgrind || missing+=(valgrind)

if [ ${#missing[@]} -gt 0 ]; then
    if ! have apt-get; then
        echo "setup: missing: ${missing[*]} (names of Debian's packages)" >&2
        [ -z "$install" ] || exit 1
    else
        command="apt-get install -y --no-install-recommends ${missing[*]}"
        echo "setup: $command"
        if [ -n "$install" ]; then
            # shellcheck disable=SC2086 # the words of the command are its arguments
            if ! { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive $command >/dev/null; }; then
                echo "setup: run this as root, then try again:" >&2
                echo "  apt-get update && $command" >&2
                exit 1
            fi
        fi
    fi
fi

if [ -n "$tests" ] && have rustup && rustup toolchain list | grep -q '^nightly'; then
    installed=$(rustup component list --toolchain nightly --installed)
    if ! grep -q '^miri' <<<"$installed" || ! grep -q '^rust-src' <<<"$installed"; then
        echo "setup: rustup component add miri rust-src --toolchain nightly"
        # Without them `make test` says what it skips.
        [ -z "$install" ] || rustup component add miri rust-src --toolchain nightly || true
    fi
fi

if is_usable_rocksdb; then
    mkdir -p .cargo
    lib=$(rocksdb_lib_dir)
    include=/usr/include
    [ -e "$include/rocksdb/version.h" ] || include=/usr/local/include
    wanted=$(printf '# Written by scripts/setup.sh.\n[env]\nROCKSDB_LIB_DIR = "%s"\nROCKSDB_INCLUDE_DIR = "%s"' "$lib" "$include")
    if [ "$wanted" != "$(cat .cargo/config.toml 2>/dev/null)" ]; then
        printf '%s\n' "$wanted" >.cargo/config.toml
        echo "setup: cargo will use the RocksDB in $lib"
    fi
else
    rm -f .cargo/config.toml
    echo "setup: no RocksDB 7 on this system: its C++ is built from the crate, ten minutes to an hour on two cores, once"
    echo "setup: with GCC 13 or later, set CXXFLAGS='-include cstdint' for that build"
fi
