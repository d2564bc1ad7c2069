"""APIServices of custom kinds: there as long as a definition serves their version."""

import copy

from steersman.api.rules.registration_rules import ALWAYS, MANAGED, local
from steersman.controllers.definition import DefinitionController
from steersman.controllers.registration import ApiServiceRegistration
from steersman.kernel.object import Key
from tests.controllers.worlds import client, explore, make, objects, settle, user
from tests.serve.test_crd import definition, version

CRD = Key("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com")
SERVICE = Key("apiregistration.k8s.io", "APIService", "", "v1.example.com")
TWO = definition(version("v1", True), version("v1beta1"))
BOTH = [ApiServiceRegistration, DefinitionController]


def names(w):
    return [each.metadata.name for each in objects(w, "apiregistration.k8s.io/v1/APIService")]


def planned():
    w = settle(make(BOTH, []))
    client(w).create(copy.deepcopy(TWO))
    return settle(w)


def test_one_for_each_version_that_is_served():
    w = planned()
    assert names(w) == ["v1.example.com", "v1beta1.example.com"]
    found = client(w).get(SERVICE)
    assert found["spec"]["groupPriorityMinimum"] == 1000 and found["metadata"]["labels"][MANAGED] == ALWAYS
    versions = [{**each, "served": each["name"] == "v1"} for each in TWO["spec"]["versions"]]
    client(w).patch(CRD, {"spec": {"versions": versions}})
    assert names(settle(w)) == ["v1.example.com"]
    client(w).delete(CRD)
    assert names(settle(w, timers=True)) == []


def test_what_somebody_changed_or_deleted_comes_back_and_what_somebody_made_stays():
    w = planned()
    client(w).patch(SERVICE, {"spec": {"groupPriorityMinimum": 7}})
    assert client(settle(w)).get(SERVICE)["spec"]["groupPriorityMinimum"] == 1000
    client(w).delete(SERVICE)
    assert names(settle(w)) == ["v1.example.com", "v1beta1.example.com"]
    client(w).create(local("other.example.com", "v1", (5, 5), "no"))
    assert "v1.other.example.com" in names(settle(w))


def test_every_order_ends_in_one_answer():
    steps = [user("define", lambda c: c.create(copy.deepcopy(TWO))), user("undefine", lambda c: c.delete(CRD))]
    found = explore(lambda: make(BOTH, [], steps, lag=1, budgets=(1, 0)), skip=("fire",))
    assert found.states > 10 and found.terminal and not found.findings
    for w in found.terminal:
        crd = client(w).get(CRD)
        gone = crd is None or "deletionTimestamp" in crd["metadata"]
        assert names(w) == ([] if gone else ["v1.example.com", "v1beta1.example.com"])
