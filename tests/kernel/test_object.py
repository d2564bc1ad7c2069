"""Objects and sections: what is shared, what is rendered, which digest changes when."""

import orjson
import pytest

from steersman.kernel.fieldset import from_json
from steersman.kernel.object import PARSED, Key, Manager, ParsedCache, Section
from steersman.kernel.value import Frozen, freeze
from tests.kernel.samples import POD, thing


def test_key_order_and_text():
    assert str(Key("apps", "Deployment", "shop", "web")) == "Deployment.apps shop/web"
    assert str(Key("", "Node", "", "n1")) == "Node n1"
    assert Key("", "Pod", "a", "b").gk == POD
    assert Key("", "Pod", "a", "z") < Key("", "Pod", "b", "a") < Key("apps", "A", "", "")


def test_section_keeps_value_or_bytes():
    section = Section(freeze({"b": 1, "a": {"z": None, "y": [1, 2]}}))
    assert section.raw == b'{"a":{"y":[1,2],"z":null},"b":1}'
    assert section.digest == Section(freeze({"a": {"y": [1, 2], "z": None}, "b": 1})).digest
    assert section.digest != Section(freeze({"a": {"y": [2, 1], "z": None}, "b": 1})).digest
    before = section.value
    section.drop_value()
    assert section.peek() == before
    assert section._value is None
    assert section.value == before
    assert type(section.value) is Frozen
    assert section.value is section.value


def test_digest_tells_types_apart():
    values = [{"a": 1}, {"a": True}, {"a": "1"}, {"a": 1.0}, {"a": None}, {"a": []}, {"a": {}}, {}]
    assert len({Section(freeze(value)).digest for value in values}) == len(values)


def test_a_deep_section_can_be_read_again():
    """A built-in kind with a recursive schema may nest deeper than free-form values may."""
    value = {}
    for _ in range(120):
        value = {"a": value}
    section = Section(None, orjson.dumps(value))
    assert section.value == value


def test_parsed_cache_lets_go_of_the_oldest():
    cache = ParsedCache(limit=600)
    count = 3 * ParsedCache.ADMIT_EVERY
    sections = [Section(freeze({"n": f"{number:030}"})) for number in range(count)]
    for section in sections:
        cache.admit(section)
        cache.admit(sections[0])  # used again and again: it stays
        assert cache.held <= cache.limit
    held = [number for number, section in enumerate(sections) if section._value is not None]
    assert held[0] == 0
    assert held[-1] >= ParsedCache.ADMIT_EVERY, "newcomers get in, if only now and then"
    assert len(held) < 5
    assert [section.value["n"] for section in sections] == [f"{number:030}" for number in range(count)]
    PARSED.clear()
    assert PARSED.held == 0
    assert all(section._value is None for number, section in enumerate(sections) if number not in held)
    cache.clear()
    assert cache.held == 0
    assert sections[0].value == {"n": "0" * 30}


def test_value_and_json():
    entry = Manager("kubectl", "Apply", "", "v1", "2026-01-01T00:00:00Z", from_json({"f:spec": {"f:a": {}}}))
    obj = thing(POD, "shop", "web", 7, spec={"a": 1}, status={"phase": "Pending"}, node="n1")
    obj = obj.replace(managers=(entry,), rest=Section(freeze({"data": {"k": "v"}})))
    assert obj.value == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web", "resourceVersion": "7"},
        "spec": {"a": 1, "nodeName": "n1"},
        "data": {"k": "v"},
        "status": {"phase": "Pending"},
    }
    assert obj.uid == "uid-web"
    rendered = orjson.loads(obj.to_json())
    assert rendered["metadata"].pop("managedFields") == [
        {
            "manager": "kubectl",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:a": {}}},
        }
    ]
    assert rendered == obj.value
    assert entry._replace(subresource="status").to_json()["subresource"] == "status"


def test_a_version_without_revision_has_no_resource_version():
    """What a dry run answers was never stored."""
    obj = thing(POD, "shop", "web")
    assert "resourceVersion" not in obj.value["metadata"]
    assert "resourceVersion" not in orjson.loads(obj.to_json())["metadata"]


def test_managed_fields_are_rendered_in_kubernetes_order():
    fields = from_json({"f:spec": {"f:a": {}}})
    entries = [
        Manager("b", "Update", "", "v1", "2026-01-01T00:00:02Z", fields),
        Manager("c", "Update", "", "v1", "2026-01-01T00:00:01Z", fields),
        Manager("z", "Apply", "", "v1", "2026-01-01T00:00:09Z", fields),
        Manager("a", "Update", "status", "v1", "2026-01-01T00:00:02Z", fields),
    ]
    obj = thing(POD, "shop", "web", 7).replace(managers=tuple(entries))
    rendered = orjson.loads(obj.to_json())["metadata"]["managedFields"]
    assert [entry["manager"] for entry in rendered] == ["z", "c", "a", "b"]


def test_replace_shares_what_does_not_change():
    obj = thing(POD, "shop", "web", 7, spec={"a": 1}, status={"phase": "Pending"})
    other = obj.replace(status=None, rv=8)
    assert other.spec is obj.spec
    assert other.meta is obj.meta
    assert other.status is None
    assert (other.rv, obj.rv) == (8, 7)
    assert obj.at(9).same_content(obj)
    assert not other.same_content(obj)


@pytest.mark.parametrize(
    "change",
    [
        {"node": "n2"},
        {"status": Section(freeze({"phase": "Running"}))},
        {"status": None},
        {"spec": Section(freeze({"a": 2}))},
        {"rest": Section(freeze({"data": {}}))},
        {"rv": 8},
        {"managers": (Manager("m", "Update", "", "v1", "t", from_json({"f:a": {}})),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_term_covers_every_part(change):
    obj = thing(POD, "shop", "web", 7, spec={"a": 1}, status={"phase": "Pending"}, node="n1")
    twin = thing(POD, "shop", "web", 7, spec={"a": 1}, status={"phase": "Pending"}, node="n1")
    assert obj.term == twin.term
    other = obj.replace(**change)
    assert other.term != obj.term
    visible = not {"rv", "managers"} & change.keys()
    assert (other.content != obj.content) == visible
