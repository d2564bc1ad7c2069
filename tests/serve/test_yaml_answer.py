"""Answers in YAML; the texts are those of sigs.k8s.io/yaml 1.6."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from steersman.serve import yaml_answer
from steersman.serve.accept import prefers_yaml
from steersman.serve.yaml_body import read_yaml
from tests.serve.harness import in_loop
from tests.serve.plane import Plane
from tests.serve.test_app import is_status

MAPS = "/api/v1/namespaces/default/configmaps"
GO = {
    "a": "a", "true": '"true"', "no": '"no"', "y": '"y"', "1": '"1"', "0x1f": '"0x1f"', "1e3": '"1e3"',
    "2026-01-01": '"2026-01-01"', "12:30": '"12:30"', "": '""', " ": "' '", "~": '"~"',
    "- a": "'- a'", "a: b": "'a: b'",
    "a #b": "'a #b'", "*x": "'*x'", "{": "'{'", '"q"': "'"+'"q"'+"'", "it's": "it's", "a\tb": '"a\\tb"', "é": "é",
    "trailing ": "'trailing '", ".inf": '".inf"', "<<": "<<", "=": "=", "a:b": "a:b", "100m": "100m", "0o7": '"0o7"',
    "\u0001": '"\\x01"', "l1\nl2": "|-\n  l1\n  l2", "end\n": "|\n  end",
}  # fmt: skip


@pytest.mark.parametrize("text", GO)
def test_text_is_written_as_go_writes_it(text):
    assert yaml_answer.written(json.dumps({"k": text}).encode()).decode() == f"k: {GO[text]}\n"


def test_keys_stand_in_the_order_of_go():
    keys = ["b", "A", "a10", "a2", ".", "f:a", "a1", "_x"]
    text = yaml_answer.written(json.dumps(dict.fromkeys(keys, 1)).encode()).decode()
    assert [line.partition(": ")[0] for line in text.splitlines()] == [".", "_x", "A", "a1", "a2", "a10", "b", "f:a"]
    assert (
        yaml_answer.written(b'{"a":[{"x":1.5,"y":null}],"e":{},"l":[]}') == b'a:\n- x: 1.5\n  "y": null\ne: {}\nl: []\n'
    )


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co", "Zl", "Zp"]) | st.just("\n"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, max_size=3))
def test_what_is_written_is_read_again(value):
    assert read_yaml(yaml_answer.written(json.dumps(value).encode()))[0] == value


@in_loop
async def test_objects_lists_and_refusals_come_in_yaml():
    plane = Plane()
    await plane.post(MAPS, {"metadata": {"name": "a"}, "data": {"on": "1"}})
    for path, code in ((f"{MAPS}/a", 200), (MAPS, 200), ("/api/v1", 200), (f"{MAPS}/none", 404)):
        answer = await plane.get(path, code, accept="application/yaml")
        assert answer.header("content-type") == "application/yaml"
        plain = (await plane.get(path, code)).json
        assert yaml.safe_load(answer.body) == plain
    made = await plane.post(MAPS, {"metadata": {"name": "b"}}, accept="application/yaml, application/json;q=0.5")
    assert made.body.startswith(b"apiVersion: v1\nkind: ConfigMap\n")
    refused = await plane.get(f"{MAPS}?watch=1", 406, accept="application/yaml")
    assert yaml.safe_load(refused.body)["message"].endswith(": application/json;stream=watch")


@in_loop
async def test_what_is_too_large_for_yaml_is_refused(monkeypatch):
    monkeypatch.setattr(yaml_answer, "MAX_BYTES", 1000)
    plane = Plane()
    await plane.post(MAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 2000}})
    answer = await plane.get(MAPS, 413, accept="application/yaml")
    is_status(answer, 413, "RequestEntityTooLarge")
    assert "set limit" in answer.json["message"]


def test_who_prefers_json_gets_json():
    assert not prefers_yaml("") and not prefers_yaml("application/json, application/yaml")
    assert not prefers_yaml("application/yaml;q=0.1, */*") and prefers_yaml("application/yaml, */*")
    table = "application/yaml;as=Table;g=meta.k8s.io;v=v1"
    assert prefers_yaml(f"{table}, application/json") and not prefers_yaml("application/yaml;as=X, application/json")
