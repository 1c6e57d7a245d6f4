#!/usr/bin/env bash
# Lints, with warnings as errors, everywhere: libraries, tests, examples, benches.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --workspace --all-targets --locked -- -D warnings
