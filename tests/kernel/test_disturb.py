"""Disturbed reads: what is shown changed, and what may stand changed in a write."""

from hypothesis import given
from hypothesis import strategies as st

from steersman.api.times import parse_time
from steersman.kernel.disturb import GENERATION_SHIFT, NOTHING, RV_SHIFT, Disturbed, Stamp, mirrored, same_json
from steersman.kernel.identity import Canon
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import freeze

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-03-31T12:30:45.123Z"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=8,
)
META = {"generation": 3, "creationTimestamp": EARLY, "labels": {"generation": "3"}}
STATUS = {
    "observedGeneration": 2,
    "conditions": [{"type": "A", "lastTransitionTime": LATE, "observedGeneration": 2}],
    "generation": 7,
    "text": EARLY,
}
OBJECT = Object(Key("apps", "ReplicaSet", "default", "web"), "apps/v1", 5, Section(freeze(META)), None, None,
                Section(freeze(STATUS)))  # fmt: skip
CANON = Canon()


def test_what_the_table_ranks_and_drops_is_changed_and_nothing_else():
    value = Disturbed(True, True, True).value(OBJECT, CANON).value
    assert value.metadata.resourceVersion == str(5 + RV_SHIFT)
    assert value.metadata.generation == 3 + GENERATION_SHIFT
    assert value.status.observedGeneration == value.status.conditions[0].observedGeneration == 2 + GENERATION_SHIFT
    assert value.metadata.creationTimestamp == mirrored(EARLY)
    assert value.status.conditions[0].lastTransitionTime == mirrored(LATE)
    assert value.metadata.labels == META["labels"] and value.status.generation == 7 and value.status.text == EARLY
    assert CANON.of(Disturbed(True, True, True).value(OBJECT, CANON)) == CANON.of(OBJECT), "canonically it is the same"


def test_each_by_itself():
    assert Disturbed(True, False, False).value(OBJECT, CANON).value.metadata.generation == 3
    assert Disturbed(False, True, False).value(OBJECT, CANON).value.metadata.creationTimestamp == EARLY
    assert Disturbed(False, False, True).value(OBJECT, CANON).value.metadata.resourceVersion == "5"
    (item,) = Disturbed(False, True, False).value((OBJECT,), CANON)
    assert item.value.metadata.generation == 3 + GENERATION_SHIFT
    assert Disturbed(True, True, True).value("text", CANON) == "text"
    assert (
        Disturbed(False, False, True).value(Stamp(1), CANON) > 1 == Disturbed(True, True, False).value(Stamp(1), CANON)
    )


TIMES = st.datetimes().filter(lambda moment: 1970 <= moment.year <= 2100 and moment.day <= 28)


@given(TIMES, TIMES)
def test_mirrored_times_are_valid_and_in_reverse_order(a, b):
    texts = [moment.isoformat(timespec="microseconds") + "Z" for moment in (a, b)]
    one, two = (parse_time(mirrored(text)) for text in texts)
    assert (one > two) == (a < b) and (one == two) == (a == b)


def test_what_is_no_time_stays():
    assert mirrored("soon") == "soon"


@given(JSON)
def test_equal_values_are_the_same(value):
    assert same_json(value, freeze(value), NOTHING)


@given(JSON, JSON)
def test_undisturbed_only_equal_values_are(a, b):
    if same_json(a, b, NOTHING):
        assert freeze(a) == freeze(b)


def test_a_disturbed_value_may_stand_where_the_table_has_one():
    tree = CANON.tree(("apps", "ReplicaSet"))
    how = Disturbed(True, True, True)

    def body(generation, time):
        return {"status": {"observedGeneration": generation, "conditions": [{"lastTransitionTime": time}]}}

    assert same_json(body(2, EARLY), body(2 + GENERATION_SHIFT, LATE), how, tree)
    assert not same_json(body(2, EARLY), body(3, EARLY), how, tree)
    assert not same_json(body(2, EARLY), body(2 + GENERATION_SHIFT, EARLY), Disturbed(True, False, True), tree)
    assert not same_json(body(2, EARLY), body(2, LATE), Disturbed(True, True, False), tree)
    annotation = [{"metadata": {"annotations": {"at": time}}} for time in (EARLY, LATE)]
    assert not same_json(*annotation, how, tree), "elsewhere it has escaped"
    assert not same_json({"spec": {"replicas": 1}}, {"spec": {"replicas": 1 + GENERATION_SHIFT}}, how, tree)
