"""The backend for xarray: beside xarray's own, which reads by zarr-python, and on a GPU."""

from __future__ import annotations

import asyncio
import importlib.metadata
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import library

import zarrgpu

xarray = pytest.importorskip("xarray")
pytest.importorskip("pandas")

from zarrgpu.xarray import ZarrgpuBackendEntrypoint  # noqa: E402

# By its class, for what is not installed has no entry points.
ENGINE = ZarrgpuBackendEntrypoint


def open_ours(path: Any, **arguments: Any) -> xarray.Dataset:
    return xarray.open_dataset(path, engine=ENGINE, **arguments)


def sample(zarr_format: int) -> xarray.Dataset:
    """Something of everything that CF conventions make of stored elements."""
    rng = np.random.default_rng(5)
    temperature = rng.normal(280, 10, (6, 4, 5))
    temperature[2, 1] = np.nan
    dataset = xarray.Dataset(
        {
            "temperature": (("time", "y", "x"), temperature, {"units": "K", "long_name": "air temperature"}),
            "wind": (("time", "y", "x"), rng.normal(size=(6, 4, 5)).astype("f4")),
            "mask": (("y", "x"), rng.random((4, 5)) < 0.5),
            "count": ("time", np.arange(6, dtype="i8"), {"flag_values": [1, 2]}),
            "spectrum": ("x", (np.arange(5) + 1j).astype("c8")),
            "scale": ((), np.float32(2.5)),
            "name": ("y", np.array(["a", "bc", "ü", ""], dtype=object)),
            "code": ("y", np.array([b"ab", b"c", b"", b"xyz"])),
            "lag": ("time", np.arange(6).astype("m8[h]").astype("m8[ns]")),
        },
        coords={
            "time": np.datetime64("2020-02-27T06", "ns") + np.arange(6) * np.timedelta64(6, "h"),
            "x": np.linspace(-20.0, 20.0, 5),
            "lat": (("y", "x"), rng.normal(size=(4, 5))),
            "station": ("y", np.arange(4, dtype="i2")),
        },
        attrs={"title": "tests", "list": [1, 2.5], "big": 2**60},
    )
    dataset["time_bnds"] = (("time", "nv"), np.stack([dataset.time.values, dataset.time.values + np.timedelta64(6, "h")], -1))
    dataset.time.attrs["bounds"] = "time_bnds"
    dataset.temperature.encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -999, "chunks": (2, 4, 5)}
    dataset.wind.encoding = {"chunks": (1, 2, 5), "_FillValue": np.float32(1e20)}
    dataset.time.encoding = {"units": "hours since 2020-01-01", "calendar": "proleptic_gregorian", "dtype": "i4"}
    if zarr_format == 3:
        dataset.wind.encoding["shards"] = (2, 4, 5)
    return dataset


@pytest.fixture(scope="module", params=[2, 3])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store by xarray and zarr-python, with a group below."""
    pytest.importorskip("zarr")
    path = tmp_path_factory.mktemp("xarray") / f"v{request.param}.zarr"
    dataset = sample(request.param)
    dataset.to_zarr(path, zarr_format=request.param, consolidated=False)
    dataset[["wind"]].isel(time=0).drop_encoding().to_zarr(path, group="below/deep", zarr_format=request.param, consolidated=False)
    return path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"decode_cf": False},
        {"mask_and_scale": False},
        {"decode_times": False, "decode_coords": False},
        {"decode_coords": "all", "decode_timedelta": True},
        {"drop_variables": ["name", "lat"]},
        {"group": "below/deep"},
    ],
    ids=repr,
)
def test_like_the_backend_of_zarr_python(written: Path, arguments: dict[str, Any]) -> None:
    theirs = xarray.open_dataset(written, engine="zarr", consolidated=False, **arguments)
    ours = open_ours(written, **arguments)
    xarray.testing.assert_identical(ours.load(), theirs.load())
    assert set(ours.coords) == set(theirs.coords)
    for name, variable in theirs.variables.items():
        # Codecs are objects of zarr-python there.
        names = {"compressors", "filters", "serializer"}
        found, wanted = ({key: value for key, value in of.encoding.items() if key not in names} for of in (ours.variables[name], variable))
        np.testing.assert_equal(found, wanted, name)
        assert ours.variables[name].dtype == variable.dtype, name


def test_indexes(written: Path) -> None:
    whole = open_ours(written).load()
    points = {"y": xarray.DataArray([0, 3, 1, 1], dims="point"), "x": xarray.DataArray([4, 0, 2, -1], dims="point")}
    for index in [
        {"time": -1},
        {"time": slice(None, None, -2), "x": slice(1, 4)},
        {"x": [4, 0, 0], "time": [1]},
        {"y": np.array([True, False, True, True]), "x": 2},
        {"time": slice(0, 0)},
        points,
        {**points, "time": slice(1, 5, 2)},
        {"time": xarray.DataArray([[0, 1], [5, 2]], dims=("a", "b")), "x": [1, 3]},
    ]:
        xarray.testing.assert_identical(open_ours(written).isel(index).load(), whole.isel(index))
    lazy = open_ours(written).isel(time=slice(1, None)).isel(time=[0, 2], y=1)
    xarray.testing.assert_identical(lazy.load(), whole.isel(time=[1, 3], y=1))
    xarray.testing.assert_identical(open_ours(written).sel(time="2020-02-28").load(), whole.sel(time="2020-02-28"))


def test_dask_pickle_and_async(written: Path) -> None:
    whole = open_ours(written).load()
    again = pickle.loads(pickle.dumps(open_ours(written)))
    xarray.testing.assert_identical(again.load(), whole)

    async def load() -> xarray.Dataset:
        return await open_ours(written).load_async()

    if hasattr(xarray.Dataset, "load_async"):
        xarray.testing.assert_identical(asyncio.run(load()), whole)
    pytest.importorskip("dask")
    chunked = open_ours(written, chunks={})
    assert chunked.wind.chunks == ((1,) * 6, (2, 2), (5,))
    xarray.testing.assert_identical(chunked.load(), whole)


def test_trees(written: Path) -> None:
    tree = xarray.open_datatree(written, engine=ENGINE)
    theirs = xarray.open_datatree(written, engine="zarr", consolidated=False)
    xarray.testing.assert_identical(tree.load(), theirs.load())
    assert [node.path for node in xarray.open_datatree(written, engine=ENGINE, group="below").subtree] == ["/", "/deep"]


def write(path: Path) -> Path:
    """A dataset written without xarray."""
    elements = np.arange(4 * 6 * 10, dtype="i2").reshape(4, 6, 10)
    elements[1, 2] = -999
    with zarrgpu.create_group(path, attributes={"coordinates": "lat"}) as group:
        packed = {"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -999, "units": "K"}
        array = group.create_array("packed", shape=(4, 6, 10), dtype="i2", chunks=(1, 3, 10), dimension_names=["time", "y", "x"], attributes=packed)
        array[...] = elements
        packed = {"missing_value": [3, 5], "_FillValue": 7, "_Unsigned": "true"}
        array = group.create_array("bytes", shape=(6, 10), dtype="i1", dimension_names=["y", "x"], attributes=packed)
        array[...] = (np.arange(60) * 4 + 3).astype("u1").view("i1").reshape(6, 10)
        array = group.create_array("flags", shape=(6, 10), dtype="bool", dimension_names=["y", "x"])
        array[::2] = True
        array = group.create_array("wind", shape=(4, 6, 10), dtype="f4", chunks=(2, 6, 5), dimension_names=["time", "y", "x"])
        array[...] = np.linspace(0, 1, 240, dtype="f4").reshape(4, 6, 10)
        array = group.create_array("time", shape=4, dtype="i4", dimension_names=["time"], attributes={"units": "days since 2000-01-01", "bounds": "time_bnds"})
        array[...] = np.arange(4)
        array = group.create_array("time_bnds", shape=(4, 2), dtype="i4", dimension_names=["time", "nv"])
        array[...] = np.arange(8).reshape(4, 2)
        array = group.create_array("lat", shape=(6, 10), dtype="f8", dimension_names=["y", "x"])
        array[...] = np.ones((6, 10))
        array = group.create_array("text", shape=6, dtype=str, dimension_names=["y"])
        array[...] = list("abcdef")
    return path


def test_nothing_is_read_before_it_is_needed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zarr")
    shutil.rmtree(path / "packed" / "c")
    (path / "wind" / "c" / "0" / "0" / "0").write_bytes(b"not zstd")
    dataset = open_ours(path)
    assert dataset.wind.shape == (4, 6, 10) and "wind" in repr(dataset)
    assert dataset.wind.isel(time=slice(2, None)).values[-1, -1, -1] == 1
    with pytest.raises(zarrgpu.FormatError, match="wind/c/0/0/0"):
        dataset.wind.load()


def test_a_group_that_is_open_and_an_archive(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zarr")
    wanted = open_ours(path).load()
    assert wanted.packed.dtype == np.float64 and np.isnan(wanted.packed.values[1, 2]).all() and wanted.packed.values[0, 0, 1] == 10.5
    xarray.testing.assert_identical(open_ours(zarrgpu.open(path)).load(), wanted)
    xarray.testing.assert_identical(open_ours(write(tmp_path / "a.zip"), threads=1).load(), wanted)


def test_fill_values(tmp_path: Path) -> None:
    """In version 3, `_FillValue` is a number, or a double in base64, as xarray writes it; complex numbers have two."""
    nan, one = "AAAAAAAA+H8=", "AAAAAAAA8D8="
    with zarrgpu.create_group(tmp_path / "a.zarr") as group:
        for name, dtype, stored in [("f", "f4", one), ("g", "f4", 1.0), ("i", "u1", 1), ("c", "c8", [one, nan]), ("b", "bool", True)]:
            group.create_array(name, shape=2, dtype=dtype, dimension_names=["x"], attributes={"_FillValue": stored})
        group.create_array("s", shape=2, dtype=str, dimension_names=["x"], attributes={"_FillValue": "none"})
    found = {name: variable.attrs["_FillValue"] for name, variable in open_ours(tmp_path / "a.zarr", mask_and_scale=False).items()}
    assert found["f"] == found["g"] == found["i"] == 1 and found["b"] and found["s"] == "none"
    assert found["c"].real == 1 and np.isnan(found["c"].imag)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_fill_value_as_a_mask(tmp_path: Path, zarr_format: int) -> None:
    group = zarrgpu.create_group(tmp_path / "a.zarr", zarr_format=zarr_format)
    named: dict[str, Any] = {"dimension_names": ["x"]} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["x"]}}
    group.create_array("a", shape=3, dtype="i2", fill_value=7, **named)[1:] = [1, 2]
    for asked, masked in [(None, zarr_format == 2), (True, True), (False, False)]:
        found = open_ours(tmp_path / "a.zarr", use_zarr_fill_value_as_mask=asked).a
        assert np.array_equal(found, [np.nan if masked else 7, 1, 2], equal_nan=True) and "_ARRAY_DIMENSIONS" not in found.attrs


def test_an_undefined_fill_value_masks_nothing(tmp_path: Path) -> None:
    array = zarrgpu.create_group(tmp_path / "a.zarr", zarr_format=2).create_array("a", shape=3, dtype="i2", attributes={"_ARRAY_DIMENSIONS": ["x"]})
    array[...] = [0, 1, 2]
    assert np.isnan(open_ours(tmp_path / "a.zarr").a.values[0])
    document = tmp_path / "a.zarr" / "a" / ".zarray"
    document.write_text(document.read_text().replace('"fill_value":0', '"fill_value":null').replace('"fill_value": 0', '"fill_value": null'))
    assert zarrgpu.open(tmp_path / "a.zarr" / "a").fill_value is None
    assert open_ours(tmp_path / "a.zarr").a.dtype == np.int16


def test_errors(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zarr")
    with pytest.raises(zarrgpu.ParameterError, match="a.zarr.wind is an array"):
        open_ours(path / "wind")
    with pytest.raises(FileNotFoundError):
        open_ours(path, group="nowhere")
    with pytest.raises(FileNotFoundError):
        open_ours(tmp_path / "b.zarr")
    zarrgpu.open(path, mode="r+").create_array("nameless", shape=(2, 3), dtype="f4")
    with pytest.raises(zarrgpu.MetadataError, match="nameless.*drop_variables"):
        open_ours(path)
    assert "wind" in open_ours(path, drop_variables="nameless")
    if not any(device["id"].startswith("cuda") for device in zarrgpu.devices()):
        with pytest.raises(zarrgpu.UnsupportedError):
            open_ours(path, drop_variables="nameless", device="cuda").wind.load()
        assert isinstance(open_ours(path, drop_variables="nameless", device="auto").wind.data, np.ndarray)


def test_the_entry_point() -> None:
    """Of what is installed; a folder on the path has none."""
    try:
        importlib.metadata.distribution("zarrgpu")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("zarrgpu is not installed, but on the path")
    assert isinstance(xarray.backends.list_engines()["zarrgpu"], ZarrgpuBackendEntrypoint)


PACKED = ["packed", "bytes", "flags", "wind"]


@pytest.mark.filterwarnings("ignore:variable 'bytes' has multiple fill values")
@pytest.mark.parametrize("mask_and_scale", [True, False, {"packed": False}])
def test_masks_and_scales(tmp_path: Path, mask_and_scale: Any) -> None:
    """What becomes of packed numbers on a device is what xarray makes of them on the host: here by "auto", wherever that is."""
    path = write(tmp_path / "a.zarr")
    host, found = (open_ours(path, mask_and_scale=mask_and_scale, device=device) for device in ("cpu", "auto"))
    for name in PACKED:
        assert found[name].attrs == host[name].attrs
        np.testing.assert_equal(found[name].encoding, host[name].encoding)
        data = found[name].data
        assert data.dtype == found[name].dtype == host[name].dtype, name
        np.testing.assert_array_equal(data.get() if hasattr(data, "get") else data, host[name].values)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "i4", "i8", "f4", "f8", "c8"])
def test_packed_numbers_of_all_types(tmp_path: Path, dtype: str, zarr_format: int) -> None:
    missing = [{}, {"missing_value": 3}, {"missing_value": float("nan")}, {"_FillValue": 5}, {"missing_value": [1, 2]},
               {"missing_value": 99999}, {"missing_value": 0.1}, {"missing_value": -1}]  # fmt: skip
    scales = [{}, {"scale_factor": 0.1}, {"add_offset": 273.15}, {"scale_factor": 2, "add_offset": 1}, {"_Unsigned": "true"}]
    group = zarrgpu.create_group(tmp_path / "a.zarr", zarr_format=zarr_format)
    names = {}
    for number, attributes in enumerate({**a, **b} for a in missing for b in scales):
        named = {"dimension_names": ["x"]} if zarr_format == 3 else {}
        stored = attributes if zarr_format == 3 else {**attributes, "_ARRAY_DIMENSIONS": ["x"]}
        array = group.create_array(f"v{number}", shape=200, dtype=dtype, attributes=stored, **named)
        values = np.arange(200).astype(dtype) if dtype != "f4" else np.arange(200, dtype="f4") / np.float32(10)
        array[...] = values
        names[f"v{number}"] = attributes
    for name, attributes in names.items():
        others = set(names) - {name}
        try:
            host = open_ours(tmp_path / "a.zarr", drop_variables=others)[name].load()
        except Exception as error:  # What xarray cannot decode.
            with pytest.raises(type(error)):
                open_ours(tmp_path / "a.zarr", drop_variables=others, device="auto")[name].load()
            continue
        found = open_ours(tmp_path / "a.zarr", drop_variables=others, device="auto")[name]
        data = found.data
        assert data.dtype == found.dtype == host.dtype and found.attrs == host.attrs, attributes
        if hasattr(data, "get"):
            np.testing.assert_array_equal(data.get(), host.values, str(attributes))
        else:
            xarray.testing.assert_identical(found.load(), host)


def test_texts_are_not_read_when_a_dataset_is_opened(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zarr")
    (path / "text" / "c" / "0").write_bytes(b"not zstd")
    dataset = open_ours(path)
    with pytest.raises(zarrgpu.FormatError):
        dataset.text.load()


def test_indexes_of_texts(tmp_path: Path) -> None:
    texts = np.array([[f"{y},{x}" for x in range(7)] for y in range(50)], dtype=object)
    array = zarrgpu.create_group(tmp_path / "a.zarr").create_array("t", shape=(50, 7), dtype=str, chunks=(10, 7), dimension_names=["y", "x"])
    array[...] = texts
    found = open_ours(tmp_path / "a.zarr").t
    for index in [(3, 4), (slice(None), 2), ([0, 49, 49], slice(1, 6, 2)), ([5], [6, 0]), (2, [1, 3]), (slice(5, 5), 1), ([], slice(None))]:
        own = np.ix_(*(np.atleast_1d(np.arange(n)[np.asarray(i, int) if isinstance(i, list) else i]) for i, n in zip(index, (50, 7))))
        wanted = texts[own]
        assert np.array_equal(found[index].values.ravel(), wanted.ravel()) and found[index].size == wanted.size, index
    points = {"y": xarray.DataArray([0, 7], dims="p"), "x": xarray.DataArray([6, 0], dims="p")}
    assert found.isel(points).values.tolist() == ["0,6", "7,0"]


def test_points_close_together_and_far_apart(tmp_path: Path) -> None:
    values = np.arange(60 * 50 * 40, dtype="f4").reshape(60, 50, 40)
    array = zarrgpu.create_group(tmp_path / "a.zarr").create_array("t", shape=values.shape, dtype="f4", chunks=(7, 8, 9), dimension_names=["z", "y", "x"])
    array[...] = values
    found = open_ours(tmp_path / "a.zarr").t
    for count in (1, 3, 2000):
        y, x = (xarray.DataArray(np.random.default_rng(count).integers(0, n, count), dims="p") for n in (50, 40))
        assert np.array_equal(found.isel(y=y, x=x).transpose("p", "z"), values[:, y.values, x.values].T)
        assert np.array_equal(found.isel(z=y, y=y, x=x), values[y.values, y.values, x.values])


@pytest.mark.parametrize("device", ["gpu", "CUDA", "cpu:0", "", None, "cuda:x"])
def test_devices_that_are_none(tmp_path: Path, device: Any) -> None:
    write(tmp_path / "a.zarr")
    with pytest.raises(zarrgpu.ParameterError, match="device="):
        open_ours(tmp_path / "a.zarr", device=device)


def test_fill_values_that_do_not_fit_and_what_is_dropped(tmp_path: Path) -> None:
    group = zarrgpu.create_group(tmp_path / "a.zarr")
    group.create_array("u", shape=2, dtype="u1", dimension_names=["x"], attributes={"_FillValue": -1})
    group.create_array("f", shape=2, dtype="f4", dimension_names=["x"], attributes={"_FillValue": "NaN"})
    group.create_array("unknown", shape=2, dtype="f4", dimension_names=["x"])
    document = tmp_path / "a.zarr" / "unknown" / "zarr.json"
    document.write_text(document.read_text().replace("zstd", "unheard_of"))
    dataset = open_ours(tmp_path / "a.zarr", drop_variables=["unknown"], decode_cf=False)
    assert dataset.u.attrs["_FillValue"] == -1 and np.isnan(dataset.f.attrs["_FillValue"])


@pytest.mark.filterwarnings("ignore:variable 'bytes' has multiple fill values")
def test_on_a_gpu(tmp_path: Path, gpu: str) -> None:
    cupy = library("cupy")
    path = write(tmp_path / "a.zarr")
    host = open_ours(path).load()
    for device in (gpu, "cuda", "auto"):
        dataset = open_ours(path, device=device)
        for name in ("time", "time_bnds", "lat", "text"):
            assert isinstance(dataset.variables[name].values, np.ndarray), name
            xarray.testing.assert_identical(dataset[name].load(), host[name])
        for name in PACKED:
            assert isinstance(dataset[name].data, cupy.ndarray), name
            np.testing.assert_array_equal(cupy.asnumpy(dataset[name].data), host[name].values)
    points = {"y": xarray.DataArray([0, 5, 2], dims="point"), "x": xarray.DataArray([9, 0, 1], dims="point")}
    for index in [{"time": -1}, {"x": slice(None, None, -3)}, {"y": [5, 0, 0], "time": [1]}, points]:
        found = open_ours(path, device=gpu).isel(index)
        for name in PACKED:
            assert isinstance(found[name].data, cupy.ndarray), index
            wanted = host[name].isel(index, missing_dims="ignore")
            np.testing.assert_array_equal(cupy.asnumpy(found[name].data), wanted.values)
    mean = open_ours(path, device=gpu).sel(time="2000-01-02").packed.mean("x")
    assert isinstance(mean.data, cupy.ndarray)
    assert np.allclose(cupy.asnumpy(mean.data), host.packed.sel(time="2000-01-02").mean("x").values, equal_nan=True)
    loaded = open_ours(path, device=gpu).load()
    assert isinstance(loaded.wind.data, cupy.ndarray) and float(loaded.wind.data.max()) == 1
