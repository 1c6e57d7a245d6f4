#!/usr/bin/env bash
# Every fuzz target, for a few seconds each. Chance starts at the same place each time, so that a change is judged by what it changes; longer runs, from anywhere, are by hand
# (benches/record/fuzz.md).
set -euo pipefail
cd "$(dirname "$0")/.."

# To build it takes longer than to run it.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1
cargo xtask fuzz --seconds "${FUZZ_SECONDS:-3}" --seed "${FUZZ_SEED:-1}"
