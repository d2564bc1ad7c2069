"""Definitions that go: their objects first; names given free are handed on. In `check`, kinds come and go."""

import copy

import pytest

import steersman as sm
from steersman.api.kinds import UnknownKind
from steersman.controllers.builtin import builtin
from steersman.kernel.object import Key
from tests.controllers.worlds import client, make, settle
from tests.serve.test_crd import definition, version, widget

CRD = Key("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com")
ONE = definition(version("v1", True))


def placed(name="w", **meta):
    made = widget(name)
    return {**made, "metadata": {**made["metadata"], "namespace": "default", **meta}}


def plane(*objects):
    w = make(builtin("customresourcedefinition", "namespace", "garbage-collector"), [])
    for obj in objects:
        client(w).create(copy.deepcopy(obj))
    return settle(w)


def conditions(c, key=CRD):
    return {each.type: (each.status, each.reason) for each in c.get(key).status.conditions}


def test_a_definition_takes_its_objects_with_it():
    w = plane(ONE, placed("a"), placed("b"))
    c = client(w)
    c.delete(CRD)
    settle(w, timers=True)
    assert c.get(CRD) is None
    assert [obj.key for obj in w.store.objects() if obj.key.kind == "Widget"] == []
    with pytest.raises(UnknownKind):
        c.list("example.com/v1/Widget")


def test_what_a_finalizer_holds_is_waited_for():
    w = plane(ONE, placed("a", finalizers=["example.com/hold"]))
    c = client(w)
    c.delete(CRD)
    settle(w)
    assert conditions(c)["Terminating"] == ("True", "InstanceDeletionInProgress")
    c.patch(Key("example.com", "Widget", "default", "a"), {"metadata": {"finalizers": None}})
    settle(w, timers=True)
    assert c.get(CRD) is None


def test_a_name_given_free_is_handed_on():
    other = copy.deepcopy(ONE)
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"] = {"kind": "Gadget", "plural": "gadgets", "shortNames": ["wd"]}
    w = plane(ONE, other)
    c = client(w)
    gadgets = CRD._replace(name="gadgets.example.com")
    assert conditions(c, gadgets)["NamesAccepted"] == ("False", "ShortNamesConflict")
    c.delete(CRD)
    settle(w, timers=True)
    assert conditions(c, gadgets)["NamesAccepted"] == ("True", "NoConflicts")
    assert c.list("example.com/v1/Gadget") == []


def test_a_namespace_takes_custom_objects_with_it_and_owners_may_be_custom():
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    w = plane(space, ONE, placed("a", namespace="shop"), placed("owner"))
    c = client(w)
    owner = c.get(Key("example.com", "Widget", "default", "owner"))
    ref = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": owner.metadata.uid}
    meta = {"name": "owned", "namespace": "default", "ownerReferences": [ref]}
    c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    settle(w)
    assert c.get(c.key("v1/ConfigMap", "owned", "default")) is not None
    c.delete(owner)
    c.delete(Key("", "Namespace", "", "shop"))
    settle(w, timers=True)
    assert c.get(c.key("v1/ConfigMap", "owned", "default")) is None
    assert c.list("example.com/v1/Widget") == []


class Grower(sm.Controller):
    """Makes a widget once the kind is there."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        if c.get(key) is None:
            return None
        try:
            there = c.get(c.key("example.com/v1/Widget", "grown", "default"), fresh=True)
        except UnknownKind:
            return 1.0
        if there is None:
            c.create(placed("grown"))
        return None


def test_check_explores_kinds_that_come_while_it_runs():
    w = sm.Scenario("kinds come")
    w.run(Grower)
    w.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seed"}})
    w.user("define", lambda c: c.create(copy.deepcopy(ONE)))
    w.always("at most one", lambda s: not s[CRD] or s.count("example.com/v1/Widget") <= 1)
    w.converges(lambda s: s.count("example.com/v1/Widget") == 1)
    verdict = sm.check(w)
    verdict.assert_holds()
    assert verdict.states > 3


def test_check_explores_a_definition_that_goes():
    w = sm.Scenario("kinds go")
    w.run(*builtin("customresourcedefinition"))
    w.user("define", lambda c: [c.create(copy.deepcopy(ONE)), c.create(placed("a"))])
    w.user("drop", lambda c: c.delete(CRD))
    w.converges(lambda s: bool(s[CRD]) == bool(s[Key("example.com", "Widget", "default", "a")]), "all or nothing")
    verdict = sm.check(w)
    verdict.assert_holds()
    assert verdict.states > 5
