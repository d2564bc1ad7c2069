"""Writes of other threads, which a journal in memory lets them make durable themselves."""

import asyncio
import threading

import pytest

import steersman.journal as sj
from steersman.api.errors import ApiError
from steersman.kernel.effect import Event
from tests.run.plane import Disk, create, heads_over, key, namespace, patch, until


def in_memory() -> Disk:
    disk = Disk(sj.open("memory:"))
    disk.blocks = False
    return disk


def config_map(number: int):
    return create("v1/ConfigMap", f"c{number}", data={"n": str(number)})


def test_a_thread_writes_and_reads_while_the_loop_stands_still():
    async def main() -> None:
        async with heads_over(in_memory()) as heads:
            await namespace(heads)
            told: list[Event] = []
            heads.listen(told.extend)
            seen: list[object] = []

            def work() -> None:
                for number in range(3):
                    done = heads.do_from_thread(config_map(number), "user")
                    seen.append(done.done() and done.result().revision)
                    seen.append(heads.view().get(key("v1/ConfigMap", f"c{number}")).rv)

            thread = threading.Thread(target=work)
            thread.start()
            thread.join(10)  # the loop is this very thread
            assert seen == [2, 2, 3, 3, 4, 4]
            assert heads.busy and not told
            assert heads.store.get(key("v1/ConfigMap", "c2")).rv == 4
            assert [event.rev for event in heads.since(("", "ConfigMap"), 1)] == [2, 3, 4]
            await until(lambda: len(told) == 3)
            assert [event.rev for event in told] == [2, 3, 4]
            heads.check()

    asyncio.run(main())


def test_writes_of_the_loop_and_of_threads_are_one_sequence():
    async def main() -> None:
        async with heads_over(sj.open("memory:")) as heads:
            await namespace(heads)
            told: list[int] = []
            heads.listen(lambda events: told.extend(event.rev for event in events))
            wrong: list[object] = []

            def work(first: int) -> None:
                for number in range(first, first + 50):
                    revision = heads.do_from_thread(config_map(number), "reconcile").result(10).revision
                    found = heads.view().get(key("v1/ConfigMap", f"c{number}"))
                    if found is None or found.rv != revision:
                        wrong.append((number, revision, found))

            threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(1, 4)]
            for thread in threads:
                thread.start()
            for number in range(50):
                reply = await heads.write(config_map(number))
                assert heads.store.get(reply.obj.key).rv == reply.rev
                await heads.write(patch("v1/ConfigMap", f"c{number}", {"data": {"more": "1"}}))
            await asyncio.to_thread(lambda: [thread.join(10) for thread in threads])
            await until(lambda: not heads.busy and len(told) == 250)
            assert not wrong
            assert told == list(range(2, 252))
            assert [event.rev for event in heads.since(("", "ConfigMap"), 1)] == told
            heads.check()
        assert [commit.revision for commit in heads.journal.read()] == list(range(1, 252))
        assert heads.journal.verify().ok

    asyncio.run(main())


def test_what_is_not_appended_yet_is_not_seen_beside_what_landed():
    async def main() -> None:
        async with heads_over(in_memory()) as heads:
            await namespace(heads)
            thread = threading.Thread(target=lambda: heads.do_from_thread(config_map(0), "user").result(10))
            thread.start()
            thread.join(10)
            heads._submit(config_map(1), "user", asyncio.get_running_loop().create_future())
            for store in (heads.store, heads.view()):
                assert store.get(key("v1/ConfigMap", "c0")) is not None
                assert store.get(key("v1/ConfigMap", "c1")) is None
                assert store.rev == 2
            await until(lambda: heads.store.rev == 3 and heads.view().rev == 3)
            heads.check()

    asyncio.run(main())


def test_a_write_that_did_not_land_leaves_what_had_landed():
    async def main() -> None:
        disk = in_memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            refusals: list[ApiError] = []

            def work() -> None:
                heads.do_from_thread(config_map(0), "user").result(10)
                disk.failures.append(sj.JournalFull("no room", "delete something"))
                with pytest.raises(ApiError) as caught:
                    heads.do_from_thread(config_map(1), "user").result(10)
                refusals.append(caught.value)

            thread = threading.Thread(target=work)
            thread.start()
            thread.join(10)
            assert [error.code for error in refusals] == [507]
            assert heads.trouble()
            assert heads.tentative.get(key("v1/ConfigMap", "c0")) is not None
            assert heads.tentative.get(key("v1/ConfigMap", "c1")) is None
            done = await asyncio.to_thread(lambda: heads.do_from_thread(config_map(2), "user").result(10))
            assert done.revision == 3
            assert not heads.trouble()
            heads.check()

    asyncio.run(main())
