"""The arithmetic of rollouts, against what Kubernetes documents and tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.controllers import rollout


def deploy(replicas, surge="25%", unavailable="25%", **status):
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    spec = {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    return {"metadata": {"name": "d"}, "spec": spec, "status": status}


def rset(replicas, was=None, name="rs", created="2026-01-01T00:00:00Z"):
    meta = {"name": name, "creationTimestamp": created}
    if was is not None:
        meta["annotations"] = {rollout.MAX: str(was)}
    return {"metadata": meta, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),  # the one rounds up, the other down
        (1, "25%", "25%", (1, 0)),
        (4, 0, 0, (0, 1)),  # something must be able to move
        (4, "0%", "10%", (0, 1)),
        (3, 2, "100%", (2, 3)),
    ],
)
def test_fenceposts(replicas, surge, unavailable, expected):
    assert rollout.fenceposts(deploy(replicas, surge, unavailable)) == expected


def test_annotations_that_are_no_numbers_count_as_none():
    for text in ("", "x", "²", "-1", "9" * 5000):
        assert rollout.number({"metadata": {"annotations": {"n": text}}}, "n") == 0
    assert rollout.number({"metadata": {"annotations": {"n": "12"}}}, "n") == 12


def test_unavailable_is_capped_and_recreate_has_neither():
    assert rollout.max_unavailable(deploy(2, 1, 10)) == 2
    assert rollout.max_unavailable(deploy(0, 1, 10)) == 0
    d = {"spec": {"replicas": 3, "strategy": {"type": "Recreate"}}}
    assert rollout.fenceposts(d) == (0, 0)


def test_kubernetes_documented_proportions():
    """Scaling 10 → 15 with maxSurge 3 when 8 are old and 5 new: 3 go to the old set, 2 to the new one."""
    d = deploy(15, 3, 2)
    old, new = rset(8, 13), rset(5, 13)
    first = rollout.proportion(old, d, 5, 0)
    assert (first, rollout.proportion(new, d, 5, first)) == (3, 2)


@given(st.integers(0, 50), st.integers(0, 20), st.integers(0, 20), st.lists(st.integers(0, 60), max_size=4))
def test_a_rollout_never_surges_past_its_bound(replicas, surge, unavailable, sizes):
    d = deploy(replicas, surge, unavailable)
    new = min(sizes[0], replicas) if sizes else 0
    sets = [rset(new), *[rset(size) for size in sizes[1:]]]
    wanted = rollout.new_count(d, sets, new)
    total = sum(rollout.replicas(each) for each in sets) - new + wanted
    assert new <= wanted <= replicas
    assert wanted == new or total <= replicas + rollout.max_surge(d)


def test_the_hash_is_of_the_template_alone_and_changes_with_collisions():
    a = {"metadata": {"labels": {"x": "1", "y": "2"}}, "spec": {"containers": []}}
    b = {"spec": {"containers": []}, "metadata": {"labels": {"y": "2", "x": "1"}}}
    assert rollout.template_hash(a, 0) == rollout.template_hash(b, 0) == "7b7c454d64"
    assert len({rollout.template_hash(a, n) for n in range(4)}) == 4


def test_templates_are_compared_without_their_hash():
    bare = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}
    hashed = {"metadata": {"labels": {"app": "x", rollout.HASH_LABEL: "abc"}}, "spec": {"containers": []}}
    assert rollout.same_template(bare, hashed)
    assert not rollout.same_template(bare, {**hashed, "spec": {"containers": [{"name": "c"}]}})


def test_sorting():
    sets = [rset(2, name="b"), rset(2, name="a"), rset(5, name="c", created="2026-01-02T00:00:00Z")]
    assert [rs["metadata"]["name"] for rs in rollout.by_age(sets)] == ["a", "b", "c"]
    assert [rs["metadata"]["name"] for rs in rollout.by_size(sets, newer_first=False)] == ["c", "a", "b"]
    assert [rs["metadata"]["name"] for rs in rollout.by_size(sets, newer_first=True)] == ["c", "b", "a"]
