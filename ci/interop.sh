#!/usr/bin/env bash
# Arrays of zarr-python, numcodecs, tensorstore and zarrs are read by ours, and ours by them.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo xtask interop
