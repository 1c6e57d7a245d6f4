"""A backend for xarray: data from :mod:`zarrgpu`, on the host or on a GPU.

>>> import xarray
>>> xarray.open_dataset("data.zarr", engine="zarrgpu")                  # doctest: +SKIP
>>> xarray.open_dataset("data.zarr", engine="zarrgpu", device="cuda")   # doctest: +SKIP

Nothing but metadata is read before it is needed. On a GPU, what is read are CuPy arrays, decoded there as far as the codecs go, and masked and scaled there. Coordinates, times and texts
stay on the host, where xarray makes indexes of them.

The encoding of dimensions, attributes and fill values is that of
https://docs.xarray.dev/en/stable/internals/zarr-encoding-spec.html
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from xarray import Dataset, DataTree, Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.conventions import decode_cf_variable
from xarray.core import indexing

import zarrgpu
from zarrgpu._errors import MetadataError, ParameterError

_DIMENSIONS = "_ARRAY_DIMENSIONS"


class ZarrgpuBackendEntrypoint(BackendEntrypoint):
    """Opens the groups of Zarr stores as datasets, to read."""

    description = "Zarr, decoded by zarrgpu on the host or on a GPU"
    supports_groups = True

    def open_dataset(
        self,
        filename_or_obj: str | os.PathLike[str] | zarrgpu.Group,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        device: str = "cpu",
        threads: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
    ) -> Dataset:
        """Opens one group.

        Besides the arguments of :func:`xarray.open_dataset`:

        filename_or_obj: a path, a URL, a path in a zip archive, or a group that is open.
        group: the path of a group below.
        device: where data variables are read to: "cpu", "cuda", "cuda:1", or "auto", which is the first GPU, or the host where there is none.
        threads, storage_options: as of :func:`zarrgpu.open`.
        use_zarr_fill_value_as_mask: whether elements that equal the fill value are missing. By default of version 2 of the format, not of 3.
        """
        node = _open(filename_or_obj, group, threads, storage_options)
        return _decoded(
            _Store(node, device, drop_variables, use_zarr_fill_value_as_mask, mask_and_scale),
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )

    # Of what is installed xarray finds them itself, of this class given as `engine` it does not.
    open_dataset_parameters = tuple(inspect.signature(open_dataset).parameters)[1:]

    def open_groups_as_dict(
        self,
        filename_or_obj: str | os.PathLike[str] | zarrgpu.Group,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        device: str = "cpu",
        threads: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
        mask_and_scale: bool = True,
        **decoding: Any,
    ) -> dict[str, Dataset]:
        """Opens a group and all below it, by their paths from there. Arguments are those of :meth:`open_dataset`."""
        root = _open(filename_or_obj, group, threads, storage_options)
        decoding.update(drop_variables=drop_variables, mask_and_scale=mask_and_scale)
        return {
            path: _decoded(_Store(node, device, drop_variables, use_zarr_fill_value_as_mask, mask_and_scale), **decoding)
            for path, node in _groups("/", root)
        }

    def open_datatree(self, filename_or_obj: str | os.PathLike[str] | zarrgpu.Group, **arguments: Any) -> DataTree:
        """Opens a group and all below it. Arguments are those of :meth:`open_dataset`."""
        return DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **arguments))


def _open(path: Any, group: str | None, threads: int | None, storage_options: Mapping[str, Any] | None) -> zarrgpu.Group:
    if isinstance(path, str) and "://" not in path:
        path = os.path.expanduser(path)
    node = path if isinstance(path, zarrgpu.Group) else zarrgpu.open(path, threads=threads, storage_options=storage_options)
    below = (group or "").strip("/")
    if below and isinstance(node, zarrgpu.Group):
        node = node[below]
    if not isinstance(node, zarrgpu.Group):
        raise ParameterError(f"{'/'.join([str(path), *filter(None, [below])])} is an array, and a dataset is a group of arrays: open the group that it is in")
    return node


def _groups(path: str, group: zarrgpu.Group) -> Iterator[tuple[str, zarrgpu.Group]]:
    yield path, group
    for name, below in group.groups():
        yield from _groups(f"{path.rstrip('/')}/{name}", below)


def _decoded(store: _Store, **arguments: Any) -> Dataset:
    return StoreBackendEntrypoint().open_dataset(store, **arguments)


class _Store(AbstractDataStore):
    """A group, as xarray asks for it before it decodes."""

    def __init__(
        self,
        group: zarrgpu.Group,
        device: str,
        without: str | Iterable[str] | None,
        fill_value_is_missing: bool | None,
        mask_and_scale: bool | Mapping[str, bool] | None,
    ) -> None:
        if not re.fullmatch("cpu|auto|cuda(:[0-9]+)?", str(device)):
            raise ParameterError(f"device={device!r} is none of cpu, cuda, cuda:N and auto")
        dropped = {without} if isinstance(without, str) else set(without or ())
        # What is left out need not open.
        nodes = [(name, group[name]) for name in group if name not in dropped] if dropped else group.arrays()
        self._group = group
        self._device = device
        self._arrays = {name: node for name, node in nodes if isinstance(node, zarrgpu.Array)}
        self._fill_value_is_missing = group.zarr_format == 2 if fill_value_is_missing is None else fill_value_is_missing
        self._mask_and_scale = mask_and_scale

    def get_attrs(self) -> dict[str, Any]:
        return {name: value for name, value in self._group.attrs.items() if not name.lower().startswith("_nc")}

    def get_dimensions(self) -> dict[str, int]:
        return {name: length for array in self._arrays.values() for name, length in zip(_dimensions(array, array.attrs.asdict()), array.shape)}

    def get_variables(self) -> dict[str, Variable]:
        attributes = {name: array.attrs.asdict() for name, array in self._arrays.items()}
        dimensions = {name: _dimensions(array, attributes[name]) for name, array in self._arrays.items()}
        on_host = _coordinates([self.get_attrs(), *attributes.values()]).union(*dimensions.values())
        return {
            name: self._variable(name, array, dimensions[name], attributes[name], name in on_host) for name, array in self._arrays.items()
        }

    def _variable(
        self, name: str, array: zarrgpu.Array, dimensions: tuple[str, ...], attributes: dict[str, Any], on_host: bool
    ) -> Variable:
        attributes.pop(_DIMENSIONS, None)
        if array.zarr_format == 2:
            attributes = {key: value for key, value in attributes.items() if not key.lower().startswith("_nc")}
        encoding: dict[str, Any] = {
            "chunks": array.chunks,
            "preferred_chunks": dict(zip(dimensions, array.chunks)),
            "shards": array.shards,
        }
        if self._fill_value_is_missing:
            if array.fill_value is not None:
                attributes["_FillValue"] = array.fill_value
        else:
            if array.zarr_format == 3:
                encoding["fill_value"] = array.fill_value
            if "_FillValue" in attributes:
                attributes["_FillValue"] = _fill_value(attributes["_FillValue"], array)
        elements = _Elements(array)
        if elements.dtype.kind == "T":
            encoding["dtype"] = elements.dtype
        variable = Variable(dimensions, indexing.LazilyIndexedArray(elements), attributes, encoding)
        if on_host or self._device == "cpu" or array.dtype.kind not in "biufc" or _is_time(attributes):
            return variable
        packing = None
        wanted = self._mask_and_scale
        if (wanted.get(name, True) if isinstance(wanted, Mapping) else wanted is not False) and _Packing.ATTRIBUTES & attributes.keys():
            # xarray masks on the host alone. What it would make of the elements, it says of those on the host.
            decoded = decode_cf_variable(name, variable.copy(deep=False), concat_characters=False, decode_times=False, decode_endianness=False)
            if decoded.dtype.kind not in "biufc":
                return variable
            packing, variable = _Packing(attributes), decoded
        data = indexing.LazilyIndexedArray(_OnDevice(array, self._device, variable.dtype, packing))
        return Variable(dimensions, data, variable.attrs, variable.encoding)


def _dimensions(array: zarrgpu.Array, attributes: Mapping[str, Any]) -> tuple[str, ...]:
    names = array.dimension_names
    if names is None:
        names = tuple(attributes.get(_DIMENSIONS, ()))
    if len(names) != array.ndim or None in names:
        raise MetadataError(
            f"{array.path!r} has {array.ndim} axes, and names for {sum(name is not None for name in names)}: xarray needs them all (dimension_names, "
            f"or the attribute {_DIMENSIONS}). Leave it out by drop_variables, or open it by zarrgpu.open"
        )
    return tuple(str(name) for name in names)


def _coordinates(attributes: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names that attributes say are coordinates, or belong to some (CF conventions, sections 4.3.3, 5, 5.6 and 7)."""
    roles = ("coordinates", "bounds", "climatology", "grid_mapping", "cell_measures", "formula_terms")
    values = [of_one[role] for of_one in attributes for role in roles if isinstance(of_one.get(role), str)]
    return {name.rstrip(":") for value in values for name in value.split()}


def _is_time(attributes: Mapping[str, Any]) -> bool:
    """Whether xarray may make times or durations of the elements (CF conventions, section 4.4)."""
    units, dtype = str(attributes.get("units", "")), str(attributes.get("dtype", ""))
    durations = ("nanoseconds", "microseconds", "milliseconds", "seconds", "minutes", "hours", "days", "weeks")
    return " since " in units or units in durations or dtype.startswith("timedelta64")


def _fill_value(stored: Any, array: zarrgpu.Array) -> Any:
    """The attribute `_FillValue` in version 3: numbers that JSON does not have are doubles in base64."""
    kind = {"string": "U", "bytes": "S"}.get(array.data_type, array.dtype.kind)
    if kind == "S":
        return base64.standard_b64decode(stored)
    if kind == "c" and isinstance(stored, list):
        return complex(*(_double(part) for part in stored))
    if kind in "fc":
        return _double(stored)
    # One that the elements cannot be is kept.
    return int(stored) if kind in "iu" else bool(stored) if kind == "b" else stored


def _double(stored: Any) -> float:
    if stored in ("NaN", "Infinity", "-Infinity"):
        return float(stored)
    return struct.unpack("<d", base64.standard_b64decode(stored))[0] if isinstance(stored, str) else float(stored)


class _Packing:
    """How numbers are packed (CF conventions, sections 2.5.1 and 8.1)."""

    ATTRIBUTES = frozenset(("_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"))

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        def numbers(name: str) -> list[Any]:
            # What is NaN is missing already.
            return [value for value in np.ravel(attributes.get(name, [])) if value.dtype.kind in "biufc" and value == value]

        self.fill_values, self.missing_values = numbers("_FillValue"), numbers("missing_value")
        self.scale_factor, self.add_offset = (
            np.ravel(attributes[name])[0] if name in attributes else None for name in ("scale_factor", "add_offset")
        )
        self.sign = {"true": "u", "false": "i"}.get(str(attributes.get("_Unsigned")))

    def unpacked(self, data: Any, dtype: np.dtype) -> Any:
        """What xarray makes of NumPy's arrays, of those of any library."""
        fill_values = self.fill_values
        if self.sign is not None and data.dtype.kind in "iu":
            data = data.view(f"{self.sign}{data.dtype.itemsize}")
            # Of another sign than the elements, it is of the same bits.
            fill_values = [np.asarray(value).astype(data.dtype) for value in fill_values]
        result = data.astype(dtype, copy=False)
        missing = [result == value for value in fill_values + self.missing_values] if dtype.kind in "fc" else []
        if self.scale_factor is not None:
            result = result * dtype.type(self.scale_factor)
        if self.add_offset is not None:
            result = result + dtype.type(self.add_offset)
        if missing and result is data:
            result = data.copy()
        for mask in missing:
            result[mask] = np.nan
        return result


class _Elements(BackendArray):
    """An array that is read when it is indexed."""

    def __init__(self, array: zarrgpu.Array) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype
        if array.data_type == "string" and hasattr(np.dtypes, "StringDType"):
            # As NumPy has had them since 2.0. Of objects xarray looks at one when it opens a dataset.
            self.dtype = np.dtypes.StringDType()
        elif array.data_type in ("string", "bytes"):
            # As xarray marks elements of variable length.
            self.dtype = np.dtype(object, metadata={"element_type": str if array.data_type == "string" else bytes})

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        read, support = self._read_texts if self.dtype.kind in "OT" else self._read, indexing.IndexingSupport.OUTER
        if isinstance(key, indexing.VectorizedIndexer):
            if not self._is_dense(key.tuple):
                return self._points(key.tuple)
            support = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, support, read)

    def _is_dense(self, key: tuple[Any, ...]) -> bool:
        """Whether points lie so close together that all between them are read sooner than they are, one by one."""
        points = np.broadcast(*key).size
        around = np.prod([np.ptp(axis) + 1 for axis in key], dtype=float) if points else 0
        return around <= 100 * points and around * self.dtype.itemsize <= 256 << 20

    def _points(self, key: tuple[Any, ...]) -> Any:
        return np.asarray(self._array.vindex[key], self.dtype)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, key: tuple[Any, ...]) -> Any:
        return self._array.read(key).numpy()

    def _read_texts(self, key: tuple[Any, ...]) -> Any:
        """Elements of variable length, which make no tensors: positions in lists are single points."""
        if any(isinstance(axis, np.ndarray) for axis in key):
            axes = [np.arange(length)[axis] for axis, length in zip(key, self.shape)]
            found = self._array.vindex[np.ix_(*(np.atleast_1d(axis) for axis in axes))]
            found = found.reshape([len(axis) for axis in axes if axis.ndim])
        else:
            found = self._array[key]
        return np.asarray(found, self.dtype)


class _OnDevice(_Elements):
    """The same on a GPU, or where "auto" leads."""

    def __init__(self, array: zarrgpu.Array, device: str, dtype: np.dtype, packing: _Packing | None) -> None:
        super().__init__(array)
        self._device = device
        self.dtype = dtype
        self._packing = packing

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        data = super().__getitem__(key)
        return data if self._packing is None else self._packing.unpacked(data, self.dtype)

    def _read(self, key: tuple[Any, ...]) -> Any:
        tensor = self._array.read(key, device=self._device)
        return tensor.numpy() if tensor.device == "cpu" else _cupy().from_dlpack(tensor)

    def _points(self, key: tuple[Any, ...]) -> Any:
        points = self._array.vindex[key]
        found = [device["id"] for device in zarrgpu.devices() if device["id"].startswith("cuda:")]
        if self._device == "auto" and not found:
            return points
        with _cupy().cuda.Device(int(self._device.partition(":")[2] or 0)):
            return _cupy().asarray(points)


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise ImportError("xarray holds data on a GPU in CuPy's arrays; install cupy") from error
    return cupy
