#!/usr/bin/env bash
# The tests, by the README's command, and their sum.
set -euo pipefail
cd "$(dirname "$0")/.."

command='cargo test --workspace'
grep -qxF "$command" README.md || { echo "test: README.md has another test command"; exit 1; }
# The page of the conformance suite is looked at in a browser.
browser() {
    command -v chromium chromium-browser google-chrome google-chrome-stable | head -n 1
}
if [ -z "$(browser)" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends chromium >/dev/null || echo "test: no browser can be installed here"
fi
if [ -n "$(browser)" ]; then
    export ZARR_REQUIRE_BROWSER=1
fi
mkdir -p target/ci
log=target/ci/test.log
code=0
$command --locked --no-fail-fast 2>&1 | tee "$log" || code=$?
{
    grep '^test result:' "$log" || true
    awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
         END { if (ignored) printf "%d ignored\n", ignored; printf "%d passed, %d failed\n", passed, failed }' "$log"
} >target/ci/test-summary.txt
exit $code
