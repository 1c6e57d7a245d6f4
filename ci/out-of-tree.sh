#!/usr/bin/env bash
# The CUDA crates, packaged and unpacked elsewhere, build and pass their tests against the packaged contracts.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo xtask out-of-tree
