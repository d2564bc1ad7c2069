"""The scheduler's wiring: what it asks for, what it hears, and that its state is derived from events alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.begin import Api
from steersman.api.errors import conflict
from steersman.api.kinds import Kinds
from steersman.kernel.draw import draw_seeded
from steersman.kernel.effect import MICRO, Event, Request
from steersman.kernel.object import Key
from steersman.kernel.system import System
from steersman.kernel.world import World
from steersman.sched.component import SchedulerComponent
from tests.sched.clusters import container

API = Api(Kinds.builtin())


def world_with(component: SchedulerComponent, nodes: int = 1, cpu: str = "2", persistent: bool = False) -> World:
    world = World(System(API.begin, components=[component], persistent=persistent, draw=draw_seeded(1)))
    create(world, "Namespace", "default", namespace="")
    for number in range(nodes):
        node(world, f"n{number}", cpu)
    return world.start()


def create(world: World, kind: str, name: str, namespace: str = "default", **fields: Any) -> Any:
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}
    done = world.request(Request("create", Key("", kind, namespace, name), body), "test")
    assert not isinstance(done, Exception), done
    return done


def node(world: World, name: str, cpu: str = "2") -> None:
    room = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    create(world, "Node", name, "")
    world.request(Request("patch", Key("", "Node", "", name), {"status": room}, "status"), "test")


def pod(world: World, name: str, cpu: str = "1", **spec: Any) -> None:
    containers = [{**container("c", {"cpu": cpu}), "image": "i"}]
    create(world, "Pod", name, spec={"containers": containers, **spec})


def seen(world: World, name: str) -> Any:
    found = world.store.get(Key("", "Pod", "default", name))
    assert found is not None
    return found.value


def settle(world: World, until: int | None = None) -> None:
    """Advances the component while it has something to do no later than `until`."""
    component = world.system.components[0]
    while True:
        due = component.next_deadline(world.components[0])
        if due is None or due > (world.now if until is None else until):
            return
        world.advance(0)


def condition(pod: Any) -> Any:
    return next(c for c in (pod.status.conditions or ()) if c["type"] == "PodScheduled")


def test_a_pod_is_bound_by_a_binding():
    world = world_with(SchedulerComponent())
    pod(world, "web")
    settle(world)
    assert seen(world, "web").spec.nodeName == "n0"
    assert world.components[0].waiting == {}
    assert world.system.components[0].next_deadline(world.components[0]) is None


def test_why_a_pod_is_not_placed_is_written_once():
    world = world_with(SchedulerComponent())
    pod(world, "big", cpu="3")
    settle(world)
    said = condition(seen(world, "big"))
    assert (said["status"], said["reason"]) == ("False", "Unschedulable")
    assert said["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    rev = world.store.rev
    node(world, "n1")  # it is tried again, and the message changes
    settle(world, world.now + 60 * MICRO)
    assert condition(seen(world, "big"))["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert condition(seen(world, "big"))["lastTransitionTime"] == said["lastTransitionTime"]
    assert world.store.rev == rev + 3  # the node twice, the message
    world.request(Request("patch", Key("", "Node", "", "n1"), {"metadata": {"labels": {"a": "b"}}}), "test")
    rev = world.store.rev
    settle(world, world.now + 60 * MICRO)
    assert world.store.rev == rev  # nothing new to say


def test_other_conditions_are_kept():
    world = world_with(SchedulerComponent(), nodes=0)
    pod(world, "web")
    other = {"type": "example.com/Gate", "status": "True"}
    key = Key("", "Pod", "default", "web")
    world.request(Request("patch", key, {"status": {"conditions": [other]}}, "status"), "test")
    settle(world)
    assert [c["type"] for c in seen(world, "web").status.conditions] == ["example.com/Gate", "PodScheduled"]


def test_after_room_was_made_the_pod_is_bound_when_its_back_off_is_over():
    world = world_with(SchedulerComponent())
    pod(world, "big", cpu="3")
    settle(world)
    began = world.now
    node(world, "roomy", cpu="4")
    settle(world)
    assert not seen(world, "big").spec.nodeName
    settle(world, began + 10 * MICRO)
    assert seen(world, "big").spec.nodeName == "roomy"
    assert world.now == began + MICRO


class Refusing(Api):
    """Refuses the first bindings, as an API server in trouble would."""

    def __init__(self, times: int) -> None:
        super().__init__(Kinds.builtin())
        self.times = times

    def answer(self, store: Any, request: Request) -> Any:
        if request.subresource == "binding" and self.times:
            self.times -= 1
            raise conflict("pods/binding", request.key.name)
        return self.begin(store, request)


def test_a_refused_binding_gives_the_room_back_and_is_tried_again():
    api = Refusing(1)
    world = world_with(SchedulerComponent())
    world.system.begin = api.answer
    pod(world, "first", cpu="2")
    settle(world)
    began = world.now
    assert not seen(world, "first").spec.nodeName
    pod(world, "second", cpu="2")  # the room is free: it is not held by the failed binding
    settle(world)
    assert seen(world, "second").spec.nodeName == "n0"
    world.request(Request("delete", Key("", "Pod", "default", "second"), options={"grace": 0}), "test")
    settle(world, began + 20 * MICRO)
    assert seen(world, "first").spec.nodeName == "n0"


def test_ties_follow_the_seed():
    def nodes_of(seed: int | None) -> list[str]:
        world = world_with(SchedulerComponent(seed), nodes=8)
        for number in range(4):
            pod(world, f"p{number}")
        settle(world)
        return [seen(world, f"p{number}").spec.nodeName for number in range(4)]

    assert nodes_of(None) == ["n0", "n1", "n2", "n3"]
    assert nodes_of(1) == nodes_of(1)
    assert len({tuple(nodes_of(seed)) for seed in range(5)}) == 5


def test_a_persistent_state_is_never_changed():
    world = world_with(SchedulerComponent(3, persistent=True), nodes=2, persistent=True)
    pod(world, "web")
    before, fork = world.components[0], world.fork()
    whole = before.scheduler.state(), before.thrown, dict(before.waiting)
    fork.advance(0)
    assert (before.scheduler.state(), before.thrown, dict(before.waiting)) == whole
    assert world.components[0] is before
    other = world.fork()
    other.advance(0)
    assert seen(fork, "web").spec.nodeName == seen(other, "web").spec.nodeName


def test_a_node_that_cannot_be_read_is_as_good_as_gone():
    component = SchedulerComponent()
    world = world_with(component)
    key = Key("", "Node", "", "n0")
    good = world.store.get(key)
    state = world.components[0]
    broken = API.begin(world.store, Request("patch", key, {"status": {"allocatable": {"cpu": "4"}}}, "status")).new
    broken.status._value = {"allocatable": {"cpu": "many"}}  # what no API of ours lets through, another's might
    state = component.on_event(state, Event(9, key, good, broken))
    assert state.scheduler.best_nodes(seen_pod()) == ()
    assert "cpu" in state.faults[key]
    state = component.on_event(state, Event(10, key, broken, good))
    assert state.scheduler.best_nodes(seen_pod()) == ("n0",) and not state.faults


def seen_pod() -> dict[str, Any]:
    return {"metadata": {"name": "x", "namespace": "default"}, "spec": {"containers": [container()]}}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.sampled_from("abcdef"), st.sampled_from(("500m", "1", "3"))),
        st.tuples(st.just("delete"), st.sampled_from("abcdef"), st.none()),
        st.tuples(st.just("node"), st.sampled_from(("n0", "n1", "n2")), st.sampled_from(("1", "4"))),
        st.tuples(st.just("advance"), st.none(), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_law_kept_up_by_events_it_is_the_one_started_afresh(steps):
    component = SchedulerComponent()
    world = world_with(component, nodes=1)
    for what, name, size in steps:
        key = Key("", "Pod", "default", name or "")
        if what == "pod" and world.store.get(key) is None:
            pod(world, name, cpu=size)
        elif what == "delete":
            world.request(Request("delete", key, options={"grace": 0}), "test")
        elif what == "node" and world.store.get(Key("", "Node", "", name)) is None:
            node(world, name, size)
        elif what == "advance":
            settle(world, world.now + 20 * MICRO)
    fresh = component.start(world.store)
    kept = world.components[0]
    assert kept.waiting == fresh.waiting
    assert kept.scheduler.state()[:2] == fresh.scheduler.state()[:2]  # but for queue times and back-offs


@pytest.mark.parametrize("verb", ["patch", "create"])
def test_only_a_refused_binding_frees_room(verb):
    component = SchedulerComponent()
    world = world_with(component)
    request = Request(verb, Key("", "Pod", "default", "web"), subresource="status")
    state = world.components[0]
    assert component.on_refused(state, request, conflict("pods", "web")) is state
