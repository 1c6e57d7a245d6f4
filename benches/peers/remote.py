"""Measures this project beside zarrs and tensorstore where the arrays are far away: behind a server that answers late, and slowly to each connection.

remote.py --data DIR --drivers DIR --runs FILE [--rounds N] [--seconds S] [--small] [--lines PROFILE/VARIANT/MODE,..]
remote.py --report FILE

`server/` serves the data of `run.py` from this machine, so that its processors are shared. A round runs every peer once, each in its own process, starting with another peer each
time. A peer that took 3 times as long as the fastest in the first round is left out of the others. Before it is measured, every byte that this project reads is compared with the source.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# Milliseconds until a request is answered, and megabytes a second that each connection gets (0: as many as go through).
PROFILES = {"far": (20, 90), "near": (1, 0)}
PEERS = {
    "ours": ["peer-ours"],
    "zarrs": ["peer-zarrs-remote"],
    "zarrs-async": ["peer-zarrs-remote", "--setup", "async"],
    "tensorstore": None,
}
WHOLE = ["f32-zstd", "f32-small-zstd", "f32-shard-zstd", "u16-raw", "u16-small-blosc-lz4", "u16-shard-zstd"]
SHARDS = ["f32-shard-zstd", "u16-shard-zstd"]
LINES = [
    *(("far", variant, "read_all") for variant in WHOLE),
    *(("far", variant, mode) for mode in ("read_box", "read_inner") for variant in SHARDS),
    *(("far", variant, "read_ahead") for variant in ("f32-zstd", "u16-small-blosc-lz4")),
    ("far", "u16-raw", "read_chunks"),
    *(("near", variant, "read_all") for variant in WHOLE),
]
# Calls of a work list: one by one they take round trips each.
CALLS = {"read_box": 24, "read_inner": 24, "read_ahead": 512, "read_chunks": 16}
SLOW = 3.0


class Server:
    def __init__(self, drivers, data, profile):
        latency, rate = PROFILES[profile]
        command = [str(drivers / "peer-server"), str(data), "--latency", str(latency), "--rate", str(rate)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def counts(self):
        with urllib.request.urlopen(f"{self.url}/.counts") as answer:
            return json.load(answer)


def once(drivers, server, peer, variant, mode, work, source=None):
    command = PEERS[peer]
    command = [str(drivers / command[0]), mode, *command[1:]] if command else [sys.executable, "-B", str(HERE / "tensorstore_driver.py"), mode]
    command.insert(2 if PEERS[peer] else 4, f"{server.url}/{variant}.zarr")
    if work:
        command += ["--work", str(work)]
    if source:
        command += ["--verify", "--source", str(source)]
    server.counts()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(f"{peer} {variant} {mode}: {done.stderr.strip()[-2000:]}")
    return {**json.loads(done.stdout), **server.counts()}


def measure(args):
    from run import about, warm, work_of
    from variants import VARIANTS

    path = pathlib.Path(args.runs)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if not lines:
        of = argparse.Namespace(data=args.data, on_tmpfs=False, args=argparse.Namespace(small=args.small), verified=list)
        path.write_text(json.dumps({"about": about(of)}) + "\n")
    end = time.monotonic() + args.seconds
    servers = {profile: Server(args.drivers, args.data, profile) for profile in PROFILES}
    try:
        with open(path, "a") as runs, tempfile.TemporaryDirectory() as scratch:
            for profile, variant, mode in args.lines:
                server, work = servers[profile], None
                items = work_of(variant, mode, args.small)
                if items is not None:
                    work = pathlib.Path(scratch) / "work.json"
                    work.write_text(json.dumps(items[: CALLS[mode]]))
                done = [line for line in lines if (line.get("profile"), line.get("variant"), line.get("mode")) == (profile, variant, mode)]
                warm(args.data / f"{variant}.zarr")
                if not done:
                    once(args.drivers, server, "ours", variant, mode, work, args.data / f"{VARIANTS[variant][0]}.bin")
                first = {line["peer"]: line["wall"] for line in done if line["round"] == 0}
                for number in range(1 + max((line["round"] for line in done), default=-1), args.rounds):
                    if time.monotonic() > end:
                        return
                    peers = [peer for peer in PEERS if not (peer.startswith("zarrs") and mode == "read_ahead")]
                    peers = [peer for peer in peers if first.get(peer, 0) <= SLOW * min(first.values(), default=0)] or peers
                    turn = number % len(peers)
                    answers = [(peer, once(args.drivers, server, peer, variant, mode, work)) for peer in peers[turn:] + peers[:turn]]
                    for peer, answer in answers:
                        line = {"profile": profile, "variant": variant, "mode": mode, "round": number, "peer": peer, **answer}
                        runs.write(json.dumps(line) + "\n")
                        if number == 0:
                            first[peer] = answer["wall"]
                    runs.flush()
                print(f"{profile} {variant} {mode}", file=sys.stderr, flush=True)
    finally:
        for server in servers.values():
            server.process.kill()


def report(path):
    from report import compare

    about, *lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    about = about["about"]
    rng = np.random.default_rng(1)
    text = [
        f"{about['date']}, commit {about['commit'][:12]}{' and changes' if about['changed_since'] else ''}. {about['processor']}, {about['processors']} processors, which the server shares; "
        f"Linux {about['kernel']}. zarrs {about['versions']['zarrs']} with zarrs_object_store, tensorstore {about['versions']['tensorstore']}, each with its own defaults.",
        "",
    ]
    groups = collections.defaultdict(list)
    for line in lines:
        groups[line["profile"], line["variant"], line["mode"]].append(line)
    for profile, (latency, rate) in PROFILES.items():
        chosen = {key: of for key, of in groups.items() if key[0] == profile}
        if not chosen:
            continue
        each = f"{rate} MB/s for each connection" if rate else "as fast as it goes"
        text += [f"## {profile}: {latency} ms to an answer, {each}", ""]
        text += ["| mode | variant | ours | zarrs | zarrs, async | tensorstore | ratio to the fastest | requests: ours, fastest | in flight | MiB over the output |"]
        text += ["|---|---|---|---|---|---|---|---|---|---|"]
        for (_, variant, mode), of in chosen.items():
            walls = collections.defaultdict(dict)
            for line in of:
                walls[line["peer"]][line["round"]] = line["wall"]
            speed = lambda peer: np.median([line["n"] / line["wall"] / 1e6 for line in of if line["peer"] == peer]) if walls.get(peer) else None
            speeds = {peer: speed(peer) for peer in PEERS}
            others = {peer: value for peer, value in speeds.items() if peer != "ours" and value}
            fastest = max(others, key=others.get)
            ratio = compare(walls, fastest, "ours", rng)
            of_peer = lambda peer, what: [line[what] for line in of if line["peer"] == peer]
            over = lambda peer: max(line["rss"] - (line["n"] if mode == "read_all" else 0) for line in of if line["peer"] == peer) / 2**20
            show = lambda value: "" if value is None else f"{value:,.0f}"
            text.append(
                f"| {mode} | {variant} | **{show(speeds['ours'])}** | {show(speeds['zarrs'])} | {show(speeds['zarrs-async'])} | {show(speeds['tensorstore'])} "
                f"| {ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}] {fastest}, {ratio['pairs']} pairs "
                f"| {max(of_peer('ours', 'requests')):,}, {max(of_peer(fastest, 'requests')):,} | {max(of_peer('ours', 'most_at_once'))}, {max(of_peer(fastest, 'most_at_once'))} "
                f"| {over('ours'):.0f}, {over(fastest):.0f} |"
            )
        text.append("")
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--drivers", type=pathlib.Path)
    parser.add_argument("--runs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--lines", type=lambda text: [tuple(line.split("/")) for line in text.split(",")], default=LINES)
    parser.add_argument("--report")
    args = parser.parse_args()
    if args.report:
        print(report(args.report))
        return
    measure(args)
    print(report(args.runs))


if __name__ == "__main__":
    main()
