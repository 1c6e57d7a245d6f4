"""tensorstore. The same arguments and the same line of JSON as the Rust drivers.

The setup `cached` gives it a cache in which the indexes of all shards have room, and few chunks: it is used to keep indexes between calls.
"""

import argparse
import collections
import json
import os
import time

import numpy as np
import tensorstore as ts


def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def region(item):
    return tuple(slice(start, start + length) for start, length in zip(item["start"], item["shape"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode")
    parser.add_argument("path")
    parser.add_argument("--setup", default="")
    parser.add_argument("--work")
    parser.add_argument("--source")
    parser.add_argument("--verify", action="store_true")
    args = parser.parse_args()

    # Values need not survive a power cut: the other peers do not wait for the disk either.
    context = {"file_io_sync": False}
    if args.setup == "cached":
        context["cache_pool"] = {"total_bytes_limit": 2 << 20}
    elif args.setup:
        parser.error(f"unknown setup {args.setup}")
    remote = args.path.startswith("http://")
    kvstore = {"driver": "http", "base_url": args.path} if remote else {"driver": "file", "path": args.path}
    spec = {"driver": "zarr3", "kvstore": kvstore}
    array = ts.open(spec, context=ts.Context(context)).result()
    work = []
    if args.work:
        with open(args.work) as file:
            work = [region(item) for item in json.load(file)]
    dtype = array.dtype.numpy_dtype
    source = None
    if args.source and (args.verify or args.mode == "write_all"):
        source = np.fromfile(args.source, dtype).reshape(array.shape)
    read = lambda part: array[part].read().result()

    def read_ahead(parts):
        """One after the other, with a read under way for each processor, and one more."""
        begun = collections.deque()
        for part in parts:
            begun.append(array[part].read())
            if len(begun) > os.cpu_count():
                yield begun.popleft().result()
        for future in begun:
            yield future.result()

    everything = tuple(slice(0, length) for length in array.shape)

    if args.verify:
        if args.mode == "write_all":
            array.write(source).result()
        else:
            parts = work or [everything]
            for part, found in zip(parts, read_ahead(parts) if args.mode == "read_ahead" else map(read, parts)):
                if not np.array_equal(found.view(f"u{dtype.itemsize}"), source[part].view(f"u{dtype.itemsize}")):
                    raise SystemExit(f"{part} differs from the source")
        print(json.dumps({"verified": True}))
        return

    start_rss = peak()
    n = 0
    cpu, wall = time.process_time(), time.perf_counter()
    if args.mode == "read_all":
        kept = read(everything)
        n = kept.nbytes
    elif args.mode in ("read_chunks", "read_inner", "read_box", "read_plane"):
        for part in work:
            n += read(part).nbytes
    elif args.mode == "read_ahead":
        for found in read_ahead(work):
            n += found.nbytes
    elif args.mode == "write_all":
        array.write(source).result()
        n = source.nbytes
    else:
        parser.error(f"no mode {args.mode}")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "rss": peak(), "start_rss": start_rss, "n": n, "ops": max(1, len(work))}))


if __name__ == "__main__":
    main()
