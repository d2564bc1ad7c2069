"""The nodes of a simulation: so many alike, or those of a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.nodes.component import node_object
from steersman.sched.resources import allocatable
from steersman.sim.yamlfile import YamlFileError, read_documents

MAX_NODES: Final = 50_000
"""Ten times what Kubernetes supports in one cluster (5,000): more is a slip of the finger."""
MAX_FILE_BYTES: Final = 256 << 20
"""A node as the API shows it has about 10 KB, images included: room for 25,000 of them."""


PASSING_TAINTS: Final = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.cloudprovider.kubernetes.io/uninitialized",
)
"""Taints that tell what a node was like for a while; here all nodes are ready."""

_NUMBER: Final = re.compile(r"-*[0-9]{1,18}")


class NodesError(ValueError):
    """No usable nodes; the text names the file, the object and the remedy."""


def alike(count: int) -> list[dict[str, Any]]:
    """`count` nodes of 16 CPU, 64 GiB and 110 pods: node-0, node-1, … Raises `NodesError`."""
    if not 0 < count <= MAX_NODES:
        raise NodesError(f"--nodes {count}: give a number from 1 to {MAX_NODES:,}, or a file with Node objects")
    return [node_object(f"node-{number}") for number in range(count)]


def load(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The Node objects of a YAML or JSON file: a stream of them, a list, or what `kubectl get nodes -o yaml` prints.

    Server-set metadata is left out; a node without status.allocatable offers its capacity, and is ready. Raises
    `NodesError`.
    """
    where = os.fspath(path)
    try:
        documents = read_documents(path, MAX_FILE_BYTES, "give a number of nodes or a YAML file of Node objects")
    except YamlFileError as error:
        raise NodesError(str(error)) from None
    nodes = [_node(obj, where, place) for obj, place in _objects(documents)]
    if not nodes:
        raise NodesError(f"{where}: there is no Node in it; `kubectl get nodes -o yaml` prints a file that will do")
    return _distinct(nodes, where)


def given(nodes: int | str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Nodes as callers may say them: a number, a file, or Node objects. Raises `NodesError`."""
    if isinstance(nodes, int):
        return alike(nodes)
    if isinstance(nodes, str) and _NUMBER.fullmatch(nodes.strip()):
        return alike(int(nodes))
    if isinstance(nodes, str) and not nodes.strip():
        raise NodesError("--nodes is empty: give a number of nodes or a YAML file of Node objects")
    if isinstance(nodes, (str, os.PathLike)):
        return load(nodes)
    found = [_node(obj, "nodes", f"item {i}") for i, obj in enumerate(nodes)]
    if not found:
        raise NodesError("nodes: there is none; give at least one Node object")
    return _distinct(found, "nodes")


def _objects(documents: list[Any]) -> Iterable[tuple[Any, str]]:
    for number, document in enumerate(documents):
        place = f"document {number + 1}" if len(documents) > 1 else ""
        items = document
        if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
            items = document.get("items")
        if isinstance(items, list):
            yield from [(item, f"{place} items[{i}]".strip()) for i, item in enumerate(items)]
        else:
            yield document, place


def _node(obj: Any, where: str, place: str) -> dict[str, Any]:
    at = f"{where}: {place}" if place else where
    if not isinstance(obj, Mapping):
        raise NodesError(f"{at}: expected a Node object, found {type(obj).__name__}")
    if obj.get("kind") != "Node" or obj.get("apiVersion") != "v1":
        found = f"{obj.get('apiVersion')}/{obj.get('kind')}"
        raise NodesError(f"{at}: expected kind Node of apiVersion v1, found {found}; leave other objects out")
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name:
        raise NodesError(f"{at}: metadata.name is missing; every node needs one")
    for field in ("spec", "status"):
        if not isinstance(obj.get(field) or {}, Mapping):
            raise NodesError(f"{at}: node {name}: {field} must be a map")
    taints = (obj.get("spec") or {}).get("taints") or []
    if not isinstance(taints, list) or not all(isinstance(taint, Mapping) for taint in taints):
        raise NodesError(f"{at}: node {name}: spec.taints must be a list of maps")
    node = _completed(obj, name)
    try:
        offers = allocatable(node)
    except (ValueError, AttributeError, TypeError) as error:
        raise NodesError(f"{at}: node {name}: {error}; write quantities such as 16, 500m or 64Gi") from None
    missing = [resource for resource in ("cpu", "memory", "pods") if not offers.get(resource)]
    if missing:
        raise NodesError(f"{at}: node {name}: status.allocatable (or capacity) lacks {', '.join(missing)}")
    return node


def _completed(obj: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A node as a fresh cluster would have it: what one incarnation was given is left out, it is ready, and it has
    room as the file says."""
    fresh = node_object(name)
    metadata, status = obj["metadata"], dict(obj.get("status") or {})
    kept = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
    status["allocatable"] = status.get("allocatable") or status.get("capacity") or {}
    status["capacity"] = status.get("capacity") or status["allocatable"]
    spec = {field: value for field, value in (obj.get("spec") or {}).items() if field not in ("podCIDR", "podCIDRs")}
    if spec.get("taints"):
        spec["taints"] = [taint for taint in spec["taints"] if taint.get("key") not in PASSING_TAINTS]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {**kept, "name": name},
        "spec": spec,
        "status": {**fresh["status"], **{f: status[f] for f in ("allocatable", "capacity")}},
    }


def _distinct(nodes: list[dict[str, Any]], where: str) -> list[dict[str, Any]]:
    names: set[str] = set()
    for node in nodes:
        name = node["metadata"]["name"]
        if name in names:
            raise NodesError(f"{where}: node {name} is there twice; names must differ")
        names.add(name)
    if len(nodes) > MAX_NODES:
        raise NodesError(f"{where}: {len(nodes):,} nodes are more than {MAX_NODES:,}")
    return nodes
