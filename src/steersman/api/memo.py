"""The write memo: object-local writes are pure, so equal ones are done once.

Keyed by identity: the request body, the old version's sections, who and when. Check keeps these objects for the length
of a search, and equal states share them, so nearly every write of a search is found here.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.by import Written
from steersman.api.kinds import Kind
from steersman.api.writer import Writer
from steersman.kernel.effect import Refused, Request
from steersman.kernel.object import Key, Object

LIMIT: Final = 1 << 20
"""Remembered writes; at some hundred bytes each this bounds a search's memo. It is emptied when full."""


class MemoWriter(Writer):
    """A `Writer` that remembers."""

    __slots__ = ("_known", "hits", "misses")

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[Written | Refused, Any]] = {}
        self.hits = 0
        self.misses = 0

    def write(self, kind: Kind, key: Key, old: Object | None, request: Request, uid: str = "") -> Written:
        """See `Writer.write`."""
        options = request.options
        place = (
            kind,
            request.verb,
            id(request.body),
            key,
            request.subresource,
            request.manager or request.actor,
            request.now,
            uid,
            options.get("patch"),
            options.get("force"),
            options.get("validation"),
            options.get("part"),
            None if old is None else (old.meta, old.spec, old.rest, old.status, old.node, id(old.managers)),
            old.rv if old is not None and options.get("patch") == "json" else 0,  # it may test the revision
        )
        found = self._known.get(place)
        if found is None:
            self.misses += 1
            if len(self._known) >= LIMIT:
                self._known.clear()
            try:
                result: Written | Refused = super().write(kind, key, old, request, uid)
            except Refused as error:
                result = error
            if isinstance(result, Written) and result.obj is not old:
                result.obj.rv = result.obj.rv or -1  # never committed itself: each path commits a copy (`Object.at`)
            found = self._known[place] = (result, (request.body, None if old is None else old.managers, old))
        else:
            self.hits += 1
        result = found[0]
        if isinstance(result, Refused):
            raise result
        if old is not None and result.obj is found[1][2]:  # nothing changed: this path's own version stays
            return result._replace(obj=old)
        return result
