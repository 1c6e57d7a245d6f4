"""From runs to a table, with what is asked of each line and whether it holds.

report.py RUNS..
"""

import collections
import json
import pathlib
import sys

import numpy as np

from variants import MODES, VARIANTS

# Beside the faster peer: never slower; here, faster by half, or as fast as decoding alone, or of writes encoding alone, allows.
ASKED = 1.5
OF_FLOOR = 1 / 1.1
# Memory of a full read, over its output; that of a copy, over what it was given to work in.
PEAK = 64 << 20
COPY_PEAK = 50_000_000


def asked(variant, mode):
    hard = "gzip" in variant or "small" in variant or mode in ("read_inner", "read_box")
    return ASKED if hard else 1.0


def floor_threads(variant, mode, processors):
    """One chunk at a time is decoded by one thread, unless it is a shard; all are decoded and encoded by all."""
    one = mode == "read_inner" or (mode == "read_chunks" and VARIANTS[variant][2] is None)
    return 1 if one else processors


def alone(mode):
    """What is left without store and layout."""
    return "encoding" if mode == "write_all" else "decoding"


def interval(values, rng):
    values = np.asarray(values)
    picks = rng.integers(0, len(values), (10_000, len(values)))
    return [float(x) for x in np.percentile(np.median(values[picks], axis=1), [2.5, 97.5])]


def compare(walls, over, ours, rng):
    """How many times as long as ours: median, 95% interval, and of how many rounds."""
    ratios = [walls[over][number] / time for number, time in walls[ours].items() if number in walls[over]]
    if not ratios:
        return None
    low, high = interval(ratios, rng)
    return {"median": round(float(np.median(ratios)), 3), "low": round(low, 3), "high": round(high, 3), "pairs": len(ratios)}


def judge(walls, ours, peers, others, need, floor, rng):
    """Ours beside the fastest of `peers`, called as ours is, and of `others`, called in another way: faster by `need` than those, or as fast as
    decoding or encoding allows, and slower than none of them."""
    ratios = {peer: compare(walls, peer, ours, rng) for peer in [*peers, *others] if walls.get(peer)}
    ratios = {peer: ratio for peer, ratio in ratios.items() if ratio}
    result = {"ours": ours, "ratio": ratios}
    of_floor = compare(walls, floor, ours, rng) if walls.get(floor) else None
    if of_floor:
        result["of_floor"] = {"threads": int(floor.removeprefix("floor-")), **of_floor}
    alike = [peer for peer in peers if peer in ratios]
    if not alike:
        return result
    faster = min(alike, key=lambda peer: ratios[peer]["median"])

    def holds(by):
        slower_than_none = all(ratio[by] >= 1 for ratio in ratios.values())
        near = of_floor is not None and of_floor[by] >= OF_FLOOR
        return slower_than_none and (ratios[faster][by] >= need or near)

    verdict = "holds" if holds("low") else "holds, within noise" if holds("median") else "FALLS SHORT"
    return result | {"faster_peer": faster, "asked": need, "verdict": verdict}


def line_of(variant, mode, runs, processors, rng):
    walls = collections.defaultdict(dict)
    for run in runs:
        walls[run["peer"]][run["round"]] = run["wall"]
    bytes_read = {run["peer"]: run["n"] for run in runs}
    result = {
        "variant": variant,
        "mode": mode,
        "rounds": len(walls["ours"]),
        "noisy": sum(run["noisy"] for run in runs),
        "runs": len(runs),
        "gb_per_s": {peer: round(bytes_read[peer] / float(np.median(list(of.values()))) / 1e9, 3) for peer, of in walls.items()},
        "peak_bytes": {},
        "output_bytes": bytes_read["ours"],
    }
    for run in runs:
        if "rss" in run:
            result["peak_bytes"][run["peer"]] = max(result["peak_bytes"].get(run["peer"], 0), run["rss"])
    floor = f"floor-{floor_threads(variant, mode, processors)}"
    plain = [peer for peer in walls if peer in ("zarrs", "tensorstore")]
    cached = [peer for peer in walls if peer in ("zarrs-cached", "tensorstore-cached")]
    # Nobody is to be faster, whatever is kept between calls: zarrs with its cached decoder not than the plain call either.
    result["judged"] = [judge(walls, "ours", plain, [peer for peer in cached if peer == "zarrs-cached"], asked(variant, mode), floor, rng)]
    if cached and walls["ours-cached"]:
        result["judged"].append(judge(walls, "ours-cached", cached + plain, [], 1.0, floor, rng))
    if mode == "memory":
        over = result["peak_bytes"]["ours"] - result["output_bytes"]
        result["memory"] = {"over_output": over, "holds": over <= PEAK}
    return result


def report(lines):
    about = lines[0]["about"]
    grouped = collections.defaultdict(list)
    copies = []
    for line in lines[1:]:
        if line["mode"] == "copy":
            copies.append({key: line[key] for key in ("variant", "wall", "rss", "memory")})
        else:
            grouped[line["mode"], line["variant"]].append(line)
    rng = np.random.default_rng(11)
    order = sorted(grouped, key=lambda key: (MODES.index(key[0]), list(VARIANTS).index(key[1])))
    results = [line_of(variant, mode, grouped[mode, variant], about["processors"], rng) for mode, variant in order]
    return render(about, results, copies)


def short(results):
    """The lines that do not hold, worst first, and by how much."""
    lines = []
    for result in results:
        for judged in [] if result["mode"] == "memory" else result["judged"]:
            if judged.get("verdict", "holds") == "holds":
                continue
            best = judged["ratio"][judged["faster_peer"]]
            ahead = [f"{ratio['median']:.2f} of {peer}" for peer, ratio in judged["ratio"].items() if ratio["low"] < 1 and peer != judged["faster_peer"]]
            text = f"{best['median']:.2f} of {judged['faster_peer']} (asked: {judged['asked']})"
            if ahead:
                text += ", " + ", ".join(ahead)
            if of_floor := judged.get("of_floor"):
                text += f"; {of_floor['median']:.2f} of {alone(result['mode'])} alone"
            kept = ", indexes kept" if judged["ours"] == "ours-cached" else ""
            noise = ", within noise" if "noise" in judged["verdict"] else ""
            lines.append((best["median"] / judged["asked"], f"* {result['mode']}, {result['variant']}{kept}: {text}{noise}"))
    memory = [
        f"* memory, {result['variant']}: {result['memory']['over_output'] / 2**20:.0f} MiB over the output (asked: {PEAK >> 20})"
        for result in results
        if not result.get("memory", {"holds": True})["holds"]
    ]
    return [line for _, line in sorted(lines)] + memory


def render(about, results, copies):
    text = ["# CPU: this project beside zarrs and tensorstore", ""]
    checked = {{"read": "read", "write": "wrote"}[what]: peers for what, peers in about["verified"].items()}
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    text += [
        f"{about['date']}, commit {about['commit'][:12]}{' with changes' if about['changed_since'] else ''}. {about['processor']}, "
        f"{about['processors']} processors, {about['memory_gib']} GiB; Linux {about['kernel']}, huge pages {about['huge_pages']}. {versions}.",
        "",
        f"Decoded bytes, GB/s (10^9), medians; every run its own process, on all processors; reads from {about['reads_come_from']}, page cache warm; writes to "
        f"{about['writes_go_to']}. Modes and variants: `benches/peers`. *Ratio*: the time of the faster peer over ours in the same round, median and 95% interval of it. "
        "*Of decoding*: the time of decoding alone (field library, warm memory, threads in brackets) over ours, median and 95% interval; *of encoding*: likewise, "
        "chunks cut beforehand, with the levels and parameters of the metadata, nothing stored. Where bytes are stored as they are: opening and reading each file, "
        "and of writes creating, writing and renaming it. "
        "Asked: not slower than the faster peer (of the plain calls: nor than zarrs with its cached decoder); where 1.5 is asked, that much faster, or not slower "
        "and within 10% of decoding alone, or of writes encoding alone (0.91). "
        + "".join(f"Every byte that {', '.join(peers)} {what} was compared with the source, by the same programs. " for what, peers in checked.items() if peers),
    ]
    if about["scale"] != "full":
        text += ["", "**Small arrays: a check of the harness, not a measurement.**"]
    judged = [of["verdict"] for result in results if result["mode"] != "memory" for of in result["judged"] if "verdict" in of]
    if judged:
        text += ["", f"**{judged.count('holds')} of {len(judged)} lines hold.** The others, by how far they are off:", "", *short(results)]
    for mode in MODES:
        rows = [result for result in results if result["mode"] == mode]
        if not rows:
            continue
        text += ["", f"## {mode}", ""]
        if mode == "read_all_into":
            text += ["| variant | ours |", "|---|---|"]
            text += [f"| {row['variant']} | {row['gb_per_s']['ours']:.2f} |" for row in rows]
            continue
        if mode == "memory":
            text += ["Reading all: peak memory of the process over the output, MiB. The allocator of ours and of zarrs (mimalloc) was kept from using huge pages.", ""]
            text += ["| variant | ours | zarrs | tensorstore | at most |", "|---|---|---|---|---|"]
            for row in rows:
                over = {peer: (peak - row["output_bytes"]) / 2**20 for peer, peak in row["peak_bytes"].items()}
                cells = " | ".join(f"{over[peer]:.0f}" if peer in over else "" for peer in ("ours", "zarrs", "tensorstore"))
                text.append(f"| {row['variant']} | {cells} | {PEAK >> 20}{'' if row['memory']['holds'] else ' EXCEEDED'} |")
            continue
        text += [
            f"| variant | ours | zarrs | tensorstore | {alone(mode)} alone | ratio to the faster | of {alone(mode)} | asked | verdict | noisy runs |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for row in rows:
            text += [table_row(row, judged) for judged in row["judged"]]
    if copies:
        text += ["", "## zarr copy", "", "With other chunks (`COPIES`). Peak memory of the process, MiB; allowed: `--memory` and 50 MB for the program.", ""]
        text += ["| variant | seconds | --memory | peak | allowed |", "|---|---|---|---|---|"]
        for copy in copies:
            allowed = copy["memory"] + COPY_PEAK
            mark = " EXCEEDED" if copy["rss"] > allowed else ""
            cells = [copy["variant"], f"{copy['wall']:.1f}", *(f"{of / 2**20:.0f}" for of in (copy["memory"], copy["rss"], allowed))]
            text.append("| " + " | ".join(cells) + f"{mark} |")
    return "\n".join(text) + "\n"


def table_row(row, judged):
    speed, cached = row["gb_per_s"], judged["ours"] == "ours-cached"

    def of(peer):
        peer += "-cached" if cached else ""
        return f"{speed[peer]:.2f}" if peer in speed else ""

    of_floor = judged.get("of_floor")
    floor = f"{speed[f'floor-{of_floor['threads']}']:.2f} ({of_floor['threads']})" if of_floor else ""
    share = f"{of_floor['median']:.2f} [{of_floor['low']:.2f}, {of_floor['high']:.2f}]" if of_floor else ""
    best = judged["ratio"].get(judged.get("faster_peer"))
    best = f"{best['median']:.2f} [{best['low']:.2f}, {best['high']:.2f}] {judged['faster_peer']}, {best['pairs']} pairs" if best else ""
    name = row["variant"] + (", indexes kept" if cached else "")
    cells = [name, f"**{of('ours')}**", of("zarrs"), of("tensorstore"), floor, best, share]
    cells += [str(judged.get("asked", "")), judged.get("verdict", ""), f"{row['noisy']} of {row['runs']}"]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print("\n".join(report([json.loads(line) for line in pathlib.Path(runs).read_text().splitlines()]) for runs in sys.argv[1:]), end="")
