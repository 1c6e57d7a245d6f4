#!/usr/bin/env bash
# Who may depend on whom, and what a feature may bring along.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo xtask check-deps
