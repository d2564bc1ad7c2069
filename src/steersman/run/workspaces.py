"""Every workspace of a control plane: the root, and one for each Workspace object in it.

`/clusters/NAME/…` is the API of workspace NAME, and `/clusters/root/…` that of the root, which is also served without
a prefix (kcp's convention). A workspace is a world of its own: its own revision, journal, definitions, controllers and
RBAC; only the schemas of built-in kinds, the credentials of the token store and the certificate authority are shared.
So certificates are signed for requests in the root alone: what the authority signs is believed in every workspace.
Workspaces are made and deleted as objects of the root:

    kubectl create -f - <<< '{"apiVersion": "steersman.dev/v1", "kind": "Workspace", "metadata": {"name": "blue"}}'

By the time the create is answered, `/clusters/blue` serves. Deleting the object ends the world and removes its journal.
One whose journal is damaged or gone is Failed, and all others are served.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from steersman.api import errors
from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.controllers.certificates import CertificateApproving, CertificateSigning
from steersman.journal import JournalError
from steersman.kernel.effect import Event, Request
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY
from steersman.run.load import StartError
from steersman.run.place import Place
from steersman.run.workspace import Shared, Workspace
from steersman.serve import message
from steersman.serve.answer import status_answer
from steersman.serve.asked import asked
from steersman.serve.files import FileError
from steersman.serve.memory import APISERVER
from steersman.serve.route import segments_of

log = logging.getLogger("steersman.run")

GROUP: Final = "steersman.dev"
WORKSPACE: Final = (GROUP, "Workspace")
ROOT: Final = "root"
PREFIX: Final = "clusters"
MAX_WORKSPACES: Final = 1_000
"""Each costs under a megabyte and a journal's three file descriptors; threads are shared."""
APPENDERS: Final = 8
"""Threads that append to all their journals: as many fsyncs as a disk takes at a time."""
MAX_NODES: Final = 5_000
"""As many nodes as Kubernetes itself supports in one cluster."""
AT_THE_ROOT: Final = (CertificateApproving, CertificateSigning)
"""Controllers that no other workspace has."""
NOT_OPENED: Final = (StartError, JournalError, FileError, ApiError, OSError)
"""What keeps a workspace from opening, each with a text for people."""
_SPEC: Final = {
    "type": "object",
    "properties": {
        "virtualNodes": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_NODES,
            "description": "Nodes that run pods in appearance only.",
        }
    },
}
_STATUS: Final = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "description": "Ready or Failed."},
        "url": {"type": "string", "description": "Where its API is served."},
        "message": {"type": "string", "description": "Why it is not ready."},
    },
}
_NAME_RULE: Final = "`root` is the control plane itself, and a name is a DNS label"
DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"workspaces.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": "workspaces", "singular": "workspace", "kind": "Workspace", "shortNames": ["ws"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                    {"name": "URL", "type": "string", "jsonPath": ".status.url", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": f"A control plane of its own under /{PREFIX}/NAME; {_NAME_RULE}.",
                        "properties": {"spec": _SPEC, "status": _STATUS},
                    }
                },
            }
        ],
    },
}
"""The kind of workspaces, as a definition in the root."""
DEFINITION_KEY: Final = Key("apiextensions.k8s.io", "CustomResourceDefinition", "", f"workspaces.{GROUP}")


class Workspaces:
    """The handler of the HTTP server. All methods are called from the event loop's thread."""

    def __init__(self, root: Workspace, place: Place, shared: Shared) -> None:
        self.root = root
        self.url = ""
        self._place = place
        self._appenders = ThreadPoolExecutor(APPENDERS, "journals")
        self._shared = replace(shared, appenders=self._appenders)
        self._opening: dict[str, asyncio.Task[Workspace]] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self, url: str) -> None:
        """Makes the definition where it is missing, and opens the workspaces there are, below the root's `url`."""
        self.url = url
        heads = self.root.heads
        if heads.store.get(DEFINITION_KEY) is None:
            with contextlib.suppress(AlreadyExists):
                await heads.write(Request("create", DEFINITION_KEY, DEFINITION, actor=APISERVER, manager="steersman"))
        heads.listen(self._heard)
        self._sweep()
        for obj in list(heads.store.list(WORKSPACE)):
            self._begin(obj)

    async def close(self) -> None:
        """Stops them all; those that are being removed, and what is told of others, come to their end."""
        self._closed = True
        await asyncio.gather(*[self._end(task) for task in self._opening.values()])
        self._opening.clear()
        await asyncio.gather(*self._chores, return_exceptions=True)
        self._appenders.shutdown()

    async def find(self, name: str) -> Workspace:
        """The workspace of that name, once it serves. Raises `ApiError` 404; 503 when it could not be opened."""
        if name == ROOT:
            return self.root
        task = self._opening.get(name)
        if task is None:
            self.root.heads.catch_up()  # its object may have landed a moment ago
            task = self._opening.get(name)
        if task is None:
            raise errors.not_found("workspaces", name, GROUP)
        try:
            return await asyncio.shield(task)
        except NOT_OPENED as error:
            raise errors.service_unavailable(f"workspace {name} could not be opened: {error}") from None

    async def __call__(self, request: message.Request) -> message.Response:
        """Answers one request by the workspace it names, or by the root."""
        path = request.raw_path or request.path
        if not path.startswith(f"/{PREFIX}/"):
            return await self.root.app(request)
        name, slash, rest = path[len(PREFIX) + 2 :].partition("/")
        try:
            workspace = await self._for(request, name)
        except ApiError as error:
            return status_answer(error)
        inner = replace(request, path=unquote(slash + rest) or "/", raw_path=(slash + rest) or "/")
        try:
            return await workspace.app(inner)
        finally:
            request.known = inner.known  # which is asked of the connection's own request

    def screen(self, request: message.Request) -> message.Response | None:
        """What the workspace that is named says of the head of a request; the root where there is no such one."""
        within = request.raw_path.startswith(f"/{PREFIX}/")
        task = self._opening.get(request.raw_path.split("/", 3)[2]) if within else None
        opened = task is not None and task.done() and not task.cancelled() and task.exception() is None
        workspace = task.result() if task is not None and opened else self.root
        return workspace.app.screen(request)

    async def _for(self, request: message.Request, name: str) -> Workspace:
        """Only who is known is told which workspaces there are."""
        if name != ROOT and name not in self._opening:
            await self.root.app.access.prepare(request)
            self.root.app.access.user_of(request, asked(request, segments_of(request.raw_path or request.path)))
        return await self.find(name)

    # -- as their objects come and go --------------------------------------------------------------------------

    def _heard(self, events: Sequence[Event]) -> None:
        for event in () if self._closed else events:
            if (event.key.group, event.key.kind) != WORKSPACE:
                continue
            if event.new is None:
                task = self._opening.pop(event.key.name, None)
                if task is not None and event.old is not None:
                    self._chore(self._remove(task, event.old))
            elif event.old is None:
                self._begin(event.new)

    def _begin(self, obj: Object) -> None:
        task = asyncio.get_running_loop().create_task(self._open(obj))
        self._opening[obj.key.name] = task
        self._chore(self._tell(obj, task))

    def _chore(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _open(self, obj: Object) -> Workspace:
        name = obj.key.name
        if name == ROOT or "." in name:
            raise StartError(f"{name!r} cannot be the name of a workspace: {_NAME_RULE}")
        if len(self._opening) > MAX_WORKSPACES:
            raise StartError(f"there are {MAX_WORKSPACES} workspaces already; delete one, and make this one again")
        shared = replace(
            self._shared,
            virtual_nodes=(obj.spec_value or EMPTY).get("virtualNodes", 0),
            # Everybody trusts the authority: what it signs for one workspace would be believed in all of them.
            signer=self._shared.signer.of_tokens_alone(),
            audit=None if self._shared.audit is None else self._shared.audit._replace(workspace=name),
            controllers=[each for each in self._shared.controllers if each not in AT_THE_ROOT],
        )
        lost = self._place.lost(name, obj.uid)
        if lost is not None and (obj.status_value or EMPTY).get("url"):  # it has served before
            raise StartError(
                f"its journal {lost} is gone; restore it from a backup and start the server again, "
                "or delete the workspace and make it again, empty"
            )
        try:
            workspace = Workspace(self._place.workspace(name, obj.uid), shared)
            workspace.app.access.certifies_nodes = False  # its nodes are its own, whatever the root's are called
            try:
                await workspace.open()
            except BaseException:
                await workspace.close()
                raise
        except BaseException as error:
            self._place.shut(name, obj.uid)  # so that its file can be restored
            if isinstance(error, NOT_OPENED) or not isinstance(error, Exception):
                raise
            log.exception("opening workspace %s failed", name)
            raise StartError(f"the server failed on it ({type(error).__name__}); its log has the cause") from None
        workspace.start(f"{self.url}/{PREFIX}/{name}")
        return workspace

    async def _tell(self, obj: Object, task: asyncio.Task[Workspace]) -> None:
        """What came of it, in the object's status."""
        status: dict[str, Any] = {"phase": "Ready", "url": f"{self.url}/{PREFIX}/{obj.key.name}", "message": None}
        try:
            await asyncio.shield(task)
        except NOT_OPENED as error:
            log.error("workspace %s could not be opened: %s", obj.key.name, error)
            status = {"phase": "Failed", "message": str(error)}  # a url stays: it tells that there was a journal
        found = self.root.heads.store.get(obj.key)
        if found is None or found.uid != obj.uid:  # the next one of that name has its own opening
            return
        request = Request("patch", obj.key, {"status": status}, "status", APISERVER, "steersman", options={})
        try:
            await self.root.heads.write(request)
        except NotFound:
            return
        except ApiError as error:
            log.error("the status of workspace %s could not be written: %s", obj.key.name, error)

    async def _end(self, task: asyncio.Task[Workspace]) -> bool:
        """Stops a workspace that serves, or is about to; whether there is anything of it."""
        try:
            workspace = await asyncio.shield(task)
        except NOT_OPENED:
            return False
        await workspace.stop()
        await workspace.close()
        return True

    async def _remove(self, task: asyncio.Task[Workspace], obj: Object) -> None:
        await self._end(task)
        self._forget(obj.key.name, obj.uid)

    def _forget(self, name: str, uid: str) -> None:
        try:
            self._place.forget(name, uid)
        except FileError as error:
            log.error("workspace %s was deleted, but %s", name, error)

    def _sweep(self) -> None:
        """Removes the journals of workspaces that were deleted when the process ended. Others without an object stay:
        the root may have been restored from a backup that is older than they are."""
        known = {(obj.key.name, obj.uid) for obj in self.root.heads.store.list(WORKSPACE)}
        left = [each for each in self._place.left() if each not in known]
        if not left:
            return
        with contextlib.closing(self.root.heads.journal.reader()) as journal:
            for name, uid in left:
                past = journal.history(Key(*WORKSPACE, "", name))
                if any(commit.verb == "delete" and commit.uid == uid for commit in past):
                    self._forget(name, uid)
