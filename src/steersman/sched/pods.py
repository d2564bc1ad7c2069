"""A pod as the scheduler reads it: once, into an immutable value, with all pods of one template sharing a `PodClass`.

What depends on the class alone is worked out once a class, and what depends on the class and on a node's labels or
taints once for each such pair: the two memos of a class hold the verdicts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from steersman.api.references import claims_of
from steersman.sched.absent import Unsupported, unsupported
from steersman.sched.affinity import NodeAffinity
from steersman.sched.nodes import Load, PodKey
from steersman.sched.resources import Resources, host_ports, resize_infeasible

DEFAULT_SCHEDULER = "default-scheduler"
TERMINAL_PHASES = ("Succeeded", "Failed")

CLASS_LIMIT = 4096
"""Classes remembered; beyond it the oldest is dropped and, if it comes back, read again."""


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """All that filters and scores read in a pod. Compared by identity: equal specs are given one class by `Classes`.

    `node_name` is empty even for pods that have a node, so that these share a class, too: `at` asks about one node.
    """

    load: Load
    affinity: NodeAffinity
    tolerations: tuple[Mapping[str, Any], ...]
    constraints: tuple[Unsupported, ...]
    node_name: str = ""
    taint_verdicts: dict[Any, Any] = field(default_factory=dict, repr=False)
    label_verdicts: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "PodClass":
        """Raises ValueError for an unreadable quantity."""
        spec = pod.get("spec") or {}
        return cls(
            load=Load(Resources.of_pod(pod), host_ports(pod)),
            affinity=NodeAffinity.of(spec),
            tolerations=tuple(spec.get("tolerations") or ()),
            constraints=unsupported(pod),
        )

    def at(self, node_name: str) -> "PodClass":
        """The class of such pods whose spec names this node; itself for an empty name."""
        return replace(self, node_name=node_name) if node_name else self


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod: which it is, where it is, and its class. `created` is in microseconds since the epoch."""

    key: PodKey
    uid: str
    priority: int
    created: int
    node_name: str
    kind: PodClass
    ended: bool
    deleting: bool
    gated: bool
    scheduler: str
    claims: tuple[str, ...] = ()


class Classes:
    """Reads pods, giving equal specs the same class."""

    def __init__(self) -> None:
        self._known: dict[bytes, PodClass] = {}

    def read(self, pod: Mapping[str, Any]) -> Pod:
        """Raises ValueError, naming the pod, for an unreadable quantity or time."""
        metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        key = (metadata.get("namespace", ""), metadata["name"])
        try:
            kind, created = self._kind(pod), _micros(metadata.get("creationTimestamp"))
        except ValueError as error:
            raise ValueError(f"pod {key[0]}/{key[1]}: {error}") from None
        return Pod(
            key=key,
            uid=metadata.get("uid", ""),
            priority=spec.get("priority") or 0,
            created=created,
            node_name=spec.get("nodeName") or "",
            kind=kind,
            ended=status.get("phase") in TERMINAL_PHASES,
            deleting=bool(metadata.get("deletionTimestamp")),
            gated=bool(spec.get("schedulingGates")),
            scheduler=spec.get("schedulerName") or DEFAULT_SCHEDULER,
            claims=claims_of(pod) if spec.get("volumes") else (),
        )

    def _kind(self, pod: Mapping[str, Any]) -> PodClass:
        digest = orjson.dumps(_relevant(pod), option=orjson.OPT_SORT_KEYS)
        kind = self._known.get(digest)
        if kind is None:
            if len(self._known) >= CLASS_LIMIT:
                del self._known[next(iter(self._known))]
            kind = self._known[digest] = PodClass.of(pod)
        return kind


def _relevant(pod: Mapping[str, Any]) -> list[Any]:
    """The parts of a pod that `PodClass.of` reads."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sources = ("nodeSelector", "affinity", "tolerations", "overhead", "resources")
    parts: list[Any] = [spec.get(source) for source in sources]
    for containers in ("containers", "initContainers"):
        parts.append([(c.get("resources"), c.get("ports"), c.get("restartPolicy")) for c in spec.get(containers) or ()])
    parts.append([(each.field, each.hard) for each in unsupported(pod)])
    for statuses in ("containerStatuses", "initContainerStatuses"):
        resized = [
            (index, each.get("name"), each.get("allocatedResources"), each.get("resources"))
            for index, each in enumerate(status.get(statuses) or ())
            if "allocatedResources" in each or "resources" in each
        ]
        if resized:  # then containers are matched with their statuses by name
            parts.append((resized, [c.get("name") for c in _containers(spec)], resize_infeasible(status)))
    return parts


def _containers(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))


def _micros(timestamp: str | None) -> int:
    """An RFC 3339 time in microseconds since the epoch; 0 for none."""
    if not timestamp:
        return 0
    try:
        # Without a zone the difference raises: it would depend on where this runs.
        since = datetime.fromisoformat(timestamp) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, TypeError):
        raise ValueError(f"metadata.creationTimestamp: {timestamp!r} is no RFC 3339 time") from None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
