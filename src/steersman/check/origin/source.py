"""Where a check is to start: `FILE.sktrace@TIME` or a kubeconfig. Gives objects as a scenario takes them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from steersman.api.client import key_of
from steersman.api.kinds import UnknownKind
from steersman.api.times import TimeError, parse_time
from steersman.check.mistake import ScenarioError
from steersman.check.origin.cluster import Cluster
from steersman.check.scenario import Scenario
from steersman.kernel.effect import GK, MICRO
from steersman.trace import sktrace
from steersman.trace.sanitize import sanitize

TRACE: Final = ".sktrace"
HIDDEN: Final = base64.b64encode(b"not shown").decode()
"""Stands for each value of a Secret: reports quote objects."""
OBSERVED: Final = "observedGeneration"


def started(scenario: Scenario, source: str) -> Scenario:
    """The scenario with the objects of a source there at the start; they take the place of applied ones of the same
    key. Only kinds that its controllers watch, or declare to read, are taken. Raises `ScenarioError`."""
    loops = scenario.system().loops
    every = any(getattr(loop, "everything", False) for loop in loops)
    kinds = {kind.gk for kind in scenario.kinds.all()} if every else {gk for loop in loops for gk in loop.informers}
    path, at = _split(source)
    found = _recorded(path, at, kinds) if path.endswith(TRACE) else _listed(path, scenario, kinds)
    objects = [_clean(obj) for obj in found if _taken(obj, scenario, kinds)]
    if not objects:
        named = ", ".join(sorted(kind for _, kind in kinds)) or "none"
        raise ScenarioError(
            f"from {source}: no object of a kind that the controllers watch or declare to read ({named})"
        )
    return scenario.starting(objects)


def _split(source: str) -> tuple[str, str]:
    """The path, and the time after the last `@` of a recording's."""
    path, sign, at = source.rpartition("@")
    return (path, at) if sign and path.endswith(TRACE) else (source, "")


def _recorded(path: str, at: str, kinds: set[GK]) -> list[dict[str, Any]]:
    """The objects of a recording at a time: RFC 3339, seconds after its beginning, or "" for its end."""
    try:
        trace = sktrace.read(path)
        until = _second(at, trace.events[0].ts) if at and trace.events else None
    except (sktrace.TraceError, TimeError) as error:
        raise ScenarioError(f"from {path}: {error}") from None
    there: dict[tuple[str, ...], dict[str, Any]] = {}
    for event in trace.events:
        if until is not None and event.ts > until:
            break
        for obj in event.deleted:
            there.pop(key_of(obj), None)
        there.update({key_of(obj): obj for obj in event.applied if key_of(obj).gk in kinds})
    return list(there.values())


def _second(at: str, first: int) -> int:
    """A moment in seconds since 1970."""
    if at.isdecimal() and len(at) < 12:
        return first + int(at)
    return parse_time(at) // MICRO


def _listed(path: str, scenario: Scenario, kinds: set[GK]) -> list[dict[str, Any]]:
    with Cluster(path) as cluster:
        return [obj for gk in sorted(kinds) for obj in cluster.list(scenario.kinds.get(*gk))]


def _taken(obj: Mapping[str, Any], scenario: Scenario, kinds: set[GK]) -> bool:
    try:
        kind = scenario.kinds.by_api_version(obj["apiVersion"], obj["kind"])
    except UnknownKind:
        return False
    return kind.gk in kinds


def _clean(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Without what belongs to one incarnation, and with generations that begin again."""
    out = sanitize(obj)
    if out["apiVersion"] == "v1" and out["kind"] == "Secret":
        out["data"] = dict.fromkeys(out.get("data") or {}, HIDDEN)
        out.pop("stringData", None)
    status = out.get("status")
    if isinstance(status, dict):
        conditions = status.get("conditions")
        for part in (status, *(conditions if isinstance(conditions, list) else ())):
            if isinstance(part, dict) and isinstance(part.get(OBSERVED), int):
                part[OBSERVED] = min(part[OBSERVED], 1)
    return out
