"""Zeros: what Kubernetes shows of fields that nobody set."""

import orjson
import pytest

from steersman.api import zeros
from steersman.api.kinds import Kinds
from steersman.kernel.value import freeze

KINDS = Kinds.builtin()


def filled(kind, part, value):
    return zeros.fill(KINDS.find(kind).schema.fields[part], freeze(value))


def test_structs_are_there_though_nothing_is_in_them():
    assert filled("ingress", "status", {}) == {"loadBalancer": {}}
    assert filled("cronjob", "spec", {"jobTemplate": {}})["jobTemplate"] == {"metadata": {}}
    assert zeros.shown(KINDS.find("deploy").schema) == {"status": {}}


def test_plain_fields_are_there_in_a_status():
    status = filled("sts", "status", {"conditions": [{"type": "A"}], "replicas": 3})
    assert status == {"availableReplicas": 0, "conditions": [{"type": "A", "status": ""}], "replicas": 3}


def test_elements_of_lists_are_filled():
    slices = filled("endpointslice", "endpoints", [{"addresses": ["192.0.2.1"]}, {"conditions": {"ready": True}}])
    assert [point["conditions"] for point in slices] == [{}, {"ready": True}]


@pytest.mark.parametrize(("kind", "part"), [("pod", "spec"), ("configmap", "data"), ("crd", "spec")])
def test_what_shows_nothing_is_given_back(kind, part):
    value = freeze({"containers": [{"name": "c"}]} if kind == "pod" else {"a": "b"})
    assert zeros.fill(KINDS.find(kind).schema.fields[part], value) is value


def test_what_is_complete_is_given_back():
    once = filled("node", "status", {"nodeInfo": {"osImage": "x"}})
    assert zeros.fill(KINDS.find("node").schema.fields["status"], once) is once
    assert orjson.loads(orjson.dumps(once))["nodeInfo"]["kernelVersion"] == ""
