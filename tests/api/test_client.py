"""The client: what a controller asks becomes exactly one effect, with the names and options it stands for."""

import pytest

import steersman as sm
from steersman.api.begin import Api
from steersman.api.client import Client, Memory, key_of
from steersman.api.kinds import Kinds, UnknownKind
from steersman.kernel.effect import Effect
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import freeze

API = Api(Kinds.builtin())
POD = Key("", "Pod", "default", "web")
WEB = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "7"},
    "spec": {},
}


class World:
    """Answers what it was told to, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, effect: Effect):
        self.asked.append(effect)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def client(*answers):
    world = World(*answers)
    return Client(world, API, "me"), world


def an_object(name="web", rv=3):
    return Object(POD._replace(name=name), "v1", rv, Section(freeze({"name": name, "uid": "u"})), None, None, None)


def test_names():
    c, _ = client(())  # what is not built in is asked for among the definitions
    assert c.key("deploy", "web", "prod") == Key("apps", "Deployment", "prod", "web")
    assert c.key("v1/Node", "n1", "ignored") == Key("", "Node", "", "n1")
    assert c.kind("apps/v1/ReplicaSet").plural == "replicasets"
    with pytest.raises(UnknownKind, match="Nonsense"):
        c.kind("v1/Nonsense")


def test_an_object_names_itself():
    assert key_of(WEB) == Key("apps", "ReplicaSet", "default", "web")
    assert key_of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}) == Key("", "Node", "", "n")
    with pytest.raises(ValueError, match="needs apiVersion and kind; give a Key"):
        key_of({"metadata": {"name": "n"}})


def test_get_gives_the_value_or_none():
    c, world = client(an_object(), None)
    found = c.get(POD)
    assert found.metadata.resourceVersion == "3" and found.kind == "Pod"
    assert c.get(WEB, fresh=True) is None
    assert world.asked == [Effect("get", POD), Effect("get", key_of(WEB), True)]


def test_lists_are_narrowed_by_indexes():
    c, world = client((an_object("a"), an_object("b")), (), (), ())
    assert [item.metadata.name for item in c.list("v1/Pod", "default", labels="app=web")] == ["a", "b"]
    c.list("v1/Pod", owner=WEB)
    c.list("v1/Pod", owner="u-2", fresh=True)
    c.list("v1/Pod", node="n1")
    queries = [effect.what for effect in world.asked]
    assert (queries[0].gk, queries[0].namespace, queries[0].text) == (("", "Pod"), "default", "app=web")
    assert [(query.by, query.value) for query in queries] == [
        ("", ""),
        ("owner", "u-1"),
        ("owner", "u-2"),
        ("node", "n1"),
    ]
    assert [effect.fresh for effect in world.asked] == [False, False, True, False]


def test_update_carries_its_version_as_a_precondition():
    c, world = client(an_object(), an_object(), an_object())
    c.update(WEB)
    c.update_status({**WEB, "metadata": {"name": "web", "namespace": "default"}})
    c.patch_status(WEB, {"replicas": 1}, rv="9")
    update, status, patch = [effect.what for effect in world.asked]
    assert update.options == {"rv": "7"} and "resourceVersion" not in update.body["metadata"]
    assert (status.verb, status.subresource, status.options) == ("update", "status", {})
    assert patch.body == {"status": {"replicas": 1}} and patch.options == {"patch": "merge", "rv": "9"}
    assert {request.manager for request in (update, status, patch)} == {"me"}
    assert WEB["metadata"]["resourceVersion"] == "7", "what it was given stays as it was"


def test_a_merge_patch_carries_its_version_as_a_precondition():
    c, world = client(an_object(), an_object())
    c.patch(WEB, {"metadata": {"resourceVersion": "7", "labels": {"a": "b"}}})
    c.patch(WEB, [{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}])
    merge, json = [effect.what for effect in world.asked]
    assert merge.body == {"metadata": {"labels": {"a": "b"}}} and merge.options == {"patch": "merge", "rv": "7"}
    assert json.options == {"patch": "json"}


def test_patches_by_form():
    c, world = client(an_object(), an_object())
    c.patch(POD, {"data": None})
    c.patch(POD, [{"op": "remove", "path": "/data"}])
    assert [effect.what.options["patch"] for effect in world.asked] == ["merge", "json"]


def test_apply_and_bind():
    c, world = client(an_object(), an_object())
    c.apply(WEB, force=True)
    c.bind(POD, "n1")
    applied, bound = [effect.what for effect in world.asked]
    assert applied.verb == "apply" and applied.options == {"force": True}
    assert (bound.verb, bound.subresource) == ("create", "binding") and bound.body["target"]["name"] == "n1"


def test_delete_says_whether_it_was_there():
    from steersman.api import errors

    c, world = client(an_object(), errors.not_found("pods", "web"), errors.conflict("pods", "web"))
    assert c.delete(POD, uid="u", grace=0) is True
    assert c.delete(POD) is False
    with pytest.raises(sm.Conflict):
        c.delete(POD, rv="1")
    first = world.asked[0].what
    assert first.options["uid"] == "u" and first.options["grace"] == 0


def test_suspend_goes_through_delete():
    from steersman.kernel.reexec import Suspend

    c, _ = client(Suspend())
    with pytest.raises(Suspend):
        c.delete(POD)


def test_time():
    c, world = client(False, False, True, True, 5_000_000, 1_767_225_600_000_000)
    assert not c.after("2026-01-01T00:00:10Z", 5) and not c.after("2026-01-01T00:00:00Z", 2.5)
    assert c.wake == (1_767_225_600 + 2) * 1_000_000 + 500_000, "the earliest of what is not yet true"
    assert c.after(0, 1) and c.elapsed("1970-01-01T00:00:01Z", 1)
    assert c.now() == 5_000_000 and c.timestamp() == "2026-01-01T00:00:00Z"
    assert [effect.op for effect in world.asked] == ["after"] * 4 + ["now", "stamp"]
    c.requeue(3)
    c.requeue(1.5)
    assert c.wake_after == 1_500_000


def test_the_outside():
    c, world = client("abcd", {"ip": "1"})
    assert c.random(2) == "abcd" and c.external("dns", {"name": "a"}) == {"ip": "1"}
    assert world.asked[0].what == ("me", 2) and world.asked[1].what == ("dns", {"name": "a"})


def test_effects_say_what_they_touch():
    c, world = client(an_object(), (), an_object(), False)
    c.get(POD)
    c.list("v1/Pod", "default", labels="a=b")
    c.patch(POD, {})
    c.after(0, 1)
    prints = [effect.footprint for effect in world.asked]
    assert prints[0].reads == (POD,) and prints[2].writes == (POD,) and not prints[2].reads
    assert prints[1].reads == ((("", "Pod"), "default", "", "", "a=b"),)
    assert [str(effect) for effect in world.asked[:3]] == [
        "get Pod default/web",
        "list Pod in default a=b",
        "patch Pod default/web",
    ]


class TestMemory:
    def test_reads_are_frozen_and_writes_are_noticed(self):
        memory = Memory(None)
        assert not memory.changed and memory.frozen() is None
        memory["a"] = {"list": [1]}
        assert memory.changed and memory["a"]["list"] == [1]
        with pytest.raises(TypeError, match="cannot be changed in place"):
            memory["a"]["list"].append(2)

    def test_is_a_mapping_in_sorted_order(self):
        memory = Memory(freeze({"b": 1, "a": 2}))
        assert list(memory) == ["a", "b"] and len(memory) == 2 and "a" in memory
        del memory["a"]
        assert memory.changed and memory.frozen() == {"b": 1}
        del memory["b"]
        assert memory.frozen() is None

    def test_holds_json_only(self):
        with pytest.raises(ValueError, match="a set cannot be stored"):
            Memory(None)["a"] = {1, 2}


def test_a_reference_is_a_key_or_an_object():
    c, world = client()
    with pytest.raises(TypeError, match=r"^c\.get takes a Key or an object: c\.key\('v1/Pod', name, namespace\)$"):
        c.get("v1/Pod", "web")
    for ref in ("v1/Pod", None, 3):
        for call in (c.get, c.delete, lambda ref: c.patch(ref, {}), lambda ref: c.bind(ref, "n")):
            with pytest.raises(TypeError, match=r"a Key or an object"):
                call(ref)
    assert not world.asked
