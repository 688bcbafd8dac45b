#!/usr/bin/env bash
# Writes the public surface, as the sources declare it, to api.txt. Works from any directory.
set -euo pipefail
cd "$(dirname "$0")"
UPDATE_API=1 cargo test -q --all-features --test it -- --exact api::public_api_is_as_listed
