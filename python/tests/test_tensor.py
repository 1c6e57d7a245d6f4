"""Tensors on the host, and what other libraries see of them."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import write_array

import zarrgpu

HOST = (1, 0)


@pytest.fixture
def array(store: Path) -> zarrgpu.Array:
    return zarrgpu.open(store / "packed")


def test_what_it_says(array: zarrgpu.Array) -> None:
    tensor = array.read("2:5")
    assert tensor.shape == (3, 21, 5) and tensor.strides == (420, 20, 4) and tensor.ndim == 3 and len(tensor) == 3
    assert tensor.size == 315 and tensor.itemsize == 4 and tensor.nbytes == 1260
    assert tensor.dtype == np.dtype("f4") and tensor.data_type == "float32"
    assert tensor.device == "cpu" and tensor.ready and tensor.wait() is None
    assert tensor.data_ptr % 256 == 0
    assert tensor.cpu() is tensor
    assert "cpu" in repr(tensor)
    assert not hasattr(tensor, "__cuda_array_interface__")
    with pytest.raises(zarrgpu.UnsupportedError):
        tensor.ipc_descriptor()


def test_numpy_shares_the_memory(array: zarrgpu.Array, values: np.ndarray) -> None:
    tensor = array.read()
    for view in (np.asarray(tensor), tensor.numpy(), np.from_dlpack(tensor)):
        assert view.__array_interface__["data"][0] == tensor.data_ptr
        assert np.array_equal(view, values)
    copied = np.array(tensor)
    assert copied.__array_interface__["data"][0] != tensor.data_ptr
    assert np.asarray(tensor, dtype="f8").dtype == np.dtype("f8")
    with pytest.raises(ValueError):
        np.asarray(tensor, dtype="f8", copy=False)
    view = np.asarray(tensor)
    view[0, 0, 0] = 42
    assert np.from_dlpack(tensor)[0, 0, 0] == 42


def test_views_keep_the_memory(array: zarrgpu.Array, values: np.ndarray) -> None:
    views = [np.from_dlpack(array.read()), np.asarray(array.read()), array[:]]
    gc.collect()
    others = [array.read() for _ in range(20)]
    for view in views:
        assert np.array_equal(view, values)
    del others


def test_no_axes_and_no_elements(store: Path) -> None:
    group = zarrgpu.open(store)
    scalar = group["point"].read()
    assert scalar.shape == () and np.from_dlpack(scalar) == 1.5
    with pytest.raises(TypeError):
        len(scalar)
    nothing = group["none"].read()
    assert nothing.nbytes == 0 and np.from_dlpack(nothing).shape == (0, 3) and np.asarray(nothing).shape == (0, 3)


def test_capsules(array: zarrgpu.Array) -> None:
    tensor = array.read()
    assert tensor.__dlpack_device__() == HOST
    assert '"dltensor"' in repr(tensor.__dlpack__())
    assert '"dltensor"' in repr(tensor.__dlpack__(max_version=(0, 8)))
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(max_version=(1, 0)))
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(max_version=(2, 0), dl_device=HOST, copy=False))
    for wrong in ({"stream": 1}, {"stream": -1}, {"dl_device": (2, 0)}, {"dl_device": (99, 0)}):
        with pytest.raises(BufferError):
            tensor.__dlpack__(**wrong)


def test_a_copy_is_a_copy(array: zarrgpu.Array, values: np.ndarray) -> None:
    tensor = array.read()
    copied = np.from_dlpack(tensor, copy=True)
    assert copied.__array_interface__["data"][0] != tensor.data_ptr
    assert np.array_equal(copied, values)


def test_what_dlpack_cannot_name(tmp_path: Path) -> None:
    named = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
    array = zarrgpu.open(write_array(tmp_path / "t", np.arange(3).view("M8[s]"), (2,), data_type=named, fill_value=0))
    tensor = array.read()
    with pytest.raises(zarrgpu.ExchangeError, match="datetime64"):
        tensor.__dlpack__()
    assert np.array_equal(np.asarray(tensor), np.arange(3).view("M8[s]"))


@pytest.mark.parametrize("kind", ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_numbers(tmp_path: Path, kind: str) -> None:
    data = (np.random.default_rng(1).normal(size=(7, 6)) * 50).astype("i4").astype(kind)
    fill = False if kind == "b1" else [0, 0] if kind[0] == "c" else 0
    tensor = zarrgpu.open(write_array(tmp_path / "a", data, (3, 4), fill_value=fill)).read()
    found = np.from_dlpack(tensor)
    assert found.dtype == data.dtype and np.array_equal(found, data)


def test_out(array: zarrgpu.Array, values: np.ndarray) -> None:
    out = np.zeros((3, 21, 5), "f4")
    tensor = array.read("2:5", out=out)
    assert np.array_equal(out, values[2:5])
    assert tensor.data_ptr == out.__array_interface__["data"][0]
    again = array.read("5:8", out=tensor)
    assert again.data_ptr == tensor.data_ptr and np.array_equal(out, values[5:8])
    part = np.zeros((9, 21, 5), "f4")
    array.read("2:5", out=part[3:6], device="cpu")
    assert np.array_equal(part[3:6], values[2:5]) and not part[:3].any() and not part[6:].any()


def test_out_that_does_not_fit(array: zarrgpu.Array) -> None:
    for wrong, words in [
        (np.zeros((3, 21, 4), "f4"), "shape"),
        (np.zeros((3, 21, 5), "f8"), "data type"),
        (np.zeros((3, 5, 21), "f4").transpose(0, 2, 1), "C order"),
    ]:
        with pytest.raises(zarrgpu.ParameterError, match=words):
            array.read("2:5", out=wrong)
    with pytest.raises(TypeError):
        array.read("2:5", out=[1, 2])
    with pytest.raises(zarrgpu.ParameterError):
        array.read("2:5", out=np.zeros((3, 21, 5), "f4"), device="cuda")
    with pytest.raises(zarrgpu.ParameterError):
        array.read("2:5", stream=1)
    frozen = np.zeros((3, 21, 5), "f4")
    frozen.flags.writeable = False
    with pytest.raises(BufferError):
        array.read("2:5", out=frozen)


def test_out_is_given_back(array: zarrgpu.Array) -> None:
    class Owner(np.ndarray):
        pass

    out = np.zeros((3, 21, 5), "f4").view(Owner)
    alive = weakref.ref(out)
    tensor = array.read("2:5", out=out)
    del out
    gc.collect()
    assert alive() is not None, "the tensor holds the memory"
    del tensor
    gc.collect()
    assert alive() is None


def test_torch(array: zarrgpu.Array, values: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    tensor = array.read()
    taken = torch.from_dlpack(tensor)
    assert taken.data_ptr() == tensor.data_ptr and np.array_equal(taken.numpy(), values)
    out = torch.zeros(3, 21, 5)
    array.read("2:5", out=out)
    assert np.array_equal(out.numpy(), values[2:5])


def test_jax(array: zarrgpu.Array, values: np.ndarray) -> None:
    jax = pytest.importorskip("jax")
    tensor = array.read()
    taken = jax.dlpack.from_dlpack(tensor)
    assert np.array_equal(np.asarray(taken), values)
    if next(iter(taken.devices())).platform == "cpu":
        assert taken.unsafe_buffer_pointer() == tensor.data_ptr


def test_auto_and_devices(array: zarrgpu.Array) -> None:
    found = zarrgpu.devices()
    assert found[0]["id"] == "cpu"
    assert array.read("0", device="auto").device == (found[1]["id"] if len(found) > 1 else "cpu")
    if len(found) == 1:
        with pytest.raises(zarrgpu.UnsupportedError, match="(?i)libcuda|driver|CUDA"):
            array.read(device="cuda")
