"""Intake: what is taken in as it is, brought into form, dropped, or refused, and how that is told."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.api import zeros
from steersman.api.crd.faults import MAX_CAUSES
from steersman.api.errors import Cause
from steersman.api.explain import Finding, explain, explain_custom
from steersman.api.intake import Misfit, intake
from steersman.api.kinds import Kinds
from steersman.api.schema import Schema
from steersman.kernel.value import Frozen, FrozenList, freeze
from tests.api.values import value

POD = Kinds.builtin().get("", "Pod").schema.fields["spec"]
TEXT = Schema(type="string")
NUMBER = Schema(type="integer")


def one(schema, **fields):
    """An object schema with one field `x`."""
    return Schema(type="object", fields={"x": schema, **fields})


def is_deeply_frozen(value):
    if isinstance(value, dict):
        return type(value) is Frozen and all(is_deeply_frozen(item) for item in value.values())
    if isinstance(value, list):
        return type(value) is FrozenList and all(is_deeply_frozen(item) for item in value)
    return True


GOOD = [
    (TEXT, "a", "a"),
    (NUMBER, 5, 5),
    (NUMBER, 5.0, 5),
    (Schema(type="integer", format="int32"), (1 << 31) - 1, (1 << 31) - 1),
    (Schema(type="number"), 1.5, 1.5),
    (Schema(type="boolean"), False, False),
    (Schema(type="quantity"), "1000m", "1"),
    (Schema(type="quantity"), 2, "2"),
    (Schema(type="int-or-string"), "50%", "50%"),
    (Schema(type="int-or-string"), 8080, 8080),
    (Schema(type="string", format="date-time"), "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
    (Schema(type="any"), {"a": [1, None]}, {"a": [1, None]}),
    (Schema(type="map", values=NUMBER), {"a": 1}, {"a": 1}),
    (Schema(type="map", values=TEXT), {"a": "b", "c": None}, {"a": "b", "c": ""}),
    (Schema(type="list", items=TEXT), ["a"], ["a"]),
]


@pytest.mark.parametrize(("schema", "value", "wanted"), GOOD, ids=lambda item: str(item)[:30])
def test_good_values(schema, value, wanted):
    taken = intake(one(schema), True)({"x": value})
    assert taken == {"x": wanted}
    assert type(taken["x"]) is type(freeze(wanted))
    assert is_deeply_frozen(taken)
    again = intake(one(schema), True)(taken)
    assert again is taken


BAD = [
    (TEXT, 5, "must be a string"),
    (TEXT, ["a"], "must be a string"),
    (NUMBER, "5", "must be an integer"),
    (NUMBER, 5.5, "must be an integer"),
    (NUMBER, True, "must be an integer"),
    (NUMBER, 1 << 63, "must be an integer"),
    (Schema(type="integer", format="int32"), 1 << 31, "must be an integer of 32 bits"),
    (Schema(type="number"), "1", "must be a number"),
    (Schema(type="number"), float("nan"), "must be a number"),
    (Schema(type="boolean"), "true", "must be a boolean"),
    (Schema(type="boolean"), 1, "must be a boolean"),
    (Schema(type="quantity"), "lots", "must be a quantity"),
    (Schema(type="quantity"), float("inf"), "must be a quantity"),
    (Schema(type="int-or-string"), 1.5, "must be an integer or a string"),
    (Schema(type="string", format="date-time"), "yesterday", "must be a date-time in RFC 3339 form"),
    (Schema(type="any"), {"a": float("nan")}, "nan is no JSON number"),
    (Schema(type="map", values=TEXT), ["a"], "must be an object"),
    (Schema(type="map", values=TEXT), {"a": 1}, "must be a string"),
    (Schema(type="map", values=TEXT), {1: "a"}, "keys must be strings"),
    (Schema(type="list", items=TEXT), {"a": 1}, "must be an array"),
    (Schema(type="list", items=TEXT), ["a", None], "must be a string"),
    (Schema(type="list", items=TEXT), "ab", "must be an array"),
    (one(TEXT), "a", "must be an object"),
    (one(TEXT), {"x": 1}, "must be a string"),
]


@pytest.mark.parametrize(("schema", "value", "words"), BAD, ids=lambda item: str(item)[:30])
@pytest.mark.parametrize("custom", [False, True])
def test_bad_values_are_explained(schema, value, words, custom):
    outer = one(schema)
    with pytest.raises(Misfit):
        intake(outer, True, custom)({"x": value})
    found = Finding()
    if custom:  # in words of its own
        explain_custom(outer, {"x": value}, "spec", found, True)
        assert found.causes and "spec.x" in str(found.causes[0])
        return
    explain(outer, {"x": value}, "spec", found, True)
    (cause,) = found.causes
    assert cause.field.startswith("spec.x")
    assert words in cause.message


def test_null_is_absence_in_built_in_kinds():
    schema = one(TEXT, y=NUMBER)
    assert intake(schema, True)({"x": None, "y": 1}) == {"y": 1}
    needed = schema.evolve(required=("x",))
    with pytest.raises(Misfit):
        intake(needed, True)({"x": None})
    assert intake(needed, False)({"x": None}) == {}


def test_nulls_of_custom_kinds_stay_where_they_may():
    schema = Schema(
        type="object",
        preserve_unknown=True,
        fields={
            "a": Schema(type="string", nullable=True),
            "b": TEXT,
            "m": Schema(type="map", values=Schema(type="integer", nullable=True)),
            "l": Schema(type="list", items=Schema(type="integer", nullable=True)),
        },
    )
    value = {"a": None, "b": None, "m": {"k": None}, "l": [None, 1], "other": None}
    taken = intake(schema, True, True)(value)
    assert taken == {"a": None, "m": {"k": None}, "l": [None, 1], "other": None}
    assert intake(schema, True, True)(taken) == taken


def test_empty_lists_and_maps_of_built_in_kinds_are_not_stored():
    """As Go's `omitempty` leaves them out; a pointer to an empty struct stays."""
    take = intake(POD, True)
    spec = {
        "containers": [{"name": "a", "args": [], "env": [], "securityContext": {}}],
        "nodeSelector": {},
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [],
    }
    taken = take(spec)
    assert taken == {
        "containers": [{"name": "a", "securityContext": {}}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    assert take(freeze(spec)) == taken
    assert take(taken) is taken
    assert take({"containers": []}) == {"containers": []}  # required
    custom = one(Schema(type="list", items=TEXT), y=Schema(type="map", values=TEXT))
    assert intake(custom, True, True)({"x": [], "y": {}}) == {"x": [], "y": {}}


def test_undeclared_fields_are_found_and_dropped():
    value = {
        "containers": [{"name": "a", "imagee": "x", "ports": [{"containerPort": 1, "protocl": "TCP"}]}],
        "replica": 1,
    }
    with pytest.raises(Misfit):
        intake(POD, True)(value)
    found = Finding()
    pruned = explain(POD, value, "spec", found, True)
    assert found.unknown == ["spec.containers[0].imagee", "spec.containers[0].ports[0].protocl", "spec.replica"]
    assert found.causes == []
    assert pruned == {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]}
    assert intake(POD, True)(pruned) == pruned


def test_required_fields():
    value = {"containers": [{"image": "x"}], "volumes": [{"name": None}]}
    with pytest.raises(Misfit):
        intake(POD, True)({"containers": [{"image": "x"}]})
    found = Finding()
    explain(POD, value, "spec", found, True)
    assert [(cause.reason, cause.field) for cause in found.causes] == [
        ("FieldValueRequired", "spec.containers[0].name"),
        ("FieldValueRequired", "spec.volumes[0].name"),
    ]
    found = Finding()
    explain(POD, value, "spec", found, False)
    assert found.causes == []


def test_errors_are_bounded():
    value = {"containers": [{"name": number} for number in range(500)], **{f"x{n}": n for n in range(500)}}
    found = Finding()
    explain(POD, value, "spec", found, True)
    assert len(found.causes) == len(found.unknown) == MAX_CAUSES
    found = Finding()
    explain(POD, {"a\ud800" * 5000: 1}, "spec", found, True)
    (path,) = found.unknown
    assert len(path.encode()) < 5000


def test_depth_is_bounded():
    crd = Kinds.builtin().get("apiextensions.k8s.io", "CustomResourceDefinition").schema.fields["spec"]
    deep = {"type": "object"}
    for _ in range(2000):
        deep = {"type": "object", "properties": {"a": deep}}
    value = {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": deep}}]}
    with pytest.raises((Misfit, RecursionError)):
        intake(crd, True)(value)
    found = Finding()
    explain(crd, value, "spec", found, True)
    assert any("nested deeper than 64 levels" in cause.message for cause in found.causes)


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (Schema(type="string", pattern="^a+$"), "b", "should match '^a+$'"),
        (Schema(type="string", min_length=2), "b", "should be at least 2 chars long"),
        (Schema(type="string", max_length=2), "bbb", "Too long: may not be more than 2 bytes"),
        (Schema(type="string", enum=("a", "b")), "c", 'supported values: "a", "b"'),
        (Schema(type="integer", minimum=3), 2, "should be greater than or equal to 3"),
        (Schema(type="integer", minimum=3, exclusive_minimum=True), 3, "should be greater than 3"),
        (Schema(type="integer", maximum=3), 4, "should be less than or equal to 3"),
        (Schema(type="integer", maximum=3, exclusive_maximum=True), 3, "should be less than 3"),
        (Schema(type="integer", multiple_of=2), 3, "should be a multiple of 2"),
        (Schema(type="list", items=NUMBER, min_items=2), [1], "should have at least 2 items"),
        (Schema(type="list", items=NUMBER, max_items=1), [1, 2], "must have at most 1 item"),
        (Schema(type="list", items=NUMBER, list_type="set"), [1, 2, 1], "Duplicate value: 1"),
        (
            Schema(type="list", items=one(NUMBER), list_type="map", keys=("x",)),
            [{"x": 1}, {"x": 1}],
            'Duplicate value: {"x":1}',
        ),
        (Schema(type="map", values=NUMBER, max_fields=1), {"a": 1, "b": 2}, "must have at most 1 item"),
        (Schema(type="map", values=NUMBER, min_fields=1), {}, "should have at least 1 properties"),
        (
            Schema(type="integer", any_of=(Schema(maximum=1), Schema(minimum=5))),
            3,
            "must validate at least one schema (anyOf)",
        ),
        (
            Schema(type="integer", one_of=(Schema(maximum=5), Schema(minimum=3))),
            4,
            "must validate one and only one schema (oneOf)",
        ),
        (Schema(type="integer", all_of=(Schema(maximum=5),)), 6, "must validate all the schemas (allOf)"),
        (Schema(type="integer", not_of=Schema(minimum=3)), 4, "must not validate the schema (not)"),
        (Schema(type="any", enum=(1, 2)), 3, "supported values"),
    ],
    ids=lambda item: str(item)[:40],
)
def test_constraints_of_custom_kinds(schema, value, words):
    outer = one(schema)
    assert intake(outer, True)({"x": value}) is not None  # built-in kinds have their own rules
    with pytest.raises(Misfit):
        intake(outer, True, True)({"x": value})
    found = Finding()
    explain_custom(outer, {"x": value}, "spec", found, True)
    cause = found.causes[-1 if schema.all_of else 0]
    assert isinstance(cause, Cause)
    field = "<nil>" if words.startswith("must") and "validate" in words else "spec.x"
    assert cause.field.partition("[")[0] == field
    assert words in str(cause)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "b", "100m"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "x", "y"]), inner, max_size=3)
    ),
    max_leaves=8,
)
SCHEMAS = st.recursive(
    st.sampled_from([TEXT, NUMBER, Schema(type="boolean"), Schema(type="any"), Schema(type="quantity")]),
    lambda inner: st.one_of(
        inner.map(lambda items: Schema(type="list", items=items)),
        inner.map(lambda values: Schema(type="map", values=values)),
        st.tuples(
            st.dictionaries(st.sampled_from(["a", "b", "x"]), inner, min_size=1), st.booleans(), st.booleans()
        ).map(
            lambda made: Schema(
                type="object", fields=made[0], preserve_unknown=made[1], required=tuple(made[0])[:1] if made[2] else ()
            )
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(SCHEMAS, JSON, st.booleans(), st.booleans())
def test_what_is_refused_is_explained_and_what_is_taken_stays(schema, value, required, custom):
    take = intake(schema, required, custom)
    try:
        taken = take(value)
    except Misfit:
        found = Finding()
        explaining = explain_custom if custom else explain
        pruned = explaining(schema, value, "spec", found, required)
        assert found.causes or found.unknown
        if not found.causes:
            assert is_deeply_frozen(take(pruned))
        return
    assert is_deeply_frozen(taken)
    assert take(taken) == taken
    assert take(freeze(value)) == taken


STATUSES = [kind for kind in Kinds.builtin().all() if "status" in kind.schema.fields]


@given(st.sampled_from(STATUSES).flatmap(lambda kind: st.tuples(st.just(kind), value(kind.schema.fields["status"]))))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_zeros_may_be_filled_in_on_the_way(drawn):
    kind, status = drawn
    schema = kind.schema.fields["status"]
    try:
        taken = intake(schema, False)(status)
    except Misfit:
        return
    assert intake(schema, False, zeros=True)(status) == zeros.fill(schema, taken)
    assert intake(schema, False, zeros=True)(taken) == zeros.fill(schema, taken)
