#!/usr/bin/env bash
# The codec, the store and the device that live outside of the project build and hold the laws, from their own folder.
set -euo pipefail
cd "$(dirname "$0")/../examples/out-of-tree-codec"

cargo fmt --check
CARGO_TARGET_DIR=../../target/example cargo test --locked
lines=$(cat src/rle.rs src/store.rs src/device.rs | wc -l)
if [ "$lines" -ge 220 ]; then
    echo "example: a codec, a store and a device take $lines lines, and the tutorial says fewer than 220"
    exit 1
fi
