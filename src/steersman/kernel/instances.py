"""Instances: a controller that runs twice for a while, as two leaders do, or the old and the new version in a roll-out.

An instance that waits for its turn is a loop like the others, but *down*: it hears of nothing and does nothing until an
Action starts it. Both instances write under one name; memory, queue, views and what is in flight are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .effect import GK, Event
from .object import Key
from .reexec import Exchange, Reconciler, Result
from .store import Finder, Store
from .value import Frozen


class Instance:
    """A second instance of a controller (`kernel.reexec.Reconciler`). `name` is how Actions call it; `actor` is how it
    signs what it writes."""

    def __init__(self, loop: Reconciler, name: str) -> None:
        self._loop = loop
        self.name = name
        self.actor = loop.name
        self.workers = loop.workers
        self.code = loop.code
        self.informers: tuple[GK, ...] = loop.informers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def listens(self, gk: GK) -> bool:
        """As the controller does."""
        return self._loop.listens(gk)

    def triggers(self, event: Event, store: Finder) -> Sequence[Key]:
        """As the controller does."""
        return self._loop.triggers(event, store)

    def initial(self, store: Store) -> Sequence[Key]:
        """As the controller does."""
        return self._loop.initial(store)

    def execute(self, key: Key, memory: Frozen | None, exchange: Exchange) -> Result:
        """As the controller does."""
        return self._loop.execute(key, memory, exchange)


class Upgrade(NamedTuple):
    """The new version of a controller, which takes over from the old one at any time, once."""

    old: str
    """The name of the controller."""
    new: Reconciler
    overlap: bool = True
    """The old one goes on for a while; else it ends when the new one starts."""


class Relay(NamedTuple):
    """Two loops of which the second takes over from the first."""

    op: str
    """The Action that starts the second: `lead` (a fault) or `upgrade`."""
    first: int
    second: int
    overlap: bool = True


def relays(
    loops: Sequence[Reconciler], upgrades: Sequence[Upgrade], leaders: bool
) -> tuple[list[Reconciler], tuple[Relay, ...]]:
    """All loops of a system, those of the second instances at the end, and who takes over from whom."""
    every, out = list(loops), []
    for first, loop in enumerate(loops):
        if leaders:
            out.append(Relay("lead", first, len(every)))
            every.append(Instance(loop, f"{loop.name}(2)"))
        for upgrade in upgrades:
            if upgrade.old == loop.name:
                out.append(Relay("upgrade", first, len(every), upgrade.overlap))
                every.append(Instance(upgrade.new, f"{loop.name}(new)"))
    return every, tuple(out)
