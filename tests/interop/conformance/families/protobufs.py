"""Bodies in protobuf, as client-go sends them, from a small writer of messages."""

from __future__ import annotations

import base64
from typing import Any, Final

from tests.interop.conformance.sequence import Case, get, step

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
CMS = "/api/v1/namespaces/$(ns)/configmaps"
PODS = "/api/v1/namespaces/$(ns)/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$(ns)/leases"
Field = tuple[int, Any]


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def message(*fields: Field) -> bytes:
    """Fields by number: texts, bytes (of a message), whole numbers from 0."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def sent(do: str, path: str, api: str, kind: str, *fields: Field, **more: Any) -> dict[str, Any]:
    """A request with an object in Kubernetes' envelope."""
    unknown = message((1, message((1, api), (2, kind))), (2, message(*fields)))
    return step(do, path, raw64=base64.b64encode(b"k8s\x00" + unknown).decode(), type=PROTOBUF, **more)


def named(name: str, *more: Field) -> Field:
    """An ObjectMeta, field 1 of every object."""
    return 1, message((1, name), *more)


def entry(name: str, value: str) -> bytes:
    return message((1, name), (2, value))


container: Final = message((1, "c"), (2, "nginx:1"))
labels: Final = (11, entry("app", "a"))
CASES: Final = [
    Case(
        "protobuf/configmaps",
        [
            sent("POST", CMS, "v1", "ConfigMap", named("a", labels), (2, entry("k", "v")), save="a"),
            get(f"{CMS}/a"),
            sent("POST", CMS, "v1", "ConfigMap", named("a"), (2, entry("k", "v"))),
            sent("PUT", f"{CMS}/a", "v1", "ConfigMap", named("a"), (2, entry("k", "w")), (4, 1)),
            sent("PUT", f"{CMS}/a", "v1", "ConfigMap", named("a"), (2, entry("k", "x"))),
            sent("POST", CMS, "v1", "ConfigMap", named("B_")),
            sent("POST", CMS, "v1", "ConfigMap", (2, entry("k", "v"))),
            sent("POST", CMS, "v1", "Secret", named("s")),
            sent("DELETE", f"{CMS}/a?dryRun=All", "v1", "DeleteOptions", (1, 0)),
            sent("DELETE", f"{CMS}/a", "v1", "DeleteOptions", (2, message((1, "none")))),
            sent("DELETE", f"{CMS}/a", "v1", "DeleteOptions", (4, "Background")),
        ],
    ),
    Case(
        "protobuf/pods",
        [
            sent("POST", PODS, "v1", "Pod", named("p", labels), (2, message((2, container))), save="p"),
            sent("POST", PODS, "v1", "Pod", named("q"), (2, message())),
            sent("POST", PODS, "v1", "Pod", named("q")),
            sent("POST", f"{PODS}/p/binding", "v1", "Binding", named("p"), (2, message((1, "Node"), (3, "n")))),
            get(f"{PODS}/p"),
            sent("DELETE", f"{PODS}/p", "v1", "DeleteOptions", (1, 5)),
        ],
    ),
    Case(
        "protobuf/leases",
        [
            sent("POST", LEASES, "coordination.k8s.io/v1", "Lease", named("l"), (2, message((1, "me"), (2, 15)))),
            sent("POST", LEASES, "coordination.k8s.io/v1", "Lease", named("m"), (2, message((1, "me"), (2, 0)))),
            get(f"{LEASES}/l"),
        ],
    ),
]
