#!/usr/bin/env bash
# The kernels, built for the host with the address and undefined-behaviour sanitizers, pass their tests; memory of tests and provider included.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo xtask sanitize --frames 10000
