"""Discovery: which groups, versions, resources and verbs there are.

Both forms are served: the older documents (APIVersions, APIGroupList, APIResourceList), which kopf and kr8s read,
and the aggregated one that kubectl asks for first. Shapes: Kubernetes API reference, "API discovery".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from steersman.api.crd.custom import version_rank
from steersman.api.kinds import Kind
from steersman.serve.message import Response
from steersman.serve.registration import preference, priority_of
from steersman.serve.served import Part, Served, parts_of


class Elsewhere(NamedTuple):
    """A group version that another API server serves. `resources` are its APIResources, with subresources among them;
    `available`: whether it answers now."""

    group: str
    version: str
    priority: int
    available: bool
    resources: Sequence[Mapping[str, Any]]


class Discovery:
    """The discovery documents of one set of kinds, rendered once each, with what others serve."""

    def __init__(self, served: Served, elsewhere: Sequence[Elsewhere] = ()) -> None:
        self._served = served
        self._elsewhere = {(each.group, each.version): each for each in elsewhere}
        self._groups = _merged(served, elsewhere)
        self._rendered: dict[tuple[str, ...], bytes] = {}
        self._tags: dict[tuple[str, str], str] = {}

    def versions(self) -> bytes:
        """`/api`: APIVersions."""
        versions = list(self._served.groups.get("", ()))
        document = {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []}
        return self._once(("api",), lambda: document)

    def groups(self) -> bytes:
        """`/apis`: APIGroupList."""

        def document() -> dict[str, Any]:
            groups = [self._group(name) for name in self._groups if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

        return self._once(("apis",), document)

    def group(self, name: str) -> bytes | None:
        """`/apis/GROUP`: APIGroup; None when there is no such group."""
        if not name or name not in self._groups:
            return None
        return self._once(("group", name), lambda: {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)})

    def resources(self, group: str, version: str) -> bytes | None:
        """`/api/v1`, `/apis/GROUP/VERSION`: APIResourceList; None when it is not served."""
        kinds = self._served.kinds_of(group, version)
        if not kinds:
            return None

        def document() -> dict[str, Any]:
            rows = [row for kind in kinds for row in _rows(kind)]
            if not group:  # kube-apiserver leaves the apiVersion out for the first of all lists
                return {"kind": "APIResourceList", "groupVersion": version, "resources": rows}
            name = f"{group}/{version}"
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": rows}

        return self._once(("resources", group, version), document)

    def tag(self, root: str, version: str) -> str:
        """The ETag of an aggregated document: clients keep it until it is another."""
        found = self._tags.get((root, version))
        if found is None:
            digest = hashlib.sha512(self.aggregated(root, version)).hexdigest().upper()
            found = self._tags[root, version] = f'"{digest}"'
        return found

    def answer(self, root: str, version: str, kept: str) -> Response:
        """The aggregated document, unless a client has kept it: `kept` is its If-None-Match."""
        tag = self.tag(root, version)
        caching = (("etag", tag), ("vary", "Accept"), ("cache-control", "public"))
        if kept == tag:
            return Response(304, caching)
        content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return Response(200, (("content-type", content_type), *caching), self.aggregated(root, version))

    def aggregated(self, root: str, version: str) -> bytes:
        """The aggregated document of `/api` or `/apis`, in `apidiscovery.k8s.io/VERSION` (v2 or v2beta1)."""

        def document() -> dict[str, Any]:
            names = [name for name in self._groups if bool(name) == (root == "apis")]
            return {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"apidiscovery.k8s.io/{version}",
                "metadata": {},
                "items": [self._discovered(name) for name in names],
            }

        return self._once(("aggregated", root, version), document)

    def _once(self, key: tuple[str, ...], document: Callable[[], dict[str, Any]]) -> bytes:
        found = self._rendered.get(key)
        if found is None:
            found = self._rendered[key] = orjson.dumps(document())
        return found

    def _group(self, name: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in self._groups[name]]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _discovered(self, name: str) -> dict[str, Any]:
        versions = []
        for version in self._groups[name]:
            remote = self._elsewhere.get((name, version))
            if remote is not None:
                shown = {"version": version, "resources": _discovered_elsewhere(remote)}
                versions.append({**shown, "freshness": "Current" if remote.available else "Stale"})
                continue
            resources = [_discovered_resource(kind) for kind in self._served.kinds_of(name, version)]
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        metadata = {"name": name} if name else {}
        return {"metadata": metadata, "versions": versions}


def _merged(served: Served, elsewhere: Sequence[Elsewhere]) -> Mapping[str, tuple[str, ...]]:
    """Group to versions, both best first, with the groups of others where their priority puts them."""
    if not elsewhere:
        return served.groups
    groups = dict(served.groups)
    priorities: dict[str, int] = {}
    for each in elsewhere:
        versions = {*groups.get(each.group, ()), each.version}
        groups[each.group] = tuple(sorted(versions, key=version_rank, reverse=True))
        if each.group not in served.groups:
            priorities[each.group] = max(priorities.get(each.group, 0), each.priority)
    order = sorted(groups, key=lambda group: preference(group, priorities.get(group) or priority_of(group, "")[0]))
    return {group: groups[group] for group in order}


def _discovered_elsewhere(remote: Elsewhere) -> list[dict[str, Any]]:
    """An APIResourceList in the aggregated form: subresources stand in their resource."""
    rows: dict[str, dict[str, Any]] = {}
    for each in remote.resources:
        name, _, part = str(each["name"]).partition("/")
        kind = {"group": each.get("group") or remote.group, "version": each.get("version") or remote.version}
        shown = {"responseKind": {**kind, "kind": each.get("kind") or ""}, "verbs": each.get("verbs") or []}
        if part:
            rows.setdefault(name, {"resource": name}).setdefault("subresources", []).append(
                {"subresource": part, **shown}
            )
            continue
        scope = "Namespaced" if each.get("namespaced") else "Cluster"
        row = {"scope": scope, "singularResource": each.get("singularName") or "", **shown}
        row |= {key: each[key] for key in ("shortNames", "categories") if each.get(key)}
        rows[name] = {**rows.get(name, {"resource": name}), **row}
    return list(rows.values())


def _rows(kind: Kind) -> list[dict[str, Any]]:
    return [_resource(kind), *(_subresource(kind, part) for part in parts_of(kind))]


def _resource(kind: Kind) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    return row


def _subresource(kind: Kind, part: Part) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": f"{kind.plural}/{part.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": part.kind,
        "verbs": list(part.verbs),
    }
    if (part.group, part.version) != (kind.group, kind.version):
        row |= {"group": part.group, "version": part.version}
    return row


def _discovered_resource(kind: Kind) -> dict[str, Any]:
    row: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, kind.group, kind.version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if parts := parts_of(kind):
        row["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": _response_kind(kind, part.group, part.version, part.kind),
                "verbs": list(part.verbs),
            }
            for part in parts
        ]
    return row


def _response_kind(kind: Kind, group: str, version: str, name: str) -> dict[str, str]:
    """The kind of an answer. Built-in kinds leave out a group and version that are those of the path."""
    if not kind.custom and (group, version) == (kind.group, kind.version):
        group = version = ""
    return {"group": group, "version": version, "kind": name}
