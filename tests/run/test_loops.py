"""Controllers and components on threads: they converge, fail, hang and stop without harm to anybody else."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import asynccontextmanager
from itertools import pairwise

import steersman.journal as sj
from steersman.api.controller import Controller, Loop
from steersman.api.errors import ApiError
from steersman.journal import JournalFull, Reconcile
from steersman.kernel.effect import MICRO, Request
from steersman.run.inbox import Inbox
from steersman.run.loops import Loops
from tests.run.plane import API, Mirror, create, delete, heads_over, key, memory, namespace, patch, until


def run(scene):
    asyncio.run(asyncio.wait_for(scene, 60))


@asynccontextmanager
async def plane(disk, *controllers, components=(), hang_seconds=60.0, drivers=None):
    async with heads_over(disk) as heads:
        await namespace(heads)
        loops = Loops(heads, [Loop(c, API) for c in controllers], components, drivers, hang_seconds)
        loops.start()
        try:
            yield heads, loops
        finally:
            left = await asyncio.to_thread(loops.stop, 5.0)
            assert left == []


def names(heads):
    return [obj.key.name for obj in heads.store.list(("", "ConfigMap"))]


def test_a_controller_does_its_work_and_is_recorded():
    async def scene():
        disk = memory()
        async with plane(disk, Mirror) as (heads, _):
            await heads.write(create("v1/ConfigMap", "plain"))
            for number in range(5):
                labelled = {"labels": {"mirror": "yes"}}
                await heads.write(create("v1/ConfigMap", f"c{number}", metadata=labelled, data={"n": str(number)}))
            await until(lambda: len(names(heads)) == 16)
            await heads.write(patch("v1/ConfigMap", "c1", {"data": {"n": "new"}}))
            copy = key("v1/ConfigMap", "c1-mirror")
            await until(lambda: heads.store.get(copy).value.data.n == "new")
            assert heads.store.get(copy).managers[0].name == "mirror"
        records = [entry.record for entry in disk.entries() if isinstance(entry.record, Reconcile)]
        wrote = [record for record in records if record.writes]
        assert len(wrote) == 6 and all(record.controller == "mirror" for record in records)
        assert wrote[0].reads[0].revision > 0 and wrote[0].times and wrote[0].randoms
        actors = {e.record.actor for e in disk.entries() if isinstance(e.record, sj.Commit)}
        assert actors == {"ann", "mirror"}

    run(scene())


class Flaky(Controller):
    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        tries.append((key.name, time.monotonic()))
        if key.name == "bad" and len([n for n, _ in tries if n == "bad"]) < 5:
            raise RuntimeError("the author's mistake")
        if key.name == "worse" and len([n for n, _ in tries if n == "worse"]) < 2:
            raise SystemExit(3)


tries: list[tuple[str, float]] = []


def test_a_crash_is_told_and_tried_again_later(caplog):
    async def scene():
        tries.clear()
        async with plane(memory(), Flaky) as (heads, _):
            for name in ("bad", "worse", "good"):
                await heads.write(create("v1/ConfigMap", name))
            await until(lambda: len(tries) == 8)
            await asyncio.sleep(0.1)
        bad = [at for name, at in tries if name == "bad"]
        assert len(tries) == 8 and len(bad) == 5
        pauses = [b - a for a, b in pairwise(bad)]
        assert pauses[0] >= 0.005 and pauses[3] >= 0.04

    with caplog.at_level(logging.WARNING):
        run(scene())
    told = [record.getMessage() for record in caplog.records]
    assert any("flaky" in t and "ConfigMap default/bad" in t and "the author's mistake" in t for t in told)
    assert any("(4 times in a row)" in t for t in told) and any("SystemExit" in t for t in told)


class Stuck(Controller):
    kind = "v1/ConfigMap"
    workers = 2

    def reconcile(self, c, key):
        if key.name == "stuck":
            assert release.wait(20)
        else:
            done.append(key.name)


release = threading.Event()
done: list[str] = []


def test_a_hanging_reconcile_is_reported_and_holds_up_nobody(caplog):
    async def scene():
        release.clear()
        done.clear()
        async with plane(memory(), Stuck, hang_seconds=0.1) as (heads, _):
            await heads.write(create("v1/ConfigMap", "stuck"))
            await heads.write(create("v1/ConfigMap", "other"))
            await until(lambda: any("hangs" in record.getMessage() for record in caplog.records))
            await asyncio.sleep(0.3)
            assert done == ["other"]
            release.set()

    with caplog.at_level(logging.ERROR):
        run(scene())
    (told,) = [record.getMessage() for record in caplog.records]
    assert "stuck hangs on ConfigMap default/stuck" in told and ":" in told


class Timed(Controller):
    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        obj = c.get(key)
        if obj is not None and c.after(obj.metadata.creationTimestamp, 1) and not obj.data:
            c.patch(obj, {"data": {"ripe": "yes"}})


def test_a_timer_wakes_a_key():
    async def scene():
        async with plane(memory(), Timed) as (heads, _):
            await heads.write(create("v1/ConfigMap", "a"))
            obj = key("v1/ConfigMap", "a")
            assert not heads.store.get(obj).value.data
            await until(lambda: bool(heads.store.get(obj).value.data))

    run(scene())


class Dns(Controller):
    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        obj = c.get(key)
        if not obj.data:
            c.patch(obj, {"data": {"address": c.external("dns", {"name": key.name})["address"]}})


def test_an_external_system_is_asked_through_its_driver():
    async def scene():
        def dns(request):
            if request["name"] == "down":
                raise ApiError(503, "ServiceUnavailable", "dns is down")
            return {"address": "10.0.0.1"}

        disk = memory()
        async with plane(disk, Dns, drivers={"dns": dns}) as (heads, _):
            await heads.write(create("v1/ConfigMap", "down"))
            await heads.write(create("v1/ConfigMap", "up"))
            await until(lambda: heads.store.get(key("v1/ConfigMap", "up")).value.data.address == "10.0.0.1")
        records = [entry.record for entry in disk.entries() if isinstance(entry.record, Reconcile)]
        assert {e.outcome[:8] for record in records for e in record.externals} == {b'{"refuse', b'{"answer'}

    run(scene())


def test_a_full_disk_delays_a_controller_and_no_more():
    async def scene():
        disk = memory()
        async with plane(disk, Mirror) as (heads, _):
            await heads.write(create("v1/ConfigMap", "a", metadata={"labels": {"mirror": "x"}}, data={"k": "v"}))
            await until(lambda: len(names(heads)) == 3)
            disk.go.clear()
            await asyncio.sleep(0.6)  # the note of what was done is in flight
            disk.failures += [JournalFull("full", "free space")] * 3
            disk.go.set()
            write = create("v1/ConfigMap", "b", metadata={"labels": {"mirror": "x"}}, data={"k": "v"})
            while True:
                try:
                    await heads.write(write)
                    break
                except ApiError as error:
                    assert error.code == 507
            await until(lambda: len(names(heads)) == 6)
        records = [e.record for e in disk.entries() if isinstance(e.record, Reconcile)]
        assert {"a", "b"} <= {record.key.name for record in records if record.writes}, "a failed append loses none"

    run(scene())


class Stamper:
    """A component: gives each ConfigMap a label, half a second after it was seen, all of them in one go."""

    name = "stamper"

    def __init__(self) -> None:
        self.starts = 0
        self.fail_once = True
        self.refused: list[str] = []

    def start(self, store):
        self.starts += 1
        return {obj.key: 0 for obj in store.list(("", "ConfigMap")) if not obj.meta.value.get("labels")}

    def on_event(self, state, event):
        if event.key.gk == ("", "ConfigMap"):
            state.pop(event.key, None)
            if event.new is not None and not event.new.meta.value.get("labels"):
                state[event.key] = 0
        return state

    def next_deadline(self, state):
        return min(state.values()) if state else None

    def advance(self, state, now):
        requests = []
        for slot, due in list(state.items()):
            if slot.name == "poison" and self.fail_once:
                self.fail_once = False
                raise RuntimeError("poison")
            if due == 0:
                state[slot] = now + MICRO // 5
            elif due <= now:
                del state[slot]
                requests.append(Request("patch", slot, {"metadata": {"labels": {"stamp": str(now)}}}))
                if slot.name == "ghosts":
                    requests.append(Request("delete", slot._replace(name="ghost")))
        return state, requests

    def on_refused(self, state, request, refusal):
        self.refused.append(f"{request.key.name} {refusal.reason}")
        return state


def test_a_component_advances_on_the_clock_and_is_rebuilt_when_it_fails(caplog):
    async def scene():
        stamper = Stamper()
        disk = memory()
        async with plane(disk, components=[stamper]) as (heads, _):
            for name in ("a", "b", "ghosts"):
                await heads.write(create("v1/ConfigMap", name))

            def stamps():
                return [
                    o.meta.value["labels"]["stamp"]
                    for o in heads.store.list(("", "ConfigMap"))
                    if "labels" in o.meta.value
                ]

            await until(lambda: len(stamps()) == 3 and stamper.refused)  # what is refused is told after what landed
            assert stamper.refused == ["ghost NotFound"] and stamper.starts == 1
            await heads.write(create("v1/ConfigMap", "poison"))
            await until(lambda: len(stamps()) == 4)
            assert stamper.starts == 2
        commits = [e.record for e in disk.entries() if isinstance(e.record, sj.Commit)]
        assert [c.actor for c in commits].count("stamper") == 4

    with caplog.at_level(logging.ERROR):
        run(scene())
    assert any("stamper" in record.getMessage() for record in caplog.records)


def test_a_component_is_rebuilt_when_the_store_refuses_to_write():
    async def scene():
        stamper = Stamper()
        disk = memory()
        async with plane(disk, components=[stamper]) as (heads, _):
            await heads.write(create("v1/ConfigMap", "a"))
            disk.failures.append(JournalFull("full", "free space"))
            await until(lambda: bool(heads.store.get(key("v1/ConfigMap", "a")).meta.value.get("labels")))
            assert stamper.starts == 2

    run(scene())


def test_an_inbox_that_overflows_asks_for_a_relist():
    started = []
    inbox = Inbox(lambda: started.append(1), 3)
    inbox.put(["z"])
    assert inbox.take() == ([], True), "at first there is a view to take"
    assert inbox.rest() and started == [1]
    inbox.put(["a", "b"])
    assert inbox.take() == (["a", "b"], False)
    inbox.put(["a", "b"])
    inbox.put(["c", "d"])
    inbox.put(["e"])
    assert inbox.take() == ([], True)
    inbox.put(["f"])
    assert not inbox.rest() and started == [1, 1]
    assert inbox.take() == (["f"], False)
    inbox.wake()
    assert not inbox.rest(), "it was woken after it took"
    inbox.close()
    inbox.put(["g"])
    assert inbox.rest() and started == [1, 1]


def test_deleted_keys_reach_a_controller_too():
    class Seen(Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, key):
            seen.append((key.name, c.get(key) is None))

    seen: list[tuple[str, bool]] = []

    async def scene():
        async with plane(memory(), Seen) as (heads, _):
            await heads.write(create("v1/ConfigMap", "a"))
            await until(lambda: ("a", False) in seen)
            await heads.write(delete("v1/ConfigMap", "a"))
            await until(lambda: ("a", True) in seen)

    run(scene())


def test_a_look_at_a_heartbeat_leaves_no_record():
    class Beats(Controller):
        kind = "coordination.k8s.io/v1/Lease"

        def reconcile(self, c, key):
            looked.append(key.name)
            if key.name == "named" and not (c.get(key).metadata.labels or {}):
                c.patch(key, {"metadata": {"labels": {"seen": "yes"}}})

    looked: list[str] = []

    async def scene():
        disk = memory()
        async with plane(disk, Beats) as (heads, _):
            for name in ("beat", "named"):
                await heads.write(create("coordination.k8s.io/v1/Lease", name))
            await until(lambda: looked.count("named") == 2 and "beat" in looked)
        records = [entry.record for entry in disk.entries() if isinstance(entry.record, Reconcile)]
        assert [record.key.name for record in records] == ["named"]

    run(scene())
