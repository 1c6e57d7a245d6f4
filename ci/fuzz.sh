#!/usr/bin/env bash
# Every fuzz target, for a few seconds each.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo xtask fuzz --seconds "${FUZZ_SECONDS:-4}"
