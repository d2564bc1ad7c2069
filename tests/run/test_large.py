"""Large requests are looked at beside the loop: others are answered meanwhile, and writes stay in order.

How long the loop is kept is told in the processor time of its thread, which does not depend on how busy the machine is.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.serve.storm import Sea, at_sea

HELD_SECONDS = 0.25
"""What one turn of the loop may take."""
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY, PROTOBUF = "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf"


class Turns:
    """The longest turn of the loop."""

    longest = 0.0


@asynccontextmanager
async def timed() -> AsyncIterator[Turns]:
    turns = Turns()

    async def look() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            turns.longest = max(turns.longest, time.thread_time() - before)
            await asyncio.sleep(0.0005)

    task = asyncio.create_task(look())
    try:
        yield turns
    finally:
        task.cancel()


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def containers(count: int) -> list[dict[str, str]]:
    return [{"name": f"c{number}", "image": "a"} for number in range(count)]


def config(name: str, count: int, value: str = "v" * 16) -> dict:
    data = {f"k{number}": value for number in range(count)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def definition(properties: int) -> dict:
    leaf = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}}
    spec = {"type": "object", "properties": {f"p{number}": leaf for number in range(properties)}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "bigs", "kind": "Big"}
    body = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "bigs.x.io"}, "spec": body}


def unknown_fields(count: int) -> bytes:
    name = b"\x0a\x02v1\x12\x09ConfigMap"
    inner = b"\x7a\x00" * count
    return b"k8s\0\x0a" + varint(len(name)) + name + b"\x12" + varint(len(inner)) + inner


LARGE = [
    ("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers(6_000)}}, "application/json", 201),
    ("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, STRATEGIC, 200),
    ("PATCH", f"{PODS}/p", {"metadata": {"labels": {f"l{n}": "x" for n in range(10_000)}}}, MERGE, 200),
    ("GET", f"{PODS}/p", None, "application/json", 200),
    ("POST", CONFIGMAPS, config("c", 15_000), "application/json", 201),
    ("PATCH", f"{CONFIGMAPS}/c", config("c", 15_000, "w"), MERGE, 200),
    ("PATCH", f"{CONFIGMAPS}/d?fieldManager=x", config("d", 15_000), APPLY, 201),
    ("PATCH", f"{CONFIGMAPS}/d?fieldManager=y", config("d", 15_000, "w"), APPLY, 409),
    ("POST", CRDS, definition(2_000), "application/json", 201),
    ("GET", "/openapi/v3", None, "application/json", 200),
    ("GET", "/openapi/v3/apis/x.io/v1", None, "application/json", 200),
    ("GET", "/openapi/v2", None, "application/json", 200),
    ("POST", CONFIGMAPS, b'{"a":' * 400_000, "application/json", 400),
    ("POST", CONFIGMAPS, b"metadata:\n  name: y\ndata:\n" + b"  k: v\n" * 40_000, "application/yaml", 201),
    ("POST", CONFIGMAPS, unknown_fields(1_000_000), PROTOBUF, 422),
]


def test_the_loop_is_not_kept_by_large_requests() -> None:
    async def scene() -> None:
        async with at_sea() as sea, timed() as turns:
            for method, path, body, media, code in LARGE:
                sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
                turns.longest = 0.0
                asked = asyncio.create_task(sea.ask(method, path, sent, content_type=media))
                while not asked.done():
                    assert (await sea.get("/api/v1/namespaces/default")).code == 200
                    await asyncio.sleep(0.01)
                answer = asked.result()
                assert turns.longest < HELD_SECONDS, f"{method} {path} {media}: {turns.longest:.2f} s"
                assert answer.code == code, (method, path, answer.code, answer.body[:300])

    asyncio.run(scene())


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of large requests as their looking begins."""
    from steersman.run import large

    seen: list[str] = []
    before = large._prepared

    def noted(*args):  # type: ignore[no-untyped-def]
        seen.append(args[2].key.name or args[2].body["metadata"]["name"])
        return before(*args)

    monkeypatch.setattr(large, "_prepared", noted)
    return seen


def test_small_writes_go_between_large_ones(started: list[str]) -> None:
    async def scene(sea: Sea) -> list[int]:
        many = [sea.post(CONFIGMAPS, config(f"large-{number}", 5_000)) for number in range(3)]
        tasks = [asyncio.create_task(each) for each in many]
        while not started:
            await asyncio.sleep(0)
        small = await sea.post(CONFIGMAPS, config("small", 1))
        assert len(started) <= 2, "not after all that are large"
        taken = await sea.post(CONFIGMAPS, config(started[0], 1), 409)  # bodies are read beside: any may be the first
        answers = await asyncio.gather(*tasks)
        assert [answer.code for answer in answers] == [201] * 3 and taken.code == 409
        return [int(answer.json["metadata"]["resourceVersion"]) for answer in (small, *answers)]

    async def run() -> None:
        async with at_sea() as sea:
            small, *others = await scene(sea)
            assert sum(other < small for other in others) == 1

    asyncio.run(run())


def test_what_a_large_write_was_judged_by_does_not_move(started: list[str]) -> None:
    """A write of the same object meanwhile waits, and then conflicts or is merged as if one came after the other."""

    async def run() -> None:
        async with at_sea() as sea:
            made = await sea.post(CONFIGMAPS, config("c", 5_000))
            both = await asyncio.gather(
                sea.ask("PATCH", f"{CONFIGMAPS}/c", {"data": {"k0": "x" * 100_000}}, content_type=MERGE),
                sea.ask("PATCH", f"{CONFIGMAPS}/c", {"data": {"k1": "y"}}, content_type=MERGE),
                sea.ask("PUT", f"{CONFIGMAPS}/c", made.json, content_type="application/json"),
            )
            assert [answer.code for answer in both] == [200, 200, 409]
            data = (await sea.get(f"{CONFIGMAPS}/c")).json["data"]
            assert data["k0"] == "x" * 100_000 and data["k1"] == "y"

    asyncio.run(run())


def test_a_server_that_stops_finishes_what_it_looks_at(started: list[str]) -> None:
    async def run() -> None:
        async with at_sea() as sea:
            tasks = [asyncio.create_task(sea.post(CONFIGMAPS, config(f"c{n}", 5_000), 503)) for n in range(3)]
            while not started:
                await asyncio.sleep(0)
            await sea.backend.close()
            assert [answer.code for answer in await asyncio.gather(*tasks)] == [503] * 3

    asyncio.run(run())
