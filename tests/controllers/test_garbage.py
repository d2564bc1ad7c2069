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


# -- foreground and orphan -------------------------------------------------------------------------------------------


def block(obj):
    return ref(obj, blockOwnerDeletion=True)


def left(w):
    return [obj.key.name for obj in w.store.objects() if obj.key.kind == "ConfigMap"]


@pytest.mark.parametrize("lag", [0, 1])
def test_in_the_foreground_the_lowest_goes_first(lag):
    w = world(lag=lag)
    c = client(w)
    top = c.create(config("top"))
    middle = c.create(config("middle", block(top)))
    c.create(config("bottom", block(middle)))
    c.delete(top, propagation="Foreground")
    assert left(w) == ["bottom", "middle", "top"]
    settle(w)
    assert left(w) == []
    gone = [event.key.name for event in w.events if event.new is None]
    assert gone == ["bottom", "middle", "top"]


def test_the_owner_waits_for_those_that_block_it_only():
    w = world()
    c = client(w)
    top = c.create(config("top"))
    held = {"metadata": {"finalizers": ["x.io/hold"]}}
    for name, owner in (("blocks", block(top)), ("free", ref(top))):
        c.patch(c.create(config(name, owner)), held)
    c.delete(top, propagation="Foreground")
    settle(w)
    assert left(w) == ["blocks", "free", "top"]
    c.patch(Key("", "ConfigMap", "default", "blocks"), {"metadata": {"finalizers": None}})
    settle(w)
    assert left(w) == ["free"]


def test_an_owner_is_freed_by_dependents_that_find_another_one():
    w = world()
    c = client(w)
    top, other = c.create(config("top")), c.create(config("other"))
    c.create(config("child", block(top), block(other)))
    c.delete(top, propagation="Foreground")
    settle(w)
    assert left(w) == ["child", "other"]
    assert [owner["name"] for owner in one(w, "v1/ConfigMap", "child").metadata.ownerReferences] == ["other"]


def test_a_circle_that_is_deleted_in_the_foreground_is_no_deadlock():
    w = world()
    c = client(w)
    a = c.create(config("a"))
    b = c.create(config("b", block(a)))
    c.patch(a, {"metadata": {"ownerReferences": [block(b)]}})
    c.delete(a, propagation="Foreground")
    settle(w)
    assert left(w) == []


def test_orphans_stay_and_forget_their_owner():
    w = world()
    c = client(w)
    top, other = c.create(config("top")), c.create(config("other"))
    c.create(config("child", block(top)))
    c.create(config("shared", block(top), ref(other)))
    c.delete(top, propagation="Orphan")
    settle(w)
    assert left(w) == ["child", "other", "shared"]
    assert "ownerReferences" not in one(w, "v1/ConfigMap", "child").metadata
    assert [owner["name"] for owner in one(w, "v1/ConfigMap", "shared").metadata.ownerReferences] == ["other"]


@pytest.mark.parametrize("policies", [("Foreground", "Orphan"), ("Orphan", "Foreground")])
def test_a_second_deletion_may_say_otherwise(policies):
    """Its finalizer takes the place of the first one's, and the collector has to begin anew."""
    w = world()
    c = client(w)
    top = c.create(config("top"))
    body = config("child", block(top))
    body["metadata"]["finalizers"] = ["x.dev/held"]  # so that an owner waits for it in the foreground
    child = c.create(body)
    c.delete(top, propagation=policies[0])
    if policies[0] == "Foreground":
        settle(w)
        assert left(w) == ["child", "top"]
    c.delete(top, propagation=policies[1])
    settle(w)
    if policies[1] == "Orphan":
        assert left(w) == ["child"] and "ownerReferences" not in one(w, "v1/ConfigMap", "child").metadata
    else:
        c.patch(child, {"metadata": {"finalizers": None}})
        settle(w)
        assert left(w) == []


def test_a_dependent_goes_as_its_own_finalizers_say():
    w = world()
    c = client(w)
    top = c.create(config("top"))
    middle = c.create(config("middle", ref(top)))
    c.patch(middle, {"metadata": {"finalizers": ["orphan"]}})
    c.create(config("bottom", ref(middle)))
    c.delete(top)
    settle(w)
    assert left(w) == ["bottom"]


def test_an_object_with_ten_thousand_owners_is_no_limit():
    w = world()
    c = client(w)
    keep = c.create(config("keep"))
    gone = "00000000-0000-4000-8000-{:012d}"
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{n}", "uid": gone.format(n)} for n in range(10_000)]
    c.create(config("child", *owners, ref(keep)))
    settle(w)
    assert [owner["name"] for owner in one(w, "v1/ConfigMap", "child").metadata.ownerReferences] == ["keep"]


def test_more_dependents_than_one_reconcile_may_change_are_all_orphaned(monkeypatch):
    from steersman.controllers import garbage

    monkeypatch.setattr(garbage, "AT_A_TIME", 3)
    w = world()
    c = client(w)
    top = c.create(config("top"))
    for number in range(10):
        c.create(config(f"c{number}", ref(top)))
    c.delete(top, propagation="Orphan")
    settle(w, timers=True)
    assert len(left(w)) == 10


def test_an_owner_in_another_namespace_is_told():
    told = []
    w = world()
    c = client(w)
    c.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    far = c.create(config("owner", namespace="other"))
    item = c.create(config("child", ref(far)))
    run_by_hand(w, item, told)
    assert one(w, "v1/ConfigMap", "child") is None
    (note,) = told
    uid = far["metadata"]["uid"]
    text = f"ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] does not exist in namespace"
    assert (note.type, note.reason, note.message) == ("Warning", "OwnerRefInvalidNamespace", f'{text} "default"')
    assert note.source == "garbage-collector-controller"


def run_by_hand(w, item, told):
    """One reconcile, whose notes are collected."""
    hand = client(w)
    exchange = hand._exchange
    hand._exchange = lambda effect: told.append(effect.what.note()) if effect.op == "event" else exchange(effect)
    hand.manager = "garbage-collector"
    GarbageCollector().reconcile(hand, Key("", "ConfigMap", "default", item["metadata"]["name"]))


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize(("policy", "end"), [("Foreground", ["keep"]), ("Orphan", ["child", "keep", "other"])])
def test_every_order_of_a_deletion_and_a_new_dependent_ends_alike(lag, policy, end):
    """Somebody deletes the owner, somebody adds another dependent: before, meanwhile, after."""

    def owner_of(c):
        return c.get(Key("", "ConfigMap", "default", "top"))

    def add(c):
        top = owner_of(c)
        if top is not None:
            c.create(config("other", block(top)))

    def delete(c):
        c.delete(Key("", "ConfigMap", "default", "top"), propagation=policy)

    def start():
        w = world(users=[user("add", add), user("delete", delete)], lag=lag)
        top = client(w).create(config("top"))
        client(w).create(config("child", block(top)))
        client(w).create(config("keep"))
        return w

    found = explore(start)
    assert found.states > 10 and not found.findings
    ends = {tuple(left(w)) for w in found.terminal}
    late = tuple(name for name in end if name != "other")  # the dependent never came: its owner was gone
    assert ends <= {tuple(end), late} and tuple(end) in ends
