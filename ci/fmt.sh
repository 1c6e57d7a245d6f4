#!/usr/bin/env bash
# Formatting, of the workspace and of the fuzz targets.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check
