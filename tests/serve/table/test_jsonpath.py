"""JSONPath: what a path reaches, what it cannot read, and that nothing takes for ever."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.crd.custom import Column
from steersman.serve.table.custom_columns import _cell
from steersman.serve.table.jsonpath import PathError, compile_path, find

OBJ = {
    "spec": {"a": 1, "b.c": "dotted", "ports": [{"n": 80, "p": "tcp"}, {"n": 53, "p": "udp"}], "t": True},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]},
    "metadata": {"creationTimestamp": "2026-09-21T14:13:20Z", "labels": {"x/y": "z"}},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.a", [1]),
        ("{.spec.a}", [1]),
        ("$.spec.a", [1]),
        (".spec['a']", [1]),
        (".spec['b.c']", ["dotted"]),
        (r".spec.b\.c", ["dotted"]),
        (r".metadata.labels.x/y", ["z"]),
        (".spec.ports[0].n", [80]),
        (".spec.ports[-1].n", [53]),
        (".spec.ports[*].n", [80, 53]),
        (".spec.ports[0:1].n", [80]),
        (".spec.ports[0,1].p", ["tcp", "udp"]),
        (".spec.ports[9].n", []),
        (".spec.none.deeper", []),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        ("status.conditions[?(@.type == 'Old')].status", ["False"]),
        (".spec.ports[?(@.n > 60)].p", ["tcp"]),
        (".spec.ports[?(@.none)].p", []),
        ("..p", ["tcp", "udp"]),
        ("..ports[1].n", [53]),
    ],
)
def test_paths(path, found):
    assert find(path, OBJ) == found


@pytest.mark.parametrize("path", [".spec[", ".spec['a]", ".a[?(@.x == y)]", ".a b", ".a[1:2:0]", "." + "a" * 5000])
def test_paths_that_cannot_be_read(path):
    with pytest.raises(PathError):
        compile_path(path)


def test_types_that_cannot_be_compared():
    with pytest.raises(PathError, match="incompatible types"):
        find('.spec.ports[?(@.n == "80")]', OBJ)


NOW = 1_790_000_060_000_000


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".spec.a", "1"),
        ("string", ".spec.t", "true"),
        ("string", ".status.conditions[0]", '{"status":"True","type":"Ready"}'),
        ("string", ".spec.none", None),
        ("integer", ".spec.a", 1),
        ("integer", ".spec.t", None),
        ("integer", ".spec.ports", None),
        ("number", ".spec.a", 1.0),
        ("boolean", ".spec.t", True),
        ("boolean", ".spec.a", None),
        ("date", ".metadata.creationTimestamp", "10m"),
        ("date", ".spec.t", None),
        ("date", ".status.conditions[0].type", "<invalid>"),
        ("string", ".spec[", None),
    ],
)
def test_cells(kind, path, cell):
    now = NOW + 540 * 1_000_000
    assert _cell(Column("x", kind, "", "", 0, path), OBJ, now) == cell


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=".[]'\"*?(@)=<>!:,ab01-\\{}$ ", max_size=30))
def test_hostile_paths_are_refused_not_crashed_on(path):
    with contextlib.suppress(PathError):
        find(path, OBJ)
