"""What tests of the durable face share: heads over a journal that can be made to fail, and a small controller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import steersman.journal as sj
from steersman.api.begin import Api
from steersman.api.controller import Controller
from steersman.api.kinds import Kinds
from steersman.journal import Head, Journal, Record
from steersman.kernel.effect import Reply, Request
from steersman.kernel.object import Key
from steersman.kernel.value import Frozen
from steersman.run.head import Heads

API = Api(Kinds.builtin())


class Disk:
    """A journal whose appends can be held up, or made to fail: what a disk does."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.failures: list[Exception] = []
        self.after: Exception | None = None
        self.go = threading.Event()
        self.go.set()
        self.groups: list[int] = []
        self.blocks = True

    def append(self, epoch: int, expected: Head, records: Sequence[Record]) -> Head:
        assert self.go.wait(10)
        if self.failures:
            raise self.failures.pop(0)
        head = self.journal.append(epoch, expected, records)
        self.groups.append(len(records))
        if self.after is not None:
            error, self.after = self.after, None
            raise error
        return head

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)


@asynccontextmanager
async def heads_over(journal: Any) -> AsyncIterator[Heads]:
    heads = Heads(API, journal)
    heads.start()
    try:
        yield heads
    finally:
        await heads.close()


def memory() -> Disk:
    return Disk(sj.open("memory:"))


async def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    for _ in range(int(seconds / 0.005)):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen in time")


def key(kind: str, name: str, namespace: str = "default") -> Key:
    found = API.kinds.find(kind)
    return Key(found.group, found.kind, namespace if found.namespaced else "", name)


def create(kind: str, name: str, namespace: str = "default", **parts: Any) -> Request:
    found = API.kinds.find(kind)
    meta = {"name": name, **parts.pop("metadata", {})}
    body = {"apiVersion": found.api_version, "kind": found.kind, "metadata": meta, **parts}
    return Request("create", key(kind, name, namespace), body, actor="ann", manager="test")


def patch(kind: str, name: str, body: Any, namespace: str = "default", **options: Any) -> Request:
    return Request("patch", key(kind, name, namespace), body, actor="ann", manager="test", options=Frozen(options))


def delete(kind: str, name: str, namespace: str = "default") -> Request:
    return Request("delete", key(kind, name, namespace), actor="ann", manager="test")


async def namespace(heads: Heads, name: str = "default") -> Reply:
    return await heads.write(create("v1/Namespace", name))


class Mirror(Controller):
    """Keeps, for every ConfigMap `x` labelled `mirror`, a ConfigMap `x-mirror` with the same data, and a count."""

    kind = "v1/ConfigMap"
    suffix = "mirror"

    def reconcile(self, c: Any, key: Key) -> float | None:
        source = c.get(key)
        if source is None or "mirror" not in (source.metadata.labels or {}):
            return None
        c.memory["seen"] = c.memory.get("seen", 0) + 1
        name = f"{key.name}-{self.suffix}"
        copy = c.get(c.key("v1/ConfigMap", name, key.namespace))
        wanted = {**source.data, "seen": str(c.memory["seen"])}
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": key.name, "uid": source.metadata.uid}
        if copy is None:
            meta = {"name": name, "namespace": key.namespace, "ownerReferences": [owner]}
            c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": wanted})
            noted = {"generateName": f"{name}-", "namespace": key.namespace, "annotations": {"at": c.timestamp()}}
            c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": noted, "data": {"token": c.random(4)}})
            c.delete(c.key("v1/ConfigMap", f"{name}-of-old", key.namespace))  # refused: it is not there
        elif {k: v for k, v in copy.data.items() if k != "seen"} != source.data:
            c.patch(copy, {"data": wanted}, rv=copy.metadata.resourceVersion)
        return None
