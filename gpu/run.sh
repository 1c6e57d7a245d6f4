#!/bin/sh
# Runs everything on a machine with a GPU and its driver:
#   sh run.sh [RESULTS]     logs and figures go to the folder RESULTS (results)
#   STEPS="test bench" sh run.sh
# The steps: devices test conformance suite memcheck racecheck fuzz decode encode bench. A sanitizer that is not there, or does not work on this machine, is a skip that is printed.
# FUZZ_FRAMES: chunks to fuzz each codec with (200000). STORES: where the stores to read are, or are made (RESULTS/stores, 3 GB).
# JOBS: processes that share the tests (one for each core, 8 at most). SANITIZE: which tests run under the sanitizers, by name. SANITIZE_SECONDS: how long each may take (240).
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=${1:-results}
mkdir -p "$results"
results=$(cd "$results" && pwd)
gpu=$here/zarr-gpu
steps=${STEPS:-devices test conformance suite memcheck racecheck fuzz decode encode bench}
seconds=${SANITIZE_SECONDS:-240}
summary=$results/summary.txt
: >"$summary"
failed=0
export ZARR_REQUIRE_GPU=1

# log NAME COMMAND..: runs it, with all it prints in NAME.log too.
log() {
    name=$1
    shift
    { "$@" 2>&1; echo $? >"$results/.code"; } | tee "$results/$name.log"
    return "$(cat "$results/.code")"
}

# note NAME RESULT SECONDS
note() {
    printf '%-10s %-8s %5s s\n' "$1" "$2" "$3" >>"$summary"
}

# step NAME COMMAND..
step() {
    echo "== $1"
    start=$(date +%s)
    if log "$@"; then result=passed; else result=FAILED; failed=1; fi
    note "$1" "$result" $(($(date +%s) - start))
}

# Every JOBS-th test in a process of its own. What they print comes one after the other.
tests() {
    jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
    [ "$jobs" -le 8 ] || jobs=8
    part=0
    while [ $part -lt "$jobs" ]; do
        { "$gpu" test --part $part/"$jobs" >"$results/.test.$part" 2>&1; echo $? >"$results/.code.$part"; } &
        part=$((part + 1))
    done
    wait
    cat "$results"/.test.*
    ! grep -qvx 0 "$results"/.code.*
    passed=$?
    rm -f "$results"/.test.* "$results"/.code.*
    return $passed
}

find_sanitizer() {
    command -v compute-sanitizer && return
    for path in /usr/local/cuda*/bin/compute-sanitizer /usr/local/cuda*/compute-sanitizer/compute-sanitizer /opt/nvidia/*/compute-sanitizer; do
        [ -x "$path" ] && echo "$path" && return
    done
}

# sanitize TOOL
sanitize() {
    sanitizer=$(find_sanitizer)
    if [ -z "$sanitizer" ]; then
        echo "== $1: skipped, there is no compute-sanitizer here"
        note "$1" skipped 0
        return
    fi
    # It may be there, and refuse the device.
    if ! timeout 120 "$sanitizer" --tool "$1" --error-exitcode 86 "$gpu" probe >"$results/$1.probe.log" 2>&1; then
        echo "== $1: skipped, compute-sanitizer does not work here:"
        tail -n 5 "$results/$1.probe.log"
        note "$1" skipped 0
        return
    fi
    step "$1" timeout "$seconds" "$sanitizer" --tool "$1" --error-exitcode 86 "$gpu" test --small ${SANITIZE:-}
}

for step in $steps; do
    case $step in
    devices)
        step devices "$gpu" devices
        ;;
    test)
        step test tests
        ;;
    conformance)
        step conformance "$gpu" conformance run --device cuda --json "$results/conformance.json" --junit "$results/conformance.xml" \
            --html "$results/conformance.html" --save "$results/conformance-failures"
        ;;
    suite)
        step suite "$gpu" suite --engine cuda
        ;;
    memcheck | racecheck | initcheck | synccheck)
        sanitize "$step"
        ;;
    fuzz)
        step fuzz "$gpu" fuzz --engine cuda --frames "${FUZZ_FRAMES:-200000}" --reach 30 --save "$results/fuzz"
        step fuzz-blosc "$gpu" fuzz --codec blosc --engine cuda --frames "${FUZZ_FRAMES:-200000}" --reach 30 --save "$results/fuzz"
        step fuzz-deflate "$gpu" fuzz --codec deflate --engine cuda --frames "${FUZZ_FRAMES:-200000}" --reach 30 --save "$results/fuzz"
        step fuzz-lz4 "$gpu" fuzz --codec lz4 --engine cuda --frames "${FUZZ_FRAMES:-200000}" --reach 30 --save "$results/fuzz"
        step fuzz-encode "$gpu" fuzz --codec zstd-encode --engine cuda --frames "${FUZZ_FRAMES:-200000}"
        # Batches large enough for the kernels of many chunks.
        for codec in deflate lz4; do
            step "fuzz-$codec-many" "$gpu" fuzz --codec "$codec" --engine cuda --batch 400 --frames "${FUZZ_FRAMES:-200000}" --reach 30 --save "$results/fuzz"
        done
        ;;
    decode)
        step decode "$gpu" decode
        step decode-gzip "$gpu" decode --codec gzip
        step decode-lz4 "$gpu" decode --codec lz4
        ;;
    encode)
        step encode "$gpu" encode --stages
        ;;
    bench)
        step bench "$gpu" bench --stores "${STORES:-$results/stores}" --record "$results/bench.jsonl" --timeline "$results/timeline.json"
        ;;
    *)
        echo "run.sh: there is no step $step"
        exit 2
        ;;
    esac
done
rm -f "$results/.code"

echo
echo "== summary of $(cat "$here/COMMIT" 2>/dev/null)"
cat "$summary"
for name in decode decode-gzip decode-lz4 bench; do
    if [ -f "$results/$name.log" ]; then
        echo
        cat "$results/$name.log"
    fi
done
exit $failed
