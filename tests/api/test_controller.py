"""Controllers: names, what wakes them, what they may keep, and how an execution ends."""

import pytest

import steersman as sm
from steersman.api.begin import Api
from steersman.api.controller import ControllerError, Loop, SealedError, code_digest, controller_name, place_of
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.reexec import Suspend
from steersman.kernel.store import Store
from steersman.kernel.value import freeze

API = Api(Kinds.builtin())
WEB = Key("apps", "ReplicaSet", "default", "web")


def an_object(key, **meta):
    return Object(key, "v1", 1, Section(freeze({"name": key.name, **meta})), None, None, None)


def pod(name="web-1", owner="web", controller=True, kind="ReplicaSet", api_version="apps/v1"):
    reference = {"apiVersion": api_version, "kind": kind, "name": owner, "uid": "u", "controller": controller}
    return an_object(Key("", "Pod", "default", name), ownerReferences=[reference])


def added(obj):
    return Event(1, obj.key, None, obj)


class Owner(sm.Controller):
    kind = "apps/v1/ReplicaSet"
    owns = ("v1/Pod",)
    watches = {"v1/Node": lambda node: [WEB]}  # noqa: RUF012
    reads = ("v1/Secret:data",)


def loop(cls, **attributes):
    return Loop(type(cls.__name__, (cls,), attributes) if attributes else cls, API)


@pytest.mark.parametrize(
    ("name", "expected"), [("Surge", "surge"), ("ReplicaSet", "replica-set"), ("HTTPRoute2Bad", "http-route2-bad")]
)
def test_names(name, expected):
    assert controller_name(type(name, (sm.Controller,), {})) == expected
    assert controller_name(type(name, (sm.Controller,), {"name": "mine"})) == "mine"


def test_kinds_it_hears_of_and_reads():
    made = loop(Owner)
    assert set(made.informers) == {("apps", "ReplicaSet"), ("", "Pod"), ("", "Node"), ("", "Secret")}
    assert made.listens(("", "Pod")) and not made.listens(("", "Secret"))
    assert loop(Owner, kind="*").listens(("", "Anything"))


def test_what_wakes_it():
    made, store = loop(Owner), Store()
    assert made.triggers(added(an_object(WEB)), store) == [WEB]
    assert made.triggers(added(pod()), store) == [WEB]
    assert made.triggers(added(pod(controller=False)), store) == [], "an owner that does not control is not woken"
    assert made.triggers(added(pod(kind="StatefulSet")), store) == []
    assert made.triggers(added(pod(api_version="other/v1")), store) == []
    assert made.triggers(added(an_object(Key("", "Node", "", "n"))), store) == [WEB]
    both = Event(2, pod().key, pod(owner="one"), pod(owner="two"))
    assert [key.name for key in made.triggers(both, store)] == ["one", "two"], "who lost it and who got it"
    gone = Event(3, pod().key, pod(), None)
    assert made.triggers(gone, store) == [WEB]


def test_a_map_of_its_own():
    made = loop(Owner, map_event=lambda self, event, find: [WEB, WEB] if event.type == "ADDED" else None)
    assert made.triggers(added(pod(owner="other")), Store()) == [WEB]
    assert [key.name for key in made.triggers(Event(2, pod().key, pod(), pod()), Store())] == ["web"], "None: the rule"


def test_a_watch_that_fails_names_everything():
    made = loop(Owner, watches={"v1/Node": lambda node: [node["spec"]]})
    with pytest.raises(
        ControllerError, match=r"controller owner: .* Node n: KeyError: 'spec' \(.*test_controller\.py, line"
    ):
        made.triggers(added(an_object(Key("", "Node", "", "n"))), Store())


def test_what_it_starts_with():
    store = Store()
    for name in ("b", "a"):
        store.put(an_object(WEB._replace(name=name)))
    store.put(pod())
    assert [key.name for key in loop(Owner).initial(store)] == ["a", "b", "web"], "the pod's owner is gone: it is woken"
    assert [key.name for key in loop(Owner, kind="*").initial(store)] == ["web-1", "a", "b"]


def run(reconcile, memory=None, exchange=lambda effect: None, **attributes):
    made = loop(Owner, reconcile=reconcile, **attributes)
    return made.execute(WEB, memory, exchange)


def test_endings():
    assert run(lambda self, c, key: None) == (None, None, None, False, None, False, "", ())
    assert run(lambda self, c, key: 1.5).requeue_after == 1_500_000
    assert run(lambda self, c, key: True).requeue_after is None, "a bool is no number of seconds"

    def remember(self, c, key):
        c.memory["a"] = 1

    assert run(remember).memory == {"a": 1}
    kept = freeze({"a": 1})
    assert run(lambda self, c, key: c.memory.get("a"), kept).memory is kept


def test_refusals_and_mistakes():
    def asks(self, c, key):
        c.get(key)

    from steersman.api import errors

    def raises(effect):
        raise errors.conflict("replicasets", "web")

    result = run(asks, exchange=raises)
    assert result.api_error and result.error.startswith("Conflict: ") and result.where == ""
    result = run(lambda self, c, key: {}["x"])
    assert not result.api_error and result.error == "KeyError: 'x'" and "test_controller.py, line" in result.where
    assert run(lambda self, c, key: exit(2)).error.startswith("SystemExit")


def test_suspend_passes():
    def suspend(effect):
        raise Suspend

    with pytest.raises(Suspend):
        run(lambda self, c, key: c.get(key), exchange=suspend)


def test_each_execution_has_a_fresh_sealed_instance():
    seen = []

    class Stateful(Owner):
        def __init__(self):
            self.count = 0

        def reconcile(self, c, key):
            seen.append(self)
            self.count += 1

    made = Loop(Stateful, API)
    results = [made.execute(WEB, None, lambda effect: None) for _ in range(2)]
    assert seen[0] is not seen[1] and all("SealedError" in result.error for result in results)
    assert isinstance(seen[0], Stateful), "it is still what it was"
    with pytest.raises(SealedError, match=r"keep it in c\.memory\['other'\]"):
        seen[0].other = 1
    with pytest.raises(SealedError):
        del seen[0].count
    Stateful().count = 5  # outside of reconcile it is an ordinary object


def test_factories_make_configured_controllers():
    class Sized(Owner):
        def __init__(self, size=1):
            self.size = size

        def reconcile(self, c, key):
            c.memory["size"] = self.size

    made = Loop(lambda: Sized(7), API, "seven")
    assert made.name == "seven" and made.execute(WEB, None, lambda effect: None).memory == {"size": 7}
    with pytest.raises(TypeError, match=r"does not make a steersman\.Controller"):
        Loop(dict, API)
    with pytest.raises(TypeError, match="does not say which kind"):
        Loop(type("Nothing", (sm.Controller,), {}), API)


def test_code_digests_follow_the_code():
    def made(value):
        source = f"class C(Base):\n    kind = 'v1/Pod'\n    def reconcile(self, c, key):\n        return {value}\n"
        space = {"Base": sm.Controller}
        exec(source, space)
        return space["C"]

    assert code_digest(made("{1, 2, 'x'}")) == code_digest(made("{1, 2, 'x'}")) != code_digest(made("{1, 2, 'y'}"))


def test_places_are_in_the_persons_own_code():
    try:
        freeze(object())
    except ValueError as error:
        assert place_of(error).startswith(f"{__file__}, line ")
