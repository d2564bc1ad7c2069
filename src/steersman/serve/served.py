"""Which kinds, verbs and subresources the HTTP face serves: what discovery tells, routes accept, documents list."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from steersman.api import pod_parts
from steersman.api.access.review import REVIEWS
from steersman.api.aliases import aliases
from steersman.api.crd.custom import version_rank
from steersman.api.kinds import Kind, Kinds
from steersman.serve.registration import preference, priority_of
from steersman.serve.table.computed import COMPUTED, METRICS_KINDS, readable

GK = tuple[str, str]

DEPRECATED: Final[dict[GK, str]] = {
    ("", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""What every request for a kind is warned of."""

SCALED: Final[frozenset[GK]] = frozenset(
    {
        *(("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet")),
        ("", "ReplicationController"),
    }
)
"""Built-in kinds whose `scale` is served."""

CREATED: Final[frozenset[tuple[str, GK]]] = frozenset(
    {("binding", ("", "Pod")), ("eviction", ("", "Pod")), ("token", ("", "ServiceAccount"))}
)
"""Subresources that are only ever created."""

ASKED: Final[frozenset[GK]] = REVIEWS | {("", "Binding")}
"""Kinds that are only ever created, and stored nowhere."""

STREAMED: Final[frozenset[tuple[str, GK]]] = frozenset(
    {("attach", ("", "Pod")), ("exec", ("", "Pod")), ("portforward", ("", "Pod"))}
)
"""Subresources that are connections to a node."""

PROXY: Final = "proxy"
"""The subresource behind which somebody else answers."""
PROXIED: Final[frozenset[GK]] = frozenset({("", "Node"), ("", "Pod"), ("", "Service")})


class Part(NamedTuple):
    """A subresource as it is served."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]

    @property
    def api_version(self) -> str:
        """The apiVersion of its bodies."""
        return f"{self.group}/{self.version}" if self.group else self.version


def why_unserved(kind: Kind) -> str | None:
    """Why a registered kind is not served; None when it is. Alpha and beta kinds are not, as in Kubernetes by
    default."""
    if kind.custom or kind.gk in COMPUTED or not ("alpha" in kind.version or "beta" in kind.version):
        return None
    return f"{kind.version} is not served by default"


@lru_cache(maxsize=1 << 10)
def parts_of(kind: Kind) -> tuple[Part, ...]:
    """The subresources of a kind that are served, by name."""
    out = []
    for endpoint in kind.endpoints:
        group, _, version = endpoint.api_version.rpartition("/")
        verbs: tuple[str, ...] = ()
        if endpoint.name in ("status", "approval") or (endpoint.name == "scale" and (kind.custom or kind.gk in SCALED)):
            verbs = ("get", "patch", "update")
        elif (endpoint.name, kind.gk) in CREATED:
            verbs = ("create",)
        elif endpoint.name in pod_parts.PARTS and kind.gk == pod_parts.POD:
            verbs = ("get", "patch", "update")
        elif (endpoint.name, kind.gk) in STREAMED:
            verbs = ("create", "get")
        elif endpoint.name == PROXY and kind.gk in PROXIED:
            verbs = ("create", "delete", "get", "patch", "update")
        elif (endpoint.name, kind.gk) == ("log", ("", "Pod")):
            verbs = ("get",)
        elif (endpoint.name, kind.gk) == ("finalize", ("", "Namespace")):
            verbs = ("update",)
        if verbs:
            out.append(Part(endpoint.name, group, version, endpoint.kind, verbs))
    return tuple(out)


def part_of(kind: Kind, name: str) -> Part | None:
    """The subresource of that name, if it is served."""
    return next((part for part in parts_of(kind) if part.name == name), None)


def _versions(kinds: Kinds) -> Iterator[Kind]:
    """Every kind in each version it is served in."""
    yield from aliases(kinds)
    for kind in kinds.all():
        if kind.gk == ("events.k8s.io", "Event"):
            continue  # an alias: stored as the Events of the core group
        if kind.origin is None:
            yield kind
        else:
            yield from (other for other in kind.origin.siblings.values() if other.origin.is_served)


class Served:
    """The served kinds of one registry, as HTTP paths name them. Immutable."""

    __slots__ = ("_by_path", "_kinds", "groups")

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._by_path: dict[tuple[str, str], dict[str, Kind]] = {}
        for kind in (*_versions(kinds), *kinds.virtual(), *METRICS_KINDS):
            if (kind.gk in ASKED) if "get" not in kind.verbs else why_unserved(kind) is None:
                self._by_path.setdefault((kind.group, kind.version), {})[kind.plural] = readable(kind)
        self.groups: dict[str, tuple[str, ...]] = {}
        """Group to its versions, best first; groups in the order in which clients are to prefer them."""
        for group, version in sorted(self._by_path, key=lambda gv: (preference(gv[0], priority_of(*gv)[0]), gv[1])):
            versions = (*self.groups.get(group, ()), version)
            self.groups[group] = tuple(sorted(versions, key=version_rank, reverse=True))

    def kinds_of(self, group: str, version: str) -> list[Kind]:
        """The kinds of a group version by plural; none when it is not served."""
        return [kind for _, kind in sorted(self._by_path.get((group, version), {}).items())]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind at that path."""
        return self._by_path.get((group, version), {}).get(plural)

    def hint(self, group: str, version: str, plural: str) -> str:
        """Why there is nothing at that path; "" when nothing can be said."""
        for kind in self._kinds.all():
            if (kind.group, kind.version, kind.plural) == (group, version, plural):
                return f"{kind}: {why_unserved(kind)}"
            if (kind.group, kind.plural) == (group, plural) and version in kind.served:
                return f"{group}/{version} is not served; use {kind.api_version}"
        return ""
