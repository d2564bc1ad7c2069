"""Actions: the atomic, labelled transitions of a world. A label is stable text; a Schedule is a list of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from .faults import ABOUT_A_KIND
from .object import Key

NO_KEY: Final = Key("", "", "", "")


class Action(NamedTuple):
    """One transition. `op` is one of

    `run` (take an item from the work queue), `cont` (perform the next call of a reconcile in flight), `turn` (both, up
    to and with the next write), `call` and `commit` (the two halves of a write behind a webhook), `deliver`
    (one event to a lagging view), `fire` (a timer), `user`, `advance` (a component), or a fault or what ends one: see
    `kernel.faults`.
    """

    op: str
    who: str
    """The controller, user or component."""
    key: Key = NO_KEY
    """The item; the kind (its name is "") where a view of it is meant."""
    number: int = 0
    """cont, turn, call, commit and the faults of a call: which of the reconcile, from 1; what befalls objects: how."""

    @property
    def label(self) -> str:
        """Stable text, such as `cont replicaset/ReplicaSet.apps default/web#3`."""
        if self.op in ABOUT_A_KIND and not self.key.name:
            kind = f"{self.key.kind}.{self.key.group}" if self.key.group else self.key.kind
            return f"{self.op} {self.who}/{kind}"
        item = self.who if self.key is NO_KEY or self.key == NO_KEY else f"{self.who}/{self.key}"
        return f"{self.op} {item}#{self.number}" if self.number else f"{self.op} {item}"

    def __str__(self) -> str:
        return self.label
