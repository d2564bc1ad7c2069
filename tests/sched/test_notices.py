"""Events of the scheduler: one for a pod that found no node, brought up to date, gone with its pod."""

from __future__ import annotations

from typing import Any

from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.kernel.draw import draw_seeded
from steersman.kernel.effect import MICRO, Request
from steersman.kernel.object import Key
from steersman.kernel.system import System
from steersman.kernel.world import World
from steersman.sched.component import SchedulerComponent
from steersman.sched.notices import QUIET
from tests.sched.test_component import create, node, pod, seen, settle, world_with

LATER = QUIET + 10 * MICRO


def events(world: World) -> list[Any]:
    """Those of pods that found no node."""
    return [obj.value for obj in world.store.list(("", "Event")) if obj.value.reason == "FailedScheduling"]


def remove(world: World, kind: str, name: str, namespace: str = "default") -> None:
    world.request(Request("delete", Key("", kind, namespace, name), options={"grace": 0}), "test")


def test_why_a_pod_waits_is_told_by_one_event_that_is_brought_up_to_date():
    world = world_with(SchedulerComponent(events=True))
    pod(world, "big", cpu="3")
    settle(world)
    (told,) = events(world)
    assert (told.type, told.reason, told.count) == ("Warning", "FailedScheduling", 1)
    assert told.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert told.source == {"component": "default-scheduler"} and told.firstTimestamp == told.lastTimestamp
    about = told.involvedObject
    assert (about.kind, about.namespace, about.name) == ("Pod", "default", "big")
    assert about.uid == seen(world, "big").metadata.uid and about.resourceVersion
    node(world, "n1")  # the message changes
    settle(world, world.now + LATER)
    (again,) = events(world)
    assert (again.count, again.message) == (2, "0/2 nodes are available: 2 Insufficient cpu.")
    assert again.metadata.uid == told.metadata.uid and again.firstTimestamp == told.firstTimestamp
    node(world, "n2", "4")
    settle(world, world.now + LATER)
    assert seen(world, "big").spec.nodeName == "n2"
    assert len(events(world)) == 1  # what happened stays to be read
    remove(world, "Pod", "big")
    settle(world)
    assert events(world) == []


def retried(world: World, after: int, cpu: str) -> None:
    """The node changes, and the pod is tried again, to no avail, so much later."""
    world.now += after
    room = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    world.request(Request("patch", Key("", "Node", "", "n0"), {"status": room}, "status"), "test")
    tried = world.components[0].scheduler.next_deadline()
    assert tried is not None
    settle(world, world.now + 10 * MICRO)


def test_the_same_message_is_not_told_again_for_a_while():
    world = world_with(SchedulerComponent(events=True))
    pod(world, "big", cpu="9")
    settle(world)
    retried(world, MICRO, "3")
    assert [each.count for each in events(world)] == [1]
    retried(world, LATER, "4")
    assert [each.count for each in events(world)] == [2]


def test_what_it_knows_follows_from_the_objects():
    component = SchedulerComponent(events=True)
    world = world_with(component, nodes=0)
    for name in ("a", "b", "c" * 253):
        pod(world, name)
    settle(world)
    assert len(events(world)) == 3
    remove(world, "Event", events(world)[0].metadata.name)
    remove(world, "Pod", "b")
    other = {"reason": "FailedScheduling", "reportingComponent": "mine", "metadata": {"name": "other"}}
    create(world, "Event", "other", **other, involvedObject={"kind": "Pod", "name": "a", "uid": "x"})
    held, rebuilt = world.components[0].notices, component.start(world.store).notices
    for part in ("living", "told", "stale"):
        assert getattr(held, part) == getattr(rebuilt, part)
    assert held.stale
    settle(world)
    assert sorted(each.metadata.name[:5] for each in events(world)) == ["ccccc", "other"]
    node(world, "n0", "1")  # one of both is placed; the other is told anew where its event is gone
    settle(world, world.now + LATER)
    assert len(events(world)) in (2, 3)


def test_a_restart_sweeps_events_of_pods_that_are_gone():
    world = world_with(SchedulerComponent(events=True), nodes=0)
    pod(world, "a")
    settle(world)
    remove(world, "Pod", "a")  # and it stops before it has heard of it
    assert len(events(world)) == 1
    again = World(System(Api(Kinds.builtin()).begin, components=[SchedulerComponent(events=True)], draw=draw_seeded(2)))
    again.store = world.store
    settle(again.start())
    assert events(again) == []


def test_that_a_pod_was_bound_is_told_once_in_the_shape_of_events_of_today():
    world = world_with(SchedulerComponent(events=True))
    pod(world, "p")
    pod(world, "placed", nodeName="n0")
    settle(world)
    (told,) = [obj.value for obj in world.store.list(("", "Event"))]
    assert (told.type, told.reason, told.action) == ("Normal", "Scheduled", "Binding")
    assert told.message == "Successfully assigned default/p to n0" and told.eventTime
    assert (told.reportingComponent, told.source) == ("default-scheduler", {})
    assert told.involvedObject.uid == seen(world, "p").metadata.uid


def test_without_events_none_are_told():
    world = world_with(SchedulerComponent(), nodes=0)
    pod(world, "a")
    settle(world)
    assert events(world) == []
