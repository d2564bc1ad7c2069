"""The quick way of taking a status in gives what the long way gives, or nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.intake import Misfit, Trace, intake
from steersman.api.kinds import Kinds
from steersman.api.skeleton import AFTER, PER_LAYOUT, Skeletons
from steersman.kernel.value import Frozen, FrozenList

TIME = "2026-05-28T20:01:02Z"


def _schema(group: str, kind: str) -> Any:
    return Kinds.builtin().get(group, kind).schema.fields["status"]


POD = _schema("", "Pod")


def _condition(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": "True", "lastTransitionTime": TIME, **more}


def _container(name: str, **more: Any) -> dict[str, Any]:
    running = {"running": {"startedAt": TIME}}
    return {"name": name, "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": running, **more}


def _pod(number: int = 0) -> dict[str, Any]:
    return {
        "phase": "Running",
        "conditions": [_condition("Ready", lastProbeTime=None), _condition("PodScheduled", lastProbeTime=None)],
        "podIP": f"10.0.0.{number % 250}",
        "podIPs": [{"ip": f"10.0.0.{number % 250}"}],
        "startTime": TIME,
        "containerStatuses": [
            _container(
                "app", resources={"requests": {"cpu": "250m"}}, allocatedResources={"cpu": "1", "memory": "1Gi"}
            ),
            _container("log", started=True, lastState={"terminated": {"exitCode": number % 3 + 1, "reason": "Error"}}),
        ],
        "initContainerStatuses": [],
    }


def _node() -> dict[str, Any]:
    return {
        "capacity": {"cpu": "16", "memory": "64Gi"},
        "conditions": [_condition("Ready", lastHeartbeatTime=TIME, reason="KubeletReady")],
        "addresses": [{"type": "InternalIP", "address": "192.168.0.1"}],
        "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "x"},
        "images": [{"names": ["a", "b"], "sizeBytes": 12}],
    }


def _deployment() -> dict[str, Any]:
    condition = _condition("Available", lastUpdateTime=TIME)
    return {"observedGeneration": 3, "replicas": 2, "readyReplicas": 2, "conditions": [condition]}


SAMPLES = [(POD, _pod), (_schema("", "Node"), _node), (_schema("apps", "Deployment"), _deployment)]


def long_way(schema: Any, value: Any) -> Any:
    """What the closures make of a value, in a form that tells everything apart; None when it does not fit."""
    trace: Trace = []
    try:
        taken = intake(schema, False, False, True)(copy.deepcopy(value), trace)
    except Misfit:
        return None
    return told(taken), tuple(trace)


def told(value: Any) -> Any:
    """A value with its types, and its fields in their order."""
    if isinstance(value, dict):
        assert type(value) is Frozen
        return [(name, told(item)) for name, item in value.items()]
    if isinstance(value, list):
        assert type(value) is FrozenList
        return ("list", [told(item) for item in value])
    return (type(value), value)


def quick_way(skeletons: Skeletons, value: Any) -> Any:
    """The same of the quick way; None when it leaves the value to the long one."""
    found = skeletons.take(copy.deepcopy(value))
    return None if found is None else (told(found[0]), found[1])


def taught(schema: Any, value: Any) -> Skeletons:
    """Functions made from a value that came often."""
    skeletons = Skeletons(schema)
    for _ in range(AFTER):
        skeletons.take(copy.deepcopy(value))
    return skeletons


@pytest.mark.parametrize(("schema", "make"), SAMPLES)
def test_a_value_that_came_often_is_taken_the_quick_way_and_becomes_the_same(schema: Any, make: Any) -> None:
    skeletons = Skeletons(schema)
    for _ in range(AFTER):
        assert quick_way(skeletons, make()) is None
    found = quick_way(skeletons, make())
    assert found is not None
    assert found == long_way(schema, make())


def test_names_values_and_times_may_differ_but_not_the_fields() -> None:
    skeletons = taught(POD, _pod())
    other = _pod(7)
    other["containerStatuses"][0]["name"] = "web"
    other["conditions"][1]["lastTransitionTime"] = "2027-01-01T00:00:00Z"
    assert quick_way(skeletons, other) == long_way(POD, other) is not None
    other["containerStatuses"][0]["state"] = {"waiting": {"reason": "ContainerCreating"}}
    assert quick_way(skeletons, other) is None
    for _ in range(2 * AFTER):
        skeletons.take(copy.deepcopy(other))
    assert quick_way(skeletons, other) == long_way(POD, other) is not None
    assert quick_way(skeletons, _pod()) == long_way(POD, _pod()) is not None


def test_two_items_of_one_key_go_the_long_way() -> None:
    skeletons = taught(POD, _pod())
    twins = _pod()
    twins["conditions"][1]["type"] = "Ready"
    assert quick_way(skeletons, twins) is None


def test_no_more_functions_are_made_than_the_limit_says() -> None:
    skeletons = Skeletons(POD)
    for containers in range(PER_LAYOUT + 4):
        value = {"containerStatuses": [_container(f"c{number}") for number in range(containers)]}
        for _ in range(AFTER << min(containers, PER_LAYOUT)):
            skeletons.take(copy.deepcopy(value))
    assert sum(map(len, skeletons._made.values())) <= PER_LAYOUT


def test_what_cannot_have_a_function_is_not_tried_again_and_again(monkeypatch) -> None:
    tries = []
    monkeypatch.setattr(
        "steersman.api.skeleton._Writing.function", lambda self, value: tries.append(1) or (lambda _: None)
    )
    skeletons = Skeletons(POD)
    for _ in range(AFTER << PER_LAYOUT):
        skeletons.take(_pod())
    assert len(tries) <= PER_LAYOUT


def test_a_value_too_large_or_too_deep_is_left_alone() -> None:
    many = {"containerStatuses": [_container(f"c{number}") for number in range(400)]}
    assert quick_way(taught(POD, many), many) is None
    deep: dict[str, Any] = {}
    for _ in range(3000):
        deep = {"a": deep}
    skeletons = Skeletons(POD)
    for _ in range(2 * AFTER):
        assert skeletons.take({"phase": deep}) is None


HOSTILE = (
    *(None, "", 0, False, True, 1, -(1 << 40), 1 << 70, 1.0, 0.5, "x", "10.0.0.1", [], {}, [None], [[]], {"a": None}),
    *("\ud800", {"name": "x"}, [{"type": "Ready"}], TIME, "2026-05-28T20:01:02+02:00", "2026-13-01T00:00:00Z"),
    {"ip": "::1"},
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, name or index) in a value."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    out = [(value, at) for at, _ in items]
    for _, item in items:
        if isinstance(item, (dict, list)):
            out += _places(item)
    return out


@pytest.mark.parametrize(("schema", "make"), SAMPLES)
@pytest.mark.parametrize("hostile", HOSTILE, ids=repr)
def test_a_value_changed_in_one_place_becomes_what_the_long_way_makes_of_it(
    schema: Any, make: Any, hostile: Any
) -> None:
    skeletons = taught(schema, make())
    for place in range(len(_places(make()))):
        value = make()
        holder, at = _places(value)[place]
        holder[at] = hostile
        found = quick_way(skeletons, value)
        assert found is None or found == long_way(schema, value)
        found = quick_way(taught(schema, value), value)
        assert found is None or found == long_way(schema, value)


@given(st.sampled_from(SAMPLES), st.integers(0, 200), st.integers(0, 4), st.sampled_from(HOSTILE), st.booleans())
def test_a_value_of_other_fields_or_items_becomes_what_the_long_way_makes_of_it(
    sample: Any, place: int, how: int, hostile: Any, learned: bool
) -> None:
    schema, make = sample
    value = make()
    places = _places(value)
    holder, at = places[place % len(places)]
    if how == 0:
        del holder[at]
    elif isinstance(holder, dict):
        if how % 2:
            holder["surplus"] = hostile
        else:
            holder[at] = holder.pop(at)  # at the end
    elif how % 2:
        holder.append(copy.deepcopy(holder[at]))
    else:
        holder.reverse()
    skeletons = taught(schema, value if learned else make())
    found = quick_way(skeletons, value)
    assert found is None or found == long_way(schema, value)
