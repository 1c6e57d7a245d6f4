"""Writes the cases of the cover and their values: `cases.json`, `<id>.input.raw`, `<id>.expected.raw`.

What is written into the array (`input`) and what must be read from it (`expected`) differ only where a codec is
lossy; then `expected` is what numcodecs makes of `input`.
"""

import itertools
import json
import pathlib
import sys

import numcodecs
import numpy as np

import levels
from cover import DIRECTIONS, PEERS, Support, cover
from dtypes import DTYPES, pack, seed_of


def values_of(case):
    d = DTYPES[case["dtype"]]
    shape, chunk, _ = levels.grid(case)
    count = int(np.prod(shape))
    values = d.values(count, levels.element_style(case), seed_of(case["dtype"], case["shape"], case["filter"]))
    if case["fill"] == "special" and not d.variable and d.np.kind in "fc":
        # A NaN of another payload counts as the fill value for some writers, and its chunk as empty.
        values = np.where(np.isnan(values), np.ones((), d.np), values)
    if case["content"] in ("sparse", "fill"):
        fill = d.fill(case["fill"])
        absent = fill_mask(shape, chunk, case["content"])
        if d.variable:
            values = [fill if gone else v for v, gone in zip(values, absent)]
        else:
            values = np.array(values)
            values[absent] = np.frombuffer(fill, d.np)[0] if fill else 0
    return values


def fill_mask(shape, chunk, content):
    """Which elements hold the fill value: all, or those of every third chunk and a half of every other third."""
    if content == "fill":
        return np.ones(int(np.prod(shape)), bool)
    where = np.indices(shape) if shape else np.zeros((0,), int)
    if not shape:
        return np.zeros(1, bool)
    step = [max(1, c) for c in chunk]
    number = sum((w // s) * (i + 1) for i, (w, s) in enumerate(zip(where, step)))
    inside = sum(((w % s) * 2 // s) for w, s in zip(where, step))
    return ((number % 3 == 1) | ((number % 3 == 2) & (inside == 0))).reshape(-1)


def round_trip(case, values):
    d = DTYPES[case["dtype"]]
    if case["filter"] in levels.LOSSY_BY_CHUNK:
        return round_trip_by_chunk(case, values)
    if case["filter"] not in levels.LOSSY:
        return values
    out = np.array(values)
    for config in levels.filter_configs(case, False):
        codec = numcodecs.get_codec(dict(config))
        out = np.asarray(codec.decode(codec.encode(out))).view(d.np).reshape(-1)
    return out


def round_trip_by_chunk(case, values):
    d = DTYPES[case["dtype"]]
    shape, _, _ = levels.grid(case)
    fill = np.frombuffer(d.fill(case["fill"]), d.np)[0]
    (config,) = levels.filter_configs(case, False)
    codec = numcodecs.get_codec(dict(config))
    out = np.array(values).reshape(shape)
    edges = levels.chunk_edges(case)
    for at in itertools.product(*(range(len(e)) for e in edges)):
        lengths = [e[i] for e, i in zip(edges, at)]
        start = [sum(e[:i]) for e, i in zip(edges, at)]
        where = tuple(slice(s, s + n) for s, n in zip(start, lengths))
        part = out[where]
        if (part == fill).all():
            # Stored as no chunk at all, which no codec touches.
            continue
        inside = tuple(slice(0, n) for n in part.shape)
        chunk = np.full(lengths, fill, d.np)
        chunk[inside] = part
        if case["layout"] == "transpose-then-shard":
            chunk = np.ascontiguousarray(chunk.T)
        decoded = np.asarray(codec.decode(codec.encode(chunk))).reshape(chunk.shape)
        if case["layout"] == "transpose-then-shard":
            decoded = decoded.T
        out[where] = decoded[inside]
    return out.reshape(-1)


def main(out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    found, counts = cover()
    supports = {p: Support(p) for p in PEERS}
    documents = []
    for number, case in enumerate(found):
        name = f"{number:04d}"
        d = DTYPES[case["dtype"]]
        values = values_of(case)
        expected = round_trip(case, values)
        (out / f"{name}.input.raw").write_bytes(pack(d, values))
        (out / f"{name}.expected.raw").write_bytes(pack(d, expected))
        shape, _, _ = levels.grid(case)
        documents.append(
            {
                "id": name,
                "levels": case,
                "element": d.canonical(case),
                "shape": list(shape),
                "metadata": levels.metadata(case),
                "whole": case["filter"] in levels.LOSSY_BY_CHUNK,
                "vacuous": levels.vacuous(case),
                # Per peer and direction, the rule of its table that excludes the case.
                "declared": {p: {w: supports[p].rule_for(case, w) for w in DIRECTIONS} for p in PEERS},
            }
        )
    rules = {p: supports[p].rules for p in PEERS}
    (out / "cases.json").write_text(json.dumps({"pairs": counts, "rules": rules, "cases": documents}, indent=0))
    print(f"{len(documents)} cases")


if __name__ == "__main__":
    main(sys.argv[1])
