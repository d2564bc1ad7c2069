"""The garbage collector: what goes, what stays, and that a re-created owner never costs a dependent's life."""

import pytest

from steersman.controllers.garbage import GarbageCollector
from steersman.kernel.object import Key
from tests.controllers.worlds import client, explore, make, one, settle, user


def config(name, *owners, namespace="default"):
    meta = {"name": name, "namespace": namespace}
    if owners:
        meta["ownerReferences"] = list(owners)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def ref(obj, **changes):
    meta = obj["metadata"]
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"], **changes}


def world(*objects, users=(), **options):
    return make([GarbageCollector], objects, users, **options)


@pytest.mark.parametrize("lag", [0, 1])
def test_dependents_of_a_deleted_owner_go_with_it_and_theirs_too(lag):
    w = world(lag=lag)
    c = client(w)
    top = c.create(config("top"))
    middle = c.create(config("middle", ref(top)))
    c.create(config("bottom", ref(middle)))
    settle(w)
    assert one(w, "v1/ConfigMap", "bottom")
    c.delete(top)
    settle(w)
    assert [obj.key.kind for obj in w.store.objects()] == ["Namespace"]


def test_one_owner_left_is_enough_and_the_dangling_reference_goes():
    w = world()
    c = client(w)
    a, b = c.create(config("a")), c.create(config("b"))
    c.create(config("child", ref(a), ref(b)))
    c.delete(a)
    settle(w)
    assert [owner["name"] for owner in one(w, "v1/ConfigMap", "child").metadata.ownerReferences] == ["b"]


def test_another_incarnation_of_the_owner_is_no_owner():
    w = world()
    c = client(w)
    first = c.create(config("owner"))
    c.create(config("child", ref(first)))
    c.delete(first)
    c.create(config("owner"))
    settle(w)
    assert one(w, "v1/ConfigMap", "child") is None
    assert one(w, "v1/ConfigMap", "owner")


def test_a_dependent_made_after_its_owner_went_is_collected():
    w = world()
    c = client(w)
    gone = c.create(config("owner"))
    c.delete(gone)
    settle(w)
    c.create(config("child", ref(gone)))
    settle(w)
    assert one(w, "v1/ConfigMap", "child") is None


def test_what_lost_its_owner_while_nobody_looked_is_collected_at_the_start():
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}
    w = settle(world(config("child", gone)))
    assert one(w, "v1/ConfigMap", "child") is None


def test_an_owner_in_another_namespace_is_absent():
    w = world()
    c = client(w)
    c.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    far = c.create(config("owner", namespace="other"))
    c.create(config("child", ref(far)))
    settle(w)
    assert one(w, "v1/ConfigMap", "child") is None


def test_a_cluster_scoped_owner_counts_and_a_namespaced_owner_of_a_cluster_scoped_object_is_left_alone():
    w = world()
    c = client(w)
    top = c.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "top"}})
    c.create(config("child", ref(top)))
    inner = c.create(config("inner"))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "ownerReferences": [ref(inner)]}}
    c.create(node)
    c.delete(inner)
    settle(w)
    assert one(w, "v1/ConfigMap", "child") and one(w, "v1/Node", "n")


def test_an_owner_of_an_unknown_kind_is_left_alone():
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "Ghost",
        "name": "g",
        "uid": "00000000-0000-4000-8000-000000000000",
    }
    w = settle(world(config("child", owner)))
    assert one(w, "v1/ConfigMap", "child")


@pytest.mark.parametrize("lag", [0, 1])
def test_whoever_adopts_between_its_reads_and_its_delete_wins(lag):
    """Every interleaving: the child gets a living owner while the collector looks at its dead one."""
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}

    def adopt(c):
        keep = c.get(Key("", "ConfigMap", "default", "keep"))
        child = c.get(Key("", "ConfigMap", "default", "child"))
        if child is not None:
            c.patch(child, {"metadata": {"ownerReferences": [ref(keep)]}})
            c.patch(Key("", "ConfigMap", "default", "keep"), {"data": {"adopted": "yes"}})

    found = explore(lambda: world(config("keep"), config("child", gone), users=[user("adopt", adopt)], lag=lag))
    assert found.states > 5 and not found.findings
    ends = {(bool(one(w, "v1/ConfigMap", "child")), bool(one(w, "v1/ConfigMap", "keep").data)) for w in found.terminal}
    assert ends == {(True, True), (False, False)}
