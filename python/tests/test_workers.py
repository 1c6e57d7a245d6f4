"""Arrays in worker processes, as data loaders have them."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest
from conftest import write_array, write_group

import zarrgpu

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def data() -> np.ndarray:
    return np.arange(400 * 300, dtype="f4").reshape(400, 300)


@pytest.fixture
def group(tmp_path: Path, data: np.ndarray) -> Path:
    root = write_group(tmp_path / "data.zarr", {"title": "workers"})
    write_array(root / "a", data, (50, 300), compress=True)
    return root


def rows(array: zarrgpu.Array, start: int) -> np.ndarray:
    return np.asarray(array.read(f"{start}:{start + 50}"))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("threads", [None, 2])
def test_workers_read(group: Path, data: np.ndarray, method: str, threads: int | None) -> None:
    array = zarrgpu.open(group, threads=threads)["a"]
    # The threads of this process are at work before there are others.
    np.testing.assert_array_equal(array[:], data)
    starts = [(array, start) for start in range(0, 400, 50)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        read = pool.starmap_async(rows, starts).get(timeout=60)
    np.testing.assert_array_equal(np.concatenate(read), data)
    np.testing.assert_array_equal(array[:], data)


_inherited: zarrgpu.Array | None = None


def inherited(start: int) -> np.ndarray:
    assert _inherited is not None
    return rows(_inherited, start)


def test_a_forked_worker_reads_the_array_of_its_parent(group: Path, data: np.ndarray) -> None:
    global _inherited
    _inherited = zarrgpu.open(group / "a")
    np.testing.assert_array_equal(_inherited[:], data)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        read = pool.map_async(inherited, range(0, 400, 50)).get(timeout=60)
    np.testing.assert_array_equal(np.concatenate(read), data)


def test_pickles(group: Path, data: np.ndarray) -> None:
    opened = zarrgpu.open(group, threads=1, concurrency=3, index_cache=1000, storage_options={"region": "x"})
    for node in [opened, opened["a"], zarrgpu.open(group / "a"), dict(opened.items())["a"]]:
        copy = pickle.loads(pickle.dumps(node))
        assert type(copy) is type(node)
        assert copy.path == node.path
        again = pickle.loads(pickle.dumps(copy))
        array = again["a"] if isinstance(again, zarrgpu.Group) else again
        np.testing.assert_array_equal(array[3:5], data[3:5])
    assert pickle.loads(pickle.dumps(opened)).attributes == {"title": "workers"}


def test_a_pickle_of_what_is_gone(group: Path) -> None:
    pickled = pickle.dumps(zarrgpu.open(group)["a"])
    group.rename(group.with_name("elsewhere.zarr"))
    with pytest.raises(zarrgpu.NotFoundError):
        pickle.loads(pickled)
