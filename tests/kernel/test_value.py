"""Frozen values: they read as dicts and lists, refuse every change, and hold nothing but JSON."""

import copy
import pickle

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.kernel.value import (
    ABSENT,
    EMPTY,
    MAX_DEPTH,
    Frozen,
    FrozenError,
    FrozenList,
    ValueRefused,
    freeze,
    thaw,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))


def is_deeply_frozen(value):
    if isinstance(value, dict):
        return type(value) is Frozen and all(is_deeply_frozen(item) for item in value.values())
    if isinstance(value, list):
        return type(value) is FrozenList and all(is_deeply_frozen(item) for item in value)
    return True


def is_deeply_plain(value):
    if isinstance(value, dict):
        return type(value) is dict and all(is_deeply_plain(item) for item in value.values())
    if isinstance(value, list):
        return type(value) is list and all(is_deeply_plain(item) for item in value)
    return True


@settings(max_examples=200)
@given(JSON)
def test_freeze_and_thaw_keep_the_value(value):
    frozen = freeze(value)
    assert frozen == value
    assert is_deeply_frozen(frozen)
    assert freeze(frozen) is frozen
    thawed = thaw(frozen)
    assert thawed == value
    assert is_deeply_plain(thawed)
    assert orjson.dumps(frozen) == orjson.dumps(value)


@settings(max_examples=50)
@given(JSON)
def test_copies(value):
    frozen = freeze(value)
    again = pickle.loads(pickle.dumps(frozen))
    assert again == frozen
    assert is_deeply_frozen(again)
    assert is_deeply_plain(copy.deepcopy(frozen))


OBJECT = freeze({"a": 1, "b": {"c": [1, 2]}})
CHANGES = {
    "setitem": lambda: OBJECT.__setitem__("a", 2),
    "delitem": lambda: OBJECT.__delitem__("a"),
    "setattr": lambda: setattr(OBJECT, "a", 2),
    "update": lambda: OBJECT.update(a=2),
    "pop": lambda: OBJECT.pop("a"),
    "popitem": lambda: OBJECT.popitem(),
    "clear": lambda: OBJECT.clear(),
    "setdefault": lambda: OBJECT.setdefault("z", 1),
    "ior": lambda: OBJECT.__ior__({"z": 1}),
    "delattr": lambda: delattr(OBJECT, "a"),
    "append": lambda: OBJECT.b.c.append(3),
    "extend": lambda: OBJECT.b.c.extend([3]),
    "insert": lambda: OBJECT.b.c.insert(0, 3),
    "list pop": lambda: OBJECT.b.c.pop(),
    "remove": lambda: OBJECT.b.c.remove(1),
    "sort": lambda: OBJECT.b.c.sort(),
    "reverse": lambda: OBJECT.b.c.reverse(),
    "list clear": lambda: OBJECT.b.c.clear(),
    "list setitem": lambda: OBJECT.b.c.__setitem__(0, 3),
    "list delitem": lambda: OBJECT.b.c.__delitem__(0),
    "iadd": lambda: OBJECT.b.c.__iadd__([3]),
    "imul": lambda: OBJECT.b.c.__imul__(2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_refused(change):
    before = orjson.dumps(OBJECT)
    with pytest.raises((FrozenError, AttributeError)):
        change()
    assert orjson.dumps(OBJECT) == before


def test_the_remedy_is_named():
    with pytest.raises(FrozenError, match=r"steersman\.thaw"):
        OBJECT["a"] = 2


def test_reads_as_attributes():
    assert OBJECT.b.c == [1, 2]
    assert OBJECT.get("a") == 1
    assert OBJECT.copy() == {"a": 1, "b": {"c": [1, 2]}}
    assert type(OBJECT.copy()) is dict
    with pytest.raises(AttributeError):
        _ = OBJECT.__wrapped__
    with pytest.raises(TypeError):
        hash(OBJECT)


def test_absent_is_falsy_and_all_its_fields_are_absent():
    status = EMPTY.status
    assert status is ABSENT
    assert not status
    assert status == None  # noqa: E711 - that is the point
    assert status.readyReplicas == None  # noqa: E711
    assert status.readyReplicas != 2
    assert status["conditions"] is ABSENT
    assert list(status) == []
    assert len(status) == 0
    assert "x" not in status
    assert status.get("x", 5) == 5
    assert repr(status) == "ABSENT"
    with pytest.raises(ValueRefused, match="Absent cannot be stored"):
        freeze({"a": ABSENT})
    with pytest.raises(FrozenError, match=r"not there.*steersman\.thaw"):
        status.phase = "Ready"
    with pytest.raises(FrozenError, match=r"steersman\.thaw"):
        status["phase"] = "Ready"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": {"b": [1, object()]}}, r"a\.b\[1\]: a object cannot be stored"),
        ({"a": {1: 2}}, "a: key 1 is not a string"),
        ({"a": {None: 2}}, "a: key None is not a string"),
        ({"a": b"x"}, "a: a bytes cannot be stored"),
        ({"a": {1, 2}}, "a: a set cannot be stored"),
        ({"a": float("nan")}, "a: nan is no JSON number"),
        ({"a": [float("-inf")]}, r"a\[0\]: -inf is no JSON number"),
        ({"a": 1 << 100_000}, "a: .* does not fit in 64 bits"),
        ({"a": 1 << 63}, "a: .* does not fit in 64 bits"),
        ({"a": -(1 << 63) - 1}, "a: .* does not fit in 64 bits"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value, words):
    with pytest.raises(ValueRefused, match=words):
        freeze(value)


def test_depth_is_bounded():
    value = {}
    for _ in range(MAX_DEPTH):
        value = {"a": value}
    assert freeze(value) == value
    with pytest.raises(ValueRefused, match="nested deeper"):
        freeze({"a": value})
    looped = []
    looped.append(looped)
    with pytest.raises(ValueRefused, match="nested deeper"):
        freeze(looped)


def test_subclasses_of_json_types_become_plain():
    class Text(str):
        __slots__ = ()

    class Number(int):
        pass

    frozen = freeze({"a": Text("x"), "b": (Number(1), Text("y"))})
    assert frozen == {"a": "x", "b": [1, "y"]}
    assert type(frozen["a"]) is str
    assert type(frozen["b"][0]) is int


def test_the_mark_is_no_part_of_the_value():
    value = freeze({"a": 1})
    value.mark = "cached"
    assert value == {"a": 1}
    assert orjson.dumps(value) == b'{"a":1}'
    assert getattr(freeze({}), "mark", None) is None
