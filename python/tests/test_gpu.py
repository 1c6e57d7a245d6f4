"""Tensors on a GPU: where they are, what is in them, and in which order work runs."""

from __future__ import annotations

import gc
import json
import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import library, write_array

import zarrgpu

pytestmark = pytest.mark.usefixtures("gpu")

# Long enough that what does not wait for it is seen, in cycles of the GPU's clock.
A_WHILE = 400_000_000


def constant(path: Path, value: float, mebibytes: int) -> zarrgpu.Array:
    """An array without a single stored chunk."""
    path.mkdir()
    node = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [mebibytes, 1 << 18],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1 << 18]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": value,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    (path / "zarr.json").write_text(json.dumps(node))
    array = zarrgpu.open(path)
    assert isinstance(array, zarrgpu.Array)
    return array


@pytest.fixture
def array(store: Path) -> zarrgpu.Array:
    return zarrgpu.open(store / "packed")


@pytest.mark.parametrize("policy", ["prefer", "host"])
@pytest.mark.parametrize("name", ["plain", "packed", "holes", "none", "point", "below/inner"])
def test_values(store: Path, gpu: str, name: str, policy: str) -> None:
    array = zarrgpu.open(store / name)
    tensor = array.read(device=gpu, policy=policy)
    assert tensor.device == gpu and tensor.shape == array.shape and tensor.dtype == array.dtype
    assert np.array_equal(tensor.numpy(), np.asarray(array))
    assert tensor.cpu().device == "cpu"
    with pytest.raises(TypeError, match="cpu"):
        np.asarray(tensor)


@pytest.mark.parametrize("name", ["north_america.zarr", "sea_surface.zarr"])
def test_the_sample_data(gpu: str, name: str) -> None:
    group = zarrgpu.open(Path(__file__).parents[2] / "examples" / "data" / name)
    for array in (node for _, node in group.arrays()):
        try:
            expected = array.read().numpy()
        except zarrgpu.UnsupportedError:
            continue
        found = array.read(device=gpu).numpy()
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes(), array


def test_shards_of_zstd_are_decoded_on_the_device(gpu: str) -> None:
    array = zarrgpu.open(Path(__file__).parents[2] / "examples" / "data" / "north_america.zarr" / "air_temperature")
    assert "cuda" in array.explain(gpu)
    for selection in ("...", "5:200:7, 3, ::2"):
        found = array.read(selection, device=gpu, policy="require").numpy()
        assert found.tobytes() == array.read(selection).numpy().tobytes()


@pytest.mark.parametrize("selection", ["3", "::-2, 1:20:3", "5:30, :, [4, 0]", "10:10", "-1, -1, -1"])
def test_parts(array: zarrgpu.Array, gpu: str, selection: str) -> None:
    assert np.array_equal(array.read(selection, device=gpu).numpy(), array.read(selection).numpy())


def test_names_and_policies(array: zarrgpu.Array, gpu: str, values: np.ndarray, tmp_path: Path) -> None:
    assert array.read(device="cuda").device == array.read(device="auto").device == gpu
    with pytest.raises(zarrgpu.ZarrError):
        array.read(device="cuda:99")
    assert "gzip" in array.explain("cuda")
    assert array.read(device=gpu, policy="require").numpy().tobytes() == values.tobytes()
    bz2 = {"name": "numcodecs.bz2", "configuration": {"level": 1}}
    of_the_cpu = zarrgpu.create_array(tmp_path / "bz2", shape=values.shape, dtype="f4", chunks=(8, 8, 5), compressors=bz2)
    of_the_cpu[...] = values
    assert of_the_cpu.read(device=gpu).numpy().tobytes() == values.tobytes()
    with pytest.raises(zarrgpu.UnsupportedError):
        of_the_cpu.read(device=gpu, policy="require")


def test_torch(array: zarrgpu.Array, gpu: str, values: np.ndarray) -> None:
    torch = library("torch")
    tensor = array.read(device=gpu)
    taken = torch.from_dlpack(tensor)
    assert taken.data_ptr() == tensor.data_ptr and str(taken.device) == gpu
    assert np.array_equal(taken.cpu().numpy(), values)
    assert torch.as_tensor(tensor, device=gpu).data_ptr() == tensor.data_ptr
    assert np.array_equal(torch.from_dlpack(array.read("2:5", device=gpu)).cpu().numpy(), values[2:5])


def test_cupy(array: zarrgpu.Array, gpu: str, values: np.ndarray) -> None:
    cupy = library("cupy")
    tensor = array.read(device=gpu)
    for taken in (cupy.from_dlpack(tensor), cupy.asarray(tensor)):
        assert taken.data.ptr == tensor.data_ptr
        assert np.array_equal(cupy.asnumpy(taken), values)
    interface = tensor.__cuda_array_interface__
    assert interface["version"] == 3 and interface["shape"] == values.shape and interface["typestr"] == "<f4"
    assert interface["data"] == (tensor.data_ptr, False) and interface["strides"] is None


def test_jax(array: zarrgpu.Array, gpu: str, values: np.ndarray) -> None:
    jax = library("jax")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("jax sees no GPU")
    tensor = array.read(device=gpu)
    taken = jax.dlpack.from_dlpack(tensor)
    assert taken.unsafe_buffer_pointer() == tensor.data_ptr
    assert np.array_equal(np.asarray(taken), values)


def test_no_axes_and_no_elements(store: Path, gpu: str) -> None:
    torch = library("torch")
    group = zarrgpu.open(store)
    assert torch.from_dlpack(group["point"].read(device=gpu)).item() == 1.5
    nothing = group["none"].read(device=gpu)
    assert torch.from_dlpack(nothing).shape == (0, 3)
    assert nothing.__cuda_array_interface__["data"][0] == 0


def test_requests(array: zarrgpu.Array, gpu: str, values: np.ndarray) -> None:
    tensor = array.read(device=gpu)
    ordinal = int(gpu.split(":")[1])
    assert tensor.__dlpack_device__() == (2, ordinal)
    for stream in (None, -1, 1, 2):
        assert "dltensor" in repr(tensor.__dlpack__(stream=stream))
    for wrong in ({"stream": 0}, {"stream": -2}, {"dl_device": (2, 77)}, {"dl_device": (1, 0), "copy": False}):
        with pytest.raises(BufferError):
            tensor.__dlpack__(**wrong)
    assert np.array_equal(np.from_dlpack(tensor, device="cpu"), values)


def test_a_copy_on_the_device(array: zarrgpu.Array, gpu: str, values: np.ndarray) -> None:
    cupy = library("cupy")
    tensor = array.read(device=gpu)
    capsule = tensor.__dlpack__(stream=1, copy=True)

    class Once:
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return tensor.__dlpack_device__()

    taken = cupy.from_dlpack(Once())
    assert taken.data.ptr != tensor.data_ptr and np.array_equal(cupy.asnumpy(taken), values)


def test_consumers_wait_on_their_stream(tmp_path: Path, gpu: str) -> None:
    torch = library("torch")
    array = constant(tmp_path / "c", 3.0, 64)
    array.read(device=gpu)
    busy, other = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(busy):
        torch.cuda._sleep(A_WHILE)
    tensor = array.read(device=gpu, stream=busy)
    waiting = not tensor.ready
    interface = tensor.__cuda_array_interface__
    with torch.cuda.stream(other):
        total = torch.from_dlpack(tensor).sum(dtype=torch.float64)
    also = torch.as_tensor(tensor, device=gpu).sum(dtype=torch.float64)
    assert waiting, "the read came back before the stream was free"
    assert interface["stream"] == 1
    assert total.item() == also.item() == 3.0 * 64 * (1 << 18)


def test_own_stream_first_then_the_default_stream(tmp_path: Path, gpu: str) -> None:
    torch = library("torch")
    for _ in range(10):
        tensor = constant(tmp_path / f"c{_}", 1.0 + _, 256).read(device=gpu)
        assert torch.from_dlpack(tensor).min().item() == 1.0 + _


def test_out(array: zarrgpu.Array, gpu: str, values: np.ndarray) -> None:
    torch = library("torch")
    out = torch.zeros(3, 21, 5, device=gpu)
    torch.cuda._sleep(A_WHILE)
    out.fill_(7)
    tensor = array.read("2:5", out=out)
    assert tensor.device == gpu and tensor.data_ptr == out.data_ptr()
    assert np.array_equal(out.cpu().numpy(), values[2:5])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        array.read("5:8", out=out, stream=side)
        found = out.cpu()
    assert np.array_equal(found.numpy(), values[5:8])
    array.read("8:11", out=tensor)
    assert np.array_equal(out.cpu().numpy(), values[8:11])
    with pytest.raises(zarrgpu.ParameterError):
        array.read("2:5", out=torch.zeros(3, 21, 5), device=gpu)


def test_out_of_cupy(array: zarrgpu.Array, gpu: str, values: np.ndarray) -> None:
    cupy = library("cupy")
    out = cupy.zeros((3, 21, 5), "f4")
    array.read("2:5", out=out, stream=cupy.cuda.Stream())
    cupy.cuda.Device().synchronize()
    assert np.array_equal(cupy.asnumpy(out), values[2:5])


def test_memory_is_freed(tmp_path: Path, gpu: str) -> None:
    torch = library("torch")
    array = constant(tmp_path / "c", 0.5, 1024)
    _, memory = torch.cuda.mem_get_info()
    torch.from_dlpack(array.read(device=gpu)).sum().item()
    before, _ = torch.cuda.mem_get_info()
    for _ in range(memory // (1 << 30) + 20):
        taken = torch.from_dlpack(array.read(device=gpu))
        taken.sum()
    del taken
    gc.collect()
    torch.cuda.synchronize()
    after, _ = torch.cuda.mem_get_info()
    assert before - after < 8 << 30, "more memory is held than the reads that overlap explain"


@pytest.mark.parametrize("side", [False, True], ids=["default stream", "side stream"])
@pytest.mark.parametrize("protocol", ["dlpack", "array interface"])
def test_memory_is_not_used_anew_too_early(tmp_path: Path, gpu: str, side: bool, protocol: str) -> None:
    torch = library("torch")
    if side and protocol == "array interface":
        pytest.skip("the array interface does not tell the consumer's stream")
    first, second = constant(tmp_path / "1", 1.0, 256), constant(tmp_path / "2", 2.0, 256)
    stream = torch.cuda.Stream() if side else torch.cuda.default_stream()
    for _ in range(5):
        tensor = first.read(device=gpu)
        with torch.cuda.stream(stream):
            taken = torch.from_dlpack(tensor) if protocol == "dlpack" else torch.as_tensor(tensor, device=gpu)
            torch.cuda._sleep(A_WHILE // 4)
            total = taken.sum(dtype=torch.float64)
        del tensor, taken
        others = [second.read(device=gpu) for _ in range(3)]
        with torch.cuda.stream(stream):
            assert total.item() == 256 * (1 << 18)
        del others


def test_reads_from_many_threads(array: zarrgpu.Array, gpu: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    expected = array[:]
    with ThreadPoolExecutor(8) as pool:
        for tensor in pool.map(lambda at: (at, array.read(f"{at}:{at + 3}", device=gpu)), range(34)):
            assert np.array_equal(tensor[1].numpy(), expected[tensor[0] : tensor[0] + 3])


def test_types_that_the_array_interface_lacks(tmp_path: Path, gpu: str) -> None:
    torch = library("torch")
    bits = np.array([0x3FC0, 0xC000, 0x3E80], "u2")
    tensor = zarrgpu.open(write_array(tmp_path / "b", bits, (2,), data_type="bfloat16", fill_value=0)).read(device=gpu)
    assert not hasattr(tensor, "__cuda_array_interface__")
    taken = torch.from_dlpack(tensor)
    assert taken.dtype == torch.bfloat16 and taken.float().tolist() == [1.5, -2.0, 0.25]


OPENER = """
import json, sys
import numpy as np
descriptor = json.load(open(sys.argv[1]))
kind = sys.argv[2]
if kind == "zarrgpu":
    import zarrgpu
    found = zarrgpu.open_ipc(descriptor).numpy()
else:
    import cupy
    from cupy.cuda import runtime
    base = runtime.ipcOpenMemHandle(bytes.fromhex(descriptor["memory_handle"]))
    if descriptor["ready_event"]:
        event = runtime.ipcOpenEventHandle(bytes.fromhex(descriptor["ready_event"]))
        runtime.streamWaitEvent(0, event)
    memory = cupy.cuda.UnownedMemory(base, descriptor["allocation_size"], None)
    start = cupy.cuda.MemoryPointer(memory, descriptor["offset"] + descriptor["first"])
    found = cupy.asnumpy(cupy.ndarray(descriptor["shape"], descriptor["dtype"], start, strides=descriptor["strides"]))
    runtime.ipcCloseMemHandle(base)
np.save(sys.argv[3], found)
"""


@pytest.mark.parametrize("ipc", [True, False], ids=["exportable", "copied"])
@pytest.mark.parametrize("opener", ["cupy", "zarrgpu"])
def test_another_process_opens_the_memory(
    array: zarrgpu.Array, gpu: str, values: np.ndarray, tmp_path: Path, opener: str, ipc: bool
) -> None:
    if opener == "cupy":
        library("cupy")
    tensor = array.read("3:30", device=gpu, ipc=ipc)
    descriptor = tensor.ipc_descriptor()
    assert descriptor == tensor.ipc_descriptor()
    assert descriptor["shape"] == [27, 21, 5] and descriptor["dtype"] == "float32" and descriptor["bytes"] == tensor.nbytes
    (tmp_path / "tensor.json").write_text(json.dumps(descriptor))
    found = tmp_path / "found.npy"
    subprocess.run([sys.executable, "-c", OPENER, tmp_path / "tensor.json", opener, found], check=True, timeout=120)
    assert np.array_equal(np.load(found), values[3:30])


@pytest.mark.parametrize("options", [{}, {"ahead": 1}, {"ahead": 7}, {"policy": "host"}])
def test_reads_run_ahead(array: zarrgpu.Array, gpu: str, options: dict[str, Any]) -> None:
    expected = array[:]
    starts = [5, 0, 3, 3, 1] * 4
    for start, tensor in zip(starts, array.read_each((f"{start}:{start + 3}" for start in starts), device=gpu, **options), strict=True):
        assert tensor.device == gpu
        np.testing.assert_array_equal(tensor.numpy(), expected[start : start + 3])
    assert sum(tensor.numpy().size for tensor in array.read_each(device=gpu)) == array.size


def test_reads_that_run_ahead_go_on_behind_errors(array: zarrgpu.Array, gpu: str) -> None:
    reads = array.read_each([1, 10_000, 2], device=gpu)
    np.testing.assert_array_equal(next(reads).numpy(), array[1])
    with pytest.raises(zarrgpu.SelectionError):
        next(reads)
    np.testing.assert_array_equal(next(reads).numpy(), array[2])
    with pytest.raises(StopIteration):
        next(reads)
    with pytest.raises(zarrgpu.ParameterError, match="ahead_bytes"):
        array.read_each(device=gpu, ahead_bytes=1)


def _read_in_a_fork(array: zarrgpu.Array, gpu: str, results: multiprocessing.Queue[str]) -> None:
    try:
        array.read(device=gpu)
        results.put("read")
    except zarrgpu.DeviceError as error:
        results.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_is_told_that_cuda_does_not_work_there(array: zarrgpu.Array, gpu: str) -> None:
    array.read(device=gpu)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=_read_in_a_fork, args=(array, gpu, results))
    process.start()
    try:
        assert "forked" in results.get(timeout=60)
    finally:
        process.kill()
        process.join()


WRITTEN = [
    {},
    {"chunks": (10, 8, 5), "compressors": None},
    {"chunks": (5, 7, 5), "shards": (10, 21, 5), "compressors": "crc32c"},
    {"chunks": (10, 8, 5), "zarr_format": 2},
]


@pytest.mark.parametrize("layout", WRITTEN, ids=str)
def test_tensors_are_written(tmp_path: Path, array: zarrgpu.Array, gpu: str, values: np.ndarray, layout: dict[str, Any]) -> None:
    torch = library("torch")
    written = zarrgpu.create_array(tmp_path / "a", shape=values.shape, dtype=torch.float32, **layout)
    expected = values.copy()
    written[...] = array.read(device=gpu)
    np.testing.assert_array_equal(written[...], expected)
    written.write("3:9, ::2", torch.full((6, 11, 5), 2.5, device=gpu))
    expected[3:9, ::2] = 2.5
    written[30:, 1] = torch.arange(35, device=gpu, dtype=torch.float32).reshape(5, 7).T
    expected[30:, 1] = np.arange(35).reshape(5, 7).T
    written.vindex[[0, 2], [1, 3], 4] = torch.tensor([8.0, 9.0], device=gpu)
    expected[[0, 2], [1, 3], 4] = [8, 9]
    np.testing.assert_array_equal(written[...], expected)
    np.testing.assert_array_equal(written.read(device=gpu).numpy(), expected)
    assert written.append(torch.ones(2, 21, 5, device=gpu)) == (39, 21, 5)
    np.testing.assert_array_equal(written[37:], np.ones((2, 21, 5)))
    assert (written.read("37:", device=gpu).numpy() == 1).all()


def test_other_libraries_are_written(tmp_path: Path, gpu: str) -> None:
    cupy, jax = library("cupy"), library("jax")
    written = zarrgpu.create_array(tmp_path / "a", shape=(4, 6), dtype="f4")
    # Not [::-1]: CuPy hands out negative strides as large positive ones.
    written[...] = cupy.arange(48, dtype="f4").reshape(6, 8)[:, ::2].T
    np.testing.assert_array_equal(written[...], np.arange(48).reshape(6, 8)[:, ::2].T)
    if any(device.platform == "gpu" for device in jax.devices()):
        written[0] = jax.numpy.ones(6, "f4")
        assert (written[0] == 1).all()


def test_a_write_comes_after_what_its_owner_has_enqueued(tmp_path: Path, gpu: str) -> None:
    torch = library("torch")
    written = zarrgpu.create_array(tmp_path / "a", shape=(1 << 20,), dtype="f4")
    data = torch.zeros(1 << 20, device=gpu)
    torch.cuda._sleep(A_WHILE)
    data.fill_(7)
    written[...] = data
    assert (written[...] == 7).all()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(A_WHILE)
        data.fill_(8)
        written.write(None, data, stream=side)
    assert (written[...] == 8).all()


def test_what_does_not_fit_is_not_written(tmp_path: Path, array: zarrgpu.Array, gpu: str) -> None:
    torch = library("torch")
    written = zarrgpu.create_array(tmp_path / "a", shape=(4, 6), dtype="f4")
    for wrong in (torch.zeros(4, 6, device=gpu, dtype=torch.float64), torch.zeros(6, device=gpu), array.read("0", device=gpu)):
        with pytest.raises(zarrgpu.ParameterError, match="cuda"):
            written[...] = wrong
    with pytest.raises(zarrgpu.ParameterError):
        zarrgpu.open(tmp_path / "a")[...] = torch.zeros(4, 6, device=gpu)
    with pytest.raises(zarrgpu.ParameterError, match="cannot be appended"):
        written.append(torch.zeros(1, 5, device=gpu))
    assert written.shape == (4, 6) and not (tmp_path / "a" / "c").exists()


def test_kept_indexes_of_shards_do_not_outlive_writes(tmp_path: Path, gpu: str) -> None:
    zarrgpu.create_array(tmp_path / "a", shape=(16, 16), dtype="f4", chunks=(4, 4), shards=(16, 16))
    array = zarrgpu.open(tmp_path / "a", mode="r+", index_cache=1 << 20)
    for value in range(1, 5):
        array[4 * value - 4 : 4 * value] = value
        for found in (array[...], array.read(device=gpu).numpy()):
            assert found[:, 0].tolist() == [float(row // 4 + 1) if row < 4 * value else 0.0 for row in range(16)]
        array.write(None, array.read(device=gpu))
