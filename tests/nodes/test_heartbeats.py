"""Virtual nodes give the signs of life that kubelets give, at their pace, and leave those of others alone."""

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.times import MICRO, parse_time
from steersman.controllers.nodehealth import NodeLifecycle
from steersman.kernel.object import Key
from steersman.kernel.reexec import Learned
from steersman.kernel.transition import enabled, step
from steersman.kernel.world import START
from steersman.nodes.component import VirtualNodes, node_object
from steersman.nodes.heartbeats import Heartbeats
from tests.controllers.worlds import client, make, objects, one, put
from tests.nodes.test_component import node

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}}
LEASE = "coordination.k8s.io/v1/Lease"


def lease_key(name):
    return Key("coordination.k8s.io", "Lease", "kube-node-lease", name)


def living(*objects_, controllers=()):
    return make(controllers, [NAMESPACE, *objects_], components=[Heartbeats(), VirtualNodes()], persistent=False)


def controllers_rest(world):
    while ready := [action for action in enabled(world) if action.op not in ("fire", "user", "advance")]:
        try:
            step(world, ready[0])
        except Learned as learned:
            world.system.learn(learned)


def drive(world, seconds):
    """All that is due until so many seconds after the start, and what controllers do about it."""
    end = START + round(seconds * MICRO)
    for _ in range(1_000):
        controllers_rest(world)
        dues = [part.next_deadline(world.components[i]) for i, part in enumerate(world.system.components)]
        first = min([due for due in dues if due is not None], default=None)
        if first is None or first > end:
            world.now = max(world.now, end)
            return world
        world.now = max(world.now, first)
        world.advance(dues.index(first))
    raise AssertionError("it never comes to the end")


def test_a_node_renews_its_lease_every_ten_seconds():
    world = drive(living(node("a")), 0)
    uid = one(world, "Node", "a").metadata.uid
    first = world.store.get(lease_key("a")).value
    assert first.metadata.ownerReferences == [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid}]
    assert (first.spec.holderIdentity, first.spec.leaseDurationSeconds) == ("a", 40)
    drive(world, 100)
    again = world.store.get(lease_key("a")).value
    assert 80 * MICRO < parse_time(again.spec.renewTime) - parse_time(first.spec.renewTime) <= 100 * MICRO


def test_conditions_are_posted_every_five_minutes_and_keep_their_transition():
    world = drive(living(node("a")), 1)
    before = one(world, "Node", "a")
    drive(world, 290)
    assert one(world, "Node", "a").status == before.status
    drive(world, 310)
    after = one(world, "Node", "a")
    assert [each.type for each in after.status.conditions] == [each.type for each in before.status.conditions]
    for old, new in zip(before.status.conditions, after.status.conditions, strict=True):
        assert parse_time(new.lastHeartbeatTime) - parse_time(old.lastHeartbeatTime) >= 300 * MICRO
        assert {**new, "lastHeartbeatTime": 0} == {**old, "lastHeartbeatTime": 0}


def test_a_node_and_a_lease_of_somebody_else_are_left_alone():
    real = node_object("real")
    real["status"]["nodeInfo"] = {**real["status"]["nodeInfo"], "containerRuntimeVersion": "containerd://2.0"}
    meta = {"name": "held", "namespace": "kube-node-lease"}
    held = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {"holderIdentity": "me"}}
    world = drive(living(real, node("held"), held), 400)
    (lease,) = objects(world, LEASE)
    assert lease.spec.holderIdentity == "me" and "renewTime" not in lease.spec


def test_a_lease_that_went_is_made_anew_and_one_of_a_node_that_went_is_not():
    world = drive(living(node("a"), node("b")), 5)
    client(world).delete(lease_key("a"))
    client(world).delete(Key("", "Node", "", "b"))
    client(world).delete(lease_key("b"))
    drive(world, 30)
    assert [lease.metadata.name for lease in objects(world, LEASE)] == ["a"]


def test_whoever_judges_by_leases_finds_the_node_alive_until_it_falls_silent():
    world = living(node("a"), node("b"), controllers=[NodeLifecycle])
    for seconds in range(0, 400, 20):
        fire_due(drive(world, seconds))
    assert world.wakes and not one(world, "Node", "a").spec.get("taints")
    world.now += 51 * MICRO
    fire_due(world)
    assert one(world, "Node", "a").status.conditions[-1].status == "Unknown"


def fire_due(world):
    for item in [item for item, due in world.wakes.items() if due <= world.now]:
        world.fire(item)
    controllers_rest(world)


OPS = st.lists(
    st.tuples(st.sampled_from(["node", "no node", "time", "no lease", "foreign lease"]), st.integers(0, 2)), max_size=25
)


@settings(max_examples=40, deadline=None)
@given(ops=OPS)
def test_its_state_equals_one_built_anew(ops):
    world = living()
    c, seconds = client(world), 0
    for op, which in ops:
        name = f"n{which}"
        if op == "node" and c.get(Key("", "Node", "", name)) is None:
            put(world, node(name))
        elif op == "no node":
            c.delete(Key("", "Node", "", name))
        elif op == "no lease":
            c.delete(lease_key(name))
        elif op == "foreign lease" and c.get(lease_key(name)) is None:
            put(world, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                        "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": {}})  # fmt: skip
        seconds += 9 * which if op == "time" else 0
        drive(world, seconds)
        component = world.system.components[0]
        assert world.components[0].known() == component.start(world.store).known()
