"""Two heads: what is durable and what is not, what is told to whom, and what a failing disk does."""

from __future__ import annotations

import asyncio
import logging
import resource

import pytest

import steersman.journal as sj
from steersman.api.errors import AlreadyExists, ApiError, Invalid, ServiceUnavailable
from steersman.journal import Fenced, JournalError, JournalFull
from steersman.kernel.changelog import Gone
from steersman.kernel.effect import Request
from steersman.run.head import Heads
from steersman.run.load import StartError, check_history, sums_of
from tests.run.plane import API, create, delete, heads_over, key, memory, namespace, patch, until

CM = ("", "ConfigMap")


def run(scene):
    asyncio.run(asyncio.wait_for(scene, 30))


def test_a_write_is_visible_only_once_it_is_durable():
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            disk.go.clear()
            woken = asyncio.create_task(heads.changed(CM, heads.store.rev))
            write = asyncio.create_task(heads.write(create("v1/ConfigMap", "a")))
            await until(lambda: heads.busy)
            await asyncio.sleep(0.05)
            assert not write.done() and not woken.done()
            assert heads.store.get(key("v1/ConfigMap", "a")) is None
            assert heads.view().rev == 1 and heads.since(CM, 1) == []
            disk.go.set()
            reply = await write
            await woken
            assert reply.code == 201 and reply.obj is heads.store.get(key("v1/ConfigMap", "a"))
            assert reply.rev == reply.obj.rv == 2
            assert [event.rev for event in heads.since(CM, 1)] == [2]
            heads.check()

    run(scene())


def test_what_rests_on_an_undurable_write_waits_for_it():
    """A refusal and a write that changes nothing tell of what they saw as much as a read would."""

    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            disk.go.clear()
            first = asyncio.create_task(heads.write(create("v1/ConfigMap", "a", data={"k": "v"})))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(heads.write(create("v1/ConfigMap", "a")))
            third = asyncio.create_task(heads.write(patch("v1/ConfigMap", "a", {"data": {"k": "v"}})))
            await asyncio.sleep(0.05)
            assert not first.done() and not second.done() and not third.done()
            disk.failures.append(JournalFull("no room", "make some"))
            disk.go.set()
            for task in (first, second, third):
                with pytest.raises(ApiError) as caught:
                    await task
                assert caught.value.code == 507
            assert heads.store.get(key("v1/ConfigMap", "a")) is None

    run(scene())


def test_one_append_takes_what_arrived_during_the_last():
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            disk.groups.clear()
            disk.go.clear()
            first = asyncio.create_task(heads.write(create("v1/ConfigMap", "first")))
            await asyncio.sleep(0.02)
            others = [asyncio.create_task(heads.write(create("v1/ConfigMap", f"c-{n}"))) for n in range(20)]
            await asyncio.sleep(0.02)
            disk.go.set()
            await asyncio.gather(first, *others)
            commits = [e for e in disk.entries() if isinstance(e.record, sj.Commit)]
            assert len(disk.groups) == 2 and len(commits) == 22
            assert disk.head().revision == heads.store.rev == 22

    run(scene())


def test_a_full_disk_refuses_writes_and_recovers(caplog):
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            await heads.write(create("v1/ConfigMap", "before"))
            disk.failures += [JournalFull("the disk is full", "free space")] * 2
            for _ in range(2):
                with pytest.raises(ApiError) as caught:
                    await heads.write(create("v1/ConfigMap", "a"))
                assert caught.value.code == 507 and "free space" in caught.value.message
                assert caught.value.status()["reason"] == "InsufficientStorage"
            assert [obj.key.name for obj in heads.store.list(CM)] == ["before"]  # reads go on
            reply = await heads.write(create("v1/ConfigMap", "a"))
            assert reply.rev == 3, "revisions have no gap"
            heads.check()
        assert check_history(disk.journal) == []

    with caplog.at_level(logging.WARNING):
        run(scene())
    told = [record.message for record in caplog.records]
    assert sum("refused" in text for text in told) == 1, "a full disk is told once"
    assert told[-1] == "the journal takes writes again"


def test_writes_begun_on_a_failed_group_fail_with_it():
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            disk.go.clear()
            first = asyncio.create_task(heads.write(create("v1/ConfigMap", "a")))
            await asyncio.sleep(0.02)
            later = asyncio.create_task(heads.write(patch("v1/ConfigMap", "a", {"data": {"x": "y"}})))
            await asyncio.sleep(0.02)
            disk.failures.append(JournalFull("full", "free space"))
            disk.go.set()
            results = await asyncio.gather(first, later, return_exceptions=True)
            assert [getattr(result, "code", None) for result in results] == [507, 507]
            assert disk.head().revision == 1
            assert (await heads.write(create("v1/ConfigMap", "a"))).code == 201

    run(scene())


def test_another_writer_stops_this_one_for_good():
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            told = []
            heads.on_stop = told.append
            disk.journal.acquire("usurper")
            with pytest.raises(ServiceUnavailable, match="usurper"):
                await heads.write(create("v1/ConfigMap", "a"))
            with pytest.raises(ServiceUnavailable, match="does not write any more"):
                await heads.write(create("v1/ConfigMap", "b"))
            assert isinstance(told[0], Fenced) and len(told) == 1
            assert heads.store.get(key("v1/Namespace", "default")) is not None

    run(scene())


@pytest.mark.parametrize("written", [True, False])
def test_an_unknown_outcome_is_asked_of_the_head(written):
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            error = JournalError("the disk failed", "look at it")
            if written:
                disk.after = error
                assert (await heads.write(create("v1/ConfigMap", "a"))).code == 201
            else:
                disk.failures.append(error)
                with pytest.raises(ApiError) as caught:
                    await heads.write(create("v1/ConfigMap", "a"))
                assert caught.value.code == 504 and "may yet" in caught.value.message
            assert (await heads.write(create("v1/ConfigMap", "b"))).code == 201
            heads.check()
        assert check_history(disk.journal) == []

    run(scene())


def test_draws_names_and_uids_anew():
    async def scene():
        async with heads_over(memory()) as heads:
            await namespace(heads)
            request = create("v1/ConfigMap", "", metadata={"generateName": "x-"})
            replies = await asyncio.gather(*[heads.write(request) for _ in range(50)])
            assert len({reply.obj.key.name for reply in replies}) == 50
            assert len({reply.obj.uid for reply in replies}) == 50

    run(scene())


def test_refusals_come_through():
    async def scene():
        async with heads_over(memory()) as heads:
            await namespace(heads)
            with pytest.raises(AlreadyExists):
                await namespace(heads)
            with pytest.raises(Invalid):
                await heads.write(create("v1/ConfigMap", "Not_A_Name"))
            with pytest.raises(ApiError) as caught:
                container = {"name": "c", "image": "i", "args": ["y" * (4 << 20)]}
                await heads.write(create("v1/Pod", "big", spec={"containers": [container]}))
            assert caught.value.code == 413
            assert (await heads.write(create("v1/ConfigMap", "fine"))).code == 201
            heads.check()

    run(scene())


def test_a_closed_server_refuses():
    async def scene():
        heads = Heads(API, memory())
        heads.start()
        await namespace(heads)
        write = asyncio.create_task(heads.write(create("v1/ConfigMap", "a")))
        await asyncio.sleep(0)
        await heads.close()
        assert (await write).code == 201, "what was taken in is still made durable"
        with pytest.raises(ServiceUnavailable, match="shutting down"):
            await heads.write(create("v1/ConfigMap", "b"))

    run(scene())


def test_a_restart_has_the_same_store(tmp_path):
    url = f"sqlite:{tmp_path / 'store.db'}"
    pod = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n1"}

    async def first():
        journal = sj.open(url)
        async with heads_over(journal) as heads:
            await namespace(heads)
            for number in range(30):
                await heads.write(create("v1/Pod", f"p-{number}", spec=pod))
                await heads.write(create("coordination.k8s.io/v1/Lease", f"l-{number}"))
            await heads.write(patch("v1/Pod", "p-3", {"metadata": {"labels": {"a": "b"}}}))
            lease = {"spec": {"holderIdentity": "me"}}
            await heads.write(patch("coordination.k8s.io/v1/Lease", "l-3", lease))
            await heads.write(delete("v1/Pod", "p-4"))
            await heads.write(delete("coordination.k8s.io/v1/Lease", "l-29"))
            sums.append(sums_of(heads.store))
            revisions.append(heads.store.rev)
        journal.close()

    async def second():
        journal = sj.open(url)
        async with heads_over(journal) as heads:
            assert (sums_of(heads.store), heads.store.rev) == (sums[0], revisions[0])
            found = heads.store.get(key("v1/Pod", "p-3"))
            assert found.node == "n1" and found.metadata.labels == {"a": "b"} and found.managers
            assert len(list(heads.store.find("node", "n1"))) == 30  # p-4 is bound: its deletion only began
            with pytest.raises(Gone):
                heads.since(("", "Pod"), heads.store.rev - 1)
            specs = {id(obj.spec) for obj in heads.store.list(("", "Pod"))}
            assert len(specs) == 1, "equal specs are shared"
            assert (await heads.write(create("v1/Pod", "new", spec=pod))).rev == revisions[0] + 1
        assert check_history(journal) == []
        journal.close()

    sums, revisions = [], []
    run(first())
    run(second())


def test_a_store_that_is_not_the_one_written_is_refused():
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
        log = disk.journal._log
        row = log.rows[1].row()
        forged = row._replace(body=row.body.replace(b'"default"', b'"defaulx"', 1))
        log.rows[1] = forged._replace(check=sj.record.checksum(forged))
        with pytest.raises(StartError) as caught:
            Heads(API, disk)
        assert "memory:" in str(caught.value) and "revision 1" in str(caught.value)

    run(scene())


def test_a_file_that_cannot_grow_is_a_full_disk(tmp_path):
    """The real thing: the operating system refuses to let the file grow, and later no longer does."""
    path = tmp_path / "store.db"
    journal = sj.open(f"sqlite:{path}")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def scene():
        async with heads_over(journal) as heads:
            await namespace(heads)
            size = path.with_name("store.db-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 500_000, before[1]))
            written = 0
            try:
                while written < 1000:
                    await heads.write(create("v1/ConfigMap", f"c-{written}", data={"pad": "x" * 3000}))
                    written += 1
            except ApiError as error:
                assert error.code == 507 and "free space" in error.message
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            assert 3 < written < 1000
            assert len(list(heads.store.list(CM))) == written
            await heads.write(create("v1/ConfigMap", "after"))
            heads.check()
        assert check_history(journal) == [] and journal.verify().ok

    run(scene())
    journal.close()


def test_a_fault_of_the_writer_lets_nobody_wait_for_ever():
    async def scene():
        async with heads_over(memory()) as heads:
            await namespace(heads)
            told = []
            heads.on_stop = told.append

            def listener(events):
                raise ZeroDivisionError("a fault")

            heads.listen(listener)
            with pytest.raises(ServiceUnavailable, match="a fault"):
                await heads.write(create("v1/ConfigMap", "a"))
            with pytest.raises(ServiceUnavailable, match="a fault"):
                await heads.write(create("v1/ConfigMap", "b"))
            assert len(told) == 1

    run(scene())


def test_a_durable_head_that_differs_from_what_was_appended_stops_the_writer():
    async def scene():
        async with heads_over(memory()) as heads:
            await namespace(heads)
            heads._durable.sum_full ^= 1
            with pytest.raises(ServiceUnavailable, match="is not what was appended"):
                await heads.write(create("v1/ConfigMap", "a"))

    run(scene())


def test_a_pod_with_an_empty_node_name_does_not_spoil_the_store():
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            spec = {"nodeName": "", "containers": [{"name": "c", "image": "i"}]}
            await heads.write(create("v1/Pod", "p", spec=spec))
            target = {"target": {"kind": "Node", "name": "n1"}}
            await heads.write(Request("create", key("v1/Pod", "p"), target, "binding", actor="ann"))
            await heads.write(patch("v1/Pod", "p", {"metadata": {"labels": {"a": "b"}}}))
            assert heads.store.get(key("v1/Pod", "p")).value.spec.nodeName == "n1"
        assert check_history(disk.journal) == []
        async with heads_over(disk) as heads:
            assert heads.store.get(key("v1/Pod", "p")).node == "n1"

    run(scene())
