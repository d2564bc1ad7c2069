"""Pods whose claims hold tainted devices."""

from steersman.controllers.device_eviction import DeviceTaintEviction
from steersman.controllers.resourceclaims import CLAIMS
from steersman.kernel.object import Key
from tests.controllers.services import pod
from tests.controllers.worlds import client, explore, make, objects, one, settle, user

POD = Key("", "Pod", "default", "p000")
SLICE = Key("resource.k8s.io", "ResourceSlice", "", "rack")
LONG_AGO = "2020-01-01T00:00:00Z"
TAINT = {"key": "broken", "value": "fan", "effect": "NoExecute", "timeAdded": LONG_AGO}


def rack(*taints, name="rack", generation=1):
    """The devices of a node, the first of them with these taints."""
    first = {"name": "a", **({"taints": list(taints)} if taints else {})}
    pool = {"name": "rack", "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": "example.com", "nodeName": "node-1", "pool": pool, "devices": [first, {"name": "b"}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def claim(name="card"):
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec}  # fmt: skip


def holder(number=0, name="card"):
    """A pod on the node that uses a claim."""
    return pod(number, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])


def hold(c, number=0, name="card", device="a", **tolerates):
    """What the scheduler does: the pod has the device."""
    result = {"request": "gpu", "driver": "example.com", "pool": "rack", "device": device}
    if tolerates:
        given = {"key": "broken", "operator": "Exists", "effect": "NoExecute", **tolerates}
        result["tolerations"] = [{key: value for key, value in given.items() if value is not None}]
    uid = c.get(Key("", "Pod", "default", f"p{number:03}"))["metadata"]["uid"]
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": f"p{number:03}", "uid": uid}],
    }
    c.patch_status(Key("resource.k8s.io", "ResourceClaim", "default", name), status)


def taint(c, *taints):
    c.patch(SLICE, {"spec": {"devices": rack(*taints)["spec"]["devices"]}})


def stay(w):
    """The pods that nobody asked to go."""
    return [each.metadata.name for each in objects(w, "v1/Pod") if "deletionTimestamp" not in each.metadata]


def world(*more, **tolerates):
    w = make([DeviceTaintEviction], [rack(), claim(), holder(), *more])
    hold(client(w), **tolerates)
    return settle(w)


def test_a_pod_goes_with_the_taint_of_its_device_and_says_why():
    w = world(claim("other"), holder(1, "other"))
    hold(client(w), 1, "other", "b")
    settle(w)
    assert stay(w) == ["p000", "p001"]
    taint(client(w), {**TAINT, "effect": "NoSchedule"})
    settle(w)
    assert stay(w) == ["p000", "p001"]
    taint(client(w), TAINT)
    settle(w)
    assert stay(w) == ["p001"]
    (said,) = one(w, "v1/Pod", "p000").status.conditions
    assert (said.type, said.reason) == ("DisruptionTarget", "DeletionByDeviceTaintManager")


def test_what_is_tolerated_stays_for_ever_or_a_while():
    w = world(effect="NoExecute")
    taint(client(w), TAINT)
    assert stay(settle(w)) == ["p000"]
    later = "2999-01-01T00:00:00Z"
    w = world(tolerationSeconds=5)
    taint(client(w), {**TAINT, "timeAdded": later})
    assert stay(settle(w)) == ["p000"]
    taint(client(w))
    assert stay(settle(w)) == ["p000"]
    taint(client(w), TAINT)
    assert not stay(settle(w))


def test_slices_of_an_older_generation_do_not_count():
    w = world(rack(name="newer", generation=2))
    taint(client(w), TAINT)
    assert stay(settle(w)) == ["p000"]
    client(w).delete(Key("resource.k8s.io", "ResourceSlice", "", "newer"))
    assert not stay(settle(w))


def test_a_claim_that_is_held_by_another_pod_drives_nobody_away():
    w = world()
    key = Key("resource.k8s.io", "ResourceClaim", "default", "card")
    client(w).patch_status(key, {"reservedFor": [{"resource": "pods", "name": "p000", "uid": "0"}]})
    taint(client(w), TAINT)
    assert stay(settle(w)) == ["p000"] and one(w, CLAIMS, "card")


def test_every_order_of_events_ends_with_the_pod_gone():
    def start():
        return world_with(user("taint", lambda c: taint(c, TAINT)))

    found = explore(start, skip=("fire",))
    assert found.states > 1 and not found.findings
    assert all(not stay(w) for w in found.terminal)


def world_with(*users):
    w = make([DeviceTaintEviction], [rack(), claim(), holder()], list(users), lag=1, budgets=(1, 0))
    hold(client(w))
    return w
