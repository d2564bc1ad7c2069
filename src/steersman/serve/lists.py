"""The items of lists as bytes, kept while nothing of their kind is written.

After a restart of theirs, or of ours, hundreds of clients list the same kinds at once; and many poll. The items are
the same bytes for all of them until an object of the kind changes (`Store.mark`), and what the head of the list says
(its resourceVersion) is written anew. Pages that go on, lists of the past, and tables (they tell ages) are not
kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

MAX_BYTES: Final = 24 << 20
"""All that is kept: seven lists of a thousand pods."""
MAX_LIST: Final = 8 << 20
"""Larger lists are few, and one of them must not push out all others."""
Mark = tuple[object, int]


class Kept(NamedTuple):
    """A list, or the first page of one."""

    items: bytes
    """With commas between them."""
    after: tuple[str, str] | None = None
    """The (namespace, name) behind which the next page begins; None: this is all."""
    remaining: int | None = None


class Lists:
    """Lists by what was asked for; the longest unused go first."""

    __slots__ = ("_held", "_kept")

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Mark, Kept]] = OrderedDict()
        self._held = 0

    def get(self, asked: Hashable, mark: Mark) -> Kept | None:
        """The list, if the kind is as it was when it was kept."""
        found = self._kept.get(asked)
        if found is None:
            return None
        if found[0] != mark:
            self._drop(asked)
            return None
        self._kept.move_to_end(asked)
        return found[1]

    def keep(self, asked: Hashable, mark: Mark, found: Kept) -> None:
        """Keeps a list."""
        if len(found.items) > MAX_LIST:
            return
        if asked in self._kept:
            self._drop(asked)
        self._kept[asked] = (mark, found)
        self._held += len(found.items)
        while self._held > MAX_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, asked: Any) -> None:
        self._held -= len(self._kept.pop(asked)[1].items)
