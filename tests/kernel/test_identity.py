"""Canonical digests: each row of the table, what it merges and what it must not; drawn texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.kernel.identity import TABLE, Canon, Rule, digest, suffix_text, term, uid_text
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import freeze

WEB = Key("apps", "ReplicaSet", "default", "web")
POD = Key("", "Pod", "default", "web")


def obj(key=WEB, rv=1, meta=None, spec=None, status=None):
    def section(value):
        return None if value is None else Section(freeze(value))

    return Object(key, "v1", rv, section(meta or {}), section(spec), None, section(status))


def same(a, b, canon=None):
    canon = canon or Canon()
    return canon.of(a) == canon.of(b)


def test_revisions_do_not_count():
    assert same(obj(rv=1), obj(rv=2))


def test_everything_else_counts():
    plain = obj(meta={"uid": "1", "labels": {"a": "b"}}, spec={"replicas": 1}, status={"ready": 1})
    for other in (
        obj(meta={"uid": "2", "labels": {"a": "b"}}, spec={"replicas": 1}, status={"ready": 1}),
        obj(meta={"uid": "1", "labels": {"a": "c"}}, spec={"replicas": 1}, status={"ready": 1}),
        obj(meta={"uid": "1", "labels": {"a": "b"}}, spec={"replicas": 2}, status={"ready": 1}),
        obj(meta={"uid": "1", "labels": {"a": "b"}}, spec={"replicas": 1}, status={"ready": 2}),
        obj(meta={"uid": "1", "labels": {"a": "b"}}, spec={"replicas": 1}),
        obj(POD, meta={"uid": "1", "labels": {"a": "b"}}, spec={"replicas": 1}, status={"ready": 1}),
    ):
        assert not same(plain, other)


def test_generations_are_ranked_within_an_object():
    def at(generation, *observed):
        conditions = [{"type": "A", "observedGeneration": o} for o in observed[1:]]
        return obj(
            meta={"generation": generation}, status={"observedGeneration": observed[0], "conditions": conditions}
        )

    assert same(at(3, 2), at(9, 4)), "observed is behind"
    assert same(at(3, 3), at(9, 9)), "observed is up to date"
    assert not same(at(3, 2), at(3, 3))
    assert same(at(5, 3, 4), at(7, 1, 2)) and not same(at(5, 3, 4), at(5, 4, 3))


def test_ranks_can_be_switched_off():
    off = Canon(ranks=False)
    one = obj(meta={"generation": 3}, status={"observedGeneration": 2})
    two = obj(meta={"generation": 9}, status={"observedGeneration": 4})
    assert same(one, two) and not same(one, two, off)
    assert off.counters(one) == () and Canon().counters(one) == (3, 2)


@pytest.mark.parametrize("rule", [rule for rule in TABLE if rule.action != "rank"], ids=lambda rule: rule.path)
def test_a_time_does_not_count_in_the_rows_own_place(rule):
    def build(time, key):
        root = {}
        node = root
        *inner, last = rule.steps
        for at, name in enumerate(inner):
            below = [] if inner[at + 1 : at + 2] == ["[]"] else {}
            if name == "[]":
                node.append(below)
            else:
                node[name] = below
            node = below
        node[last] = time
        return obj(key, meta=root.get("metadata"), spec=root.get("spec"), status=root.get("status"))

    key = WEB if rule.gk is None else Key(*rule.gk, "default", "web")
    early, late = build("2026-01-01T00:00:00Z", key), build("2027-02-03T04:05:06Z", key)
    assert same(early, late)
    assert not same(early, late, Canon(())), "the table switched off"
    other = Key("x.io", "Other", "default", "web")
    assert same(build("2026-01-01T00:00:00Z", other), build("2027-02-03T04:05:06Z", other)) == (rule.gk is None)


def test_what_may_be_absent_is_the_same_as_what_is_there_and_leaves_nothing_behind():
    canon = Canon((Rule(None, 'metadata.annotations."a.io/b"', "absent", "for people"),))
    plain, other = obj(meta={}), obj(meta={"annotations": {"c": "d"}})
    assert same(plain, obj(meta={"annotations": {"a.io/b": "1"}}), canon)
    assert same(other, obj(meta={"annotations": {"a.io/b": "1", "c": "d"}}), canon) and not same(plain, other, canon)


def test_that_deletion_began_counts():
    deleted = obj(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert not same(obj(meta={}), deleted)


def test_clip():
    canon = Canon((Rule(None, "status.restarts", "clip:3", "more is just many"),))
    assert same(obj(status={"restarts": 3}), obj(status={"restarts": 9}), canon)
    assert not same(obj(status={"restarts": 2}), obj(status={"restarts": 3}), canon)


def test_tables_do_not_share_what_they_cached():
    one = obj(meta={"generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z"})
    other = obj(meta={"generation": 4, "creationTimestamp": "2027-01-01T00:00:00Z"})
    for _ in range(2):
        assert same(one, other, Canon()) and not same(one, other, Canon(()))


@given(st.lists(st.integers(0, 1 << 40), min_size=2, max_size=2, unique=True))
def test_uids_are_valid_and_differ(numbers):
    import uuid

    one, two = (uid_text("Pod default/web", number) for number in numbers)
    assert one != two and uid_text("Pod default/web", numbers[0]) == one
    assert uuid.UUID(one).version == 4 and uuid.UUID(one).variant == uuid.RFC_4122


@given(st.integers(0, 27**5 - 1), st.integers(0, 27**5 - 1))
def test_suffixes_differ_and_are_sorted(a, b):
    assert len(suffix_text(a)) == 5
    assert (suffix_text(a) == suffix_text(b)) == (a == b)


def test_terms_are_digests():
    assert term("a", 1) == term("a", 1) == digest("a", 1) < 1 << 128
    assert digest("a", "bc") != digest("ab", "c")
