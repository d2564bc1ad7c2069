"""One workspace: a world of its own, with its store and journal, its controllers and its HTTP face."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.controller import Controller, Loop, controller_name
from steersman.api.errors import AlreadyExists
from steersman.api.kinds import Kinds
from steersman.api.policy import default_policy, reconciled
from steersman.controllers.builtin import ALL, CLUSTER
from steersman.controllers.root_ca import SOURCE, SOURCE_FIELD
from steersman.journal import Journal
from steersman.kernel.component import Component
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.kernel.ports import NodeStreams
from steersman.kernel.value import Frozen
from steersman.nodes.component import VirtualNodes
from steersman.nodes.heartbeats import Heartbeats
from steersman.nodes.stages import USUAL, Stages
from steersman.nodes.usage import OUTSIDE
from steersman.run.crew import Crew
from steersman.run.exchange import Driver
from steersman.run.head import Heads
from steersman.run.load import StartError
from steersman.run.loops import Loops
from steersman.run.seed import Seed
from steersman.run.virtual import make_nodes
from steersman.serve.app import App
from steersman.serve.audit.log import AuditLog
from steersman.serve.audit.policy import Policy as AuditPolicy
from steersman.serve.audit.trail import Auditor
from steersman.serve.credentials.front_proxy import published
from steersman.serve.credentials.issuers.provider import Issuers
from steersman.serve.credentials.signer import Signer
from steersman.serve.credentials.tls import Authority
from steersman.serve.credentials.tokens import Tokens
from steersman.serve.health import INFORMED, SHUTDOWN, STORAGE
from steersman.serve.hooks import Hooks
from steersman.serve.memory import APISERVER, FIRST_OBJECTS
from steersman.serve.registration import local_services
from steersman.serve.served import Served
from steersman.serve.upstream.aggregator import FrontProxy

log = logging.getLogger("steersman.run")

GRACE_SECONDS: Final = 5.0
"""What reconciles in flight get at a stop."""
SCHEDULER: Final = "kube-scheduler"
KUBELET: Final = "kubelet"
CONCERNS: Final = (("", "Node"), ("", "Pod"))
"""What scheduler and virtual nodes are about."""


class Audit(NamedTuple):
    """The audit log of a process, and what it is told of one workspace."""

    log: AuditLog
    policy: AuditPolicy
    workspace: str = ""
    """"" for the root."""


@dataclass(frozen=True)
class Shared:
    """What all workspaces of one process have in common."""

    tokens: Tokens
    authority: Authority
    signer: Signer
    controllers: Sequence[type[Controller]] = (*ALL, *CLUSTER)
    drivers: Mapping[str, Driver] = field(default_factory=dict)
    definitions: Sequence[Mapping[str, Any]] = ()
    """Of the custom kinds that `controllers` are about; somebody applies them."""
    virtual_nodes: int = 0
    without: Sequence[str] = ()
    """Components that somebody else runs."""
    elsewhere: Sequence[str] = ()
    """Names of controllers that somebody else runs: admission may count on them."""
    streams: NodeStreams | None = None
    """Who answers logs, exec and port-forward."""
    stages: Stages = USUAL
    """How long the life of a pod on a virtual node takes."""
    audit: Audit | None = None
    """Where requests are written down, and which; nowhere by default."""
    appenders: Executor | None = None
    """Who appends to journals, where a workspace has no thread of its own for that."""
    crew: Crew = field(default_factory=Crew)
    """Threads of controllers and components."""
    seed: Seed = field(default_factory=Seed)
    """What every new workspace has, once one has been made."""
    issuers: Issuers = field(default_factory=Issuers)
    """Who else makes tokens that are believed."""
    stopping: Callable[[], bool] = lambda: False
    """Whether somebody asked the process to end."""
    front: tuple[FrontProxy, Authority] | None = None
    """The certificate that aggregated API servers know this one by, and who signed it."""


class _Life:
    """How far a workspace is, for its checks of health, which must not keep it."""

    def __init__(self, stopping: Callable[[], bool]) -> None:
        self.started = self.stopped = False
        self._stopping = stopping

    def uninformed(self) -> str:
        """Why nobody follows the objects yet; "" as soon as the controllers have seen them all."""
        return "" if self.started else "the controllers and watches of this workspace have not started"

    def ending(self) -> str:
        """Why nobody is to be sent here any more."""
        return "process is shutting down" if self.stopped or self._stopping() else ""


class Workspace:
    """See the module's text. All methods are called from the event loop's thread."""

    def __init__(self, journal: Journal, shared: Shared) -> None:
        """Takes the journal's lease and loads the store. Raises `StartError` and `JournalError`."""
        self._shared = shared
        admission = standard(controllers={*map(controller_name, shared.controllers), *shared.elsewhere})
        api = Api(Kinds.builtin(), admission=admission)
        self.heads = Heads(api, journal, holder=f"process {os.getpid()}", pool=shared.appenders)
        self.heads.signer = shared.signer
        self.heads.questions.asking = Hooks()
        self.loaded = (self.heads.store.rev, sum(1 for _ in self.heads.store.objects()))
        """Revision and number of objects at the start."""
        life = self._life = _Life(self._shared.stopping)
        checks = {STORAGE: self.heads.trouble, INFORMED: life.uninformed, SHUTDOWN: life.ending}
        auditor = None if shared.audit is None else Auditor(*shared.audit[:2], self.heads.now, shared.audit.workspace)
        self.app = App(self.heads, shared.tokens, checks, self.heads.numbers, shared.streams, auditor)
        self.app.aggregator.front = shared.front[0] if shared.front is not None else None
        self.app.access.issuers = shared.issuers
        self._aggregating: asyncio.Task[None] | None = None
        known = _known(shared.definitions, self.heads.api)
        loops = [Loop(controller, known) for controller in shared.controllers]
        drivers = {**OUTSIDE, **shared.drivers}
        components = _components(shared.without, shared.stages)
        self._loops = Loops(self.heads, loops, components, drivers, concerns=CONCERNS, crew=shared.crew)

    async def open(self) -> None:
        """Begins to write, and makes what every cluster has and this one lacks."""
        self.heads.start()
        store, seed = self.heads.store, self._shared.seed
        new = store.rev == 0
        if new and seed.objects:
            await self.heads.bear(seed.sprout(self.heads.now()), APISERVER)
        else:
            objects = (*FIRST_OBJECTS, *local_services(Served(Kinds.builtin()).groups))
            first = [self._make(key, body) for key, body in objects if store.get(key) is None]
            await asyncio.gather(*first, *[self._policy(key, body) for key, body in default_policy()])
            await asyncio.gather(self._publish(), self.app.aggregator.tell_local())
            if new:
                seed.keep(store)
        await make_nodes(self.heads, self._shared.virtual_nodes)

    def start(self, url: str) -> None:
        """Starts the controllers of a workspace that clients reach at `url`."""
        self.app.url = url
        self._loops.start()
        self._life.started = True
        self._aggregating = asyncio.get_running_loop().create_task(self.app.aggregator.run())

    async def stop(self) -> None:
        """Ends the controllers; reconciles in flight may end within `GRACE_SECONDS`."""
        self._life.stopped = True
        if self._aggregating is not None:
            self._aggregating.cancel()
            await asyncio.gather(self._aggregating, return_exceptions=True)
        if self._life.started:
            for name in await asyncio.to_thread(self._loops.stop, GRACE_SECONDS):
                log.warning("%s did not stop within %.0f s and is left behind", name, GRACE_SECONDS)

    async def close(self) -> None:
        """Makes durable what there is, and refuses all further writes."""
        await self.heads.close()

    async def _make(self, key: Key, body: Mapping[str, Any]) -> None:
        with contextlib.suppress(AlreadyExists):
            await self.heads.write(Request("create", key, body, actor=APISERVER, manager="steersman"))

    async def _policy(self, key: Key, body: Mapping[str, Any]) -> None:
        """Makes a default role or binding that is missing, or adds what is missing in it."""
        found = self.heads.store.get(key)
        if found is None:
            await self._make(key, body)
            return
        patch = reconciled(found.value, body)
        if patch is not None:
            options = Frozen({"patch": "merge"})
            await self.heads.write(Request("patch", key, patch, actor=APISERVER, manager="steersman", options=options))

    async def _publish(self) -> None:
        """The certificates of authorities where clients and controllers look for them, as kube-apiserver publishes
        them."""
        data = {SOURCE_FIELD: self._shared.authority.pem.decode("ascii")}
        if self._shared.front is not None:
            data.update(published(self._shared.front[1]))
        found = self.heads.store.get(SOURCE)
        if found is None:
            meta = {"name": SOURCE.name, "namespace": SOURCE.namespace}
            await self._make(SOURCE, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        elif found.value.get("data", {}) != data:
            request = Request("patch", SOURCE, {"data": data}, actor=APISERVER, manager="steersman")
            await self.heads.write(request)


def _known(definitions: Sequence[Mapping[str, Any]], api: Api) -> Api:
    """The request machine with these definitions' kinds, for controllers, which say what they are about before
    anybody has applied a definition. Raises `StartError`."""
    kinds = api.kinds
    try:
        for definition in definitions:
            kinds = kinds.with_custom(Kinds.custom_from_yaml_dict(definition, "definitions"))
    except ValueError as error:
        raise StartError(str(error)) from None
    return Api(kinds, admission=api.admission) if definitions else api


def _components(without: Sequence[str], stages: Stages) -> list[Component]:
    made: list[Component] = []
    if SCHEDULER not in without:
        from steersman.sched.component import SchedulerComponent  # brings numpy, which nothing else needs

        made.append(SchedulerComponent(events=True))
    return made if KUBELET in without else [*made, VirtualNodes(stages=stages, events=True), Heartbeats()]
