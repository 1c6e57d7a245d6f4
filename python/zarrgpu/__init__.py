"""Zarr from store to tensor.

>>> import zarrgpu
>>> array = zarrgpu.open("data.zarr/temperature")        # doctest: +SKIP
>>> array[-1]                                            # doctest: +SKIP
>>> tensor = array.read(device="cuda")                   # doctest: +SKIP
>>> torch.from_dlpack(tensor)                            # doctest: +SKIP
"""

from zarrgpu._errors import (
    DeviceError,
    ExchangeError,
    FormatError,
    LimitError,
    MetadataError,
    NotFoundError,
    OutOfMemoryError,
    ParameterError,
    SelectionError,
    StoreError,
    UnsupportedError,
    ZarrError,
)
from zarrgpu._zarrgpu import Array, Group, Tensor, __version__, create_array, create_group, devices, open, open_ipc

__all__ = [
    "Array",
    "DeviceError",
    "ExchangeError",
    "FormatError",
    "Group",
    "LimitError",
    "MetadataError",
    "NotFoundError",
    "OutOfMemoryError",
    "ParameterError",
    "SelectionError",
    "StoreError",
    "Tensor",
    "UnsupportedError",
    "ZarrError",
    "__version__",
    "create_array",
    "create_group",
    "devices",
    "open",
    "open_ipc",
]
