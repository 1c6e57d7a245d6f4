from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import EllipsisType, TracebackType
from typing import Any, Literal, Protocol, Self, SupportsIndex, TypedDict, final, type_check_only

import numpy as np
import numpy.typing as npt

from zarrgpu._attributes import Attributes

__all__ = ["Array", "Group", "Tensor", "__version__", "create_array", "create_group", "devices", "open", "open_ipc"]

__version__: str

_BasicIndex = SupportsIndex | slice | EllipsisType
_ProductIndex = _BasicIndex | Sequence[int] | Sequence[bool] | npt.NDArray[Any]
_Selection = _ProductIndex | tuple[_ProductIndex, ...] | str | None
_Policy = Literal["prefer", "require", "host"]
_Points = SupportsIndex | Sequence[int] | npt.NDArray[Any]
_Lengths = SupportsIndex | Iterable[SupportsIndex]
_Codec = Any
"""A name, a dictionary as in metadata, or a codec of zarr-python."""

class _SupportsDlpack(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class _DeviceName(TypedDict):
    id: str
    name: str

class _DeviceInfo(_DeviceName, total=False):
    memory: int
    compute_capability: tuple[int, int]
    multiprocessors: int
    uuid: str
    driver: tuple[int, int]

def devices() -> list[_DeviceInfo]:
    """The devices that `read(device=...)` takes; without a driver, the host alone."""

def open(
    path: str | PathLike[str],
    mode: Literal["r", "r+"] = "r",
    *,
    threads: int | None = None,
    concurrency: int | None = None,
    in_flight_bytes: int | None = None,
    index_cache: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Array | Group:
    """Opens the array or group at a path or URL: `"r"` to read, `"r+"` to read and write."""

def create_array(
    path: str | PathLike[str],
    *,
    shape: _Lengths,
    dtype: Any,
    chunks: _Lengths | None = None,
    shards: _Lengths | None = None,
    fill_value: Any = None,
    filters: _Codec | Iterable[_Codec] | None = None,
    serializer: _Codec | None = None,
    compressors: _Codec | Iterable[_Codec] | None = ...,
    dimension_names: Sequence[str | None] | None = None,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: Literal[2, 3] = 3,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Array:
    """Creates an array at a path or URL, open to read and write. Chunks are compressed by zstd, unless `compressors` says otherwise."""

def create_group(
    path: str | PathLike[str],
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: Literal[2, 3] = 3,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Group:
    """Creates a group at a path or URL, open to read and write."""

def open_ipc(descriptor: dict[str, Any]) -> Tensor:
    """Opens the tensor of another process, described by `Tensor.ipc_descriptor()`."""

@final
class Array:
    """An array in a store."""

    @property
    def path(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def data_type(self) -> str:
        """Zarr's data type, as in metadata."""
    @property
    def chunks(self) -> tuple[int, ...]:
        """Elements of a chunk: of inner chunks where there are shards."""
    @property
    def shards(self) -> tuple[int, ...] | None: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def attributes(self) -> Attributes:
        """A mapping. What is set in it is stored."""
    @property
    def attrs(self) -> Attributes: ...
    @property
    def dimension_names(self) -> tuple[str | None, ...] | None: ...
    @property
    def fill_value(self) -> Any:
        """What absent elements are; `None` where version 2 leaves that open."""
    @property
    def zarr_format(self) -> int: ...
    def explain(self, device: str = "cpu", *, policy: _Policy = "prefer") -> str:
        """Which implementation decodes what, and where bytes cross to the device."""
    def read(
        self,
        selection: _Selection = None,
        *,
        device: str | None = None,
        out: Tensor | _SupportsDlpack | None = None,
        stream: Any = None,
        policy: _Policy = "prefer",
        ipc: bool = False,
    ) -> Tensor:
        """Reads to a device: a `Tensor`, whose elements are known to be good."""
    def read_each(
        self,
        selections: Iterable[_Selection] | None = None,
        *,
        device: str | None = None,
        stream: Any = None,
        policy: _Policy = "prefer",
        ahead: int | None = None,
        ahead_bytes: int | None = None,
    ) -> Iterator[Tensor]:
        """Reads one selection after the other, by default every chunk, each to a `Tensor`, while the next ones are read and decoded."""
    def write(self, selection: _Selection, data: Any, *, stream: Any = None) -> None:
        """Writes what NumPy makes an array of, or a tensor on a GPU, to a selection."""
    def append(self, data: Any, axis: int = 0) -> tuple[int, ...]:
        """Makes the array longer along `axis` and writes `data` there. Gives the new shape."""
    def resize(self, shape: _Lengths) -> None:
        """Changes the shape. What falls outside is removed."""
    def refresh(self) -> None:
        """Takes over what was changed of the stored metadata since."""
    def close(self) -> None:
        """Gives the zip archive that it was opened to write its name. Does nothing for other stores."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exception_type: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def vindex(self) -> _VIndex:
        """Single points, to read and to write."""
    def __getitem__(self, index: _BasicIndex | tuple[_BasicIndex, ...], /) -> Any: ...
    def __setitem__(self, index: _BasicIndex | tuple[_BasicIndex, ...], value: Any, /) -> None: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    def __len__(self) -> int: ...

@final
@type_check_only
class _VIndex:
    """Single points of an array: positions along the axes are broadcast together, or there is one mask."""

    def __getitem__(self, index: _Points | tuple[_Points, ...], /) -> Any: ...
    def __setitem__(self, index: _Points | tuple[_Points, ...], value: Any, /) -> None: ...

@final
class Group:
    """A group of arrays and groups: iterating gives names."""

    @property
    def path(self) -> str: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def attributes(self) -> Attributes:
        """A mapping. What is set in it is stored."""
    @property
    def attrs(self) -> Attributes: ...
    @property
    def zarr_format(self) -> int: ...
    def __getitem__(self, name: str, /) -> Array | Group: ...
    def get(self, name: str, default: Any = None) -> Any:
        """The node below, or `default` if there is none."""
    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def keys(self) -> list[str]: ...
    def values(self) -> list[Array | Group]: ...
    def items(self) -> list[tuple[str, Array | Group]]: ...
    def arrays(self) -> list[tuple[str, Array]]: ...
    def groups(self) -> list[tuple[str, Group]]: ...
    def create_array(
        self,
        name: str,
        *,
        shape: _Lengths,
        dtype: Any,
        chunks: _Lengths | None = None,
        shards: _Lengths | None = None,
        fill_value: Any = None,
        filters: _Codec | Iterable[_Codec] | None = None,
        serializer: _Codec | None = None,
        compressors: _Codec | Iterable[_Codec] | None = ...,
        dimension_names: Sequence[str | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> Array:
        """Creates an array below, and the groups between where they are missing."""
    def create_group(self, name: str, *, attributes: Mapping[str, Any] | None = None, overwrite: bool = False) -> Group: ...
    def require_group(self, name: str) -> Group:
        """The group below, created where it is missing."""
    def refresh(self) -> None:
        """Takes over what was changed of the group's own stored metadata since."""
    def close(self) -> None:
        """Gives the zip archive that it was opened to write its name. Does nothing for other stores."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exception_type: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def consolidate(self) -> None:
        """Collects the metadata of all nodes below in this group's."""
    def __delitem__(self, name: str, /) -> None:
        """Removes the node, and all below it."""

@final
class Tensor:
    """Elements on a device, in C order without gaps."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def data_type(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def ready(self) -> bool:
        """Whether all work on the elements is done. Never blocks."""
    def wait(self) -> None: ...
    def cpu(self) -> Tensor:
        """The elements on the host: this tensor if they are there, else a copy."""
    def numpy(self) -> npt.NDArray[Any]: ...
    def ipc_descriptor(self) -> dict[str, Any]:
        """What another process needs to open the memory of a tensor on a GPU."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    def __len__(self) -> int: ...
