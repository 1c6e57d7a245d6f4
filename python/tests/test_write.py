"""Creating arrays and groups, and what is stored of what is written."""

from __future__ import annotations

import functools
import http.server
import json
import multiprocessing
import os
import pickle
import sys
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Bucket, write_array, write_group

import zarrgpu

GZIP = {"name": "gzip", "configuration": {"level": 1}}


def layouts() -> list[dict[str, Any]]:
    crc32c = [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}, "crc32c"]
    transpose = {"name": "transpose", "configuration": {"order": [2, 0, 1]}}
    return [
        {},
        {"chunks": (4, 5, 3)},
        {"chunks": (2, 3, 4), "shards": (8, 6, 4), "compressors": crc32c},
        {"chunks": (5, 4, 3), "compressors": None},
        {"chunks": (5, 4, 3), "filters": transpose, "serializer": {"name": "bytes", "configuration": {"endian": "big"}}},
        {"chunks": (4, 5, 3), "zarr_format": 2},
        {"chunks": (4, 5, 3), "zarr_format": 2, "compressors": GZIP},
    ]


@pytest.mark.parametrize("layout", layouts(), ids=str)
def test_any_assignment_is_that_of_numpy(tmp_path: Path, layout: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    shape = (13, 9, 7)
    array = zarrgpu.create_array(tmp_path / "a", shape=shape, dtype="i4", fill_value=-1, **layout)
    expected = np.full(shape, -1, "i4")
    assert array.fill_value == -1 and array.zarr_format == layout.get("zarr_format", 3) and not array.read_only

    def part(size: int) -> object:
        if random.random() < 0.3:
            return int(random.integers(-size, size))
        start, stop = (None if random.random() < 0.2 else int(random.integers(-size - 2, size + 3)) for _ in range(2))
        return slice(start, stop, [None, 1, 2, 7, -1, -3][random.integers(6)])

    for turn in range(60):
        index = tuple(part(size) for size in shape[: random.integers(4)])
        wanted = expected[index].shape
        data = random.integers(0, 1 << 15, wanted).astype(["i4", "i2", "i8", "u2"][turn % 4])
        forms: list[Any] = [data, data.T.copy().T, data[None], 7]
        if data.size and data.ndim:
            forms += [data.tolist(), data[..., :1], data[::-1], np.repeat(data, 2, -1)[..., ::2]]
        value = forms[random.integers(len(forms))]
        array[index] = value
        expected[index] = value
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(zarrgpu.open(tmp_path / "a")[...], expected)


def test_products_are_written(tmp_path: Path) -> None:
    array = zarrgpu.create_array(tmp_path / "a", shape=(10, 6), dtype="f8", chunks=(3, 4))
    expected = np.zeros((10, 6))
    values = np.arange(9.0).reshape(3, 3)
    array.write(([7, 0, 3], [True, False, True, False, False, True]), values)
    expected[np.ix_([7, 0, 3], [0, 2, 5])] = values
    array.write("8:, 1", 5)
    expected[8:, 1] = 5
    np.testing.assert_array_equal(array[:], expected)
    array.write(None, np.ones(6))
    assert (array[:] == 1).all()


def test_points(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    expected = random.integers(0, 99, (9, 8, 7))
    array = zarrgpu.create_array(tmp_path / "a", shape=expected.shape, dtype=expected.dtype, chunks=(4, 3, 7))
    array[...] = expected
    mask = random.random(expected.shape) < 0.2
    indexes: list[Any] = [
        ([1, -2, 3], [4, 5, -6], [0, 0, 6]), (np.arange(4)[:, None], np.arange(3), 2), (1, 2, 3), (np.int64(-1), -1, -1),
        ([], [], []), mask, (np.array(8), [0, 0], [1, 1]),
    ]  # fmt: skip
    for index in indexes:
        found = array.vindex[index]
        assert type(found) is type(expected[index]) and found.shape == expected[index].shape, index
        np.testing.assert_array_equal(found, expected[index])
        value = random.integers(0, 99, expected[index].shape) if index is not indexes[-1] else 5
        array.vindex[index] = value
        expected[index] = value
        array.vindex[index] = [] if np.size(value) == 0 else array.vindex[index]
        np.testing.assert_array_equal(array[...], expected)
    array.vindex[[1, 2], [3, 4], 0] = [200, 201]
    assert array[1, 3, 0] == 200 and array[2, 4, 0] == 201
    for wrong in [([1], [2]), ([9], [0], [0]), ([1.5], [0], [0]), mask[:2], ([1, 2], [1, 2, 3], 0), (slice(None), 0, 0), "a"]:
        with pytest.raises(IndexError):
            array.vindex[wrong]
    with pytest.raises(zarrgpu.ParameterError, match="broadcast"):
        array.vindex[[1, 2], 0, 0] = [1, 2, 3]


@pytest.mark.parametrize(
    ("own", "value", "expected"),
    [
        ("u1", 255, 255), ("u1", [1, 2], [1, 2]), ("u1", True, 1), ("u1", np.uint16(7), 7), ("i1", -128, -128), ("i1", np.int64([100, -100]), [100, -100]),
        ("f4", 1, 1), ("f4", 0.1, np.float32(0.1)), ("f4", np.float64(2.5), 2.5), ("f4", np.arange(2), [0, 1]), ("f2", [1, 2.5], [1, 2.5]),
        ("c8", 1.5, 1.5), ("c8", [1, 2j], [1, 2j]), ("bool", True, True), ("bool", [True, False], [True, False]), ("u1", [], []),
        (">f4", np.array([1, 2], ">f4"), [1, 2]), ("f8", np.array([1, 2], ">i2"), [1, 2]), ("u8", 2**64 - 1, np.uint64(2**64 - 1)),
        ("M8[s]", np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "s")), ("m8[ms]", np.timedelta64(2, "s"), np.timedelta64(2000, "ms")),
        ("S3", b"abc", b"abc"), ("U3", ["a", "été"], ["a", "été"]), ("U2", np.array(["ab"], "U9"), ["ab"]),
    ],
    ids=str,
)  # fmt: skip
def test_elements_are_cast(tmp_path: Path, own: str, value: Any, expected: Any) -> None:
    shape = (len(expected),) if np.ndim(expected) else (2,)
    array = zarrgpu.create_array(tmp_path / "a", shape=shape, dtype=own)
    array[...] = value
    assert array.dtype == np.dtype(own).newbyteorder("=")
    np.testing.assert_array_equal(array[:], np.broadcast_to(np.asarray(expected), shape))


@pytest.mark.parametrize(
    ("own", "value"),
    [
        ("u1", 256), ("u1", -1), ("u1", 1.0), ("u1", np.int8(1)), ("i1", np.int64(200)), ("i4", 0.5), ("i4", [0.5]), ("i4", np.float32(1)),
        ("f8", 1j), ("f4", np.complex64(1)), ("bool", 1), ("bool", np.uint8(1)), ("i8", 2**63), ("i8", 2**70), ("f8", "1"), ("u1", None),
        ("S3", b"abcd"), ("U2", "abc"), ("U2", 12), ("U2", b"ab"), ("M8[s]", 1), ("M8[s]", "2020"), ("f8", np.datetime64(0, "s")), ("f8", [[1, 2], [3]]),
        ("f8", [1, 2, 3]), ("f8", np.zeros((2, 2))), ("f8", {}),
    ],
    ids=str,
)  # fmt: skip
def test_what_would_lose_something_is_refused(tmp_path: Path, own: str, value: Any) -> None:
    array = zarrgpu.create_array(tmp_path / "a", shape=2, dtype=own)
    with pytest.raises(ValueError):
        array[:] = value
    assert not (tmp_path / "a" / "c").exists()
    with pytest.raises(ValueError):
        array.write("0:2", value)


def test_types_that_numpy_lacks(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name, values in [("bfloat16", [1.5, -2.0]), ("float8_e4m3fn", [0.5, 2.0]), ("int4", [-8, 7]), ("uint4", [0, 15])]:
        for dtype in (name, getattr(ml_dtypes, name), np.dtype(getattr(ml_dtypes, name))):
            array = zarrgpu.create_array(tmp_path / "a", shape=2, dtype=dtype, fill_value=values[0], overwrite=True)
            assert array.data_type == name and array.fill_value == values[0]
            array[:] = values
            array[1] = np.array(values, name)[1]
            assert array[:].tolist() == values
            array[0] = values[1]
            assert array[:].tolist() == [values[1]] * 2
    for value in (8, 1.5, np.float32(1)):
        with pytest.raises(zarrgpu.ParameterError):
            zarrgpu.create_array(tmp_path / "a", shape=2, dtype="int4", overwrite=True)[:] = value


def test_structs_and_raw_bytes(tmp_path: Path) -> None:
    structs = np.array([(1, 2.5), (3, 4.5), (5, -1)], [("a", "<i2"), ("b", "<f8")])
    array = zarrgpu.create_array(tmp_path / "s", shape=3, dtype=structs.dtype, fill_value=(7, 0.5))
    assert array.dtype == structs.dtype and array[2].tolist() == (7, 0.5)
    array[:] = structs
    array[1] = (8, 9.5)
    structs[1] = (8, 9.5)
    assert (array[:] == structs).all()
    with pytest.raises(zarrgpu.ParameterError):
        array[:] = np.zeros(3, [("a", "<i8"), ("b", "<f8")])
    raw = np.array([b"abc", b"def"], "V3")
    array = zarrgpu.create_array(tmp_path / "r", shape=2, dtype="V3")
    array[:] = raw
    assert array.data_type == "r24" and array[:].tolist() == raw.tolist()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_elements_of_variable_length(tmp_path: Path, zarr_format: int) -> None:
    texts = zarrgpu.create_array(tmp_path / "t", shape=(2, 3), dtype=str, chunks=(1, 2), fill_value="?", zarr_format=zarr_format)
    assert texts.data_type == "string" and texts[0, 0] == "?"
    texts[0] = ["a", "été", ""]
    texts[:, 1] = "both"
    texts[1, 2] = np.str_("x")
    assert texts[:].tolist() == [["a", "both", ""], ["?", "both", "x"]]
    texts[:] = np.array([["ab", "c", "d"]] * 2)
    assert texts.append([["1", "2", "3"]]) == (3, 3)
    assert texts[1:].tolist() == [["ab", "c", "d"], ["1", "2", "3"]]
    texts.vindex[[0, 2], [0, 2]] = ["p", "q"]
    assert texts.vindex[[0, 2], [0, 2]].tolist() == ["p", "q"]
    for wrong in (1, [1, 2, 3], b"a", [["a"]] * 3):
        with pytest.raises(zarrgpu.ParameterError):
            texts[0] = wrong
    data = zarrgpu.create_array(tmp_path / "b", shape=2, dtype=bytes, zarr_format=zarr_format)
    data[:] = [b"a\0", b""]
    assert data[:].tolist() == [b"a\0", b""] and data.data_type == "bytes"
    with pytest.raises(zarrgpu.ParameterError):
        data[0] = "a"


def test_dtypes_and_their_names(tmp_path: Path) -> None:
    names = {
        "float32": "float32", np.float32: "float32", np.dtype(">f4"): "float32", float: "float64", int: "int64", bool: "bool", "f2": "float16",
        "string": "string", "bytes": "bytes", "r16": "r16", "complex64": "complex64", "U": "string",
    }  # fmt: skip
    for dtype, name in names.items():
        assert zarrgpu.create_array(tmp_path / "a", shape=(), dtype=dtype, overwrite=True).data_type == name
    for wrong in ("float31", object, np.dtype(("f4", (2,))), np.longdouble):
        with pytest.raises((zarrgpu.UnsupportedError, TypeError)):
            zarrgpu.create_array(tmp_path / "wrong", shape=(), dtype=wrong)
    with pytest.raises(TypeError):
        zarrgpu.create_array(tmp_path / "wrong", shape=(), dtype=None)
    assert not (tmp_path / "wrong").exists()


def test_what_is_created(tmp_path: Path) -> None:
    array = zarrgpu.create_array(
        tmp_path / "a",
        shape=np.array([20, 30]),
        dtype="f4",
        chunks=[5, 10],
        shards=(10, 30),
        fill_value=float("nan"),
        compressors="zstd",
        dimension_names=["y", None],
        attributes={"units": "K", "n": np.float32(1.5), "list": np.arange(2), "nan": float("nan"), "big": 2**70},
    )
    assert array.shape == (20, 30) and array.chunks == (5, 10) and array.shards == (10, 30) and np.isnan(array.fill_value)
    assert array.dimension_names == ("y", None)
    assert array.attrs["n"] == 1.5 and array.attrs["list"] == [0, 1] and np.isnan(array.attrs["nan"]) and array.attrs["big"] == 2**70
    again = zarrgpu.open(tmp_path / "a")
    assert again.shards == (10, 30) and again.attrs["units"] == "K" and again.read_only
    with pytest.raises(zarrgpu.ParameterError, match="already an array"):
        zarrgpu.create_array(tmp_path / "a", shape=1, dtype="f4")
    array[0, 0] = 1
    assert np.isnan(zarrgpu.create_array(tmp_path / "a", shape=(20, 30), dtype="f4", fill_value=np.nan, overwrite=True)[0, 0])
    new = functools.partial(zarrgpu.create_array, tmp_path / "new", dtype="i4")
    wrongs: list[Callable[[], Any]] = [
        lambda: new(shape=-1), lambda: new(shape=(1, 1.5)), lambda: new(shape=(4, 4), chunks=(2,)), lambda: new(shape=4, chunks=3, shards=4),
        lambda: new(shape=4, fill_value=0.5), lambda: new(shape=4, fill_value=[1, 2]), lambda: new(shape=4, zarr_format=4),
        lambda: new(shape=4, compressors={"configuration": {}}), lambda: new(shape=4, serializer=["bytes", "bytes"]),
        lambda: new(shape=4, compressors="no_such_codec"), lambda: new(shape=4, shards=4, chunks=2, zarr_format=2), lambda: new(shape=4, attributes=[1]),
        lambda: new(shape=4, dimension_names=["a", "b"]),
    ]  # fmt: skip
    for wrong in wrongs:
        with pytest.raises((ValueError, zarrgpu.UnsupportedError)):
            wrong()
    for wrong in (lambda: new(shape=4, attributes={"a": object()}), lambda: new(shape=4, compressors=[object()])):
        with pytest.raises(TypeError):
            wrong()
    assert not (tmp_path / "new").exists()


def test_groups(tmp_path: Path) -> None:
    root = zarrgpu.create_group(tmp_path / "g", attributes={"title": "new"})
    assert root.attrs == {"title": "new"} and len(root) == 0
    array = root.create_array("deep/er/a", shape=(4,), dtype="i2", attributes={"x": 1})
    array[:] = [1, 2, 3, 4]
    assert list(root) == ["deep"] and array.path == "/deep/er/a"
    assert root.require_group("deep/er").attrs == {} and root["deep/er/a"][:].tolist() == [1, 2, 3, 4]
    made = root.create_group("other", attributes={"y": [1]})
    assert made.attrs["y"] == [1] and not made.read_only
    made.create_array("b", shape=2, dtype="u1")[:] = 9
    assert zarrgpu.open(tmp_path / "g")["other/b"][:].tolist() == [9, 9]
    for wrong in (lambda: root.create_group("other"), lambda: root.create_array("other", shape=1, dtype="i1"), lambda: root.require_group("deep/er/a")):
        with pytest.raises(zarrgpu.ParameterError, match="already"):
            wrong()
    with pytest.raises(zarrgpu.ZarrError):
        root.create_array("deep/er/a/below", shape=1, dtype="i1")
    root.create_array("other", shape=1, dtype="i1", overwrite=True)
    assert isinstance(root["other"], zarrgpu.Array)
    assert len(root.create_group("other", overwrite=True)) == 0 and isinstance(root["other"], zarrgpu.Group)
    del root["deep/er/a"]
    assert "deep/er/a" not in root and not (tmp_path / "g" / "deep" / "er" / "a").exists()
    del root["deep"]
    assert list(root) == ["other"]
    with pytest.raises(KeyError):
        del root["deep"]
    for name in ("", "/"):
        for wrong in (root.__delitem__, root.create_group, root.require_group):
            with pytest.raises(zarrgpu.ParameterError):
                wrong(name)
    assert zarrgpu.create_group(tmp_path / "g", zarr_format=2, overwrite=True).zarr_format == 2
    assert len(zarrgpu.open(tmp_path / "g")) == 0
    second = zarrgpu.open(tmp_path / "g", mode="r+")
    assert second.create_array("a", shape=1, dtype="i1").zarr_format == second.create_group("b").zarr_format == 2


def test_consolidated_metadata(tmp_path: Path) -> None:
    root = zarrgpu.create_group(tmp_path / "g")
    array = root.create_array("a", shape=4, dtype="i2")
    root.consolidate()
    stored = json.loads((tmp_path / "g" / "zarr.json").read_text())
    assert list(stored["consolidated_metadata"]["metadata"]) == ["a"]
    root.create_array("b", shape=4, dtype="i2")
    array.resize(6)
    root.attrs["later"] = True
    assert list(zarrgpu.open(tmp_path / "g")) == ["a"] and zarrgpu.open(tmp_path / "g")["a"].shape == (4,)
    root.consolidate()
    assert list(root) == ["a", "b"]
    again = zarrgpu.open(tmp_path / "g")
    assert list(again) == ["a", "b"] and again["a"].shape == (6,) and again.attrs == {"later": True}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes(tmp_path: Path, zarr_format: int) -> None:
    root = zarrgpu.create_group(tmp_path / "g", zarr_format=zarr_format)
    nodes = [root, root.create_array("a", shape=1, dtype="i1"), root.create_group("b")]
    for node in nodes:
        attrs = node.attrs
        attrs["a"] = {"b": [1, None]}
        attrs["t"] = "é"
        assert node.attributes == attrs == {"a": {"b": [1, None]}, "t": "é"} and repr(attrs) == repr(attrs.asdict())
        attrs.update({"a": 1}, c=np.int16(2))
        del attrs["t"]
        assert node.attrs.asdict() == {"a": 1, "c": 2} and attrs.pop("c") == 2 and attrs.setdefault("d", 4) == 4
        assert json.dumps(attrs.asdict()) == '{"a": 1, "d": 4}' and list(attrs) == ["a", "d"] and len(attrs) == 2
        with pytest.raises(KeyError):
            del attrs["absent"]
        with pytest.raises(TypeError, match="JSON"):
            attrs["wrong"] = {1, 2}
        loop: list[Any] = []
        loop.append(loop)
        with pytest.raises(ValueError):
            attrs["wrong"] = loop
        assert "wrong" not in attrs
    again = zarrgpu.open(tmp_path / "g", mode="r+")
    for node in (again, again["a"], again["b"]):
        assert node.attrs == {"a": 1, "d": 4}
        node.attrs.clear()
    assert zarrgpu.open(tmp_path / "g" / "a").attrs == {}


def test_handles_of_one_array_do_not_undo_each_other(tmp_path: Path) -> None:
    zarrgpu.create_array(tmp_path / "a", shape=(2, 3), dtype="i4", chunks=(4, 3), attributes={"x": 1})
    first, second = (zarrgpu.open(tmp_path / "a", mode="r+") for _ in range(2))
    assert first.append(np.ones((2, 3), "i4")) == (4, 3)
    assert second.append(np.full((1, 3), 2)) == (5, 3)
    reader = zarrgpu.open(tmp_path / "a")
    first.attrs["y"] = 2
    second.attrs["z"] = 3
    assert reader.shape == (5, 3) and reader.attrs == {"x": 1}
    second.append([[3] * 3])
    assert reader.shape == (5, 3)
    reader.refresh()
    assert reader.shape == (6, 3) and reader.attrs == {"x": 1, "y": 2, "z": 3} and reader[-1].tolist() == [3] * 3
    second.resize((5, 3))
    assert second[:, 0].tolist() == [0, 0, 1, 1, 2] and second.attrs == {"x": 1, "y": 2, "z": 3}
    assert zarrgpu.open(tmp_path / "a").shape == (5, 3)
    # And a smaller shape removes what the other one appended.
    first.resize((1, 3))
    second.resize((5, 3))
    assert not second[1:].any()


@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_append_and_resize(tmp_path: Path, shards: Any) -> None:
    array = zarrgpu.create_array(tmp_path / "a", shape=(0, 5), dtype="f4", chunks=(2, 2), shards=shards, fill_value=9)
    expected = np.zeros((0, 5), "f4")
    for rows in (3, 0, 1, 6):
        new = np.random.default_rng(rows).normal(size=(rows, 5)).astype("f4")
        expected = np.concatenate([expected, new])
        assert array.append(new) == expected.shape == array.shape
    more = np.arange(20).reshape(10, 2)
    assert array.append(more, axis=-1) == (10, 7)
    expected = np.concatenate([expected, more], axis=1)
    np.testing.assert_array_equal(array[:], expected)
    for wrong, axis in [(np.zeros((1, 6)), 0), (np.zeros(7), 0), (np.zeros((10, 1)), 0), (np.zeros((1, 7)), 2), (np.zeros((1, 7)), -3), (0, 0)]:
        with pytest.raises(zarrgpu.ParameterError):
            array.append(wrong, axis)
    with pytest.raises(zarrgpu.ParameterError):
        array.append(np.zeros((1, 7), "c8"))
    array.resize((4, 3))
    array.resize([6, 7])
    assert array.shape == (6, 7) == zarrgpu.open(tmp_path / "a").shape
    np.testing.assert_array_equal(array[:4, :3], expected[:4, :3])
    assert (array[4:] == 9).all() and (array[:, 3:] == 9).all()
    for wrong in ((1,), (1, -1), "ab"):
        with pytest.raises(zarrgpu.ZarrError):
            array.resize(wrong)
    with pytest.raises(zarrgpu.ParameterError):
        zarrgpu.create_array(tmp_path / "p", shape=(), dtype="f4").append(1)


def test_nothing_becomes_writable_by_accident(tmp_path: Path) -> None:
    root = write_group(tmp_path / "g", {"a": 1})
    write_array(root / "a", np.zeros(4, "i4"), (2,))
    group = zarrgpu.open(root)
    array = group["a"]
    assert group.read_only and array.read_only and zarrgpu.open(root, mode="r").read_only
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    wrongs: list[Callable[[], Any]] = [
        lambda: array.__setitem__(0, 1), lambda: array.write(None, 1), lambda: array.append([1]), lambda: array.resize(1),
        lambda: array.vindex.__setitem__([0], 1), lambda: array.attrs.update(x=1), lambda: group.attrs.__delitem__("a"), lambda: group.attrs.clear(),
        lambda: group.create_array("b", shape=1, dtype="i1"), lambda: group.create_group("b"), lambda: group.require_group("b"),
        lambda: group.__delitem__("a"), group.consolidate,
    ]  # fmt: skip
    for wrong in wrongs:
        with pytest.raises(zarrgpu.ParameterError, match=r"mode=.r\+"):
            wrong()
    assert before == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for mode in ("w", "a", "w-", "rw", ""):
        with pytest.raises(zarrgpu.ParameterError, match="create_array"):
            zarrgpu.open(root, mode=mode)
    with pytest.raises(zarrgpu.NotFoundError):
        zarrgpu.open(tmp_path / "absent", mode="r+")
    assert not (tmp_path / "absent").exists()
    writable = zarrgpu.open(root, mode="r+")
    writable["a"][1] = 5
    assert not writable.read_only and not writable["a"].read_only and array[:].tolist() == [0, 5, 0, 0]


def names_in(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return set(archive.namelist())


def test_zip_archives(tmp_path: Path, values: np.ndarray) -> None:
    path = tmp_path / "a.zip"
    with zarrgpu.create_group(path, attributes={"of": "all"}) as root:
        array = root.create_array("deep/values", shape=values.shape, dtype=values.dtype, chunks=(8, 8, 5))
        array[...] = values
        np.testing.assert_array_equal(array[2:4], values[2:4])
        assert not path.exists()
        root.create_array("gone", shape=3, dtype="i1")[:] = 1
        del root["gone"]
    assert "deep/values/zarr.json" in names_in(path) and not any(name.startswith("gone") for name in names_in(path))
    np.testing.assert_array_equal(zarrgpu.open(path / "deep" / "values")[...], values)
    # Reads go on.
    np.testing.assert_array_equal(array[...], values)
    with pytest.raises(zarrgpu.StoreError, match="closed"):
        array[0] = 1
    # Nodes below do not close it, nor give it up.
    with zarrgpu.create_group(tmp_path / "b.zip") as root:
        with root.create_group("c") as inner:
            inner.create_array("d", shape=1, dtype="i1")[:] = 3
        with pytest.raises(RuntimeError), inner["d"] as array:
            raise RuntimeError
        inner.close()
        array[:] = 4
    assert zarrgpu.open(tmp_path / "b.zip/c/d")[:].tolist() == [4]
    (tmp_path / "b.zip").unlink()

    with zarrgpu.open(path, mode="r+") as root:
        root["deep/values"][0] = 7
        root.attrs["of"] = "some"
        root.create_array("more", shape=2, dtype="u2", chunks=1)[:] = [3, 4]
    opened = zarrgpu.open(path)
    assert sorted(opened) == ["deep", "more"] and opened.attrs["of"] == "some" and opened["more"][:].tolist() == [3, 4]
    assert (opened["deep/values"][0] == 7).all()
    np.testing.assert_array_equal(opened["deep/values"][1:], values[1:])

    # One array, which is let go of without being closed.
    zarrgpu.create_array(tmp_path / "one.ZIP", shape=2, dtype="u2")[:] = [5, 6]
    assert zarrgpu.open(tmp_path / "one.ZIP")[:].tolist() == [5, 6]
    array = zarrgpu.create_array(tmp_path / "one.ZIP" / "inside", shape=2, dtype="u2")
    array.close()
    array.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "one.ZIP"]


def test_zip_archives_that_come_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zip"
    with pytest.raises(zarrgpu.NotFoundError):
        zarrgpu.open(path, mode="r+")
    with pytest.raises(zarrgpu.NotFoundError):
        zarrgpu.create_array(tmp_path / "no" / "a.zip", shape=1, dtype="i1")
    with pytest.raises(RuntimeError), zarrgpu.create_array(path, shape=1, dtype="i1") as array:
        array[:] = 1
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    with pytest.raises(zarrgpu.ParameterError, match="given up"):
        array.close()
    with zarrgpu.create_array(path, shape=1, dtype="i1") as array:
        array[:] = 1
        with pytest.raises(zarrgpu.UnsupportedError, match="zip archive"):
            pickle.dumps(array)
        for elsewhere in (path, path / "b"):
            with pytest.raises(zarrgpu.ParameterError, match="being written"):
                zarrgpu.create_array(elsewhere, shape=1, dtype="i1")
    before = path.read_bytes()
    with pytest.raises(zarrgpu.ParameterError, match="already"):
        zarrgpu.create_array(path, shape=1, dtype="i1")
    with pytest.raises(zarrgpu.NotFoundError):
        zarrgpu.open(path / "absent", mode="r+")
    with pytest.raises(RuntimeError), zarrgpu.open(path, mode="r+") as array:
        array[:] = 2
        raise RuntimeError
    assert path.read_bytes() == before

    # What somebody else puts there meanwhile.
    def replace() -> None:
        other = path.with_suffix(".other")
        other.write_bytes(before)
        other.rename(path)

    array = zarrgpu.open(path, mode="r+")
    array[:] = 2
    replace()
    with pytest.raises(zarrgpu.StoreError, match="somebody else"):
        array.close()
    # Tried again, where nothing is in the way any more.
    path.unlink()
    array.close()
    assert zarrgpu.open(path)[:].tolist() == [2]
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: unraisable.append(str(args.exc_value)))
    array = zarrgpu.open(path, mode="r+")
    replace()
    del array
    assert len(unraisable) == 1 and "somebody else" in unraisable[0]
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_leaves_a_zip_archive_to_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    array = zarrgpu.create_array(path, shape=2, dtype="i1")
    array[:] = [1, 2]
    child = os.fork()
    if child == 0:
        refused = 0
        for change in (lambda: array.__setitem__(0, 5), array.close):
            try:
                change()
            except zarrgpu.StoreError:
                refused += 1
        del array, change
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert not path.exists()
    array.close()
    assert zarrgpu.open(path)[:].tolist() == [1, 2]


def test_web_servers_are_read(tmp_path: Path) -> None:
    (tmp_path / "folder.zip").mkdir()
    zarrgpu.create_array(tmp_path / "folder.zip" / "a", shape=1, dtype="i1")[:] = 1
    with pytest.raises(zarrgpu.StoreError, match="cannot be written"):
        zarrgpu.open("http://127.0.0.1:9/a", mode="r+")


def test_tensors_and_other_libraries(tmp_path: Path, store: Path, values: np.ndarray) -> None:
    source = zarrgpu.open(store / "packed")
    array = zarrgpu.create_array(tmp_path / "a", shape=values.shape, dtype=source.dtype, chunks=(8, 8, 5))
    array[...] = source.read()
    np.testing.assert_array_equal(array[...], values)
    array[3:5] = source.read("0:2")
    np.testing.assert_array_equal(array[3:5], values[:2])
    array[...] = source
    np.testing.assert_array_equal(array[...], values)
    with pytest.raises(zarrgpu.ParameterError, match="stream="):
        array.write(None, source.read(), stream=1)

    class Dlpack:
        """Speaks DLPack, and nothing else."""

        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **arguments: Any) -> Any:
            return self.array.__dlpack__(**arguments)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    array[0] = Dlpack(values[7].copy())
    np.testing.assert_array_equal(array[0], values[7])
    array[0] = memoryview(values[8])
    np.testing.assert_array_equal(array[0], values[8])


def test_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    array = zarrgpu.create_array(tmp_path / "a", shape=tensor.shape, dtype=tensor.dtype)
    assert array.data_type == "float32"
    array[...] = tensor
    array[0] = tensor[1].to(torch.float64)
    array[:, 1] = tensor.T[2]
    assert array[0].tolist() == [6, 2, 8, 9, 10, 11] and array[:, 1].tolist() == [2, 8, 14, 20]
    half = tensor.to(torch.bfloat16)
    array = zarrgpu.create_array(tmp_path / "b", shape=half.shape, dtype=half.dtype)
    array[...] = half
    assert torch.equal(torch.from_dlpack(array.read()), half)


def test_jax(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    for dtype in ("float32", "bfloat16", "bool"):
        values = (jax.numpy.arange(24).reshape(4, 6) % 2).astype(dtype)
        array = zarrgpu.create_array(tmp_path / dtype, shape=values.shape, dtype=values.dtype)
        array[...] = values
        array[0] = values[0, ::-1]
        array.append(values[:1])
        assert array.data_type == dtype and array[0].tolist() == [1, 0] * 3 and np.array_equal(array[4], np.asarray(values[0]))


def test_data_are_not_copied_to_be_written(tmp_path: Path) -> None:
    array = zarrgpu.create_array(tmp_path / "a", shape=(64, 1 << 17), dtype="f8", chunks=(1, 1 << 17), compressors=None)
    columns = np.ones((1 << 17, 64))
    tracemalloc.start()
    array[...] = 0.0
    array[...] = columns.T
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert (array[-1] == 1).all()


def test_other_threads_run_while_one_writes(tmp_path: Path) -> None:
    array = zarrgpu.create_array(tmp_path / "big", shape=(64, 1 << 18), dtype="u1", chunks=(1, 1 << 18), compressors=GZIP)
    data = np.random.default_rng(3).integers(0, 8, array.shape, dtype="u1")
    counted, done = 0, threading.Event()

    def write() -> None:
        array[...] = data
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.0005)
    writer.join()
    # Were the lock held, the loop would turn once.
    assert counted > 3


def test_threads_append_one_after_the_other(tmp_path: Path) -> None:
    array = zarrgpu.create_array(tmp_path / "a", shape=(0,), dtype="i4", chunks=(5,))
    threads = [threading.Thread(target=lambda value=value: [array.append([value] * 3) for _ in range(5)]) for value in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(array[:].tolist()) == sorted([1, 2, 3, 4] * 15)


def fill(array: zarrgpu.Array, start: int) -> None:
    array[start : start + 50] = np.arange(start, start + 50, dtype="f4")[:, None]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_workers_write(tmp_path: Path, method: str) -> None:
    root = zarrgpu.create_group(tmp_path / "g")
    array = root.create_array("a", shape=(400, 30), dtype="f4", chunks=(50, 30))
    array[0] = 1
    with multiprocessing.get_context(method).Pool(2) as pool:
        pool.starmap_async(fill, [(array, start) for start in range(0, 400, 50)]).get(timeout=60)
    np.testing.assert_array_equal(array[:, 7], np.arange(400))
    for node in (array, root, zarrgpu.open(tmp_path / "g", mode="r+")["a"]):
        assert not pickle.loads(pickle.dumps(node)).read_only
    assert pickle.loads(pickle.dumps(zarrgpu.open(tmp_path / "g"))).read_only


def test_object_stores(tmp_path: Path) -> None:
    objects: dict[str, bytes] = {}
    handler = type("Handler", (Bucket,), {"objects": objects})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {"endpoint": f"http://127.0.0.1:{server.server_port}", "allow_http": True, "skip_signature": True, "region": "x"}
        root = zarrgpu.create_group("s3://bucket/data.zarr", storage_options=options)
        array = root.create_array("a", shape=(6, 4), dtype="i4", chunks=(2, 2), shards=(4, 4))
        values = np.arange(24).reshape(6, 4)
        array[...] = values
        array[1:5, 1] = 77
        values[1:5, 1] = 77
        array.append(values[:2])
        array.attrs["x"] = 1
        again = zarrgpu.open("s3://bucket/data.zarr/a", storage_options=options)
        np.testing.assert_array_equal(again[:], np.concatenate([values, values[:2]]))
        assert again.attrs == {"x": 1} and "/bucket/data.zarr/a/zarr.json" in objects
        server.shutdown()


def test_zarr_python_reads_it_and_is_read(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    random = np.random.default_rng(8)
    for number, layout in enumerate(layouts()):
        for kind in ("i4", "f8", "bool", "c8", "M8[s]", "U3"):
            if kind in ("bool", "U3") and "serializer" in layout:
                continue
            values = random.integers(0, 2, (13, 9, 7)).astype(kind)
            path = tmp_path / f"{number}-{kind}"
            array = zarrgpu.create_array(path, shape=values.shape, dtype=values.dtype, attributes={"a": [1]}, **layout)
            array[...] = values
            array[2:5, 1] = array[7:10, 2]
            values[2:5, 1] = values[7:10, 2]
            theirs = zarr.open_array(path, mode="r+")
            np.testing.assert_array_equal(theirs[...], values)
            assert theirs.attrs["a"] == [1] and theirs.dtype == values.dtype
            theirs[0] = values[1]
            theirs.attrs["b"] = 2
            values[0] = values[1]
            np.testing.assert_array_equal(zarrgpu.open(path)[...], values)
            assert zarrgpu.open(path).attrs == {"a": [1], "b": 2}
    texts = zarrgpu.create_array(tmp_path / "texts", shape=3, dtype=str)
    texts[:] = ["a", "été", ""]
    assert zarr.open_array(tmp_path / "texts", mode="r")[:].tolist() == ["a", "été", ""]
    codecs = {"compressors": zarr.codecs.BloscCodec(cname="lz4", typesize=4), "serializer": zarr.codecs.BytesCodec()}
    array = zarrgpu.create_array(tmp_path / "codecs", shape=4, dtype="i4", **codecs)
    array[:] = [1, 2, 3, 4]
    assert zarr.open_array(tmp_path / "codecs", mode="r")[:].tolist() == [1, 2, 3, 4]
    root = zarrgpu.create_group(tmp_path / "group")
    root.create_array("a/b", shape=2, dtype="i4")
    root.consolidate()
    assert [name for name, _ in zarr.open_group(tmp_path / "group", mode="r").members(max_depth=None)] == ["a", "a/b"]
