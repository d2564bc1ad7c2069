"""What a replay will do: a trace, turned into the requests of each of its moments.

As SimKube's driver replays (acrlabs/simkube 4ff5124, sk-driver): every object is applied server-side by the manager
`simkube`, without its status. Three things differ, since here is no cluster beside the simulation: namespaces keep
their names; ownerReferences are left out (they name uids of the recorded cluster, and the garbage collector would
delete their bearers); and a deletion has no grace, since what a trace records is that the object was gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from steersman.api.kinds import Kind, Kinds, UnknownKind
from steersman.kernel.effect import MICRO, Request
from steersman.kernel.object import Key
from steersman.kernel.value import Frozen
from steersman.trace.gvk import GVK, TEMPLATE_PATHS
from steersman.trace.recording import Trace
from steersman.trace.sanitize import sanitize
from steersman.trace.templates import find, template_paths

MANAGER: Final = "simkube"
KWOK_TAINT: Final = "kwok-provider"
"""The taint of nodes that only virtual pods may use; SimKube's pods tolerate it."""
TOLERATION: Final = {"key": KWOK_TAINT, "operator": "Exists", "effect": "NoSchedule"}


class Step(NamedTuple):
    """All that a trace does in one event."""

    at: int
    """Microseconds since 1970."""
    namespaces: tuple[str, ...]
    """Those it needs, sorted."""
    requests: tuple[Request, ...]


class Unknown(NamedTuple):
    """Objects of a kind that cannot be stored."""

    kind: str
    """`group/version.Kind`"""
    objects: int
    why: str


class Script(NamedTuple):
    """The steps of a replay, and what of the trace is in none of them."""

    steps: tuple[Step, ...]
    unknown: tuple[Unknown, ...]
    applied: Mapping[GVK, int]
    """How many different objects of each kind are applied."""


def script_of(trace: Trace, kinds: Kinds, *, tolerate_kwok: bool = False) -> Script:
    """The replay of a trace over these kinds. `tolerate_kwok`: pod templates tolerate KWOK's taint."""
    unknown: dict[str, list[Any]] = {}
    applied: dict[GVK, dict[Key, None]] = {}
    steps = []

    def known(obj: Mapping[str, Any]) -> Kind | None:
        try:
            return kinds.by_api_version(obj["apiVersion"], obj["kind"])
        except UnknownKind as error:
            found = unknown.setdefault(str(GVK.of(obj)), [0, str(error)])
            found[0] += 1
            return None

    for event in trace.events:
        requests = []
        for obj in event.applied:
            kind = known(obj)
            if kind is not None:
                request = _apply(obj, kind, template_paths(trace, obj) if tolerate_kwok else ())
                applied.setdefault(GVK.of(obj), {})[request.key] = None
                requests.append(request)
        for obj in event.deleted:
            kind = known(obj)
            if kind is not None:
                requests.append(Request("delete", _key(obj, kind), manager=MANAGER, options=Frozen(grace=0)))
        needed = {request.key.namespace for request in requests if request.verb == "apply"}
        steps.append(Step(event.ts * MICRO, tuple(sorted(needed - {""})), tuple(requests)))
    return Script(
        tuple(steps),
        tuple(Unknown(kind, *found) for kind, found in sorted(unknown.items())),
        {gvk: len(keys) for gvk, keys in sorted(applied.items())},
    )


def namespace_request(name: str) -> Request:
    """Creates a namespace that the trace uses."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return Request("create", Key("", "Namespace", "", name), body, manager=MANAGER)


def _key(obj: Mapping[str, Any], kind: Kind) -> Key:
    metadata = obj["metadata"]
    namespace = (metadata.get("namespace") or "default") if kind.namespaced else ""
    return Key(kind.group, kind.kind, namespace, metadata["name"])


def _apply(obj: Mapping[str, Any], kind: Kind, paths: Iterable[str]) -> Request:
    body = sanitize(obj)
    body.pop("status", None)
    body["metadata"].pop("ownerReferences", None)
    if not kind.namespaced:
        body["metadata"].pop("namespace", None)
    for path in paths:
        for template in find(body, path):
            _tolerate(template)
    for path in TEMPLATE_PATHS.get(GVK.of(obj), ()):
        for template in find(body, path):
            _run_as(template)
    # What a recorded cluster had is not to be stopped by a conflict over a field.
    return Request("apply", _key(obj, kind), body, manager=MANAGER, options=Frozen(force=True))


def _run_as(template: Any) -> None:
    """Names the account that a cluster's admission gives whoever names none: without one there is nobody whose token
    a volume could hold, and the tracer kept the volumes and not the name."""
    spec = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(spec, dict) or not isinstance(volumes := spec.get("volumes"), list):
        return
    if any(isinstance(volume, dict) and "projected" in volume for volume in volumes):
        spec["serviceAccountName"] = spec.get("serviceAccountName") or "default"


def _tolerate(template: Any) -> None:
    spec = template.get("spec") if isinstance(template, dict) else None
    if isinstance(spec, dict):
        tolerations = spec.get("tolerations") or []
        if isinstance(tolerations, list) and TOLERATION not in tolerations:
            spec["tolerations"] = [*tolerations, TOLERATION]
