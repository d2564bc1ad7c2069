"""Selectors of devices: what they may say, what they cost at worst, and in which words they are refused.

Texts and costs are those of a kube-apiserver 1.36 (costs also stand in its cel/compile_test.go).
"""

import pytest

from steersman.api.cel.devices import COSTLY, MAX_NAMED, cost, environment, fault
from steersman.api.cel.faults import CelError
from steersman.api.cel.library.amounts import to_quantity
from tests.serve.harness import in_loop
from tests.serve.plane import Plane

A = 'device.attributes["dra.example.com"]'
EACH = "device.attributes.all({0}, {1})"

COSTS = {
    "true": 0,
    'device.driver == "dra.example.com"': 4,
    "device.allowMultipleAllocations == true": 3,
    '"dra.example.com" in device.attributes': 3,
    f"{A}.name": 4,
    f'{A}["name"] == "fish"': 5,
    f'{A}.version.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true)': 7,
    f"{A}.a && {A}.b && {A}.c": 12,
    f"cel.bind(dra, {A}, dra.name)": 15,
    f'{A}.services.split("example").size() >= 2': 19,
    f'{A}.services.matches("[^a]?sym")': 18,
    'device.attributes.exists_one(x, x == "dra.example.com")': 164,
    f'{A}.exists_one(x, x == "services")': 133,
    'device.capacity["dra.example.com"].exists_one(x, x == "memory")': 133,
    '!("name" in device.capacity["d"]) || device.capacity["d"].name.isGreaterThan(quantity("1Ki"))': 11,
}


@pytest.mark.parametrize("text", COSTS)
def test_the_worst_cost_is_that_of_kubernetes(text):
    assert fault(text) is None and cost(text) == COSTS[text]


REFUSED = {
    "1": "must evaluate to bool or the unknown type, not int",
    "dyn(true)": "must evaluate to bool or the unknown type, not dyn",
    "true ? 1 : dyn(1)": "must evaluate to bool or the unknown type, not dyn",
    "device": "must evaluate to bool or the unknown type, not kubernetes.DRADevice",
    "device.capacity": "must evaluate to bool or the unknown type, not map(string, map(string, kubernetes.Quantity))",
    A: "must evaluate to bool or the unknown type, not map(string, google.protobuf.Any)",
    f"{A}.b.c": "must evaluate to bool or the unknown type, not dyn",
    "device.foo": "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n | ......^",
    f"{A}.b.exists(x, x > 0)": "expression of type 'any' cannot be range of a comprehension (must be list, map, or",
    f'{A}.b.includes("x")': "undeclared reference to 'includes' (in container '')",
    "cel.bind(1, 2, true)": "ERROR: <input>:1:10: cel.bind() variable names must be simple identifiers",
    "cel.bind(x, device.driver, y)": "undeclared reference to 'y'",
    'cel.bind(a, 1, a == "x")': "found no matching overload for '_==_' applied to '(int, string)'",
    f"[{A}.b, 1] == []": "expected type 'any' but found 'int'",
    f"{A}.b && 1": "expected type 'bool' but found 'int'",
    "": "compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting",
    "kubernetes.DRADevice{driver: 1} == device": "type of field 'driver' is 'string' but provided type is 'int'",
    "oldObject": "undeclared reference to 'oldObject'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_is_said_in_its_words(text):
    found = fault(text)
    assert found is not None and REFUSED[text] in found.detail and not found.costly


@pytest.mark.parametrize("text", [f"true ? {A}.b : 1", f"true ? 1 : {A}.b", f"{A}.?b.orValue(true)", f"{A}.b in [1]"])
def test_an_attribute_may_be_of_any_type(text):
    assert fault(text) is None


def test_what_could_take_too_long_is_forbidden():
    three = EACH.format("a", EACH.format("b", EACH.format("c", "a == b && b == c")))
    assert MAX_NAMED**3 < 1_000_000 and fault(three) is None
    found = fault(EACH.format("d", three))
    assert found is not None and found.costly and found.detail == COSTLY


def run(text, attributes=None, capacity=None):
    device = {"driver": "d", "allowMultipleAllocations": False, "attributes": attributes or {}}
    device["capacity"] = capacity or {}
    result = environment().compile(text).run({"device": device})
    if result.error is not None:
        raise result.error
    return result.value


def test_they_can_be_evaluated():
    attributes = {"d": {"cores": 4, "fast": True}}
    assert run('cel.bind(x, device.attributes["d"], x.cores > 3 && x.fast)', attributes) is True
    assert run("cel.bind(x, 1, cel.bind(x, 2, x)) == 2 && cel.bind(y, 3, [1].map(z, y + z)) == [4]") is True
    gigabyte = {"d": {"memory": to_quantity("1Gi")}}
    assert run('device.capacity["d"].memory.compareTo(quantity("1Gi")) == 0', capacity=gigabyte) is True


def test_a_named_value_that_fails_fails_only_where_it_is_used():
    assert run("cel.bind(x, 1 / 0, true)") is True
    assert run("cel.bind(x, 1 / 0 == 1, true || x)") is True
    with pytest.raises(CelError, match="division by zero"):
        run("cel.bind(x, 1 / 0, x == 1)")


@in_loop
async def test_classes_and_claims_are_judged():
    plane = Plane()
    group = "/apis/resource.k8s.io/v1"
    long = EACH.format("a", EACH.format("b", EACH.format("c", EACH.format("d", "a == d"))))
    bad = [{"cel": {"expression": text}} for text in ("device.foo", long, "device.driver == 'x'")]
    refused = (
        await plane.post(f"{group}/deviceclasses", {"metadata": {"name": "c"}, "spec": {"selectors": bad}}, 422)
    ).json
    causes = [(cause["reason"], cause["field"]) for cause in refused["details"]["causes"]]
    assert causes == [
        ("FieldValueInvalid", "spec.selectors[0].cel.expression"),
        ("FieldValueForbidden", "spec.selectors[1].cel.expression"),
    ]
    await plane.post(f"{group}/deviceclasses", {"metadata": {"name": "c"}, "spec": {"selectors": bad[2:]}})
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": bad[:1]}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    refused = (await plane.post(f"{group}/namespaces/default/resourceclaims", claim, 422)).json
    assert "devices.requests[0].exactly.selectors[0].cel.expression: Invalid value" in refused["message"]
    await plane.post(
        f"{group}/namespaces/default/resourceclaimtemplates",
        {"metadata": {"name": "t"}, "spec": {"spec": claim["spec"]}},
        422,
    )
