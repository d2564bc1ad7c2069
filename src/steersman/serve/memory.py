"""A control plane in memory: one store, the request machine, a change log; nothing durable, no controllers.

It is the Backend behind `steersman.testing.control_plane()` and behind the tests of the HTTP face.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any, Final

from steersman.api import names
from steersman.api.admission.priority import SYSTEM_CLASSES
from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.errors import AlreadyExists, internal
from steersman.api.kinds import Kinds
from steersman.api.policy import born, default_policy
from steersman.api.rules.flow_rules import first_objects
from steersman.kernel.changelog import ChangeLog
from steersman.kernel.effect import GK, Call, Commit, Event, Reply, Request, reply_of
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.serve.asking import ASKED, MAX_BEGINS, Asked, Asking, Trail, too_often
from steersman.serve.credentials.signer import Signer
from steersman.serve.hooks import Hooks
from steersman.serve.random_uuid import random_uuid
from steersman.serve.registration import local_services
from steersman.serve.served import Served
from steersman.serve.wakeups import Wakeups

NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Namespaces that every cluster has from its start."""
FIRST_OBJECTS: Final[tuple[tuple[Key, dict[str, Any]], ...]] = (
    *[
        (Key("", "Namespace", "", name), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in NAMESPACES
    ],
    *[(Key("scheduling.k8s.io", "PriorityClass", "", name), body) for name, body in SYSTEM_CLASSES.items()],
    *first_objects(),
)
"""Objects that every cluster has from its start: namespaces, the system's PriorityClasses, flows and their levels."""
APISERVER: Final = "system:apiserver"
"""The actor of the server's own writes."""


def draw(question: Any) -> str:
    """A random uid or name suffix."""
    return random_uuid() if question[0] == "uid" else names.name_suffix(secrets.token_bytes(8))


def wall_clock() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


class MemoryBackend:
    """See the module's text. `store` may already have objects; `clock`, `draw` and `asking` (who calls webhooks) can be
    replaced for tests."""

    def __init__(
        self,
        api: Api | None = None,
        store: Store | None = None,
        *,
        clock: Callable[[], int] = wall_clock,
        draw: Callable[[Any], str] = draw,
        log: ChangeLog | None = None,
        signer: Signer | None = None,
        asking: Asking | None = None,
    ) -> None:
        self.api = api or Api(Kinds.builtin(), admission=standard(controllers=()))
        self.store = Store() if store is None else store
        self.now = clock
        self._draw = draw
        self.signer = signer or Signer()
        self.asking = asking or Hooks()
        self._log = ChangeLog(self.store.rev) if log is None else log  # an empty log is falsy
        self._wakeups = Wakeups()

    async def write(self, request: Request, large: bool = False) -> Reply:
        """Carries out a request, at once where no webhook has to be asked. Raises `ApiError`."""
        trail: Trail = ()
        for _ in range(MAX_BEGINS):
            try:
                return self._attempt(request, trail)
            except Asked as asked:
                trail = asked.with_answer(await self.asking.call(asked.kind, asked.question))
        raise too_often(request)

    def write_now(self, request: Request) -> Reply:
        """`write` without a loop, for setting a scene: no webhook can be asked."""
        try:
            return self._attempt(request, ())
        except Asked as asked:
            raise internal(f"nobody answers calls of kind {asked.kind!r} here; await write()") from None

    def _attempt(self, request: Request, trail: Trail) -> Reply:
        """One begin of a request. Raises `ApiError`, and `Asked` where a webhook has to be asked first."""
        told: list[tuple[Any, Any]] = []
        outcome = self.api.begin(self.store, request)
        while isinstance(outcome, Call):
            place, question = len(told), outcome.question
            if outcome.kind == "sign":
                outcome = outcome.resume(self.signer.sign(*question))
                continue
            if place < len(trail) and trail[place][0] == question:
                answer = trail[place][1]
            elif outcome.kind == "random":
                answer = self._draw(question)
            elif outcome.kind in ASKED:
                raise Asked(outcome.kind, question, told)
            else:
                raise internal(f"nobody answers calls of kind {outcome.kind!r} here")
            told.append((question, answer))
            outcome = outcome.resume(answer)
        if isinstance(outcome, Reply):
            return outcome
        return self._commit(outcome)

    def _commit(self, commit: Commit) -> Reply:
        event = self.store.commit(commit)
        if event is None:  # begin and commit stand in one turn of the loop
            raise internal(f"{commit.key} changed between begin and commit")
        self._log.append(event)
        self._wakeups.notify(event.key.gk, event.rev)
        return reply_of(commit, event)

    def since(self, gk: GK, rev: int) -> list[Event]:
        """Events of a kind after a revision. Raises `Gone`."""
        return self._log.since(rev, gk)

    async def changed(self, gk: GK, rev: int) -> None:
        """Returns when there are events of the kind after `rev`."""
        await self._wakeups.wait(gk, rev)

    @property
    def watchers(self) -> int:
        """How many wait for events."""
        return len(self._wakeups)

    def bootstrap(self) -> None:
        """Makes what every cluster has and this one lacks."""
        for key, body in (*FIRST_OBJECTS, *local_services(Served(Kinds.builtin()).groups)):
            try:
                self.write_now(Request("create", key, body, actor=APISERVER, manager="steersman", now=self.now()))
            except AlreadyExists:
                continue
        for key, _ in default_policy():
            if self.store.get(key) is None:
                uid = self._draw(("uid", key))
                self._commit(Commit(key, None, born(self.api.kinds.get(*key.gk), key, uid, self.now()), 201))
