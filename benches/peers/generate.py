"""Makes the sources (raw bytes, little-endian, C order) and stores each variant with tensorstore.

generate.py DIRECTORY [--small] [VARIANT..]

The fields are made by as many processes as there are processors, each field from a seed of its own: the bytes do not depend on how many.
"""

import concurrent.futures
import json
import multiprocessing
import pathlib
import shutil
import sys

import numpy as np
import tensorstore as ts

from variants import SHAPES, VARIANTS, metadata, shape_of


def upsample(grid, shape):
    """A coarse grid, linear in between."""
    for axis, length in enumerate(shape):
        at = np.linspace(0, grid.shape[axis] - 1, length, dtype=np.float32)
        low = np.minimum(at.astype(np.intp), grid.shape[axis] - 2)
        part = (at - low).reshape([-1 if other == axis else 1 for other in range(len(shape))]).astype(np.float32)
        grid = np.take(grid, low, axis) * (1 - part) + np.take(grid, low + 1, axis) * part
    return grid.astype(np.float32)


def era5(out, first, seed):
    """One level of one time; `first` counts times and levels."""
    times, levels, ny, nx = out.shape
    time, level = divmod(first, levels)
    rng = np.random.default_rng([seed, 0])
    lat = np.linspace(np.pi / 2, -np.pi / 2, ny, dtype=np.float32)[:, None]
    lon = np.linspace(0, 2 * np.pi, nx, endpoint=False, dtype=np.float32)[None, :]
    field = 288 - 45 * np.sin(lat) ** 2 - 12 * level + np.zeros((ny, nx), np.float32)
    for m in range(1, 16):
        n, amplitude, phase, speed = rng.integers(1, 12), 9.0 / m**1.3, rng.uniform(0, 2 * np.pi), rng.normal(0, 0.05)
        along, across = np.sin(m * lon + phase + speed * time + 0.2 * level), np.cos(lat) * np.cos(n * lat + phase)
        field += (amplitude * across).astype(np.float32) * along.astype(np.float32)
    weather = np.random.default_rng([seed, 1, level]).normal(0, 1, (2, ny // 8, nx // 8)).astype(np.float32)
    mix = np.float32(0.5 + 0.5 * np.sin(0.1 * time))
    field += upsample(weather[0] * mix + weather[1] * (1 - mix), (ny, nx)) * np.float32(0.6)
    field += np.random.default_rng([seed, 2, first]).standard_normal((ny, nx), dtype=np.float32) * np.float32(0.015)
    out[time, level] = np.round(field * 100) / 100


def cells(out, z, seed):
    """One plane."""
    depth, ny, nx = out.shape
    low, part = z // 16, np.float32(z / 16 - z // 16)
    coarse = [np.random.default_rng([seed, 3, at]).gamma(0.35, 1.0, (ny // 16, nx // 16)).astype(np.float32) for at in (low, low + 1)]
    light = 110 + 900 * upsample(coarse[0] * (1 - part) + coarse[1] * part, (ny, nx))
    noise = np.random.default_rng([seed, 4, z]).standard_normal((ny, nx), dtype=np.float32)
    out[z] = np.clip(light + noise * np.sqrt(light) * np.float32(0.25), 0, 4095)


def field(path, name, dtype, shape, number):
    out = np.memmap(path, dtype, "r+", shape=shape)
    (cells if name == "cells" else era5)(out, number, 20240229)


def source(root, name, small):
    path = root / f"{name}.bin"
    dtype, shape = shape_of(name, small)
    if path.exists():
        return np.memmap(path, dtype, "r", shape=shape)
    # A link: to where the bytes are to be.
    path = path.resolve()
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        file.truncate(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    fields = shape[0] if name == "cells" else shape[0] * shape[1]
    # Not forked: tensorstore has threads.
    with concurrent.futures.ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(field, partial, name, dtype, shape, number) for number in range(fields)]
        for job in jobs:
            job.result()
    partial.rename(path)
    print(f"made {name}", flush=True)
    return np.memmap(path, dtype, "r", shape=shape)


def store(root, variant, small):
    path = root / f"{variant}.zarr"
    document = metadata(variant, small)
    if path.exists():
        if json.loads((path / "zarr.json").read_text())["codecs"] == document["codecs"]:
            return
        shutil.rmtree(path)
    partial = path.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    data = source(root, VARIANTS[variant][0], small)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(partial)}, "metadata": document}
    context = ts.Context({"file_io_sync": False})
    array = ts.open(spec, create=True, context=context).result()
    # Enough chunks at once for every processor.
    step = max(document["chunk_grid"]["configuration"]["chunk_shape"][0], data.shape[0] // 8)
    for start in range(0, data.shape[0], step):
        array[start : start + step].write(data[start : start + step]).result()
    # The document as it is here, which is also what writers are given to start from.
    (partial / "zarr.json").write_text(json.dumps(document))
    partial.rename(path)
    stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    print(f"stored {variant}: {stored / 1e6:.0f} MB, {data.nbytes / stored:.2f} times smaller", flush=True)


def main():
    arguments = sys.argv[1:]
    small = "--small" in arguments
    root, *variants = [argument for argument in arguments if argument != "--small"]
    root = pathlib.Path(root)
    root.mkdir(parents=True, exist_ok=True)
    for name in {VARIANTS[variant][0] for variant in variants or VARIANTS} & set(SHAPES):
        source(root, name, small)
    for variant in variants or VARIANTS:
        store(root, variant, small)


if __name__ == "__main__":
    main()
