"""What the native module asks of NumPy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from zarrgpu._errors import ParameterError, UnsupportedError


def dtype(descr: Any, extension: str | None) -> np.dtype:
    """The NumPy dtype; `extension` names one of ml_dtypes, of the same size as `descr`."""
    if extension is None:
        return np.dtype(descr)
    try:
        import ml_dtypes
    except ImportError as error:
        raise TypeError(f"NumPy has no {extension}; install ml_dtypes") from error
    found = getattr(ml_dtypes, extension, None)
    if found is None:
        raise TypeError(f"neither NumPy nor this version of ml_dtypes has {extension}")
    return np.dtype(found)


class _View:
    """A tensor without its other protocols, so that NumPy looks at the bytes."""

    def __init__(self, tensor: Any, interface: dict) -> None:
        self._tensor = tensor
        self.__array_interface__ = interface


def array(tensor: Any, interface: dict, own: np.dtype, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """An array over the bytes of a tensor on the host, which it keeps alive."""
    result = np.asarray(_View(tensor, interface))
    if result.dtype != own:
        result = result.view(own)
    if dtype is not None and np.dtype(dtype) != own:
        if copy is False:
            raise ValueError(f"{own} as {np.dtype(dtype)} needs a copy")
        return result.astype(dtype)
    return result.copy() if copy else result


def element(data: bytes, own: np.dtype) -> Any:
    """One element of its bytes."""
    return np.frombuffer(data, dtype=own)[0]


def objects(elements: list, shape: tuple[int, ...]) -> Any:
    """Elements of variable length."""
    result = np.empty(len(elements), dtype=object)
    result[:] = elements
    return result.reshape(shape)


def data_type(given: Any) -> str:
    """Zarr's data type, as in metadata, of what NumPy, torch or ml_dtypes call a dtype."""
    if str(given).startswith("torch."):
        return json_text(str(given).removeprefix("torch."))
    if given is None:
        raise TypeError("dtype= is needed")
    return json_text(given if isinstance(given, dict) else _data_type(np.dtype(given)))


def _data_type(own: np.dtype) -> Any:
    def named(name: str, **configuration: Any) -> dict:
        return {"name": name, "configuration": configuration}

    if own.kind == "T" or own.str in ("<U0", ">U0"):
        return "string"
    if own.str == "|S0":
        return "bytes"
    if own.kind in "Mm":
        unit, scale_factor = np.datetime_data(own)
        return named("numpy.datetime64" if own.kind == "M" else "numpy.timedelta64", unit=unit, scale_factor=scale_factor)
    if own.kind == "S":
        return named("null_terminated_bytes", length_bytes=own.itemsize)
    if own.kind == "U":
        return named("fixed_length_utf32", length_bytes=own.itemsize)
    if own.names is not None:
        return named("struct", fields=[{"name": name, "data_type": _data_type(own[name])} for name in own.names])
    if own.subdtype is not None or own.kind == "O":
        raise UnsupportedError(f"no data type for {own!r}; texts of any length are dtype=str, bytes dtype=bytes")
    return f"r{own.itemsize * 8}" if own.type is np.void else own.name


def json_text(value: Any) -> str:
    """`value` as JSON. Elements and arrays of NumPy, and codecs of zarr-python, are what they hold."""

    def plain(value: Any) -> Any:
        for method in ("tolist", "to_dict"):
            if hasattr(value, method):
                return getattr(value, method)()
        raise TypeError(f"not a value of JSON: {value!r}")

    return json.dumps(value, default=plain)


def codecs(value: Any) -> str:
    """One codec, or several, as a list in JSON."""
    if value is None:
        return "[]"
    one = isinstance(value, (str, dict)) or hasattr(value, "to_dict")
    return json_text([value] if one else list(value))


def elements(value: Any, own: np.dtype, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """`value` as an array of the dtype `own`, of that shape if there is one. A view where there can be one: it may repeat elements."""
    typed = hasattr(value, "dtype")
    found = np.asarray(value, dtype=own if own.names is not None and not typed else None)
    if found.dtype != own:
        _check_cast(found, own, typed)
        found = found.astype(own)
    return found if shape is None else _broadcast(found, shape)


def _broadcast(found: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    given = found.shape
    # As in NumPy's assignments.
    while found.ndim > len(shape) and found.shape[0] == 1:
        found = found.reshape(found.shape[1:])
    try:
        return np.broadcast_to(found, shape)
    except ValueError:
        raise ParameterError(f"data of shape {given} cannot be broadcast to a selection of shape {shape}") from None


def _check_cast(found: np.ndarray, own: np.dtype, typed: bool) -> None:
    """Raises for what NumPy's casting rule "same_kind" forbids, and for numbers and texts that do not fit. The values of Python's own numbers decide."""
    given, wanted = _kind(found.dtype), _kind(own)
    order = "buifc"
    if given in order and wanted in order:
        whole = given in "ui" and wanted in "ui"
        allowed = order.index(given) <= order.index(wanted) or (not typed and (whole or not found.size))
        if allowed and whole and found.size and not np.can_cast(found.dtype, own, "safe"):
            info: Any = np.iinfo(own) if own.kind in "ui" else _ml_dtypes().iinfo(own)
            if int(found.min()) < info.min or int(found.max()) > info.max:
                raise ParameterError(f"{found.min()} to {found.max()} do not fit {own}, which holds {info.min} to {info.max}")
    elif given == wanted and given in "SU":
        longest = int(np.char.str_len(found).max()) if found.size else 0
        most = own.itemsize // (4 if own.kind == "U" else 1)
        if longest > most:
            raise ParameterError(f"a text of {longest} characters does not fit {own}")
        allowed = True
    else:
        allowed = given == wanted and np.can_cast(found.dtype, own, "same_kind" if given in "Mm" else "safe") and given != "O"
    if not allowed:
        raise ParameterError(f"elements of {found.dtype} are not written as {own} without being asked: convert them first")


def _kind(dtype: np.dtype) -> str:
    """NumPy's kind; of a number of ml_dtypes that of its like."""
    if dtype.kind != "V" or dtype.type is np.void:
        return dtype.kind
    return {"int": "i", "uint": "u"}.get(dtype.name.rstrip("0123456789"), "f")


def _ml_dtypes() -> Any:
    import ml_dtypes

    return ml_dtypes


def element_bytes(value: Any, own: np.dtype) -> bytes:
    """The bytes of one element."""
    return elements(value, own, ()).tobytes()


def variable(value: Any, text: bool, shape: tuple[int, ...] | None = None) -> tuple[list[bytes], tuple[int, ...]]:
    """Elements of variable length, in C order, and their shape."""
    if isinstance(value, (str, bytes)):
        found = np.empty((), object)
        found[()] = value
    else:
        found = np.asarray(value)
        # The conversion of what has the one type already, for NumPy would take the zeros off the ends of bytes.
        found = np.asarray(value, dtype=object) if found.dtype.kind in "SO" else found.astype(object)
    if shape is not None:
        found = _broadcast(found, shape)
    kind = str if text else bytes
    wrong = next((item for item in found.flat if not isinstance(item, kind)), None)
    if wrong is not None:
        raise ParameterError(f"elements are {kind.__name__}, and {wrong!r} is not")
    return [item.encode() if text else item for item in found.flat], found.shape


def points(index: Any, shape: tuple[int, ...]) -> tuple[list[bytes], tuple[int, ...], bool]:
    """For each axis the positions of single points, as bytes of int64; the shape of the points; whether it is one named by integers."""
    index = index if isinstance(index, tuple) else (index,)
    if len(index) == 1 and np.asarray(index[0]).dtype == bool and np.ndim(index[0]) > 0:
        if np.shape(index[0]) != shape:
            raise IndexError(f"a mask of shape {np.shape(index[0])} for an array of {shape}")
        index = np.nonzero(index[0])
    if len(index) != len(shape):
        raise IndexError(f"points have a position along each axis: {len(index)} for an array of {len(shape)} axes")
    axes = [np.asarray(positions) for positions in index]
    axes = [axis.astype(np.int64) if axis.size == 0 else axis for axis in axes]
    if any(axis.dtype.kind not in "iu" for axis in axes):
        raise IndexError("vindex takes integers, arrays of integers, one for each axis, or one mask of the array's shape")
    try:
        axes = list(np.broadcast_arrays(*axes))
    except ValueError as error:
        raise IndexError(str(error)) from None
    of_points = axes[0].shape if axes else ()
    return [axis.astype(np.int64).tobytes() for axis in axes], of_points, all(np.ndim(axis) == 0 for axis in index)
