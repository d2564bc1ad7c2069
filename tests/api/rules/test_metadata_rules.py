"""Metadata: names, labels, annotations, owners and finalizers, in kube-apiserver's words."""

from typing import Any

import pytest

from steersman.api import validate
from steersman.api.kinds import Kinds
from steersman.kernel.value import freeze

KINDS = Kinds.builtin()
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
META = {"name": "web", "namespace": "default"}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
NEGATIVE = "must be greater than or equal to 0"


def metadata(kind: str, **fields: Any) -> list[str]:
    meta = {name: field for name, field in {**META, **fields}.items() if field is not None}
    return [str(cause) for cause in validate.metadata(KINDS.find(kind), freeze(meta))]


@pytest.mark.parametrize(
    ("kind", "fields", "told"),
    [
        ("pod", {}, []),
        ("pod", {"name": None, "generateName": "web-"}, []),
        ("pod", {"name": "a.b"}, []),
        ("pod", {"name": None}, ["metadata.name: Required value: name or generateName is required"]),
        ("pod", {"namespace": None}, ["metadata.namespace: Required value"]),
        ("ns", {"namespace": None, "name": "A"}, [f'metadata.name: Invalid value: "A": {LABEL}']),
        (
            "ns",
            {"namespace": None, "name": "a.b"},
            ['metadata.name: Invalid value: "a.b": must not contain dots'],
        ),
        ("node", {"namespace": "x"}, ["metadata.namespace: Forbidden: not allowed on this type"]),
        ("svc", {"name": "1a"}, []),  # since 1.36
        ("svc", {"name": "a.b"}, ['metadata.name: Invalid value: "a.b": must not contain dots']),
        ("role", {"name": "system:a B"}, []),
        ("role", {"name": "a/b"}, ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]),
        (
            "clusterrole",
            {"namespace": None, "name": ".."},
            ["metadata.name: Invalid value: \"..\": may not be '..'"],
        ),
        ("ipaddress", {"namespace": None, "name": "10.96.0.9"}, []),
        ("ipaddress", {"namespace": None, "name": "fd53:7465:6573::dc74"}, []),
        *(
            ("ipaddress", {"namespace": None, "name": name}, [f'metadata.name: Invalid value: "{name}": {told}'])
            for name, told in (
                ("web", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
                ("fe80::1%eth0", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
                ("10.096.0.9", "must not have leading 0s"),
                ("::ffff:10.96.0.9", "must not be an IPv4-mapped IPv6 address"),
                ("FD53:0::1", 'must be in canonical form ("fd53::1")'),
            )
        ),
        (
            "cronjob",
            {"name": "a" * 53},
            [f'metadata.name: Invalid value: "{"a" * 53}": must be no more than 52 characters'],
        ),
        (
            "pod",
            {"labels": {"a/b/c": "x"}},
            [
                'metadata.labels: Invalid value: "a/b/c": a valid label key must consist of alphanumeric '
                "characters, '-', '_' or '.', and must start and end with an alphanumeric "
                "character (e.g. 'MyName',  "
                "or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')"
            ],
        ),
        (
            "pod",
            {"labels": {"a": "x" * 64}},
            [f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
        ),
        ("pod", {"annotations": {"A.io/x": "anything goes: \n"}}, []),
        (
            "pod",
            {"annotations": {"a": "ü" * (1 << 17)}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        ("pod", {"annotations": {"a": "x" * ((1 << 18) - 1)}}, []),
        ("pod", {"finalizers": ["a.io/b", "orphan"]}, []),
        (
            "pod",
            {"finalizers": ["mine"]},
            [
                'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard '
                "finalizer name nor is it "
                "fully qualified"
            ],
        ),
        (
            "pod",
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and '
                "foregroundDeletion cannot be both set"
            ],
        ),
        ("pod", {"ownerReferences": [{**OWNER, "controller": True}, OWNER]}, []),
        (
            "pod",
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            ['metadata.ownerReferences.uid: Invalid value: "": must not be empty'],
        ),
        (
            "pod",
            {"ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}]},
            ['metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty'],
        ),
        ("pod", {"generation": -1}, [f"metadata.generation: Invalid value: -1: {NEGATIVE}"]),
    ],
)
def test_metadata(kind: str, fields: dict[str, Any], told: list[str]) -> None:
    assert metadata(kind, **fields) == told


def test_one_controller_at_most() -> None:
    told = metadata("pod", ownerReferences=[{**OWNER, "controller": True}, {**OWNER, "controller": True}])
    assert len(told) == 1 and told[0].endswith(
        'Only one reference can have Controller set to true. Found "true" in references for '
        "ReplicaSet/web and "
        "ReplicaSet/web"
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"uid": "u"}, {"uid": "u"}, []),
        ({"uid": "u"}, {}, []),
        ({"uid": "u"}, {"uid": "v"}, ['metadata.uid: Invalid value: "v": field is immutable']),
        ({"name": "a"}, {"name": "b"}, ['metadata.name: Invalid value: "b": field is immutable']),
        ({"finalizers": []}, {"finalizers": ["a.io/b"]}, []),
        (
            {"finalizers": ["c.io/d"], "deletionTimestamp": "2026-01-31T12:00:00Z"},
            {"finalizers": ["c.io/d", "a.io/b"]},
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object "
                "is being deleted, "
                'found new finalizers []string{"a.io/b"}'
            ],
        ),
        (
            {"generation": 2},
            {"generation": 1},
            ["metadata.generation: Invalid value: 1: must not be decremented"],
        ),
    ],
)
def test_metadata_change(old: dict[str, Any], new: dict[str, Any], told: list[str]) -> None:
    causes = validate.metadata_change(KINDS.find("pod"), freeze(old), freeze(new))
    assert [str(cause) for cause in causes] == told


@pytest.mark.parametrize(
    ("text", "same"),
    [("2026-11-30T16:00:10+00:00", True), ("2026-11-30T17:00:10+01:00", True), ("2026-11-30T16:00:10.5Z", True),
     ("2026-11-30T16:00:11Z", False), ("yesterday", False)],
)  # fmt: skip
def test_a_time_may_be_written_another_way(text: str, same: bool) -> None:
    old = {"name": "a", "deletionTimestamp": "2026-11-30T16:00:10Z"}
    causes = validate.metadata_change(KINDS.find("pod"), freeze(old), freeze({**old, "deletionTimestamp": text}))
    assert (not causes) is same


def test_a_change_of_the_time_of_creation_is_passed_over() -> None:
    old = {"name": "a", "creationTimestamp": "2026-11-30T16:00:10Z"}
    assert not validate.metadata_change(KINDS.find("pod"), freeze(old), freeze({**old, "creationTimestamp": "never"}))
