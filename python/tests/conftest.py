"""Stores for the tests, and the rule for tests that need a GPU."""

from __future__ import annotations

import gzip
import http.server
import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrgpu

# Else JAX takes most of the memory, and the other libraries fail.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

REQUIRE_GPU = os.environ.get("ZARR_REQUIRE_GPU") == "1"

TYPES = {
    "b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32",
    "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
}  # fmt: skip


def write_group(path: Path, attributes: dict[str, Any] | None = None) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    node = {"zarr_format": 3, "node_type": "group", "attributes": attributes or {}}
    (path / "zarr.json").write_text(json.dumps(node))
    return path


def write_array(
    path: Path,
    data: np.ndarray,
    chunks: tuple[int, ...],
    *,
    data_type: Any = None,
    compress: bool = False,
    fill_value: Any = 0,
    skip: tuple[tuple[int, ...], ...] = (),
    attributes: dict[str, Any] | None = None,
) -> Path:
    """Writes a Zarr array of version 3. Chunks in `skip` are left out; `data` has what a reader must find there."""
    path.mkdir(parents=True, exist_ok=True)
    codecs: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if compress:
        codecs.append({"name": "gzip", "configuration": {"level": 5}})
    node = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": data.shape,
        "data_type": data_type or TYPES[data.dtype.str[1:]],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value,
        "codecs": codecs,
        "attributes": attributes or {},
    }
    (path / "zarr.json").write_text(json.dumps(node))
    for position in itertools.product(*(range(-(-size // step)) for size, step in zip(data.shape, chunks))):
        if position in skip:
            continue
        chunk = np.zeros(chunks, data.dtype)
        part = data[tuple(slice(at * step, (at + 1) * step) for at, step in zip(position, chunks))]
        chunk[tuple(slice(0, size) for size in part.shape)] = part
        key = path.joinpath("c", *map(str, position))
        key.parent.mkdir(parents=True, exist_ok=True)
        stored = chunk.tobytes()
        key.write_bytes(gzip.compress(stored, 1) if compress else stored)
    return path


@pytest.fixture(scope="session")
def values() -> np.ndarray:
    return np.random.default_rng(7).normal(size=(37, 21, 5)).astype("f4")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, values: np.ndarray) -> Path:
    """A group with an array of shape 37 x 21 x 5, another one compressed, and a group below."""
    root = write_group(tmp_path_factory.mktemp("data") / "data.zarr", {"title": "tests", "big": 2**70})
    write_array(root / "plain", values, (10, 8, 5), attributes={"units": "K", "nan": float("nan")})
    write_array(root / "packed", values, (16, 21, 3), compress=True)
    holes = values.copy()
    holes[10:20] = 2.5
    write_array(root / "holes", holes, (10, 21, 5), fill_value=2.5, skip=((1, 0, 0),))
    write_array(root / "point", np.float64(1.5).reshape(()), ())
    write_array(root / "none", np.zeros((0, 3), "i4"), (2, 3))
    write_group(root / "below", {"deep": True})
    write_array(root / "below" / "inner", np.arange(6, dtype="i2").reshape(2, 3), (1, 2))
    return root


@pytest.fixture(scope="session")
def gpu() -> str:
    """The name of a GPU. Without one the test is skipped, or fails if ZARR_REQUIRE_GPU=1."""
    found = [device["id"] for device in zarrgpu.devices() if device["id"].startswith("cuda")]
    if not found:
        reason = "no CUDA device"
        if REQUIRE_GPU:
            pytest.fail(f"{reason}, and ZARR_REQUIRE_GPU=1")
        pytest.skip(reason)
    return found[0]


def library(name: str) -> Any:
    """A module that a test of the GPU needs."""
    if REQUIRE_GPU:
        return __import__(name)
    return pytest.importorskip(name)


class Bucket(http.server.BaseHTTPRequestHandler):
    """As much of S3 as single objects take."""

    objects: dict[str, bytes]

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        found = self.objects.get(self.path)
        if found is None:
            return self.answer(404)
        asked = self.headers.get("Range")
        if asked is None:
            return self.answer(200, found)
        first, last = asked.removeprefix("bytes=").split("-")
        start = int(first) if first else len(found) - int(last)
        part = found[start : int(last) + 1 if first and last else None]
        self.answer(206, part, Content_Range=f"bytes {start}-{start + len(part) - 1}/{len(found)}")

    def do_HEAD(self) -> None:
        found = self.objects.get(self.path)
        self.answer(404 if found is None else 200, Content_Length=str(len(found or b"")))

    def do_PUT(self) -> None:
        self.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200)

    def do_DELETE(self) -> None:
        self.objects.pop(self.path, None)
        self.answer(204)

    def log_message(self, *_: Any) -> None:
        pass
