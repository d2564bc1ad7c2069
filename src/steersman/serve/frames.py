"""Watch events as bytes, each made once for a form and shared by all watchers."""

from __future__ import annotations

from collections import deque
from typing import Final

from steersman.kernel.object import Object
from steersman.serve.accept import Form
from steersman.serve.render import in_form

MAX_BYTES: Final = 16 << 20
"""Bytes of recent frames kept: watchers that keep up share them; one that fell behind pays for its own."""
FrameKey = tuple[int, str, str, str]


class Frames:
    """Recent frames by (revision, event type, form, includeObject). A revision is one event of one object."""

    __slots__ = ("_frames", "_held", "_order", "made")

    def __init__(self) -> None:
        self._frames: dict[FrameKey, bytes] = {}
        self._order: deque[FrameKey] = deque()
        self._held = 0
        self.made = 0
        """How many frames were made, rather than found."""

    def event(self, kind: str, obj: Object, form: Form, include: str, now: int) -> bytes:
        """The frame of a live event; `obj` has the event's revision."""
        key = (obj.rv, kind, form.kind, include)
        found = self._frames.get(key)
        if found is None:
            found = frame(kind, in_form(obj, form, include, now))
            self.made += 1
            self._frames[key] = found
            self._order.append(key)
            self._held += len(found)
            while self._held > MAX_BYTES:
                self._held -= len(self._frames.pop(self._order.popleft()))
        return found


def frame(kind: str, body: bytes) -> bytes:
    """One line of a watch stream."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)
