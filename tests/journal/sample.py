"""Records for the tests, made from few numbers."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.journal import Commit, External, Head, Input, Journal, Read, Reconcile, Write

POD = ("", "Pod", "default", "a")
LEASE = ("coordination.k8s.io", "Lease", "kube-system", "scheduler")


def sums(revision: int, head_only: int = 0) -> tuple[bytes, bytes]:
    return revision.to_bytes(16, "big"), head_only.to_bytes(16, "big")


def commit(revision: int, key=POD, verb="update", retention="full", size: int = 40) -> Commit:
    body = (b'{"metadata":{"resourceVersion":"%d"},"x":"' % revision).ljust(size, b"x") + b'"}'
    at = 1_700_000_000_000_000 + revision
    return Commit(revision, key, verb, "system:admin", f"uid-{key[3]}", body, at, sums(revision), retention)


def draw(data: bytes = b"7f3k2") -> Input:
    return Input("random", "call web/rs#2", data, 1_700_000_000_000_000)


def reconcile(revision: int) -> Reconcile:
    return Reconcile(
        "deployment",
        b"\x01" * 16,
        ("apps", "Deployment", "default", "web"),
        reads=(Read("apps/v1/ReplicaSet?owner=web", revision), Read("v1/Pod", revision - 1)),
        times=(1_700_000_000_000_000, 1_700_000_000_000_500),
        randoms=(b"abc", b""),
        externals=(External("dns", b"{}", b'{"ok":true}'),),
        writes=(Write("apps/v1/ReplicaSet/default/web-1", revision), Write("v1/Pod", 0, b'{"code":409}')),
        end="requeue",
    )


def fill(journal: Journal, records: Sequence, holder: str = "test") -> Head:
    return journal.append(journal.acquire(holder), journal.head(), records)
