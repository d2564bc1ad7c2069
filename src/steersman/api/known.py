"""What came in lately, so that whoever sends the same again shares it.

Specs are known by their text: over HTTP, the pods of one template are judged, completed and digested, and their fields
are found, once. By the whole text, and not by a digest of it: nobody may get another one's spec by finding two texts
with the same digest. The text is Python's own (`marshal`), not JSON: a date, an enumeration's member, a tuple or NaN
of a program in this process is refused, although its JSON may be that of a spec that is known.
"""

from __future__ import annotations

import marshal
from contextlib import suppress
from typing import Any, Final

from steersman.api.advice import Advice
from steersman.api.schema import Schema
from steersman.kernel.object import Section
from steersman.kernel.value import Frozen

MAX_SPECS: Final = 256
"""Specs remembered of one kind: more templates than most clusters roll out at one time. And the number of kinds."""
MAX_BYTES: Final = 32 << 10
"""Larger specs are not remembered: with 22 KB of memory for 4 KB of text, a kind's table stays below 50 MB."""
MAX_SHARED: Final = 1 << 16
PLAIN: Final = 2
"""The version of marshal's format that has no references: equal values have equal bytes."""
NOTHING: Final[tuple[None, tuple[Advice, ...]]] = (None, ())
_shared: dict[Any, Any] = {}
_kinds: dict[int, tuple[Schema, dict[bytes, tuple[Section, tuple[Advice, ...]]]]] = {}


class Known:
    """One look at the table: `section` is what is known of a spec that was sent, and `advice` what its writer is told;
    else `keep` makes it known."""

    __slots__ = ("_table", "_text", "advice", "section")

    def __init__(self, schema: Schema, value: dict[str, Any]) -> None:
        found = _kinds.get(id(schema))
        if found is None:
            if len(_kinds) >= MAX_SPECS:
                _kinds.clear()
            found = _kinds[id(schema)] = (schema, {})  # the schema is kept, so its id stays its own
        self._table = found[1]
        self._text = b""
        with suppress(ValueError):  # something that is no JSON: intake says what; or parts that are frozen already
            self._text = marshal.dumps(value, PLAIN)
        self.section: Section | None
        self.section, self.advice = self._table.get(self._text, NOTHING)

    def keep(self, section: Section, advice: tuple[Advice, ...]) -> None:
        """Remembers what came of it, which must say everything: no other warning was given, and none held back."""
        if 0 < len(self._text) <= MAX_BYTES:
            if len(self._table) >= MAX_SPECS:
                self._table.clear()
            self._table[self._text] = section, advice


def share(value: Any) -> Any:
    """One object for equal labels or ownerReferences: pods of one owner share them."""
    if type(value) is dict or type(value) is Frozen:
        key: Any = tuple(value.items())
    elif len(value) == 1 and isinstance(value[0], dict):
        key = ("one", *value[0].items())
    else:
        return value
    try:
        found = _shared.get(key)
    except TypeError:
        return value
    if found is None:
        if len(_shared) >= MAX_SHARED:
            _shared.clear()
        found = _shared[key] = value
    return found
