"""x-kubernetes-validations, through the request machine: what is refused, where, in which words."""

import pytest

from steersman.api.begin import Api
from steersman.api.cel.rule_faults import rule_faults
from steersman.api.cel.values import equal
from steersman.api.cel.view import seen
from steersman.api.crd.structural import from_structural
from steersman.api.errors import Invalid
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.serve.memory import MemoryBackend

TIME = 1_700_000_000_000_000


class Cluster:
    """A control plane with one custom kind."""

    def __init__(self, spec, root_rules=(), status=None):
        properties = {
            "spec": spec,
            "status": status or {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        }
        schema = {"type": "object", "properties": properties}
        if root_rules:
            schema["x-kubernetes-validations"] = list(root_rules)
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        version["subresources"] = {"status": {}}
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"kind": "Widget", "plural": "widgets"},
                "scope": "Cluster",
                "versions": [version],
            },
        }
        self.backend = MemoryBackend(
            Api(Kinds.builtin().with_custom(Kinds.custom_from_yaml_dict(crd, "crd.yaml"))), clock=lambda: TIME
        )

    def _send(self, verb, body, part="", **options):
        key = Key("example.com", "Widget", "", "w")
        return self.backend.write_now(Request(verb, key, body, part, "me", "me", TIME, options))

    def create(self, spec, **meta):
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", **meta}, "spec": spec}
        return self._send("create", body)

    def patch(self, body, part=""):
        return self._send("patch", body, part)

    def causes(self, act, *args, **kwargs):
        with pytest.raises(Invalid) as caught:
            act(*args, **kwargs)
        return [str(cause) for cause in caught.value.details.causes]


def obj(rules=(), **properties):
    return {"type": "object", "properties": properties, "x-kubernetes-validations": [
        rule if isinstance(rule, dict) else {"rule": rule} for rule in rules]}  # fmt: skip


INT = {"type": "integer"}
TEXT = {"type": "string"}


def test_a_rule_compares_fields():
    cluster = Cluster(obj(["self.minReplicas <= self.replicas"], minReplicas=INT, replicas=INT))
    cluster.create({"minReplicas": 1, "replicas": 2})
    assert cluster.causes(cluster.patch, {"spec": {"replicas": 0}}) == [
        "spec: Invalid value: failed rule: self.minReplicas <= self.replicas"
    ]


def test_an_error_of_the_evaluation_names_the_rule():
    cluster = Cluster(obj(["self.a < self.b"], a=INT, b=INT))
    assert cluster.causes(cluster.create, {"a": 1}) == [
        'spec: Invalid value: "object": no such key: b evaluating rule: self.a < self.b'
    ]


@pytest.mark.parametrize(
    "rule,told",
    [
        ({"message": " too few "}, "spec.x: Invalid value: 0: too few"),
        ({"message": "no", "reason": "FieldValueForbidden"}, "spec.x: Forbidden: no"),
        ({"message": "no", "reason": "FieldValueRequired"}, "spec.x: Required value: no"),
        ({"reason": "FieldValueDuplicate"}, "spec.x: Duplicate value: 0"),
        ({"messageExpression": "'is ' + string(self)"}, "spec.x: Invalid value: 0: is 0"),
        ({"messageExpression": "string(1 / self)", "message": "m"}, "spec.x: Invalid value: 0: m"),
        ({"messageExpression": "''"}, "spec.x: Invalid value: 0: failed rule: self > 0"),
    ],
)
def test_messages_and_reasons(rule, told):
    cluster = Cluster(obj(x={**INT, "x-kubernetes-validations": [{"rule": "self > 0", **rule}]}))
    assert cluster.causes(cluster.create, {"x": 0}) == [told]


def test_a_field_path_moves_the_error():
    rule = {"rule": "self.inner.x > 0", "message": "no", "fieldPath": ".inner.x"}
    cluster = Cluster(obj([rule], inner={"type": "object", "properties": {"x": INT}}))
    assert cluster.causes(cluster.create, {"inner": {"x": 0}}) == ["spec.inner.x: Invalid value: no"]


def test_transition_rules_wait_for_an_old_value():
    cluster = Cluster(obj(x={**INT, "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "down"}]}))
    cluster.create({"x": 3})
    cluster.patch({"spec": {"x": 4}})
    assert cluster.causes(cluster.patch, {"spec": {"x": 2}}) == ["spec.x: Invalid value: 2: down"]


def test_optional_old_self_is_there_from_the_start():
    rule = {"rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": True, "message": "born new"}
    cluster = Cluster(obj(x={**TEXT, "x-kubernetes-validations": [rule]}))
    assert cluster.causes(cluster.create, {"x": "old"}) == ['spec.x: Invalid value: "old": born new']
    cluster.create({"x": "new"})
    cluster.patch({"spec": {"x": "other"}})


def test_elements_of_map_lists_are_compared_by_key():
    item = obj([{"rule": "self.port >= oldSelf.port", "message": "down"}], name=TEXT, port=INT)
    item["required"] = ["name"]
    listed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    cluster = Cluster(obj(["self.l == self.l"], l=listed))
    cluster.create({"l": [{"name": "a", "port": 2}, {"name": "b", "port": 5}]})
    cluster.patch({"spec": {"l": [{"name": "b", "port": 5}, {"name": "a", "port": 2}]}})
    found = cluster.causes(cluster.patch, {"spec": {"l": [{"name": "c", "port": 1}, {"name": "a", "port": 1}]}})
    assert found == ["spec.l[1]: Invalid value: down"]


def test_maps_name_their_keys():
    values = {"type": "object", "additionalProperties": {**INT, "x-kubernetes-validations": [{"rule": "self > 0"}]}}
    cluster = Cluster(obj(m=values))
    assert cluster.causes(cluster.create, {"m": {"b": 0, "a": 1}}) == [
        "spec.m[b]: Invalid value: 0: failed rule: self > 0"
    ]


def test_what_did_not_change_only_warns():
    cluster = Cluster(obj(x={**INT, "x-kubernetes-validations": [{"rule": "self > 0"}]}, y=INT))
    loose = Cluster(obj(x=INT, y=INT))
    loose.create({"x": 0})
    cluster.backend.store = loose.backend.store
    reply = cluster.patch({"spec": {"y": 1}})
    assert reply.warnings == ("spec.x: Invalid value: 0: failed rule: self > 0",)


@pytest.mark.parametrize(
    "schema,value,rule",
    [
        ({"type": "string", "format": "date-time"}, "2024-01-01T00:00:00Z", "self.x.getFullYear() == 2024"),
        ({"type": "string", "format": "date"}, "2024-01-02", "self.x == timestamp('2024-01-02T00:00:00Z')"),
        ({"type": "string", "format": "duration"}, "90m", "self.x == duration('1h30m')"),
        ({"type": "string", "format": "byte"}, "YQ==", "self.x == b'a'"),
        ({"type": "number"}, 3, "type(self.x) == double && self.x == 3.0"),
        ({"x-kubernetes-int-or-string": True}, "50%", "type(self.x) == string && self.x == '50%'"),
        ({"x-kubernetes-int-or-string": True}, 5, "type(self.x) == int && self.x == 5"),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, ["a", "b"], "self.x == ['b', 'a']"),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, ["a"], "self.x + ['a'] == ['a']"),
        ({"type": "array", "items": TEXT}, ["a", "b"], "self.x != ['b', 'a']"),
        ({"type": "object", "additionalProperties": INT}, {"a": 1}, "self.x.all(k, self.x[k] > 0) && 'a' in self.x"),
    ],
)
def test_values_have_the_types_of_their_schema(schema, value, rule):
    Cluster(obj([rule], x=schema)).create({"x": value})


def test_large_sets_are_compared_quickly():
    listed = {"type": "array", "items": INT, "x-kubernetes-list-type": "set"}
    view = seen(from_structural(obj(l=listed), "x"), {"l": list(range(100_000))})
    assert equal(view.cel_get("l"), list(range(99_999, -1, -1))) and not equal(
        view.cel_get("l"), list(range(1, 100_001))
    )


def test_names_that_are_no_identifiers_are_escaped():
    rules = ["self.__namespace__ == 'n' && self.a__dash__b == 1 && self.c__dot__d == 2 && self.e__underscores__f == 3"]
    names = {"namespace": TEXT, "a-b": INT, "c.d": INT, "e__f": INT}
    Cluster(obj(rules, **names)).create({"namespace": "n", "a-b": 1, "c.d": 2, "e__f": 3})


def test_the_root_sees_its_name_and_its_status():
    rules = [{"rule": "self.metadata.name.startsWith('w')"}, {"rule": "!has(self.status) || self.status.n < 5"}]
    cluster = Cluster(obj(), rules, {"type": "object", "properties": {"n": INT}})
    cluster.create({})
    cluster.patch({"status": {"n": 1}}, "status")
    found = cluster.causes(cluster.patch, {"status": {"n": 7}}, "status")
    assert found == ["<nil>: Invalid value: failed rule: !has(self.status) || self.status.n < 5"]


def test_a_rule_that_is_too_expensive_ends_the_judgement():
    rules = ["self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))", "false"]
    cluster = Cluster(obj(rules, l={"type": "array", "items": INT}))
    (found,) = cluster.causes(cluster.create, {"l": list(range(1000))})
    assert "actual cost limit exceeded" in found and "no further validation rules will be run" in found


def test_faults_are_told_when_the_definition_is_written():
    schema = {
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.a + 1"}, {"rule": "true", "optionalOldSelf": True}],
        "properties": {
            "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == 'x'", "messageExpression": "1"}]},
            "l": {
                "type": "array",
                "maxItems": 5,
                "items": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [
                    {"rule": "self == oldSelf"}, {"rule": "self != ''", "messageExpression": "1"}]},
            },
        },
    }  # fmt: skip
    found = [
        (c.field, c.message.partition("}: ")[2] or c.message) for c in rule_faults(from_structural(schema, "x"), "p")
    ]
    at = "x-kubernetes-validations"
    mismatch = "found no matching overload for '_==_' applied to '(int, string)'\n | self == 'x'\n | .....^"
    assert found == [
        (f"p.{at}[0].rule", "cel expression must evaluate to a bool"),
        (f"p.{at}[1].optionalOldSelf", "Invalid value: true: may not be set if oldSelf is not used in rule"),
        (f"p.properties[a].{at}[0].rule", f"compilation failed: ERROR: <input>:1:6: {mismatch}"),
        (
            f"p.properties[l].items.{at}[0].rule",
            'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema '
            "within p.properties[l]",
        ),
        (f"p.properties[l].items.{at}[1].messageExpression", "messageExpression must evaluate to a string"),
    ]


def test_a_rule_that_does_not_compile_is_told():
    cluster = Cluster(obj(["self.nope > 0"], x=INT))
    (found,) = cluster.causes(cluster.create, {"x": 1})
    assert "rule compile error: compilation failed: ERROR: <input>:1:5: undefined field 'nope'" in found
