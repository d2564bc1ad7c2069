"""What only few worlds have: instances that do not run, external systems with a state, a clock that was set back. A
world that has none of it holds None in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from .identity import digest, term
from .object import SORTED

if TYPE_CHECKING:
    from .system import System

HOUR: Final = 3_600 * 1_000_000
"""How far a clock jumps, at least: more than any delay but a day's. Microseconds."""
NOBODY: Final[Mapping[str, Any]] = {}


class Rare(NamedTuple):
    """See the module's text. A value; part of a world's identity as it is."""

    down: frozenset[int] = frozenset()
    """Instances of controllers that do not run: not yet, or not any more."""
    outside: Mapping[str, Any] = NOBODY
    """The states of external systems, by name."""
    before: Mapping[str, Any] = NOBODY
    """What their states were before they last changed, where an old answer may still be given."""
    skew: int = 0
    """What the wall clock shows more than it should (microseconds)."""

    @staticmethod
    def first(system: System) -> Rare | None:
        """What a world begins with."""
        rare = Rare(frozenset([relay.second for relay in system.relays]), system.outside)
        return None if rare == Rare() and not system.budgets.has("set-back") else rare

    @property
    def contents(self) -> int:
        """A digest of the external systems: with the store's, what there is."""
        return digest("outside", _text(self.outside)) if self.outside else 0

    def identity(self) -> int:
        """Its part of the fingerprint."""
        total = term("rare", tuple(sorted(self.down)), self.skew) + self.contents
        return total + digest("outside before", _text(self.before)) if self.before else total

    def changed(self, name: str, state: Any, keep: bool) -> Rare:
        """Another state of an external system. `keep`: old answers may be given later."""
        before = {**self.before, name: self.outside[name]} if keep else self.before
        return self._replace(outside={**self.outside, name: state}, before=before)


def _text(states: Mapping[str, Any]) -> bytes:
    return orjson.dumps(states, option=SORTED)
