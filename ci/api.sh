#!/usr/bin/env bash
# The public items of the contract crates are those listed in ci/api.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo xtask api --check
