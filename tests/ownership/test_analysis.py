"""What follows from who reads and writes which field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import Kinds
from steersman.kernel.object import Key
from steersman.ownership.analysis import analyse
from steersman.ownership.fields import EXISTENCE, Field, FieldError, leaves
from steersman.ownership.footprint import Footprint

KINDS = Kinds.builtin()
POD = ("", "Pod")


def field(text):
    return Field.parse(text, KINDS)


def footprint(name, reads="", writes="", declared=True):
    return Footprint(name, *[tuple([field(t) for t in text.split()]) for text in (reads, writes)], declared)


def test_paths():
    assert field("apps/v1/Deployment:spec.replicas") == Field(("apps", "Deployment"), ("spec", "replicas"))
    assert str(field("apps/v1/Deployment:spec.replicas")) == "Deployment.apps:spec.replicas"
    ready = field("v1/Pod:status.conditions[Ready]")
    assert ready.path == ("status", "conditions", "[Ready]") and str(ready) == "Pod:status.conditions[Ready]"
    assert field("v1/Pod").path == () and str(field("v1/Pod")) == "Pod"
    with pytest.raises(FieldError, match="'v1/Podd:spec': "):
        field("v1/Podd:spec")


def test_overlaps():
    replicas, spec = field("apps/v1/Deployment:spec.replicas"), field("apps/v1/Deployment:spec")
    assert replicas.overlaps(spec) and spec.overlaps(replicas) and field("apps/v1/Deployment").overlaps(replicas)
    assert not replicas.overlaps(field("apps/v1/Deployment:status"))
    assert not replicas.overlaps(field("apps/v1/ReplicaSet:spec"))
    assert not replicas.overlaps(field("apps/v1/Deployment:spec.paused"))
    there = Field(POD, EXISTENCE)
    assert there.overlaps(there) and not there.overlaps(field("v1/Pod"))


def test_leaves():
    value = {"spec": {"replicas": 1, "list": [1, 2]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert dict(leaves(value)) == {
        ("spec", "replicas"): 1,
        ("spec", "list"): [1, 2],
        ("status", "conditions", "[Ready]", "status"): "True",
    }


def test_two_owners_are_named():
    operator = footprint("operator", writes="apps/v1/Deployment:spec")
    found = analyse([operator, footprint("hpa", writes="apps/v1/Deployment:spec.replicas")])
    assert found.line == "two owners of Deployment.apps:spec.replicas: operator and hpa write it"
    assert found.declared == found.clashes
    assert "REFUSED: two owners of Deployment.apps:spec.replicas" in found.text()
    assert "converges" not in found.text()


def test_what_was_learned_clashes_only_on_one_object():
    def seen(name, *names):
        own = field("v1/ConfigMap:data.v")
        return Footprint(name, (), (own,), False, tuple([(own, Key("", "ConfigMap", "d", each)) for each in names]))

    assert not analyse([seen("a", "x"), seen("b", "y")]).clashes
    (clash,) = analyse([seen("a", "x", "z"), seen("b", "y", "z")]).clashes
    assert str(clash) == "two owners of ConfigMap d/z (ConfigMap:data.v): a and b write it"
    assert not analyse([seen("a", "z"), seen("b", "z")]).declared


def test_a_circle_is_listed():
    found = analyse(
        [
            footprint("a", "v1/ConfigMap:data.y", "v1/ConfigMap:data.x"),
            footprint("b", "v1/ConfigMap:data.x", "v1/Secret:data"),
            footprint("c", "v1/Secret:data", "v1/ConfigMap:data.y"),
        ]
    )
    assert found.line == "a circle of reads and writes: a → b → c → a"
    (circle,) = found.circles
    assert str(circle[0]) == "a writes ConfigMap:data.x, which b reads"
    assert "it has to be checked" in found.text()


def test_without_a_circle_convergence_follows_from_what_is_assumed():
    found = analyse(
        [
            footprint("a", "v1/Secret:data v1/ConfigMap:data.x", "v1/ConfigMap:data.x"),
            footprint("b", "v1/ConfigMap:data.x", "v1/ConfigMap:data.y"),
        ]
    )
    assert found.line == "no circle of reads and writes, no field with two owners"
    text = found.text()
    assert "So every fair run converges, as long as" in text
    assert "each controller reads and writes only what is listed here;" in text
    assert "a only compares ConfigMap:data.x with what it wants, for it writes that itself." in text


def test_what_is_written_without_being_declared():
    said = footprint("a", "v1/Secret:data", "v1/ConfigMap:data.x")
    seen = footprint("a", writes="v1/ConfigMap:data.x v1/ConfigMap:data.y", declared=False)
    strays = [("a", stray) for stray in said.undeclared(seen)]
    found = analyse([said], tuple(strays))
    assert found.line == "a writes ConfigMap:data.y, but does not declare it"


@given(st.lists(st.tuples(st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4))), min_size=1, max_size=5))
def test_no_circle_means_an_order_in_which_values_settle(table):
    """Where no circle is found, the controllers can be put in an order in which none reads what a later one writes."""
    prints = [
        Footprint(
            f"c{number}",
            tuple([Field(POD, (f"f{each}",)) for each in sorted(reads)]),
            tuple([Field(POD, (f"f{each}",)) for each in sorted(writes)]),
            True,
        )
        for number, (reads, writes) in enumerate(table)
    ]
    left, settled = list(prints), []
    while True:
        ready = [
            one for one in left if not any(set(other.writes) & set(one.reads) for other in left if other is not one)
        ]
        if not ready:
            break
        settled += ready
        left = [one for one in left if one not in ready]
    assert bool(analyse(prints).circles) == bool(left)
