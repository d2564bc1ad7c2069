"""Hashes of specs: the byte stream of Rust's `Hash`, and the hashes that real traces carry."""

import struct

import pytest
from hypothesis import given, settings

from steersman.trace import sktrace
from steersman.trace.gvk import GVK
from steersman.trace.recording import slot
from steersman.trace.siphash import siphash13
from steersman.trace.spechash import pod_hash, spec_hash, stable_pod_spec
from tests.trace.strategies import json_values


@pytest.mark.parametrize(
    ("value", "stream"),
    [
        (None, bytes(8)),
        (True, b"\x01"),
        (False, b"\x00"),
        (7, struct.pack("<Q", 7)),
        (2**64 - 1, b"\xff" * 8),
        (-7, struct.pack("<q", -7)),
        (1.5, struct.pack("<d", 1.5)),
        (-0.0, bytes(8)),
        ("é", "é".encode() + b"\xff"),
        ([True, ["a"], []], b"\x01a\xff"),
        ({"b": 1, "a": {}, "é": None}, b"a\xffb\xff" + struct.pack("<Q", 1) + "é".encode() + b"\xff" + bytes(8)),
    ],
)
def test_what_is_hashed(value, stream):
    assert spec_hash(value) == siphash13(stream)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, b"bytes", {"a": {1, 2}}])
def test_only_json_is_hashed(value):
    with pytest.raises(ValueError):
        spec_hash(value)


@settings(max_examples=60)
@given(json_values)
def test_key_order_does_not_matter(value):
    def reversed_keys(v):
        if isinstance(v, dict):
            return {key: reversed_keys(v[key]) for key in reversed(v)}
        return [reversed_keys(item) for item in v] if isinstance(v, list) else v

    assert spec_hash(reversed_keys(value)) == spec_hash(value)


def test_stable_pod_spec():
    token = {"name": "kube-api-access-x1", "mountPath": "/t"}
    spec = {
        "nodeName": "n1",
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "priority": 0,
        "hostname": None,
        "volumes": [{"name": "kube-api-access-x1"}, {"name": "data"}],
        "initContainers": [{"name": "i", "ports": [{"containerPort": 1}]}],
        "containers": [{"name": "c", "ports": [{"containerPort": 2}], "volumeMounts": [token]}],
    }
    before = repr(spec)
    assert stable_pod_spec(spec) == {
        "priority": 0,
        "volumes": [{"name": "data"}],
        "initContainers": [{"name": "i", "ports": [{"containerPort": 1}], "volumeMounts": []}],
        "containers": [{"name": "c", "volumeMounts": []}],
    }
    assert repr(spec) == before


def last_specs(trace):
    """(kind, ns/name) to the spec applied last."""
    return {(str(GVK.of(obj)), slot(obj)): obj["spec"] for event in trace.events for obj in event.applied}


@pytest.mark.parametrize(("name", "count"), [("dsb-scaling", 27), ("cronjob", 1)])
def test_index_hashes_of_real_traces(real_inputs, name, count):
    trace = sktrace.read(real_inputs / f"{name}.sktrace")
    specs = last_specs(trace)
    assert len(specs) == count
    assert {at: spec_hash(spec) for at, spec in specs.items()} == {
        (kind, at): value for kind, hashes in trace.index.items() for at, value in hashes.items()
    }


def test_hashes_of_real_bare_pods(real_inputs):
    # The file was transformed after export: its specs lost the service account, its index did not.
    trace = sktrace.read(real_inputs / "bare-pods.sktrace")
    specs = last_specs(trace)
    assert len(specs) == 4
    for (kind, at), spec in specs.items():
        whole = {**spec, "serviceAccount": "default", "serviceAccountName": "default"}
        assert spec_hash(whole) == trace.index[kind][at]
        assert list(trace.lifecycles[kind, at]) == [pod_hash(whole)] == [pod_hash(spec)]
