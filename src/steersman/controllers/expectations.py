"""What a controller has done that its view may not show yet.

Kubernetes' controllers count the creations and deletions they expect to see and do nothing until the counts are met or
five minutes have passed (pkg/controller/controller_utils.go). Here the expectations are facts: the uids of what was
created or adopted and of what was deleted. A created object that the view does not show is read live, so it counts as
what it is; a deleted one is left out, since a deletion is never taken back. So nothing is waited for and nothing
expires: an object that was created and went away again unseen is found to be gone at the next look (see `again`).

Facts live in `c.memory`. A crash loses them, and then the lists begin anew, at the head.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.client import Client, key_of
from steersman.controllers.owned import controlled_by
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

LOOK_AGAIN: Final = 300.0
"""Seconds; as long as Kubernetes waits for what it expects (ExpectationsTimeout)."""


class Expectations:
    """The facts about one owner's objects. Every change is remembered at once: the next call may be the last."""

    def __init__(self, c: Client, owner: Key, uid: str, finalizer: str = "") -> None:
        """`finalizer`: one that the owner puts on its objects, and takes off (`freed`)."""
        self._c = c
        self._finalizer = finalizer
        self._place = f"{owner.namespace}/{owner.name}"
        self._uid = uid
        known = c.memory.get(self._place) or EMPTY
        if known and known["uid"] != uid:
            known = EMPTY  # another incarnation's
        self._made: dict[str, str] = dict(known.get("made") or EMPTY)
        self._new: list[str] = []
        """What was made since this reconcile began: what it saw tells nothing of it."""
        self._unseen = False
        self._gone: list[str] = list(known.get("gone") or ())
        self._freed: list[str] = list(known.get("freed") or ())

    @staticmethod
    def adopted(c: Client, owner: Any, obj: Any) -> None:
        """Remembers that an object was adopted: as if it had been created."""
        Expectations(c, key_of(owner), owner["metadata"]["uid"]).made(obj)

    @staticmethod
    def forget(c: Client, owner: Key) -> None:
        """Drops what is remembered about an owner that is gone."""
        place = f"{owner.namespace}/{owner.name}"
        if place in c.memory:
            del c.memory[place]

    def made(self, obj: Any) -> None:
        """Remembers a creation, or an adoption."""
        self._made[obj["metadata"]["uid"]] = obj["metadata"]["name"]
        self._new.append(obj["metadata"]["uid"])
        self._keep()

    def gone(self, obj: Any) -> None:
        """Remembers a deletion."""
        self._gone.append(obj["metadata"]["uid"])
        self._keep()

    def freed(self, obj: Any) -> None:
        """Remembers that the finalizer was taken off."""
        self._freed.append(obj["metadata"]["uid"])
        self._keep()

    def is_freed(self, obj: Any) -> bool:
        """Whether the finalizer was taken off, although the view shows it."""
        return obj["metadata"]["uid"] in self._freed

    def is_gone(self, obj: Any) -> bool:
        """Whether it was deleted, although the view shows it alive."""
        return obj["metadata"]["uid"] in self._gone

    def missing(self, seen: list[Any], gk: tuple[str, str], namespace: str) -> list[Any]:
        """What was created and is not among `seen`, but is there, and still owned, by a live read. Facts that `seen`
        confirms are dropped, and so are those that the live read disproves."""
        alive = {obj["metadata"]["uid"]: "deletionTimestamp" not in obj["metadata"] for obj in seen}
        before = (len(self._made), len(self._gone), len(self._freed))
        self._gone = [uid for uid in self._gone if alive.get(uid)]
        if self._freed:
            bound = [obj["metadata"]["uid"] for obj in seen if self._finalizer in obj["metadata"].get("finalizers", ())]
            self._freed = [uid for uid in self._freed if uid in bound]
        found = []
        for uid, name in [each for each in self._made.items() if each[0] not in self._new]:
            live = None if uid in alive else self._c.get(Key(*gk, namespace, name), fresh=True)
            if live is not None and live["metadata"]["uid"] == uid and controlled_by(live, self._uid):
                found.append(live)
                self._unseen = True
            else:
                del self._made[uid]
        if (len(self._made), len(self._gone), len(self._freed)) != before:
            self._keep()
        return found

    @property
    def again(self) -> float | None:
        """Seconds until the owner is to be looked at again: None where `missing` found nothing. What it found may go
        away before the view has shown it, and then no news of it ever comes."""
        return LOOK_AGAIN if self._unseen else None

    def _keep(self) -> None:
        if self._made or self._gone or self._freed:
            facts = {"uid": self._uid, "made": self._made, "gone": self._gone}
            self._c.memory[self._place] = {**facts, "freed": self._freed} if self._freed else facts
        else:
            del self._c.memory[self._place]
