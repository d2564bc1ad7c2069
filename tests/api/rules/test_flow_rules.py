"""Flow control: what a FlowSchema and a PriorityLevelConfiguration must look like."""

import copy

import pytest

from steersman.api.errors import Invalid
from steersman.api.rules.flow_rules import GROUP, first_objects
from steersman.kernel.value import thaw
from tests.api.cluster import Cluster

SCHEMA, LEVEL = f"{GROUP}/v1/FlowSchema", f"{GROUP}/v1/PriorityLevelConfiguration"
RULE = {
    "subjects": [{"kind": "User", "user": {"name": "ann"}}],
    "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]}],
}
QUEUE = {"type": "Queue", "queuing": {}}


def schema(**changes):
    return {"priorityLevelConfiguration": {"name": "global-default"}, "rules": [copy.deepcopy(RULE)], **changes}


def rule(**changes):
    return schema(rules=[{**copy.deepcopy(RULE), **changes}])


def level(**changes):
    return {"type": "Limited", "limited": {"limitResponse": QUEUE, **changes}}


def test_defaults():
    cluster = Cluster()
    made = thaw(cluster.create(SCHEMA, "a", spec=schema()).obj.value)
    assert made["spec"]["matchingPrecedence"] == 1000
    made = thaw(cluster.create(LEVEL, "a", spec=level()).obj.value)
    assert made["spec"]["limited"] == {
        "nominalConcurrencyShares": 30,
        "lendablePercent": 0,
        "limitResponse": {"type": "Queue", "queuing": {"handSize": 8, "queues": 64, "queueLengthLimit": 50}},
    }


@pytest.mark.parametrize(
    ("kind", "name", "spec", "told"),
    [
        (SCHEMA, "a", schema(matchingPrecedence=1), "only the schema named 'exempt' may have matchingPrecedence 1"),
        (SCHEMA, "a", schema(matchingPrecedence=-1), "must be a positive value"),
        (SCHEMA, "a", schema(matchingPrecedence=10001), "must not be greater than 10000"),
        (SCHEMA, "a", schema(distinguisherMethod={"type": "x"}), 'supported values: "ByNamespace", "ByUser"'),
        (SCHEMA, "a", schema(priorityLevelConfiguration={"name": ""}), "must reference a priority level"),
        (SCHEMA, "a", rule(subjects=[]), "subjects must contain at least one value"),
        (SCHEMA, "a", rule(resourceRules=[]), "at least one of resourceRules and nonResourceRules has to be non-empty"),
        (SCHEMA, "a", rule(subjects=[{"kind": "Group"}]), "group is required when subject kind is 'Group'"),
        (
            SCHEMA,
            "a",
            rule(subjects=[{"kind": "User", "user": {"name": "a"}, "group": {"name": "b"}}]),
            "group is forbidden when subject kind is not 'Group'",
        ),
        (
            SCHEMA,
            "a",
            rule(nonResourceRules=[{"verbs": ["get", "*"], "nonResourceURLs": ["/a*"]}]),
            "if '*' is present, must not specify other verbs",
        ),
        (
            SCHEMA,
            "a",
            rule(nonResourceRules=[{"verbs": ["fly"], "nonResourceURLs": ["/a*b"]}]),
            "wildcard can only do suffix matching",
        ),
        (SCHEMA, "exempt", schema(matchingPrecedence=1), "spec of 'exempt' must equal the fixed value"),
        (LEVEL, "a", {"type": "Exempt"}, "must be 'Exempt' if and only if `name` is 'exempt'"),
        (LEVEL, "a", {"type": "Limited"}, "must not be empty when type is Limited"),
        (LEVEL, "a", {"type": "x"}, 'supported values: "Exempt", "Limited"'),
        (LEVEL, "a", level(lendablePercent=101), "must be between 0 and 100, inclusive"),
        (LEVEL, "a", level(limitResponse={"type": "Reject", "queuing": {}}), "must be nil if limited.limitResponse"),
        (
            LEVEL,
            "a",
            level(limitResponse={"type": "Queue", "queuing": {"queues": 2, "handSize": 3}}),
            "should not be greater than queues (2)",
        ),
        (
            LEVEL,
            "a",
            level(limitResponse={"type": "Queue", "queuing": {"queues": 2048, "handSize": 6}}),
            "required entropy bits of deckSize 2048 and handSize 6 should not be greater than 60",
        ),
    ],
)
def test_what_is_refused(kind, name, spec, told):
    with pytest.raises(Invalid) as caught:
        Cluster().create(kind, name, spec=spec)
    assert told in caught.value.message


def test_those_that_every_cluster_has_are_valid_and_complete():
    cluster = Cluster()
    for key, body in first_objects():
        made = cluster.create(f"{GROUP}/v1/{key.kind}", key.name, spec=copy.deepcopy(body["spec"]))
        assert thaw(made.obj.value)["spec"] == body["spec"]
    assert len(first_objects()) == 19
