"""A storm: hostile requests one after the other at a server with a journal, and what must hold during and after it.

`python -m tests.serve.storm --seconds 600` (make fuzz) goes on for long; it prints the seed of what it finds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.api.versions import shown
from steersman.journal.memory import MemoryJournal
from steersman.kernel.effect import Request
from steersman.run.head import Heads
from steersman.run.load import check_history, load_store, sums_of
from steersman.serve.app import App
from steersman.serve.credentials.kubeconfig import ADMIN
from steersman.serve.credentials.signer import Signer
from steersman.serve.credentials.tokens import Tokens
from steersman.serve.hooks import Hooks
from steersman.serve.memory import FIRST_OBJECTS
from steersman.serve.message import Response
from tests.serve.mutate import WIDGETS, Fuzz, Shot
from tests.serve.plane import Answer, Plane

HANG_SECONDS = 10.0
"""No answer takes so long, on the slowest machine."""
TRANSIENT = (504,)
"""Codes from 500 on that are an answer: a revision that is not there yet."""
EVENTS = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
KNOWN = {"kind", "paths", "openapi", "keys", "issuer", "major"}
"""One of these is in every JSON document that is no error."""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Fault(AssertionError):
    """What no request may lead to."""


class Sea(Plane):
    """A plane over the heads of a journal."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.backend = Heads(Api(Kinds.builtin(), admission=standard(controllers=())), self.journal)
        self.backend.signer = Signer()
        self.backend.questions.asking = Hooks()
        self.tokens = Tokens()
        self.token = self.tokens.issue(ADMIN.user, ADMIN.groups)
        self.app = App(self.backend, self.tokens)


@asynccontextmanager
async def at_sea() -> AsyncIterator[Sea]:
    """A server with a journal, first objects and a kind of its own."""
    sea = Sea()
    sea.backend.start()
    for key, body in FIRST_OBJECTS:
        await sea.backend.write(Request("create", key, body, actor="system:apiserver", manager="test"))
    await sea.post(CRDS, WIDGETS)
    try:
        yield sea
    finally:
        await sea.backend.close()


async def fire(plane: Plane, shot: Shot) -> int:
    """Sends a request, reads (the beginning of) its answer and judges it. Raises Fault."""
    others = {name.replace("-", "_"): value for name, value in shot.others}
    sending = plane.send(shot.method, shot.target, shot.body, content_type=shot.media, accept=shot.accept, **others)
    try:
        response = await asyncio.wait_for(sending, HANG_SECONDS)
    except TimeoutError:
        raise Fault(f"no answer within {HANG_SECONDS} s: {shot}") from None
    judge(shot, Answer(response.status, list(response.headers), await _read(shot, response)))
    return response.status


async def _read(shot: Shot, response: Response) -> bytes:
    """The body; of a watch, or a log that is followed, only what is there at once."""
    if isinstance(response.body, bytes):
        return response.body
    if not response.endless:
        return b"".join([chunk async for chunk in response.body])
    events = any(name == "content-type" and "json" in value for name, value in response.headers)
    try:
        chunk = await asyncio.wait_for(anext(response.body), 0.002)
        for line in chunk.splitlines() if events else ():  # a log that is followed is text
            if json.loads(line)["type"] not in EVENTS:
                raise Fault(f"a watch began with {line[:200]!r}: {shot}")
    except (TimeoutError, StopAsyncIteration):
        pass
    await response.body.aclose()  # type: ignore[attr-defined]
    return b""


def judge(shot: Shot, answer: Answer) -> None:
    """Every answer is an object, a list or a Status of its own code; the server is never at fault."""
    if answer.code >= 500 and answer.code not in TRANSIENT and not _said_so_by_kubernetes(shot, answer):
        raise Fault(f"{answer}: {shot}")
    for name, value in answer.headers:
        if not {"\r", "\n", "\0"}.isdisjoint(name + value):
            raise Fault(f"header {name!r} breaks out of its line: {shot}")
    if "/proxy" in shot.target:
        return  # these may be the words of what is behind
    if answer.code == 404 and answer.body.startswith(b"404 page not found"):
        return  # Go's words for a path that is nowhere
    if answer.code >= 400:
        try:
            status = answer.json
        except ValueError:
            raise Fault(f"no document: {answer.headers} {answer}: {shot}") from None
        if status["kind"] != "Status" or status["code"] != answer.code or not status["message"]:
            raise Fault(f"no Status: {answer}: {shot}")
    elif answer.header("content-type").startswith("application/json") and answer.body and not KNOWN & set(answer.json):
        raise Fault(f"no object: {answer}: {shot}")


def _said_so_by_kubernetes(shot: Shot, answer: Answer) -> bool:
    """True of the one code from 500 on that kube-apiserver gives as well: 503, for the proxy of a Service without
    endpoints."""
    return answer.code == 503 and "/proxy" in shot.target and answer.json["reason"] == "ServiceUnavailable"


async def inspect(sea: Sea) -> None:
    """What must hold afterwards. Raises Fault.

    Stored objects are valid where they are sent again, a list is its objects, the journal replayed gives the same
    digests (law J1), and so does a server that starts from it.
    """
    served = sea.app._current()[0]
    for group, versions in served.groups.items():
        for kind in served.kinds_of(group, versions[0]):
            if "list" not in kind.verbs or not sea.backend.store.count(kind.gk):
                continue
            root = f"/apis/{group}/{versions[0]}" if group else f"/api/{versions[0]}"
            found = (await sea.get(f"{root}/{kind.plural}")).json["items"]
            objs = [shown(kind, obj) for obj in sea.backend.store.list(kind.gk)]
            if [item["metadata"]["uid"] for item in found] != [obj.uid for obj in objs]:
                raise Fault(f"the list of {kind} is not its objects")
            for item in found:
                await _again(sea, root, kind.plural, {"apiVersion": kind.api_version, "kind": kind.kind, **item})
    await _settled(sea)


async def _again(sea: Sea, root: str, plural: str, item: dict[str, Any]) -> None:
    meta = item["metadata"]
    space = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    path = f"{root}{space}/{plural}/{quote(meta['name'], safe='')}"
    if (await sea.ask("GET", path)).json["metadata"] != meta:
        raise Fault(f"{path} is another object than in its list")
    answer = await sea.ask("PUT", f"{path}?dryRun=All", item, content_type="application/json")
    if answer.code == 422 and [cause["field"] for cause in answer.json["details"]["causes"]] == ["spec.nodeName"]:
        return  # a binding names any node, as in kube-apiserver (ValidatePodBinding)
    if answer.code != 200:
        raise Fault(f"what is stored at {path} is not valid: {answer}")
    if answer.json["metadata"].get("resourceVersion") != meta["resourceVersion"]:
        raise Fault(f"what is stored at {path} changes when it is sent again")


async def _settled(sea: Sea) -> None:
    while sea.backend.busy:
        await asyncio.sleep(0.001)
    sea.backend.check()
    if differences := check_history(sea.journal):
        raise Fault("; ".join(differences[:3]))
    if sums_of(load_store(sea.journal)) != sums_of(sea.backend.store):
        raise Fault("a server that starts from the journal has another store")


async def storm(seed: int, count: int) -> Counter[int]:
    """`count` requests of a seed and then the inspection; how many answers there were of each code."""
    codes: Counter[int] = Counter()
    async with at_sea() as sea:
        fuzz = Fuzz(random.Random(seed))
        for number in range(count):
            try:
                codes[await fire(sea, fuzz.request(sea.app._current()[0]))] += 1
            except Fault as fault:
                raise Fault(f"request {number} of seed {seed}: {fault}") from None
        try:
            await inspect(sea)
        except Fault as fault:
            raise Fault(f"after {count} requests of seed {seed}: {fault}") from None
    return codes


def main() -> int:
    """Storms of one seed after the other for a while."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--count", type=int, default=5_000)
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    ends, seed, faults, total = time.monotonic() + given.seconds, given.seed, 0, Counter[int]()
    while time.monotonic() < ends:
        try:
            total += asyncio.run(storm(seed, given.count))
        except Fault as fault:
            faults += 1
            print(f"FAULT {str(fault)[:3000]}", flush=True)
        seed += 1
    print(f"{total.total()} requests, seeds {given.seed} to {seed - 1}, {faults} faults: {dict(sorted(total.items()))}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
