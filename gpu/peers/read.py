"""What others make of the stores of `zarr-gpu bench`: each array read whole to a CuPy array on the device.

    python3 read.py STORES [ROW..] [--runs N] [--record FILE]

Needs cupy, numpy, zarr 3 and kvikio (kvikio-cu13, libkvikio-cu13, rapids-logger). Each reader runs in a process of its own, within a time limit, with as many
threads as there are cores; the figure is the median of the runs after one that is not counted, files in the page cache. The sum of the elements' bits is compared
between the readers.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROWS = ["raw", "zstd", "zstdsmall", "zstdshard", "blosclz4", "blosczstd"]
READERS = ["zarr-python, GPU mode", "kvikIO GDSStore, zarr-python", "kvikIO CuFile"]


def zarr_array(path, gds):
    import zarr

    threads = os.cpu_count()
    zarr.config.enable_gpu()
    zarr.config.set({"threading.max_workers": threads, "async.concurrency": 4 * threads})
    if not gds:
        return zarr.open_array(path, mode="r")
    import kvikio.defaults
    import kvikio.zarr

    kvikio.defaults.set("num_threads", threads)
    return zarr.open_array(kvikio.zarr.GDSStore(path), mode="r")


def reader_of(name, path):
    """A function that reads, and the versions of what it uses."""
    import cupy

    if name == "kvikIO CuFile":
        return raw_files(path)
    import zarr

    array = zarr_array(path, gds=name.startswith("kvikIO"))

    def read():
        found = array[...]
        assert isinstance(found, cupy.ndarray), type(found)
        return found

    version = f"zarr {zarr.__version__}"
    if name.startswith("kvikIO"):
        import kvikio

        version += f", kvikio {kvikio.__version__}"
    return read, version


def raw_files(path):
    """Chunks that are stored as they are, each read by kvikIO to its place: no Zarr library between."""
    import cupy
    import kvikio
    import kvikio.defaults

    with open(os.path.join(path, "zarr.json")) as file:
        metadata = json.load(file)
    if [codec["name"] for codec in metadata["codecs"]] != ["bytes"]:
        raise NotImplementedError("decodes nothing")
    kvikio.defaults.set("num_threads", os.cpu_count())
    shape, chunk = metadata["shape"], metadata["chunk_grid"]["configuration"]["chunk_shape"]
    assert chunk[2:] == shape[2:] and chunk[:2] == [1, 1]

    def read():
        out = cupy.empty(shape, cupy.float32)
        files, pending = [], []
        for i in range(shape[0]):
            for j in range(shape[1]):
                files.append(kvikio.CuFile(os.path.join(path, "c", str(i), str(j), "0", "0")))
                pending.append(files[-1].pread(out[i, j]))
        for future in pending:
            future.get()
        for file in files:
            file.close()
        return out

    return read, f"kvikio {kvikio.__version__}"


def measure(name, path, runs):
    import cupy

    read, version = reader_of(name, path)
    device = cupy.cuda.Device()
    seconds, peak = [], 0
    for run in range(runs + 1):
        start = time.perf_counter()
        found = read()
        device.synchronize()
        if run > 0:
            seconds.append(time.perf_counter() - start)
        size = found.nbytes
        if run == runs:
            check = int(found.view(cupy.uint32).sum(dtype=cupy.uint64))
        del found
    with open("/proc/self/status") as file:
        peak = next((int(line.split()[1]) >> 10 for line in file if line.startswith("VmHWM")), None)
    return {"bytes": size, "seconds": seconds, "check": check, "version": version, "peak_mib": peak}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stores")
    parser.add_argument("rows", nargs="*", default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=40, help="limit for each reader of each row")
    parser.add_argument("--record")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        print(json.dumps(measure(args.only, os.path.join(args.stores, args.rows[0]), args.runs)))
        return
    for row in args.rows or ROWS:
        checks = set()
        for name in READERS:
            command = [sys.executable, __file__, args.stores, row, "--runs", str(args.runs), "--only", name]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=args.seconds)
            except subprocess.TimeoutExpired:
                print(f"{row:<10} {name:<30} more than {args.seconds} s for {args.runs + 1} reads")
                continue
            if done.returncode != 0:
                print(f"{row:<10} {name:<30} {(done.stderr.strip().splitlines() or ['?'])[-1][:160]}")
                continue
            found = json.loads(done.stdout.strip().splitlines()[-1])
            checks.add(found["check"])
            rate = found["bytes"] / statistics.median(found["seconds"]) / 1e9
            print(f"{row:<10} {name:<30} {rate:6.2f} GB/s  {found['version']}, host peak {found['peak_mib']} MiB")
            if args.record:
                with open(args.record, "a") as file:
                    file.write(json.dumps({"row": row, "what": name, **found}) + "\n")
        if len(checks) > 1:
            print(f"{row}: the readers disagree: {checks}")


main()
