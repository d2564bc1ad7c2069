"""Disturbed reads: what a controller must not depend on, shown changed.

Canonical form takes states for one that differ only in what "does not count": revisions, how often a spec was changed,
when something happened. That is right only as long as no controller can tell them apart. So the second execution of
every step of a reconcile sees these things changed, consistently: revisions and generations further on, times mirrored
(what came first comes last). If it does anything else then, they do count.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from .effect import MICRO
from .identity import Canon, Tree
from .object import Object, Section
from .value import Frozen, FrozenList

RV_SHIFT: Final = 1_000_003
GENERATION_SHIFT: Final = 1_009
STAMP_SHIFT: Final = 7 * 86_400 * MICRO
RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
DIGITS: Final = str.maketrans("0123456789", "9876543210")


class Stamp(int):
    """A time that is to be written down for people (microseconds)."""


class Disturbed(NamedTuple):
    """What an execution is shown changed: fields that the table ranks, and times that it drops."""

    revisions: bool
    generations: bool
    times: bool

    def value(self, value: Any, canon: Canon) -> Any:
        """The outcome of a call as this execution sees it."""
        if isinstance(value, Object):
            return self._object(value, canon)
        if isinstance(value, tuple):
            return tuple([self._object(item, canon) if isinstance(item, Object) else item for item in value])
        if isinstance(value, Stamp) and self.times:
            return Stamp(value + STAMP_SHIFT)
        return value

    def _object(self, obj: Object, canon: Canon) -> Object:
        rv = obj.rv + RV_SHIFT if self.revisions else obj.rv
        if not (self.generations or self.times):
            return obj.at(rv)
        tree = canon.tree(obj.key.gk)
        meta = self._section(obj.meta, tree.get("metadata"))
        return obj.replace(rv=rv, meta=meta, status=self._section(obj.status, tree.get("status")))

    def _section(self, section: Section | None, tree: Tree | None) -> Section | None:
        if section is None or not tree:
            return section
        value = self._json(section.value, tree)
        return section if value is section.value else Section(value)

    def _json(self, value: Any, tree: Tree) -> Any:
        if isinstance(value, list):
            below = tree.get("[]")
            items = [self._json(item, below) for item in value] if below else value
            return FrozenList(items) if any(a is not b for a, b in zip(items, value, strict=True)) else value
        if not isinstance(value, dict):
            return value
        out = dict(value)
        for name, action in tree.items():
            if name in out:
                item = out[name]
                out[name] = self._json(item, action) if isinstance(action, dict) else self._field(item, action)
        return Frozen(out) if any(out[name] is not item for name, item in value.items()) else value

    def _field(self, item: Any, action: str) -> Any:
        if self.generations and action == "rank" and type(item) is int:
            return item + GENERATION_SHIFT
        if self.times and action != "rank" and isinstance(item, str):
            return mirrored(item)
        return item


NOTHING: Final = Disturbed(False, False, False)


def mirrored(text: str) -> str:
    """A time on the other side: of two times, the later one comes first. Stays a valid RFC 3339 text."""
    match = RFC3339.fullmatch(text)
    if match is None:
        return text
    year, month, day, hour, minute, second = [int(match.group(n)) for n in range(1, 7)]
    out = f"{4100 - year:04d}-{13 - month:02d}-{29 - min(day, 28):02d}T{23 - hour:02d}:{59 - minute:02d}"
    return (
        f"{out}:{59 - min(second, 59):02d}" + (f".{match.group(7).translate(DIGITS)}" if match.group(7) else "") + "Z"
    )


def same_json(a: Any, b: Any, how: Disturbed, tree: Any = None) -> bool:
    """Whether two values are equal, where a disturbed revision, generation or time may stand where the table has a row
    (`tree`: the table's rows from here on)."""
    if isinstance(a, dict) and isinstance(b, dict):
        rows = tree if isinstance(tree, dict) else {}
        return a.keys() == b.keys() and all(same_json(item, b[key], how, rows.get(key)) for key, item in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        below = tree.get("[]") if isinstance(tree, dict) else None
        return len(a) == len(b) and all(same_json(x, y, how, below) for x, y in zip(a, b, strict=True))
    if type(a) is type(b) and (a == b or (a != a and b != b)):
        return True
    if how.generations and tree == "rank" and type(a) is int and type(b) is int:
        return abs(a - b) == GENERATION_SHIFT
    if how.revisions and tree == "version" and isinstance(a, str) and isinstance(b, str):
        return a.isdecimal() and b.isdecimal()
    if how.times and isinstance(tree, str) and tree != "rank" and isinstance(a, str) and isinstance(b, str):
        return RFC3339.fullmatch(a) is not None and RFC3339.fullmatch(b) is not None
    return False
