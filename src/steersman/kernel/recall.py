"""What is remembered of reconciles beyond one search, by whoever can keep it: the kernel only asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .effect import Effect

if TYPE_CHECKING:
    from .reexec import Learned, Node, Outcome, Reexec, Result


class Recalled(NamedTuple):
    """What one step of a reconcile came to, found in order by a second execution: a call, a result, or what the search
    has to learn from it."""

    effect: Effect | None
    version: int
    """See `reexec.Node.version`."""
    result: Result | None
    learned: Learned | None


class Recall(Protocol):
    """A memory of steps, by the code of the controller and everything that was read."""

    def find(self, reexec: Reexec, node: Node, journal: Sequence[Outcome]) -> Recalled | None:
        """What the step is known to come to; None: it has to be executed."""

    def keep(self, reexec: Reexec, node: Node, journal: Sequence[Outcome], learned: Learned | None) -> None:
        """Takes in what a step came to: `node` has it, or `learned`."""
