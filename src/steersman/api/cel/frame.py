"""One evaluation under way, and how it reaches into values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.api.cel.faults import CelError, CostExceeded
from steersman.api.cel.values import Fields, Uint, key_text, type_name

Step = Callable[["Frame"], Any]


class Frame:
    """One evaluation: its variables, what it has cost, what it may cost."""

    __slots__ = ("cost", "limit", "names")

    def __init__(self, names: dict[str, Any], limit: int) -> None:
        self.names = names
        self.cost = 0
        self.limit = limit

    def spend(self, cost: int) -> None:
        """Counts a cost. Raises `CostExceeded`."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


def field_of(value: Any, name: str) -> Any:
    """A field of a map or object. Raises `CelError`."""
    try:
        if isinstance(value, dict):
            return value[name]
        if isinstance(value, Fields):
            return value.cel_get(name)
    except KeyError:
        raise CelError(f"no such key: {name}") from None
    raise CelError("no such overload")


def has_field(value: Any, name: str) -> bool:
    """Whether a map or object has the field. Raises `CelError`."""
    if isinstance(value, dict):
        return name in value
    if isinstance(value, Fields):
        return value.cel_has(name)
    raise CelError("no such overload")


def index_of(value: Any, index: Any) -> Any:
    """An element of a list or map. Raises `CelError`."""
    if isinstance(value, list):
        at = list_index(index)
        if 0 <= at < len(value):
            return value[at]
        raise CelError(f"index out of bounds: {at}")
    if isinstance(value, (dict, Fields)):
        try:
            if isinstance(value, dict):
                return value[index] if type(index) is not bool else _by_bool(value, index)
            return value.cel_get(index)
        except (KeyError, TypeError):
            raise CelError(f"no such key: {key_text(index)}") from None
    raise CelError("no such overload")


def _by_bool(value: dict[Any, Any], index: bool) -> Any:
    for key, item in value.items():
        if key is index:
            return item
    raise KeyError(index)


def list_index(index: Any) -> int:
    """A whole number as index. Raises `CelError`."""
    if type(index) in (int, Uint) or (type(index) is float and index.is_integer()):
        return int(index)
    raise CelError(f"unsupported index type '{type_name(index)}' in list")


def map_key(key: Any) -> Any:
    """A value that may be a key. Raises `CelError`."""
    if type(key) in (str, int, Uint, bool):
        return key
    raise CelError(f"unsupported key type: {type_name(key)}")


class Made(dict[str, Any]):
    """An object that an expression made: `Name{…}`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @property
    def kind(self) -> str:
        """The name of its type."""
        return self.name
