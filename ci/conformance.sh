#!/usr/bin/env bash
# The conformance suite, by the README's command, on everything that this machine has.
set -euo pipefail
cd "$(dirname "$0")/.."

command='cargo run --release -p zarr-conformance -- run'
grep -qxF "$command" README.md || { echo "conformance: README.md has another command for the suite"; exit 1; }
mkdir -p target/ci
report=target/ci/conformance
$command --json $report.json --junit $report.xml --html $report.html --save $report-failures
# The report says the same as the exit status, and of enough.
python3 - $report.json <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
summary = report["summary"]
assert report["schema"] == "zarr-conformance/1" and summary["failed"] == 0, summary
assert summary["passed"] == sum(case["outcome"] == "pass" for subject in report["subjects"] for case in subject["cases"]), summary
assert summary["passed"] > 10000, summary
PYTHON
