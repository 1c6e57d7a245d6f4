"""The attributes of nodes."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping, ValuesView
from typing import Any


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or a group. What is changed here is stored at once; what is changed inside of a value is not: assign it anew."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def asdict(self) -> dict[str, Any]:
        """A copy."""
        return self._node._attributes()

    def __getitem__(self, name: str) -> Any:
        return self.asdict()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._node._change_attributes({name: value}, [])

    def __delitem__(self, name: str) -> None:
        self[name]
        self._node._change_attributes({}, [name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def items(self) -> ItemsView[str, Any]:
        return self.asdict().items()

    def values(self) -> ValuesView[Any]:
        return self.asdict().values()

    def update(self, *others: Any, **named: Any) -> None:
        """Sets several, in one write."""
        self._node._change_attributes(dict(*others, **named), [])

    def clear(self) -> None:
        """Removes all, in one write."""
        self._node._change_attributes({}, list(self))

    def __repr__(self) -> str:
        return repr(self.asdict())
