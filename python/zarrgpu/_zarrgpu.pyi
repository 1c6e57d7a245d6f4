from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsIndex, TypedDict, final

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Group", "Tensor", "__version__", "devices", "open", "open_ipc"]

__version__: str

_BasicIndex = SupportsIndex | slice | EllipsisType
_ProductIndex = _BasicIndex | Sequence[int] | Sequence[bool] | npt.NDArray[Any]
_Selection = _ProductIndex | tuple[_ProductIndex, ...] | str | None
_Policy = Literal["prefer", "require", "host"]

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
    *,
    threads: int | None = None,
    concurrency: int | None = None,
    index_cache: int = 0,
    storage_options: Mapping[str, Any] | None = None,
) -> Array | Group:
    """Opens the array or group at a path or URL, to read."""

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
    def attributes(self) -> dict[str, Any]: ...
    @property
    def attrs(self) -> dict[str, Any]: ...
    @property
    def dimension_names(self) -> tuple[str | None, ...] | None: ...
    @property
    def fill_value(self) -> Any: ...
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
    def __getitem__(self, index: _BasicIndex | tuple[_BasicIndex, ...], /) -> Any: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    def __len__(self) -> int: ...

@final
class Group:
    """A group of arrays and groups: iterating gives names."""

    @property
    def path(self) -> str: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    @property
    def attrs(self) -> dict[str, Any]: ...
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
