"""Measures this project beside zarrs and tensorstore, in pairs, and says what came out.

run.py --data DIR --drivers DIR --runs FILE [--pairs N] [--variants A,B] [--modes A,B] [--quick] [--small] [--verify] [--patience S] [--seconds S]

A *round* runs every peer once, each in its own process, starting with another peer each time; the page cache is warm. The ratio of a peer is
its time over ours, for each round; its median is given with a 95% interval (bootstrap). A run during which other programs used the
processors is done again, and marked when that does not help. Every run is a line of `--runs`; what is complete there is not measured again.

It is the faster peer that counts: one that took 1.4 times as long as it in each of the first 3 rounds is left out of the others. Decoding and encoding
alone are measured in 5 rounds. `--verify` compares every byte that every peer reads and writes with the source, measures nothing, and notes
which drivers it was; a measurement says which of its peers were verified. `--patience` says how long to wait for a quiet machine before a round,
`--seconds` after how long no round is begun any more; lines come in the order of `--modes`.
"""

import argparse
import datetime
import hashlib
import json
import mmap
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
import time

import numpy as np

from report import floor_threads, report
from variants import COPIES, COPY_MEMORY, MODES, VARIANTS, applies, metadata

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PATIENCE = 60.0
# Decoded bytes of one run of calls that decode one chunk each, which one thread does.
CALLS = 128 << 20
# Rounds for what is not compared, for decoding and encoding alone, and until a slow peer is left out; so many times `--pairs` of what one thread does, whose
# speed depends on what the core beside it does.
ALONE, FLOOR, TRIAL = 3, 5, 3
MORE = 2
SLOW = 1.4


def peers_of(mode):
    if mode == "read_all_into":
        return ["ours"]
    if mode == "memory":
        return ["ours", "zarrs", "tensorstore"]
    peers = ["ours", "zarrs", "tensorstore"]
    if mode in ("read_inner", "read_box"):
        peers += ["zarrs-cached", "tensorstore-cached", "ours-cached"]
    return peers


def floors_of(variant, mode):
    # Of planes, ours decodes parts of chunks: decoding the whole is no bound.
    return [] if mode in ("read_plane", "read_all_into", "memory") else [f"floor-{floor_threads(variant, mode, os.cpu_count())}"]


def left_out(walls):
    """Peers that are too slow to be the faster one, given the times of each in the first rounds."""
    out = set()
    for cached in (False, True):
        peers = {peer: times for peer, times in walls.items() if not peer.startswith(("ours", "floor")) and peer.endswith("-cached") == cached}
        if not peers or any(len(times) < TRIAL for times in peers.values()):
            continue
        faster = min(peers, key=lambda peer: float(np.median(peers[peer])))
        out |= {peer for peer, times in peers.items() if all(slow > SLOW * fast for slow, fast in zip(times, peers[faster]))}
    return out


def work_of(variant, mode, small):
    """The calls of a mode: the same for every peer. The seed is fixed."""
    document = metadata(variant, small)
    shape = document["shape"]
    chunk = document["chunk_grid"]["configuration"]["chunk_shape"]
    rng = np.random.default_rng(7)
    if mode in ("read_chunks", "read_inner", "read_ahead"):
        size = VARIANTS[variant][2] if mode == "read_inner" else chunk
        counts = [-(-length // step) for length, step in zip(shape, size)]
        work = []
        for index in np.ndindex(*counts):
            start = [i * step for i, step in zip(index, size)]
            work.append({"start": start, "shape": [min(n, s - o) for n, s, o in zip(size, shape, start)], "chunk": list(index)})
        if mode == "read_inner":
            work = [work[number] for number in rng.permutation(len(work))]
        if VARIANTS[variant][3] and mode != "read_ahead":
            # Some of them, evenly spread: whoever decodes one chunk after the other takes seconds for all.
            item_size = np.dtype(document["data_type"]).itemsize
            # A first call makes threads, and is the only one to get memory that the process never had.
            fits = max(8, CALLS // (int(np.prod(size)) * item_size))
            work = work[:: -(-len(work) // fits)]
        return work
    if mode == "read_plane":
        # A first call makes threads: many calls where each takes a fraction of a millisecond.
        planes = rng.permutation(shape[0])[: 24 if VARIANTS[variant][3] else 240]
        return [{"start": [int(at), *[0] * (len(shape) - 1)], "shape": [1, *shape[1:]], "chunk": []} for at in planes]
    if mode == "read_box":
        # Each box lies over a corner or an edge of shards, somewhere.
        size = {3: [90, 150, 150], 4: [6, 3, 300, 500]}[len(shape)]
        size = [min(n, s) for n, s in zip(size, shape)]
        work = []
        for _ in range(48):
            start = []
            for n, s, step in zip(size, shape, chunk):
                edge = int(rng.integers(1, max(2, s // step))) * step
                start.append(int(np.clip(edge - rng.integers(1, max(2, n)), 0, s - n)))
            work.append({"start": start, "shape": size, "chunk": []})
        return work
    return None


def machine_seconds():
    """Busy and stolen seconds of all processors."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, soft, steal = (int(part) for part in stat.readline().split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft) / tick, steal / tick


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wait_for_quiet(patience):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        before = machine_seconds()[0]
        time.sleep(0.3)
        if machine_seconds()[0] - before < 0.06:
            return


def warm(path):
    """Brings files into the page cache."""
    buffer = bytearray(1 << 20)
    for file in [path] if path.is_file() else path.rglob("*"):
        if file.is_file():
            with open(file, "rb", buffering=0) as handle:
                while handle.readinto(buffer):
                    pass


def touch_memory(length):
    """A virtual machine gives freed memory back to its host, and the next process would pay for that."""
    with mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        np.frombuffer(memory, np.uint8)[::4096] = 1


class Bench:
    def __init__(self, args):
        self.args = args
        self.data = pathlib.Path(args.data)
        self.drivers = pathlib.Path(args.drivers)
        shm = pathlib.Path("/dev/shm")
        room = shutil.disk_usage(shm).free if shm.is_dir() else 0
        self.on_tmpfs = room > 4 << 30
        self.scratch = (shm if self.on_tmpfs else self.data) / f"zarr-peers-{os.getpid()}"
        self.patience = 0 if args.quick else args.patience
        self.attempts = 4 if self.patience else 1
        self.end = time.monotonic() + args.seconds

    def command(self, peer, mode, variant, work, verify):
        path = self.scratch / "out.zarr" if mode == "write_all" else self.data / f"{variant}.zarr"
        source = str(self.data / f"{VARIANTS[variant][0]}.bin")
        if peer.startswith("floor-"):
            command = [str(self.drivers / "floor"), peer.removeprefix("floor-"), str(path), "--repeat", "1"]
            command += ["--encode", source] if mode == "write_all" else []
            return command + (["--ahead" if mode == "read_ahead" else "--work", str(work)] if work else [])
        name, _, setup = peer.partition("-")
        driver = {
            "ours": [self.drivers / "peer-ours"],
            "zarrs": [self.drivers / "peer-zarrs"],
            "tensorstore": [sys.executable, "-B", HERE / "tensorstore_driver.py"],
        }[name]
        command = [*map(str, driver), mode, str(path), "--source", source]
        if setup:
            command += ["--setup", setup]
        if work:
            command += ["--work", str(work)]
        return command + (["--verify"] if verify else [])

    def once(self, peer, mode, variant, work, verify=False):
        if mode == "write_all":
            shutil.rmtree(self.scratch / "out.zarr", ignore_errors=True)
            (self.scratch / "out.zarr").mkdir(parents=True)
            (self.scratch / "out.zarr/zarr.json").write_text(json.dumps(metadata(variant, self.args.small)))
        began, (busy, steal), ours = time.monotonic(), machine_seconds(), children_seconds()
        command = self.command(peer, "read_all" if mode == "memory" else mode, variant, work, verify)
        # The allocator of the drivers in Rust would round what each thread has up to pages of 2 MiB.
        environment = {**os.environ, "MIMALLOC_ALLOW_THP": "0"} if mode == "memory" else None
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment)
        took = time.monotonic() - began
        busy_after, steal_after = machine_seconds()
        if done.returncode:
            raise SystemExit(f"{peer} {mode} {variant}: {done.stderr.strip()[-2000:]}")
        answer = json.loads(done.stdout)
        answer["others"] = round(busy_after - busy - (children_seconds() - ours), 3)
        answer["steal"] = round(steal_after - steal, 3)
        answer["noisy"] = max(answer["others"], answer["steal"]) > 0.10 + 0.05 * took
        return answer

    def verify(self, peer, mode, variant, work):
        """Every byte, once, before anything is measured."""
        self.once(peer, mode, variant, work, verify=True)
        if mode == "write_all":
            # Read back by another implementation than the one that wrote.
            reader = "tensorstore" if peer == "ours" else "ours"
            command = self.command(reader, "read_all", variant, None, True)
            command[command.index("read_all") + 1] = str(self.scratch / "out.zarr")
            subprocess.run(command, check=True, capture_output=True)

    def copy(self, variant, done, runs):
        """The most memory that the program takes for a copy with other chunks."""
        if done or not (self.drivers / "zarr").exists():
            return
        target = self.scratch / "copy.zarr"
        command = ["copy", str(self.data / f"{variant}.zarr"), str(target), "--memory", str(COPY_MEMORY), *COPIES[variant], "--overwrite", "--quiet"]
        began = time.monotonic()
        process = subprocess.Popen([str(self.drivers / "zarr"), *command], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"zarr copy {variant}: status {status}")
        wall = round(time.monotonic() - began, 3)
        line = {"variant": variant, "mode": "copy", "round": 0, "peer": "ours", "wall": wall, "rss": used.ru_maxrss * 1024, "memory": COPY_MEMORY}
        runs.write(json.dumps(line) + "\n")
        shutil.rmtree(target, ignore_errors=True)

    def measure(self, mode, variant, done, runs):
        args = self.args
        self.scratch.mkdir(parents=True, exist_ok=True)
        if mode in ("copy", "memory") and args.verify:
            return
        if mode == "copy":
            self.copy(variant, done, runs)
            return
        work, items = None, work_of(variant, mode, args.small)
        if items is not None:
            work = self.scratch / "work.json"
            work.write_text(json.dumps(items))
        warm(self.data / f"{variant}.zarr")
        if mode == "write_all" or args.verify:
            warm(self.data / f"{VARIANTS[variant][0]}.bin")
        peers = [peer for peer in peers_of(mode) if peer.partition("-")[0] in args.peers]
        if args.verify:
            for peer in peers:
                self.verify(peer, mode, variant, work)
            self.notes(variant, mode).write_text(json.dumps({"drivers": fingerprint(self.drivers), "peers": peers}))
            return
        peers += floors_of(variant, mode) if "floor" in args.peers else []
        rounds = min(args.pairs, {"read_all_into": ALONE, "memory": 1}.get(mode, args.pairs))
        rounds *= MORE if mode == "read_inner" else 1
        walls = {peer: [line["wall"] for line in done if line["peer"] == peer] for peer in peers}
        for number in range(1 + max((line["round"] for line in done), default=-1), rounds):
            if time.monotonic() > self.end:
                return
            out = left_out({peer: times[:TRIAL] for peer, times in walls.items()})
            now = [peer for peer in peers if peer not in out and (number < FLOOR * rounds // args.pairs or not peer.startswith("floor"))]
            turn = number % len(now)
            wait_for_quiet(self.patience)
            if mode in ("read_all", "write_all"):
                # Of writes: the source, its chunks and their files.
                touch_memory(64 << 20 if args.small else 3 << 30 if mode == "write_all" else 5 << 28)
            lines = []
            for peer in now[turn:] + now[:turn]:
                for attempt in range(self.attempts):
                    if attempt:
                        wait_for_quiet(self.patience)
                    answer = self.once(peer, mode, variant, work)
                    if not answer["noisy"]:
                        break
                lines.append({"variant": variant, "mode": mode, "round": number, "peer": peer, "attempt": attempt, **answer})
                walls[peer].append(answer["wall"])
            # Whole rounds: one that was cut short is measured again.
            runs.write("".join(json.dumps(line) + "\n" for line in lines))
            runs.flush()

    def run(self):
        args = self.args
        path = pathlib.Path(args.runs)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        if not lines and not args.verify:
            lines = [{"about": about(self)}]
            path.write_text(json.dumps(lines[0]) + "\n")
        began = time.monotonic()
        try:
            with open(os.devnull if args.verify else path, "a") as runs:
                for mode in args.modes:
                    for variant in args.variants:
                        if not applies(variant, mode) or time.monotonic() > self.end:
                            continue
                        done = [line for line in lines if line.get("variant") == variant and line.get("mode") == mode]
                        print(f"{time.monotonic() - began:6.0f} s  {variant} {mode}", file=sys.stderr, flush=True)
                        self.measure(mode, variant, done, runs)
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)
        return [] if args.verify else [json.loads(line) for line in path.read_text().splitlines()]

    def notes(self, variant, mode):
        folder = self.data / "verified"
        folder.mkdir(exist_ok=True)
        return folder / f"{variant}-{mode}.json"

    def verified(self):
        """The peers of which these drivers read, and wrote, every byte of every line right."""
        found = {"read": None, "write": None}
        for mode in self.args.modes:
            for path in [self.notes(v, mode) for v in self.args.variants if applies(v, mode) and mode.startswith(("read", "write")) and mode != "read_all_into"]:
                noted = json.loads(path.read_text()) if path.exists() else {}
                peers = {peer.partition("-")[0] for peer in noted["peers"]} if noted.get("drivers") == fingerprint(self.drivers) else set()
                what = mode.partition("_")[0]
                found[what] = peers if found[what] is None else found[what] & peers
        return {what: sorted(peers or []) for what, peers in found.items()}


def fingerprint(drivers):
    files = [*(drivers / name for name in ("peer-ours", "peer-zarrs")), HERE / "tensorstore_driver.py", HERE / "variants.py"]
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done.stdout.strip() if done.returncode == 0 else ""


def file_system(path):
    """The type of the file system that holds a path."""
    path = path.resolve()
    with open("/proc/mounts") as mounts:
        held = [line.split()[1:3] for line in mounts]
    held = [(point, kind) for point, kind in held if path.is_relative_to(point)]
    return max(held, key=lambda of: len(of[0]))[1]


def built_here():
    changed = output("git", "status", "--porcelain", "--", "crates", "Cargo.toml", "benches/peers")
    return {"commit": output("git", "rev-parse", "HEAD"), "changed_since": bool(changed), "rustc": output("rustc", "--version").removeprefix("rustc ")}


def about(bench):
    import tensorstore  # noqa: F401  (its version is asked for below)
    from importlib.metadata import version

    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    thp = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    lock = (HERE / "Cargo.lock").read_text()
    # Where the drivers were brought to: what they were built from.
    built = json.loads((HERE / "built.json").read_text()) if (HERE / "built.json").exists() else built_here()
    locked = dict(re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', lock))
    return {
        "date": datetime.date.today().isoformat(),
        "commit": built["commit"],
        "changed_since": built["changed_since"],
        "processor": cpu,
        "processors": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "huge_pages": thp.read_text().strip() if thp.exists() else "none",
        "reads_come_from": file_system(bench.data),
        "writes_go_to": "tmpfs" if bench.on_tmpfs else file_system(bench.data),
        "scale": "small" if bench.args.small else "full",
        "verified": bench.verified(),
        "versions": {
            "rustc": built["rustc"],
            "zarrs": locked.get("zarrs"),
            "mimalloc (crate)": locked.get("mimalloc"),
            "libdeflate-sys": locked.get("libdeflate-sys"),
            "zstd-sys": locked.get("zstd-sys"),
            "blosc-src": locked.get("blosc-src"),
            "tensorstore": version("tensorstore"),
            "python": platform.python_version(),
        },
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--drivers", required=True)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--record")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--variants", type=lambda text: text.split(","), default=list(VARIANTS))
    parser.add_argument("--modes", type=lambda text: text.split(","), default=MODES)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["ours", "zarrs", "tensorstore", "floor"])
    parser.add_argument("--quick", action="store_true", help="3 rounds, and no waiting for a quiet machine")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds to wait for a quiet machine; 0: no runs are repeated either")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no round is begun after so many")
    parser.add_argument("--small", action="store_true", help="small arrays: checks the harness, measures nothing")
    parser.add_argument("--verify", action="store_true", help="compare every byte, measure nothing")
    args = parser.parse_args()
    args.pairs = args.pairs or (3 if args.quick else 11)
    for name, known in (("variants", VARIANTS), ("modes", MODES)):
        if unknown := set(getattr(args, name)) - set(known):
            parser.error(f"no {name} {', '.join(unknown)}; there are {', '.join(known)}")
    lines = Bench(args).run()
    if args.verify:
        return
    text = report(lines)
    print(text)
    if args.record:
        folder = pathlib.Path(args.record)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "peers.md").write_text(text)
        shutil.copy(args.runs, folder / "peers.jsonl")


if __name__ == "__main__":
    main()
