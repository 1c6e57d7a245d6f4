#!/usr/bin/env bash
# Formatting, of the workspace, of the fuzz targets and of the Python package.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check
cargo fmt --manifest-path python/Cargo.toml --check
