"""Watch events as bytes, each made once for a form and shared by all watchers."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from steersman.kernel.object import Object
from steersman.serve.answer import Shown
from steersman.serve.render import in_form

MAX_BYTES: Final = 16 << 20
"""Bytes of recent frames kept, and as many of recent batches: watchers that keep up share them; one that fell behind
pays for its own."""
Held = TypeVar("Held")


class Recent(Generic[Held]):
    """What was made last, by key, bounded in bytes; the oldest goes first."""

    __slots__ = ("_found", "_held", "_order")

    def __init__(self) -> None:
        self._found: dict[Hashable, Held] = {}
        self._order: deque[tuple[Hashable, int]] = deque()
        self._held = 0

    def get(self, key: Hashable) -> Held | None:
        """What is kept under a key."""
        return self._found.get(key)

    def keep(self, key: Hashable, made: Held, size: int) -> None:
        """Keeps something of `size` bytes under a key that is not there yet."""
        self._found[key] = made
        self._order.append((key, size))
        self._held += size
        while self._held > MAX_BYTES:
            oldest, freed = self._order.popleft()
            del self._found[oldest]
            self._held -= freed


class Frames:
    """Recent frames by (revision, event type, form, includeObject, version): a revision is one event of one object.

    `batches` are the chunks that watchers who asked for the same, and are equally far, all send.
    """

    __slots__ = ("_frames", "batches", "made")

    def __init__(self) -> None:
        self._frames: Recent[bytes] = Recent()
        self.batches: Recent[tuple[bytes, ...]] = Recent()
        self.made = 0
        """How many frames were made, rather than found."""

    def event(self, kind: str, obj: Object, shown: Shown) -> bytes:
        """The frame of a live event; `obj` has the event's revision, and is in the version that is watched."""
        form = shown.form
        key = (obj.rv, kind, form, shown.include, obj.api_version)
        found = self._frames.get(key)
        if found is None:
            found = frame(kind, in_form(obj, *shown))
            self.made += 1
            self._frames.keep(key, found, len(found))
        return found


def frame(kind: str, body: bytes) -> bytes:
    """One line of a watch stream."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)
