"""Opening, selecting, and what NumPy gets."""

from __future__ import annotations

import functools
import http.server
import math
import pickle
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import write_array, write_group

import zarrgpu


def test_group(store: Path) -> None:
    group = zarrgpu.open(store)
    assert isinstance(group, zarrgpu.Group)
    assert sorted(group) == ["below", "holes", "none", "packed", "plain", "point"]
    assert len(group) == 6
    assert group.attrs == {"title": "tests", "big": 2**70}
    assert "plain" in group and "below/inner" in group and "absent" not in group
    assert isinstance(group["below"], zarrgpu.Group)
    assert group["below"].attributes == {"deep": True}
    assert np.array_equal(group["below/inner"][:], np.arange(6).reshape(2, 3))
    assert [name for name, _ in group.groups()] == ["below"]
    assert {name for name, _ in group.arrays()} == {"holes", "none", "packed", "plain", "point"}
    assert {name: type(node) for name, node in group.items()}["plain"] is zarrgpu.Array
    assert group.zarr_format == 3
    assert "Group" in repr(group)
    assert group.get("plain").shape == (37, 21, 5) and group.get("absent") is None and group.get("absent", 3) == 3
    for node in (group, group["plain"], group["plain"].read("0")):
        assert weakref.ref(node)() is node


def test_metadata(store: Path) -> None:
    array = zarrgpu.open(str(store / "plain"))
    assert array.shape == (37, 21, 5) and array.ndim == 3 and array.size == 37 * 21 * 5 and len(array) == 37
    assert array.dtype == np.dtype("f4") and array.data_type == "float32"
    assert array.chunks == (10, 8, 5) and array.shards is None
    assert array.attributes["units"] == "K" and math.isnan(array.attrs["nan"])
    assert array.fill_value == 0 and array.fill_value.dtype == np.dtype("f4")
    assert array.dimension_names is None and array.zarr_format == 3
    assert "float32" in repr(array)
    assert array.explain()


@pytest.mark.parametrize("name", ["plain", "packed"])
@pytest.mark.parametrize(
    "index",
    [
        np.s_[:], np.s_[...], np.s_[3], np.s_[-1], np.s_[3:9], np.s_[::-1], np.s_[30:1:-7, 2], np.s_[..., 4], np.s_[5, ..., 1:],
        np.s_[np.int64(4), 1:20:3, -2:], np.s_[10:5], np.s_[: 10**30], np.s_[-(10**30) : 3], np.s_[1, 2, 3], np.s_[1, ..., 2, 3], (),
    ],
    ids=repr,
)  # fmt: skip
def test_indexing_is_that_of_numpy(store: Path, values: np.ndarray, name: str, index: object) -> None:
    found, expected = zarrgpu.open(store / name)[index], values[index]
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("index", [37, (0, 0, 0, 0), None, [1, 2], True, "a", (..., ...), 1.5, (0, -22)], ids=repr)
def test_what_is_no_basic_index(store: Path, index: object) -> None:
    with pytest.raises(IndexError):
        zarrgpu.open(store / "plain")[index]


def test_integers_that_are_too_large_and_bounds_that_are_none(store: Path) -> None:
    array = zarrgpu.open(store / "plain")
    for index in (10**30, -(10**30)):
        with pytest.raises(zarrgpu.SelectionError, match="outside axis 0"):
            array[index]
    with pytest.raises(TypeError, match="integer"):
        array[1.5:3]


def test_any_basic_index_is_that_of_numpy(store: Path, values: np.ndarray) -> None:
    random = np.random.default_rng(5)

    def part(size: int) -> object:
        if random.random() < 0.4:
            return int(random.integers(-size, size))
        start, stop = (None if random.random() < 0.2 else int(random.integers(-size - 2, size + 3)) for _ in range(2))
        return slice(start, stop, [None, 1, 2, 7, -1, -3][random.integers(6)])

    array = zarrgpu.open(store / "packed")
    for _ in range(300):
        index = [part(size) for size in values.shape]
        first, last = np.sort(random.integers(0, 4, 2))
        index = index[:first] + [...] + index[last:] if random.random() < 0.3 else index[:first]
        found, expected = array[tuple(index)], values[tuple(index)]
        assert type(found) is type(expected) and found.shape == expected.shape, index
        np.testing.assert_array_equal(found, expected, str(index))


def test_any_product_is_that_of_numpy(store: Path, values: np.ndarray) -> None:
    random = np.random.default_rng(6)

    def part(size: int) -> tuple[object, object]:
        some = random.integers(-size, size, random.integers(5))
        mask = random.random(size) < 0.4
        forms = [(some, some), (some.tolist(), some), (tuple(some), some), (mask, np.flatnonzero(mask)), (range(1, size, 2), np.r_[1:size:2])]
        return forms[random.integers(len(forms))]

    array = zarrgpu.open(store / "packed")
    for _ in range(100):
        parts = [part(size) for size in values.shape]
        found = array.read(tuple(selected for selected, _ in parts)).numpy()
        np.testing.assert_array_equal(found, values[np.ix_(*(positions for _, positions in parts))])


def test_products(store: Path, values: np.ndarray) -> None:
    array = zarrgpu.open(store / "plain")
    mask = np.arange(21) % 2 == 0
    found = array.read(([30, 1, 1], mask, slice(None, None, 2))).numpy()
    assert np.array_equal(found, values[[30, 1, 1]][:, mask][:, :, ::2])
    assert np.array_equal(array.read("-1, 3:5, [0, 4]").numpy(), values[-1, 3:5][:, [0, 4]])
    with pytest.raises(zarrgpu.SelectionError):
        array.read("40")
    with pytest.raises(IndexError):
        array.read([[1, 2], [3, 4]])
    with pytest.raises(IndexError):
        array.read([True, 2])


def test_absent_chunks_edges_and_empty_arrays(store: Path, values: np.ndarray) -> None:
    group = zarrgpu.open(store)
    holes = group["holes"]
    assert holes.fill_value == 2.5
    assert (holes[10:20] == 2.5).all() and np.array_equal(holes[20:], values[20:])
    assert group["none"][:].shape == (0, 3)
    point = group["point"][()]
    assert type(point) is np.float64 and point == 1.5
    assert type(group["point"][...]) is np.ndarray and group["point"][...].shape == ()


def test_url(store: Path, values: np.ndarray) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=store)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        array = zarrgpu.open(f"http://127.0.0.1:{server.server_port}/plain")
        assert np.array_equal(array[5:30, ::-2], values[5:30, ::-2])
        server.shutdown()


class Late(http.server.SimpleHTTPRequestHandler):
    """Answers late, and counts who waits for a chunk."""

    waiting: list[None]
    most: list[int]

    def do_GET(self) -> None:
        if "/c/" in self.path:
            self.waiting.append(None)
            self.most.append(len(self.waiting))
            time.sleep(0.1)
            self.waiting.pop()
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(("options", "most"), [({"concurrency": 3}, 3), ({"in_flight_bytes": 2 * 1600}, 2), ({"in_flight_bytes": 1}, 1)])
def test_requests_in_flight_and_their_bytes(store: Path, values: np.ndarray, options: dict[str, int], most: int) -> None:
    handler = type("Handler", (Late,), {"waiting": [], "most": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=store)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # Of 12 chunks of 1600 bytes each.
        array = zarrgpu.open(f"http://127.0.0.1:{server.server_port}/plain", **options)
        for read in (array, pickle.loads(pickle.dumps(array))):
            handler.most.clear()
            assert np.array_equal(read[:], values)
            assert max(handler.most) == most
        server.shutdown()


def test_array_protocol(store: Path, values: np.ndarray) -> None:
    array = zarrgpu.open(store / "plain")
    assert np.array_equal(np.asarray(array), values)
    assert np.asarray(array, dtype="f8").dtype == np.dtype("f8")
    with pytest.raises(ValueError):
        np.asarray(array, copy=False)


@pytest.mark.parametrize("kind", ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_numbers(tmp_path: Path, kind: str) -> None:
    data = (np.random.default_rng(1).normal(size=(7, 6)) * 50).astype("i4").astype(kind)
    fill = False if kind == "b1" else [0, 0] if kind[0] == "c" else 0
    array = zarrgpu.open(write_array(tmp_path / "a", data, (3, 4), fill_value=fill))
    assert array.dtype == data.dtype
    assert np.array_equal(array[:], data)


def test_times_texts_and_structs(tmp_path: Path) -> None:
    times = np.array(["2020-01-01T00", "NaT", "1969-12-31T23"], "M8[h]")
    named = {"name": "numpy.datetime64", "configuration": {"unit": "h", "scale_factor": 1}}
    found = zarrgpu.open(write_array(tmp_path / "t", times, (2,), data_type=named, fill_value="NaT"))
    assert found.dtype == times.dtype and found[:].dtype == times.dtype
    assert np.array_equal(found[:].view("i8"), times.view("i8"))

    texts = np.array(["abc", "", "é"], "<U3")
    named = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}
    assert (zarrgpu.open(write_array(tmp_path / "u", texts, (2,), data_type=named, fill_value=""))[:] == texts).all()

    structs = np.array([(1, 2.5), (3, 4.5), (5, -1)], [("a", "<i2"), ("b", "<f8")])
    fields = [{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "float64"}]
    named = {"name": "struct", "configuration": {"fields": fields}}
    array = zarrgpu.open(write_array(tmp_path / "s", structs, (2,), data_type=named, fill_value={"a": 0, "b": 0}))
    assert array.dtype == structs.dtype
    assert (array[:] == structs).all() and array[1]["b"] == 4.5


def test_types_that_numpy_lacks(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = np.array([1.5, -2, 0.25], ml_dtypes.bfloat16)
    array = zarrgpu.open(write_array(tmp_path / "b", data.view("u2"), (2,), data_type="bfloat16", fill_value=0))
    assert array.dtype == data.dtype and array[:].dtype == data.dtype
    assert np.array_equal(array[:].view("u2"), data.view("u2"))


def test_elements_of_variable_length(tmp_path: Path) -> None:
    def encode(texts: list[str]) -> bytes:
        parts = [text.encode() for text in texts]
        return len(parts).to_bytes(4, "little") + b"".join(len(part).to_bytes(4, "little") + part for part in parts)

    path = write_array(tmp_path / "v", np.zeros((3,), "u1"), (2,), data_type="string", fill_value="?")
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text.replace('{"name": "bytes", "configuration": {"endian": "little"}}', '{"name": "vlen-utf8"}'))
    (path / "c" / "0").write_bytes(encode(["a", "été"]))
    (path / "c" / "1").unlink()
    array = zarrgpu.open(path)
    assert array.dtype == np.dtype(object) and array.fill_value == "?"
    assert array[:].tolist() == ["a", "été", "?"] and array[1] == "été"
    with pytest.raises(zarrgpu.UnsupportedError, match="variable length"):
        array.read()


def test_errors_say_who_and_where(store: Path, tmp_path: Path) -> None:
    with pytest.raises(zarrgpu.NotFoundError) as caught:
        zarrgpu.open(store)["absent"]
    assert caught.value.key is None and caught.value.chunk is None
    assert isinstance(caught.value, KeyError) and "absent" in str(caught.value) and not str(caught.value).startswith("'")
    for name in ("nowhere", "nowhere.zip", "two/levels"):
        with pytest.raises(FileNotFoundError) as caught:
            zarrgpu.open(tmp_path / name)
        assert isinstance(caught.value, zarrgpu.NotFoundError)
    (tmp_path / "file").write_text("no directory")
    for wrong in (tmp_path / "file", "unknown://place", f"{store}/../data.zarr/.."):
        with pytest.raises((zarrgpu.ParameterError, zarrgpu.NotFoundError)):
            zarrgpu.open(wrong)
    with pytest.raises(ValueError, match="dots"):
        zarrgpu.open(store)["../data.zarr"]
    write_group(tmp_path / "bad")
    (tmp_path / "bad" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    with pytest.raises(zarrgpu.MetadataError, match="zarr.json"):
        zarrgpu.open(tmp_path / "bad")
    data = np.arange(12, dtype="i4").reshape(3, 4)
    path = write_array(tmp_path / "torn", data, (1, 4), compress=True)
    (path / "c" / "1" / "0").write_bytes(b"not gzip")
    with pytest.raises(zarrgpu.FormatError) as caught:
        zarrgpu.open(path)[:]
    assert caught.value.chunk == [1, 0] and caught.value.key == "c/1/0" and "gzip" in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is zarrgpu.FormatError and str(copy) == str(caught.value) and copy.chunk == [1, 0]
    with pytest.raises(OSError):
        raise zarrgpu.StoreError("a store")
    assert np.array_equal(zarrgpu.open(path)[2], data[2])
    unknown = (path / "zarr.json").read_text().replace("gzip", "unknown_codec")
    (path / "zarr.json").write_text(unknown)
    with pytest.raises(zarrgpu.UnsupportedError, match="unknown_codec"):
        zarrgpu.open(path)[:]
    with pytest.raises(zarrgpu.ParameterError, match="gpu0"):
        zarrgpu.open(store / "plain").read(device="gpu0")
    with pytest.raises(zarrgpu.ParameterError):
        zarrgpu.open(store / "plain").read(policy="perhaps")
    for error in (zarrgpu.StoreError, zarrgpu.FormatError, zarrgpu.DeviceError, zarrgpu.ExchangeError):
        assert issubclass(error, zarrgpu.ZarrError)


def test_options(store: Path, values: np.ndarray) -> None:
    array = zarrgpu.open(store / "packed", threads=2, concurrency=4, index_cache=1 << 20, storage_options={"region": "x"})
    assert np.array_equal(array[:], values)


def test_other_threads_run_while_one_reads(tmp_path: Path) -> None:
    data = np.random.default_rng(3).integers(0, 8, (64, 1 << 18), dtype="u1")
    array = zarrgpu.open(write_array(tmp_path / "big", data, (1, 1 << 18), compress=True), threads=1)
    counted, done = 0, threading.Event()

    def read() -> None:
        array.read()
        done.set()

    start = time.perf_counter()
    reader = threading.Thread(target=read)
    reader.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.0005)
    reader.join()
    took = time.perf_counter() - start
    # Were the lock held, the loop would turn once.
    assert counted > 3, f"{counted} turns in {took:.3f} s"
