"""Reads one after the other, the next ones running ahead."""

from __future__ import annotations

import functools
import http.server
import itertools
import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import write_array

import zarrgpu


def test_every_chunk(store: Path, values: np.ndarray) -> None:
    array = zarrgpu.open(store / "packed")
    tensors = list(array.read_each())
    assert all(isinstance(tensor, zarrgpu.Tensor) and tensor.device == "cpu" for tensor in tensors)
    corners = itertools.product(range(0, 37, 16), range(0, 21, 21), range(0, 5, 3))
    expected = [values[i : i + 16, j : j + 21, k : k + 3] for i, j, k in corners]
    assert len(tensors) == len(expected)
    for tensor, part in zip(tensors, expected):
        np.testing.assert_array_equal(tensor.numpy(), part)
    # As JAX wants it, to take it without a copy.
    assert [tensor.data_ptr % 256 for tensor in tensors] == [0] * len(tensors)
    assert list(zarrgpu.open(store / "none").read_each()) == []
    assert [tensor.numpy()[()] for tensor in zarrgpu.open(store / "point").read_each()] == [1.5]


@pytest.mark.parametrize("options", [{}, {"ahead": 0}, {"ahead": 20}, {"ahead_bytes": 0}, {"device": "cpu"}])
def test_any_selections_in_their_order(store: Path, values: np.ndarray, options: dict) -> None:
    array = zarrgpu.open(store / "plain")
    mask = np.arange(21) % 3 == 0
    selections = [np.s_[3], np.s_[::-1, 2], "5:9, ..., 1", None, ([1, 3], mask), np.s_[10:5]]
    expected = [values[3], values[::-1, 2], values[5:9, ..., 1], values, values[[1, 3]][:, mask], values[10:5]]
    read = [tensor.numpy() for tensor in array.read_each(iter(selections), **options)]
    assert len(read) == len(expected)
    for found, part in zip(read, expected):
        np.testing.assert_array_equal(found, part)
    samples = [tensor.numpy() for tensor in array.read_each(range(37), **options)]
    np.testing.assert_array_equal(np.stack(samples), values)


def test_selections_are_asked_for_as_there_is_room(store: Path) -> None:
    asked = 0

    def selections() -> Iterator[int]:
        nonlocal asked
        for asked in range(1, 31):
            yield asked

    each = zarrgpu.open(store / "plain").read_each(selections(), ahead=4)
    assert iter(each) is each and asked == 0
    next(each)
    assert asked == 5
    next(each)
    assert asked == 6


def test_errors(store: Path, values: np.ndarray) -> None:
    array = zarrgpu.open(store / "plain")
    each = array.read_each([1, 40, 2])
    np.testing.assert_array_equal(next(each).numpy(), values[1])
    with pytest.raises(zarrgpu.SelectionError):
        next(each)
    np.testing.assert_array_equal(next(each).numpy(), values[2])
    assert next(each, None) is None

    def broken() -> Iterator[int]:
        yield 1
        raise KeyError("mine")

    each = array.read_each(broken())
    np.testing.assert_array_equal(next(each).numpy(), values[1])
    with pytest.raises(KeyError, match="mine"):
        next(each)
    assert next(each, None) is None
    with pytest.raises(IndexError):
        list(array.read_each([1.5]))
    with pytest.raises(zarrgpu.ParameterError, match="iterable of selections"):
        array.read_each("1:2")
    with pytest.raises(TypeError):
        array.read_each(3)
    with pytest.raises(zarrgpu.ParameterError, match="GPU"):
        array.read_each(stream=1)


def test_url(store: Path, values: np.ndarray) -> None:
    """From a server in this process, whose threads run while others wait."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=store)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        array = zarrgpu.open(f"http://127.0.0.1:{server.server_port}/packed")
        tensors = list(array.read_each(f"{start}:{start + 5}" for start in range(0, 37, 5)))
        server.shutdown()
    rows = [tensor.numpy() for tensor in tensors]
    assert all(tensor.data_ptr % 256 == 0 for tensor in tensors)
    np.testing.assert_array_equal(np.concatenate(rows), values)


def test_threads_share_it(tmp_path: Path) -> None:
    data = np.arange(64 * 1000, dtype="i4").reshape(64, 1000)
    array = zarrgpu.open(write_array(tmp_path / "rows", data, (1, 1000), compress=True), threads=1)
    each = array.read_each(index for index in range(64))
    seen: list[int] = []

    def take() -> None:
        seen.extend(int(tensor.numpy()[0]) for tensor in each)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert sorted(seen) == list(range(0, 64000, 1000))


_begun: Iterator[zarrgpu.Tensor] | None = None


def rest() -> list[int]:
    assert _begun is not None
    return [int(tensor.numpy()[0, 0]) for tensor in _begun]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_goes_on_in_a_forked_process(tmp_path: Path) -> None:
    global _begun
    data = np.arange(64 * 100000, dtype="i4").reshape(64, 100000)
    array = zarrgpu.open(write_array(tmp_path / "rows", data, (1, 100000), compress=True), threads=1)
    for _ in range(5):
        _begun = array.read_each(ahead=32)
        assert next(_begun).numpy()[0, 0] == 0
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply_async(rest).get(timeout=60) == list(range(100000, 6400000, 100000))
        assert rest() == list(range(100000, 6400000, 100000))
