"""What only faults and roll-outs make of a world; a world that has none of it holds None."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .identity import term

if TYPE_CHECKING:
    from .system import System


class Rare(NamedTuple):
    """What only faults and roll-outs make of a world. Part of its identity as it is."""

    down: frozenset[int] = frozenset()
    """Instances of controllers that do not run: not yet, or not any more."""

    @staticmethod
    def first(system: System) -> Rare | None:
        """What a world begins with."""
        if not system.relays:
            return None
        return Rare(down=frozenset([relay.second for relay in system.relays]))

    def identity(self) -> int:
        """Its part of the fingerprint."""
        return term("rare", tuple(sorted(self.down)))
