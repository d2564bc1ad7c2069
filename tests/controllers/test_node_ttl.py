"""How long kubelets may keep what they read."""

import pytest

import steersman as sm
from steersman.controllers import node_ttl
from steersman.controllers.node_ttl import ANNOTATION, NodeTtl
from steersman.kernel.object import Key
from tests.check.targets import TARGETS
from tests.controllers.services import node
from tests.controllers.worlds import client, explore, make, objects, settle, user


def said(w):
    return {each.metadata.name: each.metadata.annotations[ANNOTATION] for each in objects(w, "v1/Node")}


def test_the_more_nodes_the_longer_and_between_two_sizes_as_before():
    w = settle(make([NodeTtl], [node(f"n{number:03}") for number in range(100)], persistent=False, atomic=True))
    assert set(said(w).values()) == {"0"}
    client(w).create(node("one-more"))
    settle(w)
    assert set(said(w).values()) == {"15"} and len(said(w)) == 101
    for number in range(11):
        client(w).delete(Key("", "Node", "", f"n{number:03}"))
    settle(w)
    assert set(said(w).values()) == {"15"}  # 90
    client(w).delete(Key("", "Node", "", "one-more"))
    settle(w)
    assert set(said(w).values()) == {"0"}


def test_what_somebody_changed_is_put_back():
    w = settle(make([NodeTtl], [node()]))
    client(w).patch(Key("", "Node", "", "node-1"), {"metadata": {"annotations": {ANNOTATION: "7"}}})
    settle(w)
    assert said(w) == {"node-1": "0"}


@pytest.mark.parametrize("lag", [0, 1])
def test_every_order_ends_in_one_answer(lag, monkeypatch):
    monkeypatch.setattr(node_ttl, "STEPS", ((0, 1, 0), (1, 9, 15)))
    steps = [
        user("join", lambda c: c.create(node("node-2"))),
        user("leave", lambda c: c.delete(Key("", "Node", "", "node-1"))),
    ]
    found = explore(lambda: make([NodeTtl], [node()], steps, lag=lag, budgets=(1, 0)))
    assert found.states > 10 and found.terminal and not found.findings
    for w in found.terminal:
        assert len(set(said(w).values())) == 1


def test_a_watch_may_show_two_changes_of_the_annotation_as_none():
    sm.check(TARGETS["ttl-controller"](), coalesced=1, walks=60, seed=100).assert_holds()
