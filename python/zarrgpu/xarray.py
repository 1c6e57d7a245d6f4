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
        dropped = {without} if isinstance(without, str) else set(without or ())
        self._group = group
        self._device = device
        self._arrays = {name: array for name, array in group.arrays() if name not in dropped}
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
        variable = Variable(dimensions, indexing.LazilyIndexedArray(_Elements(array)), attributes, encoding)
        if on_host or self._device == "cpu" or array.dtype.kind not in "biufc" or _is_time(attributes):
            return variable
        packing = None
        wanted = self._mask_and_scale
        if wanted.get(name, True) if isinstance(wanted, Mapping) else wanted is not False:
            # xarray masks on the host alone. What it would make of the elements, it says of those on the host.
            packing = _Packing(attributes)
            variable = decode_cf_variable(name, variable, concat_characters=False, decode_times=False, decode_endianness=False)
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
    """The names that attributes say are coordinates, or the bounds of some (CF conventions, sections 5 and 7.1)."""
    roles = ("coordinates", "bounds", "climatology")
    values = [of_one[role] for of_one in attributes for role in roles if isinstance(of_one.get(role), str)]
    return {name for value in values for name in value.split()}


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
    return stored if kind == "U" else array.dtype.type(stored)


def _double(stored: Any) -> float:
    return struct.unpack("<d", base64.standard_b64decode(stored))[0] if isinstance(stored, str) else float(stored)


class _Packing:
    """How numbers are packed (CF conventions, sections 2.5.1 and 8.1)."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.missing = [value for name in ("_FillValue", "missing_value") for value in np.ravel(attributes.get(name, []))]
        self.scale_factor, self.add_offset = (
            np.ravel(attributes[name])[0] if name in attributes else None for name in ("scale_factor", "add_offset")
        )
        self.sign = {"true": "u", "false": "i"}.get(str(attributes.get("_Unsigned")))

    def unpacked(self, data: Any, dtype: np.dtype) -> Any:
        if self.sign is not None and data.dtype.kind in "iu":
            data = data.view(f"{self.sign}{data.dtype.itemsize}")
        result = data.astype(dtype)
        if self.scale_factor is not None:
            result *= self.scale_factor
        if self.add_offset is not None:
            result += self.add_offset
        for value in self.missing:
            # Of another sign than the elements, it is of the same bits.
            result[data == (value if self.sign is None else np.asarray(value).astype(data.dtype))] = np.nan
        return result


class _Elements(BackendArray):
    """An array that is read when it is indexed."""

    def __init__(self, array: zarrgpu.Array) -> None:
        self._array = array
        self.shape = array.shape
        texts = {"string": str, "bytes": bytes}.get(array.data_type)
        # As xarray marks elements of variable length.
        self.dtype = array.dtype if texts is None else np.dtype(object, metadata={"element_type": texts})

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        if isinstance(key, indexing.VectorizedIndexer):
            return self._array.vindex[key.tuple]
        if self.dtype.kind == "O":
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._array.__getitem__)
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, key: tuple[Any, ...]) -> Any:
        return self._array.read(key).numpy()


class _OnDevice(_Elements):
    """The same on a GPU, or where "auto" leads."""

    def __init__(self, array: zarrgpu.Array, device: str, dtype: np.dtype, packing: _Packing | None) -> None:
        super().__init__(array)
        self._device = device
        self.dtype = dtype
        self._packing = packing

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        data = super().__getitem__(key)
        if isinstance(key, indexing.VectorizedIndexer):
            data = self._uploaded(data)
        return data if self._packing is None else self._packing.unpacked(data, self.dtype)

    def _read(self, key: tuple[Any, ...]) -> Any:
        tensor = self._array.read(key, device=self._device)
        return tensor.numpy() if tensor.device == "cpu" else _cupy().from_dlpack(tensor)

    def _uploaded(self, points: np.ndarray) -> Any:
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
