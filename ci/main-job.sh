#!/usr/bin/env bash
# The first command of the README, word for word.
set -euo pipefail
cd "$(dirname "$0")/.."

command='cargo run --release -p zarr-cli -- read examples/data/north_america.zarr'
grep -qxF "$command" README.md || { echo "main-job: README.md has another first command"; exit 1; }
$command
