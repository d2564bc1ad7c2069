"""The scheduler's plain twin as a controller: it places what the core places, and never gives room away twice."""

from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from steersman.nodes.node import node_object
from steersman.sched.twin import Scheduler
from tests.controllers.worlds import client, explore, make, objects, one, put, settle


def pod(name, cpu="1", **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def ready(world, *nodes):
    """Nodes with their status, as somebody who registers them writes it."""
    for node in nodes:
        made = put(world, node)
        client(world).update_status({**made.value, "status": node["status"]})
    return world


def nodes_of(world):
    return {each.metadata.name: each.spec.nodeName or "" for each in objects(world, "Pod")}


def test_pods_spread_over_equal_nodes_and_memory_is_empty_at_rest():
    w = ready(make([Scheduler], []), node_object("a", cpu="4"), node_object("b", cpu="4"))
    for number in range(4):
        put(w, pod(f"p{number}"))
    settle(w)
    assert sorted(nodes_of(w).values()) == ["a", "a", "b", "b"] and not w.memory


def test_a_pod_without_room_is_told_why_and_placed_when_there_is_some():
    w = ready(make([Scheduler], []), node_object("a", cpu="1"))
    put(w, pod("first"))
    put(w, pod("second"))
    settle(w)
    waiting = next(each for each in objects(w, "Pod") if not each.spec.nodeName)
    told = waiting.status.conditions[0]
    assert (told.type, told.status, told.reason) == ("PodScheduled", "False", "Unschedulable")
    assert told.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    placed = next(each for each in objects(w, "Pod") if each.spec.nodeName)
    client(w).delete(placed, grace=0)
    settle(w)
    assert nodes_of(w) == {waiting.metadata.name: "a"}
    put(w, pod("third"))
    settle(w)
    ready(w, node_object("b", cpu="1"))
    settle(w)
    assert one(w, "Pod", "third").spec.nodeName == "b"


def test_other_schedulers_pods_and_gated_ones_are_left_alone():
    w = ready(make([Scheduler], []), node_object("a"))
    put(w, pod("other", schedulerName="mine"))
    put(w, pod("gated", schedulingGates=[{"name": "example.com/gate"}]))
    settle(w)
    assert set(nodes_of(w).values()) == {""}


def test_room_is_given_away_once_whatever_its_view_misses():
    def start():
        return make([Scheduler, VirtualKubelet], [node_object("a", cpu="1"), pod("p0"), pod("p1")], lag=1, atomic=True)

    blind = []
    """Worlds where the scheduler's view lacks the binding and a pod is still to be reconciled."""

    def fits(w):
        bound = sum(bool(each.spec.nodeName) for each in objects(w, "Pod"))
        lagging = w.views.get((0, ("", "Pod")))
        if bound == 1 and lagging and lagging.waiting[0][0].new.node and any(loop == 0 for loop, _ in w.pending):
            blind.append(w)
        return bound <= 1

    found = explore(start, fits)
    assert not found.findings and found.states > 50 and blind
    assert all(sorted(map(bool, nodes_of(w).values())) == [False, True] for w in found.terminal)


def test_a_binding_to_nobody():
    w = settle(make([Scheduler], [pod("p")]))
    assert one(w, "Pod", "p").status.conditions[0].message == "no nodes available to schedule pods"
    assert w.store.get(Key("", "Pod", "default", "p")).node is None
