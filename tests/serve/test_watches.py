"""Watches over HTTP: what is told, from when on, in which form, and that nothing is left behind."""

import asyncio
import threading

import pytest

from steersman.kernel.changelog import ChangeLog
from steersman.serve import listing
from steersman.serve import watch as watch_module
from steersman.serve.watchers import Watchers
from tests.serve.harness import in_loop
from tests.serve.plane import PARTIAL, PODS, TABLE, Plane, pod, told

INITIAL = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

WATCH = PODS + "?watch=1"


@in_loop
async def test_from_nothing_what_is_there_comes_first():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    for version in ("", "&resourceVersion=0"):
        watch = await plane.watch(WATCH + version)
        assert told(await watch.take(1)) == [("ADDED", "a")]
        await watch.close()


@in_loop
async def test_from_a_version_only_what_comes_after():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    version = (await plane.get(PODS)).json["metadata"]["resourceVersion"]
    await plane.post(PODS, pod("b"))
    watch = await plane.watch(f"{WATCH}&resourceVersion={version}")
    assert told(await watch.take(1)) == [("ADDED", "b")]
    await plane.merge(PODS + "/a", {"metadata": {"labels": {"x": "1"}}})
    changed = (await watch.take(1))[0]
    assert changed["type"] == "MODIFIED" and changed["object"] == (await plane.get(PODS + "/a")).json
    await plane.delete(PODS + "/a")
    deleted = (await watch.take(1))[0]
    assert deleted["type"] == "DELETED" and deleted["object"]["metadata"]["labels"] == {"x": "1"}
    assert int(deleted["object"]["metadata"]["resourceVersion"]) == plane.backend.store.rev
    await watch.close()


@pytest.mark.parametrize("flag", ["watch=true", "watch=True", "watch=1", "watch"])
@in_loop
async def test_spellings_of_watch(flag):
    watch = await Plane().watch(f"{PODS}?{flag}&timeoutSeconds=1")
    await watch.close()


@in_loop
async def test_selectors_turn_changes_into_arrivals_and_departures():
    plane = Plane()
    await plane.post(PODS, pod("a", labels={"app": "x"}))
    await plane.post(PODS, pod("b"))
    watch = await plane.watch(WATCH + "&labelSelector=app%3Dx")
    assert told(await watch.take(1)) == [("ADDED", "a")]
    for name, app in (("b", "x"), ("b", "x"), ("a", "y"), ("b", None)):
        await plane.merge(
            f"{PODS}/{name}", {"metadata": {"labels": {"app": app}, "annotations": {"n": str(plane.drawn)}}}
        )
        plane.drawn += 1
    events = await watch.take(4)
    assert told(events) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a"), ("DELETED", "b")]
    assert events[2]["object"]["metadata"]["labels"] == {"app": "x"}, "as it was when it last matched"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    await watch.close()


@in_loop
async def test_fields_and_namespaces_select_too():
    plane = Plane()
    watch = await plane.watch(WATCH + "&fieldSelector=spec.nodeName%3Dn1")
    elsewhere = await plane.watch("/api/v1/namespaces/kube-system/pods?watch=1")
    everywhere = await plane.watch("/api/v1/pods?watch=1")
    await plane.post(PODS, pod("a"))
    await plane.post(PODS + "/a/binding", {"target": {"name": "n1"}})
    await plane.post("/api/v1/namespaces/kube-system/pods", pod("k"))
    assert told(await watch.take(1)) == [("ADDED", "a")]
    assert told(await elsewhere.take(1)) == [("ADDED", "k")]
    assert told(await everywhere.take(3)) == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "k")]
    for each in (watch, elsewhere, everywhere):
        await each.close()


@in_loop
async def test_initial_events_end_with_a_bookmark():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watch = await plane.watch(WATCH + query)
    first, mark = await watch.take(2)
    assert first["type"] == "ADDED" and mark["type"] == "BOOKMARK"
    assert mark["object"]["kind"] == "Pod" and mark["object"]["apiVersion"] == "v1"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["object"]["metadata"]["resourceVersion"] == str(plane.backend.store.rev)
    await plane.post(PODS, pod("b"))
    assert told(await watch.take(1)) == [("ADDED", "b")]
    await watch.close()


@in_loop
async def test_no_initial_events_when_they_are_not_wanted():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    watch = await plane.watch(WATCH + "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
    await plane.post(PODS, pod("b"))
    assert told(await watch.take(1)) == [("ADDED", "b")]
    await watch.close()


@in_loop
async def test_it_ends_in_time_with_a_bookmark_that_tells_how_far_it_came():
    plane = Plane()
    watch = await plane.watch(WATCH + "&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=1")
    await plane.post("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "n"}})
    events = await watch.rest()
    assert [event["type"] for event in events] == ["BOOKMARK"]
    assert events[0]["object"]["metadata"]["resourceVersion"] == str(plane.backend.store.rev)
    quiet = await plane.watch(WATCH + "&timeoutSeconds=1")
    assert await quiet.rest() == []


@in_loop
async def test_bookmarks_of_a_quiet_watch(monkeypatch):
    monkeypatch.setattr(watch_module, "BOOKMARK_SECONDS", 0.05)
    plane = Plane()
    watch = await plane.watch(f"{WATCH}&allowWatchBookmarks=1&resourceVersion={plane.backend.store.rev}")
    await plane.post("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "n"}})
    mark = await watch.next()
    assert mark["type"] == "BOOKMARK" and int(mark["object"]["metadata"]["resourceVersion"]) == plane.backend.store.rev
    with pytest.raises(asyncio.TimeoutError):
        await watch.next(0.3)  # nothing new, no second bookmark
    await watch.close()


@in_loop
async def test_a_version_that_is_gone():
    plane = Plane(log=ChangeLog(max_events=2))
    for name in "abc":
        await plane.post(PODS, pod(name))
    watch = await plane.watch(WATCH + "&resourceVersion=1")
    (event,) = await watch.rest()
    assert event["type"] == "ERROR"  # not an answer of 410: the watch has been granted
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


@in_loop
async def test_a_watcher_that_falls_behind_is_told():
    plane = Plane(log=ChangeLog(max_events=2))
    await plane.post(PODS, pod("a"))
    watch = await plane.watch(WATCH)
    await watch.take(1)
    for name in "bcdef":
        await plane.post(PODS, pod(name))
    events = await watch.rest()
    assert events[0]["type"] == "ERROR" and events[0]["object"]["code"] == 410
    assert events[0]["object"]["kind"] == "Status"


@in_loop
async def test_a_quiet_kind_survives_the_noise_of_others():
    plane = Plane(log=ChangeLog(max_events=3))
    watch = await plane.watch(f"{WATCH}&resourceVersion={plane.backend.store.rev}")
    step = asyncio.ensure_future(watch.next())
    await asyncio.sleep(0)
    for index in range(9):
        await plane.post("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": f"n{index}"}})
    await plane.post(PODS, pod("a"))
    assert told([await step]) == [("ADDED", "a")]
    await watch.close()


@in_loop
async def test_a_version_from_the_future():
    await Plane().get(WATCH + "&resourceVersion=1000", code=504)


@in_loop
async def test_events_that_are_there_together_are_one_chunk():
    plane = Plane()
    watch = await plane.watch(f"{WATCH}&resourceVersion={plane.backend.store.rev}")
    for index in range(30):
        await plane.post(PODS, pod(f"p{index}"))
    await watch.take(30)
    assert watch.sizes == [30]
    await watch.close()


@in_loop
async def test_an_event_is_written_once_for_all_its_watchers():
    plane = Plane()
    version = plane.backend.store.rev
    watches = [await plane.watch(f"{WATCH}&resourceVersion={version}") for _ in range(10)]
    tables = [await plane.watch(f"{WATCH}&resourceVersion={version}", accept=TABLE) for _ in range(10)]
    for name in "abc":
        await plane.post(PODS, pod(name))
    for watch in watches + tables:
        await watch.take(3)
        await watch.close()
    assert plane.app.frames.made == 6


@in_loop
async def test_a_table_is_watched_row_by_row():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    watch = await plane.watch(WATCH, accept=TABLE)
    first = await watch.next()
    assert first["type"] == "ADDED" and first["object"]["kind"] == "Table"
    assert first["object"]["rows"][0]["cells"][:3] == ["a", "0/1", "Pending"]
    await plane.merge(PODS + "/a/status", {"status": {"phase": "Running"}})
    second = await watch.next()
    assert second["type"] == "MODIFIED" and second["object"]["rows"][0]["cells"][2] == "Running"
    await watch.close()


@in_loop
async def test_metadata_is_watched_alone():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    watch = await plane.watch(WATCH + "&allowWatchBookmarks=1&timeoutSeconds=1", accept=PARTIAL)
    first = await watch.next()
    assert first["object"]["kind"] == "PartialObjectMetadata" and "spec" not in first["object"]
    assert [event["object"]["kind"] for event in await watch.rest()] == ["PartialObjectMetadata"]


@in_loop
async def test_nobody_waits_when_all_have_gone():
    plane = Plane()
    before = asyncio.all_tasks()
    watches = [await plane.watch(WATCH) for _ in range(5)]
    waiting = [asyncio.create_task(watch.next(60)) for watch in watches]
    await asyncio.sleep(0.01)
    assert (plane.app.audiences.waiting, plane.backend.watchers) == (5, 1), "one waits for all"
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await asyncio.sleep(0)
    assert (plane.app.audiences.waiting, plane.backend.watchers) == (0, 0)
    assert asyncio.all_tasks() == before


@in_loop
async def test_a_user_has_a_bounded_number_of_watches_and_so_have_all() -> None:
    plane = Plane()
    plane.app.watchers = watchers = Watchers(most=3, most_of_user=2)
    readers = []
    for _ in range(2):
        readers.append(await plane.watch(PODS + INITIAL))
        await readers[-1].next()
    answer = await plane.get(PODS + "?watch=true", code=429)
    assert answer.header("retry-after") == "5" and "2 watches" in answer.json["message"]
    assert (await plane.get(PODS)).code == 200
    await readers.pop().close()
    assert watchers.count == 1
    for reader in readers:
        await reader.close()
    assert (watchers.count, watchers.by_user) == (0, {})


@in_loop
async def test_what_begins_a_watch_among_many_is_found_beside_the_loop_as_it_was(monkeypatch):
    monkeypatch.setattr(listing, "HELD_AGAINST", 3)
    searched = []
    found = watch_module._found

    def noted(store, query):
        searched.append(threading.current_thread() is threading.main_thread())
        return found(store, query)

    monkeypatch.setattr(watch_module, "_found", noted)
    plane = Plane()
    for name in "abcd":
        await plane.post(PODS, pod(name, labels={"app": "x"} if name in "bd" else {}))
    watch = await plane.watch(WATCH + "&labelSelector=app%3Dx")
    await plane.merge(PODS + "/a", {"metadata": {"labels": {"app": "x"}}})
    await plane.delete(PODS + "/b")
    assert told(await watch.take(4)) == [("ADDED", "b"), ("ADDED", "d"), ("ADDED", "a"), ("DELETED", "b")]
    assert searched == [False]
    await watch.close()
