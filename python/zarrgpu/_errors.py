"""What can go wrong, by who is to blame. Messages are those of the Rust crates."""

from __future__ import annotations


class ZarrError(Exception):
    """Any error of this package. Where it is about a chunk, `key` and `chunk` say which."""

    key: str | None = None
    chunk: list[int] | None = None

    # KeyError would quote the message.
    __str__ = Exception.__str__


class StoreError(ZarrError, OSError):
    """The store failed, or refused."""


class NotFoundError(ZarrError, KeyError, FileNotFoundError):
    """There is no such node or store."""


class MetadataError(ZarrError):
    """A metadata document is not what the specification allows."""


class FormatError(ZarrError):
    """Stored bytes are not what their codec's format allows."""


class LimitError(ZarrError):
    """A limit was reached before anything was allocated."""


class SelectionError(ZarrError, IndexError):
    """A selection does not fit the array."""


class ParameterError(ZarrError, ValueError):
    """An argument does not fit the array, its data type or the device."""


class UnsupportedError(ZarrError, NotImplementedError):
    """Nothing here can do this: no codec, no driver, no name for a data type."""


class DeviceError(ZarrError, RuntimeError):
    """A device or its driver failed."""


class OutOfMemoryError(DeviceError, MemoryError):
    """A device has no room."""


class ExchangeError(ZarrError, BufferError):
    """A tensor cannot be handed out, or taken in, as asked."""
