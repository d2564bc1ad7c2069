"""Field sets against plain sets of paths: the algebra, FieldsV1, digests, and that sharing changes no result."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.kernel import fieldset
from steersman.kernel.fieldset import (
    LEAF,
    NOTHING,
    FieldSet,
    covers,
    difference,
    from_json,
    intersection,
    node,
    union,
)

ELEMENTS = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"name":"x"}', 'v:"1"'])
PATHS = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple), max_size=8)


def build(paths):
    """The set of exactly these paths."""
    heads = {}
    for head, *rest in paths:
        heads.setdefault(head, set()).add(tuple(rest))
    return node({head: _below(rests) for head, rests in heads.items()})


def _below(rests):
    below = build([rest for rest in rests if rest])
    return union(below, LEAF) if () in rests else below


def paths_of(some):
    listed = some.paths()
    assert len(set(listed)) == len(listed)
    return set(listed)


def assert_tidy(some):
    """No empty subtree, names sorted: equal sets then have equal nodes."""
    assert list(some.names) == sorted(some.names)
    for kid in some.kids:
        assert kid.member or kid.names
        assert_tidy(kid)


SETS = PATHS.map(build)


def strangers(some):
    """The same set, no node of which is in the table."""
    if some is NOTHING:
        return some
    return FieldSet((*some.names,), tuple(strangers(kid) for kid in some.kids), some.member)


@given(PATHS)
def test_paths(paths):
    some = build(paths)
    assert paths_of(some) == paths
    assert bool(some) == bool(paths)
    assert_tidy(some)


@settings(max_examples=300)
@given(PATHS, PATHS)
def test_algebra(a, b):
    x, y = build(a), build(b)
    for one, two in ((x, y), (strangers(x), y), (x, strangers(y)), (strangers(x), strangers(y))):
        for result, wanted in (
            (union(one, two), a | b),
            (difference(one, two), a - b),
            (intersection(one, two), a & b),
        ):
            assert paths_of(result) == wanted
            assert_tidy(result)
            assert result == build(wanted)
        assert covers(one, two) == (b <= a)
    assert (x | y, x - y, x & y) == (union(x, y), difference(x, y), intersection(x, y))


@given(SETS, SETS, SETS)
def test_laws(a, b, c):
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    assert a & b == b & a
    assert (a - b) | (a & b) == a
    assert (a - b) - c == a - (b | c)
    assert a | a is a
    assert a - a is NOTHING
    assert a & a is a
    assert a | NOTHING is a
    assert covers(a | b, a)
    assert covers(a, a - b)


@given(SETS)
def test_fields_v1_round_trip(some):
    if some:
        assert from_json(some.to_json()) == some
    else:
        assert some.to_json() == {}


def test_fields_v1_text():
    some = build({("f:spec", "f:replicas"), ("f:spec", "f:ports", 'k:{"port":80}'), ("f:spec",)})
    assert some.to_json() == {"f:spec": {".": {}, "f:ports": {'k:{"port":80}': {}}, "f:replicas": {}}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "FieldsV1 must be an object"),
        ({"f:a": 3}, "FieldsV1 must be an object"),
        ({"spec": {}}, "'spec' must start with f:"),
        ({"f:a": {3: {}}}, "3 must start with f:"),
    ],
)
def test_wrong_fields_v1(value, words):
    with pytest.raises(ValueError, match=words):
        from_json(value)


@given(PATHS, PATHS)
def test_digest_tells_sets_apart(a, b):
    x, y = build(a), build(b)
    assert (x.digest() == y.digest()) == (a == b)
    assert strangers(x).digest() == x.digest()


@given(PATHS, PATHS)
def test_results_do_not_depend_on_what_was_shared_before(a, b):
    x, y = build(a), build(b)
    before = (x | y, x - y, x & y, covers(x, y), x.digest())
    for table in tables():
        table.clear()
    z, w = build(a), build(b)
    assert (z | w, z - w, z & w, covers(z, w), z.digest()) == before
    assert (x | w, z - y, x & w, covers(z, y), x.digest()) == before


def tables():
    """Whatever the module remembers."""
    found = [value for name, value in vars(fieldset).items() if type(value) is dict and not name.startswith("__")]
    assert found
    return found


def test_tables_are_bounded(monkeypatch):
    for table in tables():
        table.clear()
    for name in [name for name in vars(fieldset) if name.endswith("_LIMIT")]:
        monkeypatch.setattr(fieldset, name, 50)
    for number in range(500):
        some = node({f"f:{number}": LEAF, "f:z": LEAF})
        assert some.child(f"f:{number}") is LEAF
        assert some.child("f:y") is NOTHING
        assert union(some, node({f"f:y{number}": LEAF})).child("f:z") is LEAF
        assert max(map(len, tables())) <= 50


@given(SETS)
def test_equal_subtrees_are_one_object(some):
    again = build(paths_of(some))
    assert again is some
