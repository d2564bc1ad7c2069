"""Objects that note which of their fields are looked at.

Copying is no look: `{**obj}`, `sm.thaw(obj)` and what is written back unread do not count. A scalar is looked at when
it is taken out, a mapping or a list when it is gone through, measured or compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from steersman.kernel.object import Object
from steersman.kernel.value import Absent, Frozen, FrozenList, thaw
from steersman.ownership.fields import key_of

Note = Callable[[tuple[str, str], tuple[str, ...]], None]
"""Told of each look: the kind and the path."""
Where = tuple[Note, tuple[str, str]]
COPYING: Final = frozenset({thaw.__code__})


class Shown(Object):
    """An object whose value notes what is looked at."""

    __slots__ = ("_value",)

    def __init__(self, obj: Object, note: Note) -> None:
        super().__init__(
            obj.key, obj.api_version, obj.rv, obj.meta, obj.spec, obj.rest, obj.status, obj.managers, obj.node
        )
        self._value = _shown(obj.value, (note, obj.key.gk), ())

    @property
    def value(self) -> Any:
        """The whole object."""
        return self._value


def _shown(value: Any, where: Where, path: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return _Fields(value, where, path)
    if isinstance(value, list):
        return _Items(value, where, path)
    where[0](where[1], path)
    return value


def _is_copy() -> bool:
    """Whether who asks only makes a copy (two calls up)."""
    return sys._getframe(2).f_code in COPYING


class _Fields(Frozen):
    """A JSON object that notes which of its fields are looked at."""

    __slots__ = ("_path", "_where")
    _path: tuple[str, ...]
    _where: Where

    def __init__(self, value: Mapping[str, Any], where: Where, path: tuple[str, ...]) -> None:
        super().__init__(value)
        object.__setattr__(self, "_where", where)
        object.__setattr__(self, "_path", path)

    def _all(self) -> None:
        self._where[0](self._where[1], self._path)

    def __getitem__(self, name: str) -> Any:
        return _shown(super().__getitem__(name), self._where, (*self._path, name))

    def get(self, name: str, default: Any = None) -> Any:
        """As a dict does it."""
        if super().__contains__(name):
            return self[name]
        self._where[0](self._where[1], (*self._path, name))
        return default

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "mark":
            raise AttributeError(name)
        if super().__contains__(name):
            return self[name]
        return _Missing(self._where, (*self._path, name))

    def __contains__(self, name: object) -> bool:
        self._where[0](self._where[1], (*self._path, str(name)))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self._all()
        return super().__iter__()

    def __len__(self) -> int:
        self._all()
        return super().__len__()

    def __eq__(self, other: object) -> bool:
        self._all()
        return super().__eq__(other)

    __hash__ = Frozen.__hash__

    def __ne__(self, other: object) -> bool:
        return not self == other

    def items(self) -> Any:
        """As a dict does it."""
        if _is_copy():
            return super().items()
        self._all()
        return [(name, self[name]) for name in list(self.keys())]

    def values(self) -> Any:
        """As a dict does it."""
        self._all()
        return [self[name] for name in list(self.keys())]


class _Missing(Absent):
    """A field that is not there: it is looked at when somebody asks for its value."""

    __slots__ = ("_path", "_where")
    _path: tuple[str, ...]
    _where: Where

    def __init__(self, where: Where, path: tuple[str, ...]) -> None:
        object.__setattr__(self, "_where", where)
        object.__setattr__(self, "_path", path)

    def _look(self) -> None:
        self._where[0](self._where[1], self._path)

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Missing(self._where, (*self._path, name))

    def __getitem__(self, item: object) -> Absent:
        return _Missing(self._where, (*self._path, str(item)))

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict does it."""
        self._where[0](self._where[1], (*self._path, key))
        return default

    def __bool__(self) -> bool:
        self._look()
        return False

    def __len__(self) -> int:
        self._look()
        return 0

    def __iter__(self) -> Iterator[Any]:
        self._look()
        return iter(())

    def __contains__(self, _item: object) -> bool:
        self._look()
        return False

    def __eq__(self, other: object) -> bool:
        self._look()
        return super().__eq__(other)

    __hash__ = Absent.__hash__


class _Items(FrozenList):
    """A JSON array that notes that it is looked at."""

    __slots__ = ("_path", "_where")
    _path: tuple[str, ...]
    _where: Where

    def __init__(self, value: list[Any], where: Where, path: tuple[str, ...]) -> None:
        super().__init__(value)
        object.__setattr__(self, "_where", where)
        object.__setattr__(self, "_path", path)

    def _item(self, item: Any, keyed: str | None) -> Any:
        path = self._path if keyed is None else (*self._path, f"[{item[keyed]}]")
        return _shown(item, self._where, path) if keyed is not None else item

    def _all(self) -> str | None:
        keyed = key_of(list(super().__iter__()))
        if keyed is None:
            self._where[0](self._where[1], self._path)
        return keyed

    def __iter__(self) -> Iterator[Any]:
        if _is_copy():
            return super().__iter__()
        keyed = self._all()
        return iter([self._item(item, keyed) for item in list(super().__iter__())])

    def __getitem__(self, at: Any) -> Any:
        keyed = self._all()
        found = super().__getitem__(at)
        return [self._item(item, keyed) for item in found] if isinstance(at, slice) else self._item(found, keyed)

    def __len__(self) -> int:
        self._where[0](self._where[1], self._path)
        return super().__len__()

    def __eq__(self, other: object) -> bool:
        self._where[0](self._where[1], self._path)
        return super().__eq__(other)

    __hash__ = FrozenList.__hash__

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __contains__(self, item: object) -> bool:
        self._where[0](self._where[1], self._path)
        return super().__contains__(item)
