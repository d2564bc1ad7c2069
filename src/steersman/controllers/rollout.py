"""The arithmetic of a rollout: how many pods may be too many or too few, and who gets how many. Pure.

Source of the formulas: Kubernetes 1.36, pkg/controller/deployment/util/deployment_util.go. Deployments and ReplicaSets
are JSON values as they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from xxhash import xxh32_intdigest

from steersman.api.names import safe_encode
from steersman.kernel.object import SORTED
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
HASH_LABEL: Final = "pod-template-hash"
ANNOTATION: Final = "deployment.kubernetes.io/"
REVISION: Final = ANNOTATION + "revision"
REVISION_HISTORY: Final = ANNOTATION + "revision-history"
DESIRED: Final = ANNOTATION + "desired-replicas"
MAX: Final = ANNOTATION + "max-replicas"
NOT_COPIED: Final = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", REVISION, REVISION_HISTORY, DESIRED, MAX}
    | {"deprecated.deployment.rollback.to"}
)
"""Annotations that a Deployment does not hand down to its ReplicaSets."""


def share(value: Any, total: int, up: bool) -> int:
    """An IntOrString: a number, or a percentage of `total`, rounded up or down."""
    if isinstance(value, int):
        return value
    parts = int(str(value).rstrip("%")) * total
    return -(-parts // 100) if up else parts // 100


def replicas(item: Json) -> int:
    """`spec.replicas` of a Deployment or ReplicaSet."""
    return item["spec"]["replicas"]  # type: ignore[no-any-return]


def is_rolling(d: Json) -> bool:
    """Whether the strategy is RollingUpdate."""
    return bool((d["spec"].get("strategy") or EMPTY).get("type", "RollingUpdate") == "RollingUpdate")


def fenceposts(d: Json) -> tuple[int, int]:
    """(max surge, max unavailable) in pods; never both 0, since then nothing could move."""
    if not is_rolling(d):
        return 0, 0
    rolling = (d["spec"].get("strategy") or EMPTY).get("rollingUpdate") or EMPTY
    surge = share(rolling.get("maxSurge", "25%"), replicas(d), up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), replicas(d), up=False)
    return (0, 1) if surge == 0 and unavailable == 0 else (surge, unavailable)


def max_surge(d: Json) -> int:
    """Pods there may be above `replicas`."""
    return fenceposts(d)[0]


def max_unavailable(d: Json) -> int:
    """Pods that may be unavailable below `replicas`."""
    return min(fenceposts(d)[1], replicas(d)) if replicas(d) else 0


def counted(sets: Iterable[Json], field: str) -> int:
    """The sum of a status count."""
    return sum([(rs.get("status") or EMPTY).get(field) or 0 for rs in sets])


def new_count(d: Json, sets: Iterable[Json], new: int) -> int:
    """How many replicas the newest ReplicaSet, of `new` now, may have next to all that there are."""
    if not is_rolling(d):
        return replicas(d)
    room = replicas(d) + max_surge(d) - sum([replicas(rs) for rs in sets])
    return new if room <= 0 else new + min(room, replicas(d) - new)


def proportion(rs: Json, d: Json, to_add: int, added: int) -> int:
    """Replicas a ReplicaSet gains or loses when a Deployment is scaled in the middle of a rollout."""
    if not replicas(rs) or not to_add or to_add == added:
        return 0
    fraction = _fraction(rs, d)
    return min(fraction, to_add - added) if to_add > 0 else max(fraction, to_add - added)


def _fraction(rs: Json, d: Json) -> int:
    if replicas(d) == 0:
        return -replicas(rs)
    was = number(rs, MAX) or (d.get("status") or EMPTY).get("replicas") or 0
    if not was:
        return 0
    size = replicas(rs) * (replicas(d) + max_surge(d)) / was
    return int(size + 0.5) - replicas(rs)


def number(item: Json, annotation: str) -> int:
    """The number in an annotation; 0 where there is none (of 64 bits: 18 digits at most)."""
    text = (item["metadata"].get("annotations") or EMPTY).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0


def template_hash(template: Json, collisions: int) -> str:
    """The pod-template-hash: deterministic in the template and the number of collisions so far. Kubernetes hashes a
    Go dump; the value differs, its form (up to ten safe letters) does not."""
    text = orjson.dumps(template, option=SORTED) + (b"%d" % collisions if collisions else b"")
    return safe_encode(str(xxh32_intdigest(text)))


def same_template(a: Json, b: Json) -> bool:
    """Whether two pod templates are equal but for the pod-template-hash label."""
    return a == b or _unhashed(a) == _unhashed(b)


def _unhashed(template: Json) -> Any:
    meta = dict(template.get("metadata") or EMPTY)
    labels = {name: value for name, value in (meta.pop("labels", None) or EMPTY).items() if name != HASH_LABEL}
    return {**template, "metadata": {**meta, "labels": labels}}


def by_age(sets: Iterable[Json]) -> list[Any]:
    """Oldest first."""
    return sorted(sets, key=_age)


def _age(rs: Json) -> tuple[str, str]:
    return rs["metadata"]["creationTimestamp"], rs["metadata"]["name"]


def by_size(sets: Iterable[Json], newer_first: bool) -> list[Any]:
    """Largest first; of equal ones the newer, or the older."""
    aged = sorted(sets, key=_age, reverse=newer_first)
    return sorted(aged, key=replicas, reverse=True)


def newest_of(d: Json, sets: Iterable[Json]) -> Any:
    """The ReplicaSet of the Deployment's template (the oldest, should there be several), or None."""
    for rs in by_age(sets):
        if same_template(rs["spec"]["template"], d["spec"]["template"]):
            return rs
    return None


def inherited(d: Json, rs: Json, revision: int, exists: bool) -> dict[str, str]:
    """The annotations a ReplicaSet lacks: those of its Deployment, its revision and history, and its limits."""
    have = rs["metadata"].get("annotations") or EMPTY
    given = d["metadata"].get("annotations") or EMPTY
    lacking = {n: v for n, v in given.items() if n not in NOT_COPIED and have.get(n) != v}
    if number(rs, REVISION) < revision:
        lacking[REVISION] = str(revision)
        if exists and have.get(REVISION):
            history = have.get(REVISION_HISTORY)
            lacking[REVISION_HISTORY] = f"{history},{have[REVISION]}" if history else have[REVISION]
    return lacking if exists else {**lacking, **limits(d)}


def limits(d: Json) -> dict[str, str]:
    """The annotations that tell how large the Deployment was when a ReplicaSet was scaled."""
    return {DESIRED: str(replicas(d)), MAX: str(replicas(d) + max_surge(d))}
