"""What the native module asks of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


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
