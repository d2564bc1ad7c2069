"""Stores whose revisions count by object: the n-th version of an object has the n-th revision, whatever else was
written before it. So two paths that make the same changes in another order lead to stores that are equal as they are,
and what was found out about one holds for the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.kernel.draw import NAME_MAX
from steersman.kernel.effect import Commit, Event
from steersman.kernel.identity import SUFFIX_LENGTH, suffix_text, uid_text
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.kernel.world import World

NOTHING: Final[Mapping[Key, tuple[int, int]]] = {}
Place = tuple[Any, ...]


class Unfit(BaseException):
    """A search cannot be factored: `str` says why. Not an Exception: what a person does must not swallow it."""


class Timers(BaseException):
    """There are timers: see `Inner`."""


class Lineage(Store):
    """A store with revisions by object."""

    __slots__ = ("_place", "gone")
    gone: Mapping[Key, tuple[int, int]]
    """Of objects that went away: the revision of their end, and how often that was."""
    _place: Place | None

    @staticmethod
    def of(store: Store, gone: Mapping[Key, tuple[int, int]] = NOTHING) -> Lineage:
        """A private copy of a store."""
        plain = Store.fork(store)
        out = Lineage.__new__(Lineage)
        for name in Store.__slots__:
            setattr(out, name, getattr(plain, name))
        out.gone, out._place = gone, None
        return out

    def fork(self) -> Lineage:
        """As a Store does it."""
        return Lineage.of(self, self.gone)

    def commit(self, commit: Commit) -> Event | None:
        """As a Store does it, at the next revision of this object."""
        key, old = commit.key, commit.old
        self.rev, times = self.gone.get(key, (0, 0))
        if old is not None:
            self.rev = old.rv
        self._place = None
        event = super().commit(commit)
        if event is not None and event.new is None:
            self.gone = {**self.gone, key: (event.rev, times + 1)}
        return event

    @property
    def place(self) -> Place:
        """What it is known by: its canonical contents, and what they leave out."""
        if self._place is None:
            self._place = (
                self.sum_canonical,
                *[(obj.key, obj.rv) for obj in self.objects()],
                *sorted(self.gone.items()),
            )
        return self._place


def draw(world: World, question: Any) -> str:
    """A name that was never drawn on this path, or the n-th uid of an object. Whoever draws the smallest one that is
    free draws the same, as long as no name becomes free again: raises `Unfit` where that may be."""
    kind, key = question[0], question[1]
    store = world.store
    assert isinstance(store, Lineage)
    if kind == "uid":
        return uid_text(str(key), store.gone.get(key, (0, 0))[1])
    number = 0
    while True:
        answer = suffix_text(number)
        name = f"{question[2][: NAME_MAX - SUFFIX_LENGTH]}{answer}"
        if name not in world.drawn:
            world.drawn = {**world.drawn, name: None}
            return answer
        if not any(obj.key.name == name for obj in store.objects()):
            raise Unfit("a generated name may be drawn again")
        number += 1
