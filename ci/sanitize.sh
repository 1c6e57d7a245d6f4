#!/usr/bin/env bash
# The kernels, built for the host with the address and undefined-behaviour sanitizers, pass their laws and a part of the tests; memory of tests and provider included. All tests, and more chunks,
# are by hand: `cargo xtask sanitize`.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo xtask sanitize --frames 5000 --part 0/5
