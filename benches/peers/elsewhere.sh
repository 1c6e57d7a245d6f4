#!/bin/bash
# Measures where there is no cargo and no package registry: a folder that `cargo xtask bench-peers --bundle FOLDER` made, brought to another machine.
#
# elsewhere.sh OUTPUT SECONDS [FLAG..]: the data are made below $DATA (default /tmp/zarr-peers; 13 GB), the sources in /dev/shm if there is room; what this
# project reads and writes is compared with the source; then all lines are measured by `run.py` with the flags given until so many seconds after the start are
# over. Runs go to OUTPUT/runs.jsonl; those of an earlier call, as runs.jsonl beside this file, are not done again. Wanted: Python with numpy and tensorstore.
set -e
here=$(cd "$(dirname "$0")" && pwd)
output=$1 end=$2
shift 2
data=${DATA:-/tmp/zarr-peers}
mkdir -p "$data" "$output"
[ -f "$here/runs.jsonl" ] && cp "$here/runs.jsonl" "$output/runs.jsonl"

uname -r; nproc; free -g | head -2; df -h "$data" /dev/shm
if [ "$(df --output=avail -k /dev/shm | tail -1)" -gt $((6 << 20)) ]; then
    mkdir -p /dev/shm/zarr-peers-sources
    for source in era5 era5p cells; do ln -sf "/dev/shm/zarr-peers-sources/$source.bin" "$data/$source.bin"; done
fi
chmod +x "$here"/drivers/*
python3 -B "$here/generate.py" "$data" $SMALL
echo "$SECONDS s: data made"
sync
echo "$SECONDS s: data on disk"

# Several at once: nothing is measured yet.
if [ -z "$UNVERIFIED" ]; then
    for variant in $(python3 -B -c "import sys; sys.path.insert(0, '$here'); import variants; print(*variants.VARIANTS)"); do echo "$variant"; done |
        xargs -P 5 -I {} python3 -B "$here/run.py" --data "$data" --drivers "$here/drivers" --runs /dev/null $SMALL --verify --peers ours \
            --modes read_all,read_inner,read_box,read_plane,read_chunks,read_ahead,write_all --variants {} 2>>"$output/verify.log"
    echo "$SECONDS s: verified"
fi
python3 -B "$here/run.py" --data "$data" --drivers "$here/drivers" --runs "$output/runs.jsonl" --patience 0 $SMALL --seconds $((end - SECONDS)) "$@"
echo "$SECONDS s"
