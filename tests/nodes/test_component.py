"""The component of all virtual nodes: the same statuses as its plain twin, its rebuild law, its delays and limits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.errors import invalid
from steersman.api.times import MICRO
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.kernel.world import START
from steersman.nodes.component import VirtualNodes, node_object
from steersman.nodes.kubelet import VirtualKubelet
from steersman.nodes.stages import INSTANT, Delay, Stages
from steersman.nodes.status import EXIT_CODE, LIFETIME
from tests.controllers.worlds import client, make, objects, one, put, settle


def pod(name, node="node-1", policy="Always", lifetime="", **spec):
    annotations = {LIFETIME: lifetime, EXIT_CODE: "0"} if lifetime else {}
    containers = [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
    body = {"restartPolicy": policy, "containers": containers, **spec}
    if node:
        body["nodeName"] = node
    meta = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def node(name="node-1"):
    bare = node_object(name)
    del bare["status"]
    return bare


def virtual(objects, stages=INSTANT, **options):
    kept = {name: options.pop(name) for name in ("seed", "virtual") if name in options}
    persistent = options.get("persistent", True)
    nodes = VirtualNodes(stages=stages, persistent=persistent, **kept)
    return make([], objects, components=[nodes], **options)


def drive(world, until=None, limit=10_000):
    """Takes every edge in the order of their times, to rest or to a time (microseconds since the start)."""
    for _ in range(limit):
        component = world.system.components[0]
        due = component.next_deadline(world.components[0])
        if due is None or (until is not None and due > START + until):
            return world
        world.advance(0)
    raise AssertionError("it never comes to rest")


LIFE = [
    node(),
    node("node-2"),
    pod("service"),
    pod("job", policy="Never", lifetime="7", initContainers=[{"name": "i", "image": "i"}]),
    pod("host", "node-2", hostNetwork=True),
    pod("waiting", ""),
]


def statuses(world):
    return {each.metadata.name: each.get("status") for kind in ("Node", "Pod") for each in objects(world, kind)}


def test_the_component_and_its_twin_write_the_same_statuses():
    twin = settle(make([VirtualKubelet], LIFE))
    ours = drive(virtual(LIFE), until=0)
    assert statuses(ours) == statuses(twin)
    assert one(ours, "Pod", "job").status.phase == "Running"
    settle(twin, timers=True)
    drive(ours)
    assert statuses(ours) == statuses(twin)
    assert one(ours, "Pod", "job").status.phase == "Succeeded"
    for world in (twin, ours):
        client(world).delete(Key("", "Pod", "default", "service"))
    settle(twin, timers=True)
    drive(ours)
    assert statuses(ours) == statuses(twin) and one(ours, "Pod", "service") is None


def test_each_edge_is_one_write():
    world = virtual([node(), pod("p")])
    before = world.store.rev
    drive(world)
    assert world.store.rev - before == 3  # the node is ready; the pod accepted, then running


def test_delays_are_kept():
    stages = Stages(pull=Delay(3), startup=Delay(2), removal=Delay(4))
    world = virtual([node(), pod("p")], stages)
    drive(world, until=5 * MICRO - 1)
    assert one(world, "Pod", "p").status.phase == "Pending"
    drive(world, until=5 * MICRO)
    assert one(world, "Pod", "p").status.phase == "Running"
    client(world).delete(Key("", "Pod", "default", "p"))
    drive(world, until=9 * MICRO - 1)
    assert one(world, "Pod", "p")
    drive(world, until=9 * MICRO)
    assert one(world, "Pod", "p") is None


def test_no_pod_outlives_its_grace_period():
    world = drive(virtual([node(), pod("p")], Stages(removal=Delay(500))))
    begun = world.now
    client(world).delete(Key("", "Pod", "default", "p"))
    drive(world)
    assert one(world, "Pod", "p") is None and world.now - begun <= 31 * MICRO


@pytest.mark.parametrize("annotation", [{LIFETIME: "inf"}, {LIFETIME: "1", EXIT_CODE: "9" * 5000}])
def test_a_pod_with_absurd_annotations_holds_up_nobody(annotation):
    absurd = pod("absurd", policy="Never")
    absurd["metadata"]["annotations"] = annotation
    world = drive(virtual([node(), absurd, pod("p")], Stages()), until=60 * MICRO)
    assert one(world, "Pod", "p").status.phase == "Running"


def test_pods_of_an_unknown_node_wait_for_it_and_of_one_that_left_stand_still():
    world = drive(virtual([pod("p", "late")]))
    assert not one(world, "Pod", "p").status.startTime
    put(world, node("late"))
    drive(world)
    assert one(world, "Pod", "p").status.phase == "Running"
    client(world).delete(Key("", "Node", "", "late"))
    client(world).delete(Key("", "Pod", "default", "p"))
    drive(world)
    assert one(world, "Pod", "p"), "nobody is there to end it"


def test_only_virtual_nodes_are_driven():
    is_virtual = lambda obj: obj.key.name.startswith("v")  # noqa: E731
    world = drive(virtual([node("v1"), node("real"), pod("a", "v1"), pod("b", "real")], virtual=is_virtual))
    assert one(world, "Pod", "a").status.phase == "Running" and not one(world, "Pod", "b").status.startTime
    assert not one(world, "Node", "real").status.conditions


def test_a_refusal_for_good_is_noted_and_not_repeated():
    nodes = VirtualNodes(stages=INSTANT)
    world = virtual([node(), pod("p")], persistent=False)
    state = world.components[0]
    key = Key("", "Pod", "default", "p")
    state, _ = nodes.advance(state, START)
    nodes.on_refused(state, Request("update", key), invalid("Pod", "p", []))
    assert key in state.faults and nodes.next_deadline(state) is None


def test_its_heap_does_not_grow_with_what_was_dropped():
    world = virtual([node()], persistent=False)
    drive(world)
    component, state = world.system.components[0], world.components[0]
    put(world, pod("p"))
    obj = world.store.get(Key("", "Pod", "default", "p"))
    from steersman.nodes.component import Plan

    for due in range(10_000):
        state.plan(obj.key, Plan(due, "start", obj))
    assert len(state.heap) <= 1_026 and component.next_deadline(state) == 9_999


OPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "delete", "node", "no node", "time", "annotate", "fail"]),
        st.integers(0, 3),
        st.integers(0, 9),
    ),
    max_size=40,
)


@pytest.mark.parametrize("persistent", [True, False])
@settings(max_examples=60, deadline=None)
@given(ops=OPS)
def test_its_state_equals_one_built_anew(persistent, ops):
    stages = Stages(pull=Delay(1, 4), removal=Delay(1, 9))
    world = virtual([node("n0"), node("n1")], stages, persistent=persistent)
    c = client(world)
    for op, which, number in ops:
        name = f"p{which}"
        key = Key("", "Pod", "default", name)
        there = c.get(key)
        if op == "create" and there is None:
            policy = "Never" if number % 2 else "Always"
            put(world, pod(name, f"n{number % 3}", policy, str(number) if number % 4 == 1 else ""))
        elif op == "delete":
            c.delete(key, grace=number)
        elif op == "node" and c.get(Key("", "Node", "", f"n{which}")) is None:
            put(world, node(f"n{which}"))
        elif op == "no node":
            c.delete(Key("", "Node", "", f"n{which}"))
        elif op == "time":
            drive(world, until=world.now - START + number * MICRO)
            world.now += number * MICRO
        elif op == "annotate" and there is not None:
            c.patch(key, {"metadata": {"annotations": {LIFETIME: str(number)}}})
        elif op == "fail" and there is not None and there.status.startTime:
            c.patch_status(key, {"phase": "Failed"})
        component = world.system.components[0]
        rebuilt = component.start(world.store)
        assert world.components[0].known() == rebuilt.known()
        assert component.next_deadline(world.components[0]) == component.next_deadline(rebuilt)


def test_a_persistent_component_leaves_old_states_as_they_were():
    world = virtual([node(), pod("p")])
    before = world.components[0]
    known = before.known()
    drive(world)
    assert before.known() == known != world.components[0].known()
