"""Field sets of values and changes, against their definition: flat sets of paths, one path at a time."""

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api import fields
from steersman.api.kinds import Kinds
from steersman.api.schema import Schema
from steersman.kernel.fieldset import NOTHING, covers
from steersman.kernel.value import freeze

TEXT = Schema(type="string")
ITEM = Schema(
    type="object",
    fields={"name": TEXT, "n": Schema(type="integer"), "tags": Schema(type="list", items=TEXT, list_type="set")},
)
PORT = Schema(type="object", fields={"port": Schema(type="integer"), "proto": TEXT, "name": TEXT})
TREE = Schema(
    type="object",
    fields={
        "text": TEXT,
        "map": Schema(type="map", values=TEXT),
        "items": Schema(type="list", list_type="map", keys=("name",), items=ITEM),
        "ports": Schema(
            type="list", list_type="map", keys=("port", "proto"), key_defaults={"proto": "TCP"}, items=PORT
        ),
        "set": Schema(type="list", list_type="set", items=TEXT),
        "plain": Schema(type="list", items=ITEM),
        "block": Schema(type="object", fields={"a": TEXT, "b": TEXT}, atomic=True),
        "inner": Schema(type="object", fields={"text": TEXT, "map": Schema(type="map", values=ITEM)}),
        "free": Schema(type="any", preserve_unknown=True),
    },
)
WORD = st.sampled_from(["a", "b", "c"])
SCALAR = WORD | st.integers(0, 2) | st.booleans()


def unique(key):
    def keep(items):
        return list({key(item): item for item in items}.values())

    return keep


ITEMS = st.lists(
    st.fixed_dictionaries({"name": WORD}, optional={"n": st.integers(0, 2), "tags": st.lists(WORD, unique=True)}),
    max_size=3,
).map(unique(lambda item: item["name"]))
PORTS = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(1, 2)}, optional={"proto": st.sampled_from(["TCP", "UDP"]), "name": WORD}
    ),
    max_size=3,
).map(unique(lambda item: (item["port"], item.get("proto", "TCP"))))
FREE = st.recursive(
    SCALAR, lambda inner: st.dictionaries(WORD, inner, max_size=2) | st.lists(inner, max_size=2), max_leaves=4
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "text": WORD,
        "map": st.dictionaries(WORD, WORD, max_size=2),
        "items": ITEMS,
        "ports": PORTS,
        "set": st.lists(WORD, unique=True),
        "plain": ITEMS,
        "block": st.dictionaries(st.sampled_from(["a", "b"]), WORD),
        "inner": st.fixed_dictionaries(
            {},
            optional={"text": WORD, "map": st.dictionaries(WORD, ITEMS.map(lambda items: items[0] if items else {}))},
        ),
        "free": st.dictionaries(WORD, FREE, max_size=2),
    },
)


def walk(schema, value, path=()):
    """(path, value, whether it is a leaf, whether it must be named by an applier) of every part of a value."""
    if isinstance(value, dict) and not (schema is not None and schema.atomic):
        for name, item in value.items():
            child = fields.child_schema(schema, name)
            key = schema is None or name not in schema.fields
            yield from part(child, item, (*path, f"f:{name}"), key)
    elif isinstance(value, list) and schema is not None and schema.list_type in ("map", "set"):
        for item in value:
            if schema.list_type == "set":
                yield (*path, f'v:"{item}"'), item, True, True
                continue
            key = {name: item.get(name, schema.key_defaults.get(name)) for name in schema.keys}
            text = "k:" + str(key).replace("'", '"').replace(" ", "")
            yield from part(schema.items, item, (*path, text), True)


def part(schema, value, path, named):
    below = list(walk(schema, value, path))
    yield path, value, not below, named
    yield from below


def paths(fieldset):
    return set(fieldset.paths())


@settings(max_examples=150)
@given(VALUES)
def test_added_is_every_part(value):
    wanted = {path for path, *_ in walk(TREE, value)} | {()}
    assert paths(fields.added(TREE, freeze(value))) == wanted
    assert paths(fields.added(TREE, value)) == wanted


@settings(max_examples=150)
@given(VALUES)
def test_present_is_leaves_and_what_is_named(value):
    associative = {"map", "set"}

    def hidden(path, item):
        """An empty associative list says nothing."""
        last = path[-1][2:]
        schema = ITEM.fields.get(last) or TREE.fields.get(last)
        return item == [] and schema is not None and schema.list_type in associative and path[0] != "f:free"

    wanted = {path for path, item, leaf, named in walk(TREE, value) if named or (leaf and not hidden(path, item))}
    if not value:
        wanted = {()}
    found = fields.present(TREE, freeze(value))
    assert paths(found) == wanted
    assert covers(fields.added(TREE, value), found)


@settings(max_examples=300)
@given(VALUES, VALUES)
def test_compare_is_what_differs_path_by_path(old, new):
    if freeze(old) == freeze(new):
        return
    before = {path: (item, leaf) for path, item, leaf, _ in walk(TREE, old)}
    after = {path: (item, leaf) for path, item, leaf, _ in walk(TREE, new)}
    changed, removed = fields.compare(TREE, freeze(old), freeze(new))
    added = {path for path in after if path not in before}
    gone = {path for path in before if path not in after}
    modified = {
        path
        for path in after.keys() & before.keys()
        if (after[path][1] and before[path][1]) and after[path][0] != before[path][0]
    }
    assert paths(removed) == gone
    for path in paths(changed) - added - modified:  # a value of another kind is modified as a whole, too
        assert type(after[path][0]) is not type(before[path][0])


@given(VALUES)
def test_nothing_changes_from_a_value_to_itself(value):
    twin = freeze(dict(value))
    changed, removed = fields.compare(TREE, freeze(value), twin)
    assert (changed, removed) == (NOTHING, NOTHING) or not value


@pytest.mark.parametrize(
    ("value", "element"),
    [
        ({"name": "web"}, 'k:{"name":"web"}'),
        ({"name": 'a"b'}, 'k:{"name":"a\\"b"}'),
        ({"name": 5}, 'k:{"name":5}'),
        ({"n": 1}, None),
        ({"name": []}, None),
        ("text", None),
        (None, None),
    ],
)
def test_elements_of_items(value, element):
    assert fields.item_element(TREE.fields["items"], value) == element


def test_lists_with_unusable_keys_are_one_field():
    nameless = freeze({"items": [{"name": {}}, {"name": "a"}]})
    assert paths(fields.added(TREE, nameless)) == {(), ("f:items",)}
    assert paths(fields.present(TREE, nameless)) == {("f:items",)}


def test_items_that_are_there_more_than_once_belong_to_who_has_them_all():
    twice = freeze({"items": [{"name": "a"}, {"name": "b", "value": 1}, {"name": "a", "value": 1}]})
    one, other = ("f:items", 'k:{"name":"a"}'), ("f:items", 'k:{"name":"b"}')
    deep = {(*other, "f:name"), (*other, "f:value")}
    assert paths(fields.present(TREE, twice)) == {one, other, *deep}
    assert paths(fields.added(TREE, twice)) == {(), ("f:items",), one, other, *deep}
    once = freeze({"items": [{"name": "a"}, {"name": "b", "value": 1}]})
    assert list(map(paths, fields.compare(TREE, twice, once))) == [{one, (*one, "f:name")}, {one}]
    assert list(map(paths, fields.compare(TREE, once, twice))) == [{one}, {one, (*one, "f:name")}]
    other_twice = freeze({"items": [{"name": "a"}, {"name": "b", "value": 1}, {"name": "a", "value": 2}]})
    assert list(map(paths, fields.compare(TREE, twice, other_twice))) == [{one}, set()]


def test_long_lists_cost_their_length():
    """A list of 50,000 finalizers fits into one request, which must not hold up all others for half a minute."""

    def seconds(count):
        value = [f"example.com/f{number}" for number in range(count)]
        start = process_time()
        assert len(fields.elements(TREE.fields["set"], value)) == count
        return process_time() - start

    assert min(seconds(32_000) for _ in range(2)) < 40 * max(seconds(2_000) for _ in range(3))  # squares: 256


def test_always_there():
    pod = Kinds.builtin().get("", "Pod").schema
    assert fields.is_always(pod, "spec")
    assert fields.is_always(pod, "status")
    assert not fields.is_always(pod, "kind")
    assert not fields.is_always(None, "spec")
    assert not fields.is_always(TREE, "spec")
    spec = pod.fields["spec"]
    assert fields.is_always(spec, "containers")
    assert not fields.is_always(spec, "initContainers")
    assert fields.appearing(pod, "status", freeze({})) is NOTHING
    assert paths(fields.appearing(pod, "spec", freeze({"containers": [], "volumes": []}))) == {
        ("f:containers",),
        ("f:volumes",),
    }


def test_every_always_is_a_real_field():
    known = {}
    pending = [kind.schema for kind in Kinds.builtin().all()]
    while pending:
        schema = pending.pop()
        if schema.name and schema.name in known:
            continue
        if schema.name:
            known[schema.name] = schema
        pending += [*schema.fields.values(), *[s for s in (schema.items, schema.values) if s is not None]]
    short = {}
    for name, schema in known.items():
        short.setdefault(name.rpartition(".")[2], []).append(schema)
    for field, holders in fields.ALWAYS.items():
        for holder in holders:
            assert any(field in schema.fields for schema in short[holder]), (holder, field)


def test_caches_are_bounded(monkeypatch):
    monkeypatch.setattr(fields, "CACHED_ELEMENTS", 10)
    for number in range(100):
        fields.added(TREE, {"map": {f"k{number}": "v"}, "items": [{"name": f"n{number}"}]})
        assert len(fields._FIELD) <= 10
        assert all(len(known) <= 10 or known is not fields._by_value["name"] for known in fields._by_value.values())
