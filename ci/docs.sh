#!/usr/bin/env bash
# The documentation builds, and every link in it leads somewhere.
set -euo pipefail
cd "$(dirname "$0")/.."

RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
