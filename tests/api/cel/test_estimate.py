"""Estimated costs: those of the libraries Kubernetes 1.36 uses, and what a definition with costly rules is told."""

import json
from pathlib import Path

import pytest

from steersman.api.cel.declare import declared
from steersman.api.cel.estimate import most
from steersman.api.cel.rule_faults import rule_faults
from steersman.api.cel.rules import compiled
from steersman.api.crd.structural import from_structural

VECTORS = json.loads(Path(__file__).with_name("costs.json").read_text())
"""Written by scripts/protobuf/celcost: the real estimates of rules about one schema."""
HINT = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"


@pytest.mark.parametrize("rule", VECTORS["costs"])
def test_costs_are_those_of_kubernetes(rule):
    schema = from_structural({**VECTORS["schema"], "x-kubernetes-validations": [{"rule": rule}]}, "x")
    (found,) = compiled(schema, schema, True)
    assert found.program is not None, found.fault
    assert most(found.program.root, declared(schema, True)) == VECTORS["costs"][rule]


def faults(**fields):
    schema = from_structural({"type": "object", "properties": fields}, "x")
    return [(cause.field, cause.message.removeprefix("Forbidden: ")) for cause in rule_faults(schema, "p")]


def texts(rule, **limits):
    return {"type": "array", "items": {"type": "string"}, **limits, "x-kubernetes-validations": [{"rule": rule}]}


def test_a_rule_that_may_cost_too_much_is_refused_with_a_hint():
    rule = "self.all(t, self.all(u, t == u))"
    at = "p.properties[l].x-kubernetes-validations[0].rule"
    first, second, third = faults(l=texts(rule))
    assert first == (at, f"estimated rule cost exceeds budget by factor of more than 100x {HINT} declared)")
    assert second == (at, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema")
    assert third[0] == "p" and third[1].startswith("x-kubernetes-validations estimated rule cost total for entire")
    assert faults(l={**texts(rule, maxItems=10), "items": {"type": "string", "maxLength": 10}}) == []


def test_a_rule_counts_as_often_as_its_value_may_be_there():
    rule = {"x-kubernetes-validations": [{"rule": "self.startsWith('aaaaaaaaaaaaaaaaaaaa')"}]}
    assert faults(s={"type": "string", **rule}) == []
    (found,) = faults(l={"type": "array", "maxItems": 4_000_000, "items": {"type": "string", **rule}})
    assert found[0] == "p.properties[l].items.x-kubernetes-validations[0].rule"
    assert found[1].startswith("estimated rule cost exceeds budget by factor of 1.200000x (")
    unlimited = {"type": "array", "items": {"type": "string", **rule}}
    assert faults(l=unlimited) == []  # no request has room for more than a million of them
    (found,) = faults(
        m={"type": "object", "maxProperties": 5_000_000, "additionalProperties": {"type": "string", **rule}}
    )
    assert "by factor of 1.5x (" in found[1]


def test_words_of_the_language_are_fields_too():
    rule = {"x-kubernetes-validations": [{"rule": "self.namespace == 'a' && self.__namespace__ == 'a'"}]}
    schema = {"type": "object", "properties": {"namespace": {"type": "string"}}, **rule}
    assert faults(o=schema) == []
