"""Kinds whose objects are not stored but worked out when somebody reads them; they can be read and nothing else.

NodeMetrics and PodMetrics (`kubectl top`) come from what the virtual nodes say is used (`nodes.usage`),
ComponentStatuses from the checks behind `/livez`. Sources of facts: metrics-server's
API (k8s.io/metrics 0.36).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from steersman.api.kinds import Kind, Kinds
from steersman.api.schema import OBJECT_META, Schema
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import Frozen, freeze
from steersman.nodes.usage import running

GK = tuple[str, str]
METRICS: Final = "metrics.k8s.io"
READ: Final = ("get", "list")
WINDOW: Final = "30s"
"""Time a measurement spans; ours are of one moment, and clients want to see one."""


class Seen(NamedTuple):
    """What computed objects are made of. `now` is in microseconds; `checks` are name → what is wrong."""

    store: Store
    checks: Mapping[str, str]
    now: int


def _metrics_kind(kind: str, plural: str, namespaced: bool) -> Kind:
    text, any_map = Schema(type="string"), Schema(type="any")
    fields = {"metadata": Kinds.definition(OBJECT_META), "timestamp": text, "window": text}
    fields |= {"usage": any_map} if kind == "NodeMetrics" else {"containers": any_map}
    schema = Schema(name=f"io.k8s.metrics.pkg.apis.metrics.v1beta1.{kind}", type="object", fields=fields)
    names = {"kind": kind, "plural": plural, "singular": "", "list_kind": f"{kind}List", "short_names": ()}
    scope = {"namespaced": namespaced, "verbs": READ, "subresources": (), "categories": ()}
    return Kind(group=METRICS, version="v1beta1", schema=schema, **names, **scope)  # type: ignore[arg-type]


METRICS_KINDS: Final = (_metrics_kind("NodeMetrics", "nodes", False), _metrics_kind("PodMetrics", "pods", True))


def readable(kind: Kind) -> Kind:
    """The kind as it is served: a computed one can only be read."""
    if kind.gk not in COMPUTED or kind.verbs == READ:
        return kind
    return dataclasses.replace(kind, verbs=READ, endpoints=(), subresources=())


def objects(kind: Kind, seen: Seen) -> list[Object]:
    """All objects of a computed kind, by namespace and name."""
    return sorted(COMPUTED[kind.gk](kind, seen), key=lambda obj: obj.key)


def _object(kind: Kind, meta: dict[str, Any], rev: int, rest: dict[str, Any]) -> Object:
    key = Key(kind.group, kind.kind, meta.get("namespace", ""), meta["name"])
    parts = {name: Section(_frozen(rest.pop(name))) for name in ("spec", "status") if name in rest}
    body = Section(_frozen(rest)) if rest else None
    spec, status = parts.get("spec"), parts.get("status")
    return Object(key, kind.api_version, rev, Section(_frozen(meta)), spec, body, status)


def _frozen(value: dict[str, Any]) -> Frozen:
    return freeze(value)  # type: ignore[no-any-return]


def _measured(source: Object, seen: Seen) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": source.key.name, "creationTimestamp": time_text(seen.now // MICRO)}
    if source.key.namespace:
        meta["namespace"] = source.key.namespace
    if labels := source.metadata.get("labels"):
        meta["labels"] = labels
    return meta


def _usage(cpu: int, memory: int) -> dict[str, str]:
    return {"cpu": f"{cpu}n", "memory": f"{memory // 1024}Ki"}


def _pod_metrics(kind: Kind, seen: Seen) -> Iterator[Object]:
    for pod, names, use in running(seen.store.list(("", "Pod"))):
        containers = [{"name": name, "usage": _usage(*use)} for name in names]
        rest = {"timestamp": time_text(seen.now // MICRO), "window": WINDOW, "containers": containers}
        yield _object(kind, _measured(pod, seen), seen.store.rev, rest)


def _node_metrics(kind: Kind, seen: Seen) -> Iterator[Object]:
    used: dict[str, list[int]] = {}
    for pod, names, use in running(seen.store.list(("", "Pod"))):
        sums = used.setdefault(str(pod.node), [0, 0])
        sums[0] += len(names) * use.cpu
        sums[1] += len(names) * use.memory
    for node in seen.store.list(("", "Node")):
        cpu, memory = used.get(node.key.name, [0, 0])
        rest = {"timestamp": time_text(seen.now // MICRO), "window": WINDOW, "usage": _usage(cpu, memory)}
        yield _object(kind, _measured(node, seen), seen.store.rev, rest)


def _component_statuses(kind: Kind, seen: Seen) -> Iterator[Object]:
    for name, wrong in seen.checks.items():
        condition = {"type": "Healthy", "status": "False" if wrong else "True", "message": wrong or "ok"}
        yield _object(kind, {"name": name}, 0, {"conditions": [condition]})


COMPUTED: Final[Mapping[GK, Callable[[Kind, Seen], Iterator[Object]]]] = {
    (METRICS, "NodeMetrics"): _node_metrics,
    (METRICS, "PodMetrics"): _pod_metrics,
    ("", "ComponentStatus"): _component_statuses,
}
