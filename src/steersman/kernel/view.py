"""Views: what one controller can see of one kind.

At lag 0 a view is the head and does not exist as a thing. A lagging view is the store as it was before the first event
that has not been delivered, and the events that are still on their way, in order. Only `deliver` moves it, one event at
a time; where a fault holds its watch, `merge` or `relist`, which jump to the head.

Events of one kind come in the order they happened in. `Cursors` give that up: events of one *tree* of objects (what an
owner owns, and it) come in order, trees overtake each other. That allows more than can happen, and so whatever it finds
is to be found again with one queue a kind; but views of different trees have nothing to do with each other then, which
a search can use.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from .effect import GK, Event
from .object import Key, Object
from .store import Store

STALLED: Final[GK] = ("", "*")
"""Stands for every kind: the view that a controller would get from an API server that has fallen behind."""
REWOUND: Final = "rewound"
MAX_OWNERS: Final = 16
"""Owners above each other: more is a cycle."""
ENDS: Final = {
    "slow": "merge",
    "miss": "merge",
    "lose-watch": "relist",
    "stall": "rewind",
    "": "deliver",
    REWOUND: "deliver",
}
"""What moves a view, by how it is held up."""


class View(NamedTuple):
    """A view behind the head. A view that caught up is dropped, unless its watch is held up."""

    waiting: tuple[tuple[Event, Store], ...] = ()
    """Undelivered events, each with the store as it was before it."""
    how: str = ""
    """"" where events are only late; `slow`, `miss`, `lose-watch`, `stall`: the fault that holds it up; `rewound`: a
    restart made it old, so that it may be any number of events behind."""

    def seen(self, head: Store) -> Store:
        """What the controller reads."""
        return self.waiting[0][1] if self.waiting else head

    def behind(self, event: Event, before: Store) -> View:
        """The view once another event happened."""
        return View((*self.waiting, (event, before)), self.how)

    def delivered(self) -> tuple[Event, View | None]:
        """The oldest event, and the view after its delivery; None when it has caught up with the head."""
        event = self.waiting[0][0]
        rest = self.waiting[1:]
        return event, View(rest, self.how) if rest else None

    def moved(self, key: Key) -> tuple[Event, View | None]:
        """As `delivered`; `key` says of which tree, where there are cursors."""
        return self.delivered()

    def late(self, key: Key, lag: int) -> Key | None:
        """What must be delivered now that an event of `key` is too many: more than `lag` wait."""
        return self.moves()[0] if len(self.waiting) > lag else None

    def moves(self) -> list[Key]:
        """What can be delivered: the kind, or the first object of each tree."""
        first = self.waiting[0][0].key
        return [Key(first.group, first.kind, "", "")]

    @property
    def events(self) -> list[Event]:
        """What is still on its way."""
        return [event for event, _ in self.waiting]


class Cursors(View):
    """A view with a cursor for each tree. `waiting` is sorted by tree, so that the order in which events of different
    trees happened is no part of it."""

    __slots__ = ()

    def seen(self, head: Store) -> Store:
        """The head, with what is still to be delivered undone."""
        store, undone = head.fork(), set()
        for event, _ in self.waiting:
            if event.key not in undone:
                undone.add(event.key)
                if event.old is None:
                    store.remove(event.key, store.rev)
                else:
                    store.put(event.old)
        return store

    def behind(self, event: Event, before: Store) -> Cursors:
        """The view once another event happened."""
        trees = self.trees()
        tree = next((t for t, (other, _) in zip(trees, self.waiting, strict=True) if other.key == event.key), None)
        at = bisect_right(trees, tree or tree_of(event, before))
        return Cursors((*self.waiting[:at], (event, before), *self.waiting[at:]), self.how)

    def moved(self, key: Key) -> tuple[Event, View | None]:
        """The oldest event of the tree in which this object has the oldest one."""
        at = next(at for at, (event, _) in enumerate(self.waiting) if event.key == key)
        rest = (*self.waiting[:at], *self.waiting[at + 1 :])
        return self.waiting[at][0], Cursors(rest, self.how) if rest else None

    def late(self, key: Key, lag: int) -> Key | None:
        """The oldest event of the tree of `key`, when more than `lag` of that tree wait."""
        trees = self.trees()
        tree = next(tree for tree, (event, _) in zip(trees, self.waiting, strict=True) if event.key == key)
        return self.waiting[trees.index(tree)][0].key if trees.count(tree) > lag else None

    def moves(self) -> list[Key]:
        """The object of the oldest event of each tree."""
        first: dict[Key, Key] = {}
        for tree, (event, _) in zip(self.trees(), self.waiting, strict=True):
            first.setdefault(tree, event.key)
        return list(first.values())

    def trees(self) -> list[Key]:
        """The tree of each event that waits."""
        found: dict[Key, Key] = {}
        for event, before in self.waiting:
            if event.key not in found:
                found[event.key] = tree_of(event, before)
        return [found[event.key] for event, _ in self.waiting]


def tree_of(event: Event, before: Store) -> Key:
    """The tree that an event belongs to: the topmost owner of its object, as far as it is there."""
    obj: Object | None = event.obj
    key = event.key
    for _ in range(MAX_OWNERS):
        owners = () if obj is None else obj.meta.value.get("ownerReferences") or ()
        owner = next((each for each in owners if each.get("controller")), owners[0] if owners else None)
        if owner is None:
            break
        group = owner["apiVersion"].rpartition("/")[0]
        key = Key(group, owner["kind"], key.namespace, owner["name"])
        obj = before.get(key) or before.get(key._replace(namespace=""))
    return key


def coalesced(events: Iterable[Event], across: bool) -> list[Event]:
    """Events as a watch shows them that missed some: consecutive updates of an object as one. `across`: also across its
    end and its beginning, so that a deletion and a creation are one update, and what was created and deleted was never
    there. In the order of the last event of each."""
    out: dict[tuple[Key, int], Event] = {}
    last: dict[Key, tuple[Key, int]] = {}
    for number, event in enumerate(events):
        place = last.get(event.key)
        earlier = out.get(place) if place is not None else None
        if place is not None and earlier is not None and (across or "MODIFIED" == event.type == earlier.type):
            del out[place]
            event = event._replace(old=earlier.old)
        place = last[event.key] = (event.key, number)
        out[place] = event
    return [event for event in out.values() if event.old is not None or event.new is not None]


class Caches:
    """What the caches of one controller show: each kind as its own view has it. (A view keeps the whole store as it was
    before its first event; what that holds of other kinds is nobody's.)"""

    __slots__ = ("_head", "_views")

    def __init__(self, head: Store, views: Mapping[GK, View]) -> None:
        self._head = head
        self._views = views

    def find(self, index: str, value: str, gk: GK | None = None) -> Iterator[Object]:
        """As `Store.find`."""
        if gk is not None:
            view = self._views.get(gk)
            return (self._head if view is None else view.seen(self._head)).find(index, value, gk)
        found = {obj.key: obj for obj in self._head.find(index, value) if obj.key.gk not in self._views}
        for kind, view in self._views.items():
            found.update({obj.key: obj for obj in view.seen(self._head).find(index, value, kind)})
        return iter([found[key] for key in sorted(found)])
