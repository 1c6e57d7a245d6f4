#!/usr/bin/env bash
# Licences, banned crates and sources, by cargo-deny. Advisories are left out: their database is not in a package registry.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
tools=$PWD/target/ci-tools
deny=$tools/bin/cargo-deny
if [ "$("$deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
    # Unoptimised: it builds in a minute or two and runs for seconds.
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=$tools/build \
        cargo install --quiet --locked --debug --root "$tools" "cargo-deny@$version"
    rm -rf "$tools/build"
fi
"$deny" --log-level error check --hide-inclusion-graph bans licenses sources
