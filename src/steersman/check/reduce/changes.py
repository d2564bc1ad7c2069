"""What changed for whom, on every transition of a search: what the guesses of the reductions are verified against.

A *change* is an event that somebody can see: at the head at once, or, for a controller whose view lags, when it is
delivered. A *read* is a question that a reconcile of one item asks; a change affects it when the answer may be another
one afterwards. The log keeps numbers of distinct changes only: equal writes are made again and again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from steersman.check.graph import Graph
from steersman.check.reduce.watched import Watched
from steersman.kernel.action import Action
from steersman.kernel.effect import GK, Effect, Event, ListQuery
from steersman.kernel.object import Key, Object
from steersman.kernel.store import EVERY, NAMED, Index
from steersman.kernel.system import System
from steersman.kernel.value import EMPTY
from steersman.kernel.world import Item, World

HEAD: Final = -1
"""Who sees a change: everybody who reads the head."""


class Change(NamedTuple):
    """One event as somebody sees it, or names that a controller remembers otherwise."""

    viewer: int
    """The controller whose view shows it, or HEAD."""
    actor: int
    """The controller whose step it was, or -1."""
    item: Item | None
    """The item whose step it was."""
    event: Event | None
    woken: tuple[Item, ...] = ()
    """The items that it put on a queue."""
    names: tuple[str, ...] = ()
    """Without an event: what `viewer` remembers otherwise since."""


class Read(NamedTuple):
    """A question that a reconcile asks: an effect that reads, or a name that its controller remembers."""

    item: Item
    effect: Effect | None
    name: str = ""


class Log:
    """The changes of one search, by the state in which they happened; and all reads that count."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.changes: list[Change] = []
        self.reads: list[Read | None] = []
        self.collapsed: Callable[[str], str] | None = None
        """A text with something common in the place of generated names, where states are merged that differ in them
        only: what is said of one such name is then said of all."""
        self.looked: list[Effect] = []
        """What the last transition looked at to tell whom its events wake (the `find` of `map_event`)."""
        self.elsewhere: dict[int, tuple[int, int]] = {}
        """What changes, by number, mean for the reads that other processes made: their masks (`Settler.masks`). These
        reads have numbers here, and are None in `reads`."""
        self._change_of: dict[object, int] = {}
        self._read_of: dict[object, int] = {}
        self._state = array("I")
        self._number = array("I")
        indexes: tuple[Index, ...] = ()
        self._indexes: dict[str, Index] = {index.name: index for index in indexes}

    def read(self, item: Item, effect: Effect | None, name: str = "") -> int:
        """The number of a read."""
        if effect is None:
            place: object = (item, name)
        elif effect.op == "list":
            place = (item, effect.what[:5], effect.fresh)
        else:
            place = (item, effect.what, effect.fresh)
        number = self._read_of.get(place)
        if number is None:
            number = self._read_of[place] = len(self.reads)
            self.reads.append(Read(item, effect, name))
        return number

    def note(self, state: int, before: World, action: Action, after: World) -> list[Change]:
        """Notes what a transition changed, and gives it."""
        delivered = before.views is not after.views and before.views
        remembered = before.memory is not after.memory
        self.looked = []
        if not (after.events or delivered or remembered):
            return []
        made: list[Change] = []
        if not self._indexes:
            self._indexes = {index.name: index for index in after.store.config.indexes}
        loops = self.system.loops
        known = action.op in ("run", "cont", "turn", "call", "commit", "conflict")
        actor = self.system.loop_index(action.who) if known else -1
        item = (actor, action.key) if known else None
        head = Watched.of(after.store, self.looked.append)
        for event in after.events:
            woken: list[Item] = []
            for loop in self.system.listeners(event.key.gk):
                if not (self.system.lag and event.key.gk in self.system.informers[loop]):
                    woken.extend([(loop, key) for key in loops[loop].triggers(event, head)])
            made.append(Change(HEAD, actor, item, event, tuple(woken)))
        if action.op == "crash":
            return []  # every key is on its queue again; views and memory begin anew
        if delivered or (self.system.lag and after.events):
            for loop, event in self._delivered(before, after):
                heard: tuple[Item, ...] = ()
                if loops[loop].listens(event.key.gk):
                    view = after.views.get((loop, event.key.gk))
                    seen = head if view is None else Watched.of(view.seen(after.store), self.looked.append)
                    heard = tuple([(loop, key) for key in loops[loop].triggers(event, seen)])
                made.append(Change(loop, actor, item, event, heard))
        if remembered:
            for loop in before.memory.keys() | after.memory.keys():
                old, new = before.memory.get(loop) or EMPTY, after.memory.get(loop) or EMPTY
                names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
                if names:
                    made.append(Change(loop, actor, item, None, (), tuple(names)))
        for change in made:
            self._add(state, change)
        return made

    def again(self, state: int, changes: Iterable[Change]) -> None:
        """The same changes, in another state."""
        for change in changes:
            self._add(state, change)

    @staticmethod
    def _delivered(before: World, after: World) -> Iterator[tuple[int, Event]]:
        """The events that views came to show on a step."""
        for place in dict.fromkeys((*before.views, *after.views)):
            old, new = before.views.get(place), after.views.get(place)
            if old is new:
                continue
            waiting = () if old is None else old.waiting
            made = tuple([event for event in after.events if event.key.gk == place[1]])
            line = (*[event for event, _ in waiting], *made)
            left = 0 if new is None else len(new.waiting)
            for event in line[: len(line) - left]:
                yield place[0], event

    @property
    def notes(self) -> tuple[array[int], array[int]]:
        """States, and the numbers of the changes that happened in them."""
        return self._state, self._number

    def _add(self, state: int, change: Change) -> None:
        self._state.append(state)
        self._number.append(self.number(change))

    def number(self, change: Change) -> int:
        """The number of a change."""
        canon = self.system.canon
        event = change.event
        if event is None:
            place: object = (change.viewer, change.item, change.names)
        else:
            old = 0 if event.old is None else canon.of(event.old)
            new = 0 if event.new is None else canon.of(event.new)
            place = (change.viewer, change.item, event.key, old, new, change.woken)
        number = self._change_of.get(place)
        if number is None:
            number = self._change_of[place] = len(self.changes)
            self.changes.append(change)
        return number

    # -- what a change means for a read -------------------------------------------------------------------------

    def visible(self, change: Change, read: Read) -> bool:
        """Whether a change shows where a read looks, and can be the answer another one afterwards."""
        event, effect = change.event, read.effect
        if event is None or effect is None:
            same = event is None and effect is None and change.viewer == read.item[0]
            name, names = self._whoever(read.name), [self._whoever(name) for name in change.names]
            return same and name in (*names, "*")
        return self.sees(change.viewer, read) and self.affects(effect, event)

    def sees(self, viewer: int, read: Read) -> bool:
        """Whether a read looks where a viewer's changes show."""
        effect, loop = read.effect, read.item[0]
        assert effect is not None
        gk: GK = effect.what.gk
        cached = self.system.lag and not effect.fresh and gk in self.system.informers[loop]
        return viewer == (loop if cached else HEAD)

    def affects(self, effect: Effect, event: Event) -> bool:
        """Whether the answer to a get or list may be another one after an event."""
        if effect.op == "get":
            return self.same(effect.what, event.key)
        query: ListQuery = effect.what
        if query.gk not in (event.key.gk, EVERY) or query.namespace not in (None, event.key.namespace):
            return False
        if self._whoever(query.value) != query.value or self._whoever(query.text) != query.text:
            return True
        return any(obj is not None and self._matches(query, event.key, obj) for obj in (event.old, event.new))

    def same(self, a: Key, b: Key) -> bool:
        """Whether two keys are one, or may be where names do not count."""
        return a == b or (a[:3] == b[:3] and self._whoever(a.name) == self._whoever(b.name))

    def woken(self, change: Change, item: Item) -> bool:
        """Whether a change put an item on its queue, or was made by it."""
        made = (change.item,) if change.item is not None else ()
        return any(item[0] == other[0] and self.same(item[1], other[1]) for other in (*change.woken, *made))

    def _whoever(self, text: str) -> str:
        return text if self.collapsed is None else self.collapsed(text)

    def _matches(self, query: ListQuery, key: Key, obj: Object) -> bool:
        if query.by == NAMED:
            if key.name != query.value:
                return False
        elif query.by:
            index = self._indexes.get(query.by)
            if index is not None and (index.gk not in (None, key.gk) or query.value not in index.values(obj)):
                return False
        return query.matches is None or bool(query.matches(obj))

    # -- the future of every state ------------------------------------------------------------------------------

    def futures(self, graph: Graph, masks: list[int]) -> list[int]:
        """For every state the union of `masks` (by number of a change) over all that can happen from there on."""
        out = [0] * len(graph)
        for state, number in zip(self._state, self._number, strict=True):
            out[state] |= masks[number]
        targets = [tuple(dict.fromkeys([target for _, target in graph.edges(state)])) for state in range(len(graph))]
        again = any(out)
        while again:
            again = False
            for state in range(len(graph) - 1, -1, -1):
                found = mine = out[state]
                for target in targets[state]:
                    found |= out[target]
                if found != mine:
                    out[state] = found
                    again = True
        return out
