"""The in-memory backend and its wake-ups."""

import asyncio

import pytest

from steersman.api.errors import AlreadyExists, InternalError
from steersman.api.kinds import Kinds
from steersman.api.policy import default_policy
from steersman.kernel.changelog import Gone
from steersman.kernel.effect import Call, Request
from steersman.kernel.object import Key
from steersman.serve.memory import FIRST_OBJECTS, NAMESPACES, MemoryBackend
from steersman.serve.registration import local_services
from steersman.serve.served import Served
from steersman.serve.wakeups import Wakeups
from tests.serve.harness import in_loop
from tests.serve.plane import configmap, pod

POD, NODE = ("", "Pod"), ("", "Node")


def create(body, name=""):
    key = Key("", body["kind"], "default", name or body["metadata"].get("name", ""))
    return Request("create", key, body, actor="t", manager="t", now=1_790_000_000_000_000)


def test_writes_events_and_revisions():
    backend = MemoryBackend()
    backend.bootstrap()
    backend.bootstrap()
    assert backend.store.count(("", "Namespace")) == len(NAMESPACES)
    served = len(list(local_services(Served(Kinds.builtin()).groups)))
    assert backend.store.rev == len(FIRST_OBJECTS) + len(default_policy()) + served
    reply = backend.write_now(create(pod()))
    assert reply.code == 201 and reply.obj.rv == backend.store.rev
    with pytest.raises(AlreadyExists):
        backend.write_now(create(pod()))
    events = backend.since(POD, 0)
    assert [(event.type, event.new is reply.obj) for event in events] == [("ADDED", True)]


def test_uids_and_names_are_drawn():
    backend = MemoryBackend()
    backend.bootstrap()
    body = configmap("")
    body["metadata"] = {"generateName": "x-"}
    made = [backend.write_now(create(body)).obj for _ in range(20)]
    assert len({obj.uid for obj in made}) == len({obj.key.name for obj in made}) == 20


def test_a_store_that_has_objects_is_watched_from_its_revision_on():
    first = MemoryBackend()
    first.bootstrap()
    second = MemoryBackend(store=first.store)
    assert second.since(POD, second.store.rev) == []
    with pytest.raises(Gone):
        second.since(POD, 0)


def test_a_call_that_nobody_answers_is_an_error():
    backend = MemoryBackend()
    backend.api = type("Asks", (), {"begin": lambda self, store, request: Call("webhook", None, lambda a: a)})()
    with pytest.raises(InternalError, match="webhook"):
        backend.write_now(create(pod()))


@in_loop
async def test_whoever_comes_late_does_not_wait():
    wakeups = Wakeups()
    wakeups.notify(POD, 5)
    await asyncio.wait_for(wakeups.wait(POD, 4), 1)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(wakeups.wait(POD, 5), 0.01)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(wakeups.wait(NODE, 0), 0.01)
    assert len(wakeups) == 0


@in_loop
async def test_all_who_wait_for_a_kind_wake_up_and_no_others():
    wakeups = Wakeups()
    pods = [asyncio.create_task(wakeups.wait(POD, 1)) for _ in range(3)]
    nodes = asyncio.create_task(wakeups.wait(NODE, 1))
    await asyncio.sleep(0)
    assert len(wakeups) == 4
    wakeups.notify(POD, 2)
    await asyncio.wait_for(asyncio.gather(*pods), 1)
    assert not nodes.done() and len(wakeups) == 1
    nodes.cancel()
