"""pods/NAME/log over the app: options and errors as kube-apiserver has them, and the virtual node's lines."""

import asyncio
import functools

import pytest

from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.nodes.logs import LOGS, LOGS_OF
from steersman.nodes.status import after_edge
from tests.serve.plane import NOW, PODS, Plane, pod

SECOND = 1_000_000
STARTED = "2026-09-21T14:13:20Z"


def in_loop(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 10))

    return run


def edge(plane: Plane, name: str, what: str, time: str = STARTED) -> None:
    """The kubelet's next report of a pod."""
    found = plane.backend.store.get(Key("", "Pod", "default", name))
    body = {"metadata": found.meta.value, "status": after_edge(found.value, what, time)}
    plane.backend.write_now(Request("update", found.key, body, "status", manager="kubelet", now=plane.time))


async def placed(plane: Plane, name: str = "a", started: bool = True, containers: int = 1, **annotations: str) -> None:
    """A pod on node-0, started unless told otherwise."""
    if plane.backend.store.get(Key("", "Node", "", "node-0")) is None:
        await plane.post("/api/v1/nodes", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "node-0"}})
    body = pod(name, annotations=annotations)
    body["spec"]["nodeName"] = "node-0"
    body["spec"]["containers"] = [{"name": f"c{n}" if n else "c", "image": "nginx:1"} for n in range(containers)]
    await plane.post(PODS, body)
    edge(plane, name, "accept")
    if started:
        edge(plane, name, "start")


async def log(plane: Plane, query: str = "", name: str = "a", code: int = 200):
    return (await plane.get(f"{PODS}/{name}/log{query}", code, accept="application/json, */*")).body.decode()


@in_loop
async def test_life_is_told():
    plane = Plane()
    await placed(plane)
    told = "steersman: container c (nginx:1) started on virtual node node-0\n"
    assert await log(plane) == told
    assert await log(plane, "?timestamps=true&container=c") == f"2026-09-21T14:13:20.000000000Z {told}"
    edge(plane, "a", "complete", "2026-09-21T14:13:25Z")
    assert (await log(plane)).splitlines()[1] == "steersman: container c ended with exit code 0 (Completed)"
    answer = await plane.get(f"{PODS}/a/log")
    assert answer.header("content-type") == "text/plain"


@in_loop
async def test_annotations_say_what_is_printed():
    plane = Plane()
    await placed(plane, containers=2, **{LOGS: "one\ntwo\nthree", LOGS_OF + "c1": "other"})
    assert await log(plane, "?container=c") == "one\ntwo\nthree\n"
    assert await log(plane, "?container=c1") == "other\n"
    assert await log(plane, "?container=c&tailLines=2") == "two\nthree\n"
    assert await log(plane, "?container=c&tailLines=0") == ""
    assert await log(plane, "?container=c&limitBytes=5") == "one\nt"
    assert await log(plane, "?container=c&sinceTime=2026-09-21T14:13:20Z") == "one\ntwo\nthree\n"
    assert await log(plane, "?container=c&sinceTime=2026-09-21T14:13:21Z") == ""
    plane.time = NOW + 10 * SECOND
    assert await log(plane, "?container=c&sinceSeconds=10") == "one\ntwo\nthree\n"
    assert await log(plane, "?container=c&sinceSeconds=9") == ""


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "at most one of `sinceTime` or `sinceSeconds`"),
        ("tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("tailLines=99999999999999999999", 400, "value out of range"),
        ("sinceTime=yesterday", 400, "is not a time"),
        ("container=nope", 400, "container nope is not valid for pod a"),
        ("", 400, "a container name must be specified for pod a, choose one of: [c c1]"),
        ("container=c&previous=true", 400, 'previous terminated container "c" in pod "a" not found'),
        ("container=c&stream=Stdout", 422, "stream: Forbidden: may not be specified"),
    ],
)
def test_refused(query: str, code: int, message: str):
    async def test():
        plane = Plane()
        await placed(plane, containers=2)
        status = (await plane.get(f"{PODS}/a/log?{query}", code)).json
        assert message in status["message"], status
        assert status["kind"] == "Status"

    asyncio.run(test())


@in_loop
async def test_pods_without_a_log():
    plane = Plane()
    assert (await plane.get(f"{PODS}/none/log", 404)).json["message"] == 'pods "none" not found'
    await plane.post(PODS, pod("unbound"))
    assert (await plane.get(f"{PODS}/unbound/log", 204)).body == b""
    await placed(plane, "waits", started=False)
    status = (await plane.get(f"{PODS}/waits/log", 400)).json
    assert status["message"] == 'container "c" in pod "waits" is waiting to start: ContainerCreating'
    body = pod("lost")
    body["spec"]["nodeName"] = "gone"
    await plane.post(PODS, body)
    assert (await plane.get(f"{PODS}/lost/log", 404)).json["message"] == 'nodes "gone" not found'
    await plane.ask("POST", f"{PODS}/waits/log", {}, 405)


@in_loop
async def test_follow_goes_on_until_the_container_ends():
    plane = Plane()
    await placed(plane)
    response = await plane.send("GET", f"{PODS}/a/log?follow=true")
    chunks = response.body
    assert b"started" in await anext(chunks)
    waiting = asyncio.ensure_future(anext(chunks))
    await asyncio.sleep(0.01)
    await plane.merge(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})  # nothing printed
    await asyncio.sleep(0.01)
    assert not waiting.done()
    edge(plane, "a", "complete", "2026-09-21T14:13:25Z")
    assert b"ended with exit code 0" in await waiting
    assert [chunk async for chunk in chunks] == []
    assert plane.backend.watchers == 0


@in_loop
async def test_follow_ends_with_the_pod():
    plane = Plane()
    await placed(plane)
    await placed(plane, "b")
    response = await plane.send("GET", f"{PODS}/a/log?follow=true&tailLines=0")
    rest = asyncio.ensure_future(anext(response.body, b"end"))
    await asyncio.sleep(0.01)
    await plane.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert await rest == b"end"
    gone = await plane.send("GET", f"{PODS}/b/log?follow=true")
    assert await anext(gone.body)
    rest = asyncio.ensure_future(anext(gone.body, b"end"))
    await asyncio.sleep(0.01)
    assert plane.backend.watchers == 1
    rest.cancel()  # as a client that goes away
    await asyncio.gather(rest, return_exceptions=True)
    assert plane.backend.watchers == 0


@in_loop
async def test_follow_ends_with_the_pod_even_if_another_takes_its_name():
    plane = Plane()
    await placed(plane)
    response = await plane.send("GET", f"{PODS}/a/log?follow=true&tailLines=0")
    rest = asyncio.ensure_future(anext(response.body, b"end"))
    await asyncio.sleep(0.01)
    old = plane.backend.store.get(Key("", "Pod", "default", "a"))
    plane.backend.write_now(Request("delete", old.key, None, actor="x", now=plane.time, options={"grace": 0}))
    body = pod("a")
    body["spec"]["nodeName"] = "node-0"
    plane.backend.write_now(Request("create", old.key, body, actor="x", now=plane.time))
    edge(plane, "a", "accept")
    edge(plane, "a", "start")
    edge(plane, "a", "complete", "2026-09-21T14:13:25Z")
    assert await rest == b"end"
