"""Actions: the atomic, labelled transitions of a world. A label is stable text; a Schedule is a list of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from .object import Key

NO_KEY: Final = Key("", "", "", "")


class Action(NamedTuple):
    """One transition. `op` is one of

    `run` (take an item from the work queue), `cont` (perform the next call of a reconcile in flight), `call` and
    `commit` (the two halves of a write behind a webhook), `conflict` (that call fails with 409 instead), `deliver`
    (one event to a lagging view), `fire` (a timer), `crash`, `user`, `advance` (a component).
    """

    op: str
    who: str
    """The controller, user or component."""
    key: Key = NO_KEY
    """The item; for `deliver` the kind (its name is "")."""
    number: int = 0
    """cont, call, commit, conflict: which call of the reconcile, from 1."""

    @property
    def label(self) -> str:
        """Stable text, such as `cont replicaset/ReplicaSet.apps default/web#3`."""
        if self.op == "deliver":
            kind = f"{self.key.kind}.{self.key.group}" if self.key.group else self.key.kind
            return f"deliver {self.who}/{kind}"
        item = self.who if self.key is NO_KEY or self.key == NO_KEY else f"{self.who}/{self.key}"
        return f"{self.op} {item}#{self.number}" if self.number else f"{self.op} {item}"

    def __str__(self) -> str:
        return self.label
