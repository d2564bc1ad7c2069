"""The columns of one kind's table: what a Table says of them, and the function that fills a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

Row = Callable[[Any, int], list[Any]]
"""From an object's value and the time (microseconds) to its cells."""


class Columns(NamedTuple):
    """The columns of a kind.

    `names` end in `*` where they are wide only, begin with `#` where they are numbers, with `?` where they are true or
    false.
    """

    names: tuple[str, ...]
    row: Row
    given: tuple[dict[str, Any], ...] = ()
    """Definitions as they are, in the place of `names`: those of custom kinds."""

    def definitions(self) -> list[dict[str, Any]]:
        """columnDefinitions of a Table."""
        return list(self.given) or [definition(name) for name in self.names]


def definition(name: str) -> dict[str, Any]:
    """The columnDefinition of a name with its marks."""
    plain = name.strip("#?*")
    return {
        "name": plain,
        "type": "date" if plain == "Created At" else {"#": "integer", "?": "boolean"}.get(name[0], "string"),
        "format": "name" if plain in ("Name", "Attacher") else "",
        "description": DESCRIPTIONS.get(plain, ""),
        "priority": 1 if name.endswith("*") else 0,
    }


DESCRIPTIONS: Final = {
    "Name": "The name of the object, unique among those of its kind in its namespace.",
    "Age": "The time since the object was created.",
    "Containers": "Names of the containers in the template.",
    "Images": "Images of the containers in the template.",
    "Selector": "The label selector for the pods.",
}
