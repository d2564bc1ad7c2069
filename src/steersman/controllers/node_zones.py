"""Zones of nodes: how fast NoExecute taints are set, so that a zone that fails does not lose its pods all at once.

One node in ten seconds while a zone is well or failed as a whole; where more than half of a zone failed, one in a
hundred seconds in a zone of more than fifty nodes, and none in a smaller one. When every zone failed as a whole, it is
this side that is cut off: all such taints go, and none is set until a node is ready. Source of the facts: Kubernetes
1.36, pkg/controller/nodelifecycle (handleDisruption, scheduler/rate_limited_queue.go) and component-helpers
node/topology.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api.client import Client, key_of
from steersman.controllers.conditions import find as condition_of
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
EVICTING: Final = {"False": NOT_READY, "Unknown": UNREACHABLE}
"""Status of the condition Ready → the taint that says so."""
EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
"""A node with this label says nothing of its zone."""
ZONES: Final = Key("", "Node", "", "")
"""Stands for the zones of all nodes."""
NORMAL: Final = "Normal"
PARTIAL: Final = "PartialDisruption"
FULL: Final = "FullDisruption"
SECONDS: Final = 10
"""Between two nodes of a zone (--node-eviction-rate)."""
SLOW_SECONDS: Final = 100
"""The same in a large zone of which much failed (--secondary-node-eviction-rate)."""
LARGE: Final = 50
"""Nodes of a zone that is not large (--large-cluster-size-threshold)."""
UNHEALTHY: Final = 0.55
"""The part of a zone that is much of it (--unhealthy-zone-threshold)."""
FEW: Final = 2
"""So many nodes that failed are never much of a zone."""
STATES: Final = "zones"
"""In memory: zone → its state, seconds between two nodes (0: none), and when the last one had its turn; without an
entry a zone is well and no node of it had its turn lately."""
SPARED: Final = "spared"
"""In memory: when the failure of everything ended. Silent nodes get a new time of grace from then on."""
WELL: Final = {"state": NORMAL, "seconds": SECONDS, "last": None}


def is_node_ready(node: Json) -> bool:
    """Whether the condition Ready is True."""
    return readiness(node) == "True"


def is_evicting(taint: Json) -> bool:
    """Whether a taint drives pods away because its node is not ready."""
    return taint["effect"] == "NoExecute" and taint["key"] in (NOT_READY, UNREACHABLE)


def zone_of(node: Json) -> str:
    """The zone of a node; "" for none."""
    labels = node["metadata"].get("labels") or EMPTY
    found = [
        labels.get(f"failure-domain.beta.kubernetes.io/{part}", labels.get(f"topology.kubernetes.io/{part}", ""))
        for part in ("region", "zone")
    ]
    return "/".join(found) if any(found) else ""


def throttle(c: Client) -> None:
    """Judges all zones, and sets the taints whose turn it is; wakes the key when the next one's is."""
    nodes = c.list("v1/Node")
    states = {zone: dict(state) for zone, state in (c.memory.get(STATES) or EMPTY).items()}
    zones: dict[str, list[Any]] = {}
    for node in nodes:
        if EXCLUDED not in (node["metadata"].get("labels") or EMPTY):
            zones.setdefault(zone_of(node), []).append(node)
    found = {zone: _state_of(members) for zone, members in zones.items()}
    all_failed = bool(found) and all(state == FULL for state in found.values())
    had_failed = bool(found) and all(states.get(zone, WELL)["state"] == FULL for zone in found)
    states = {zone: state for zone, state in states.items() if zone in found}
    if all_failed and not had_failed:
        for node in nodes:
            _without_taints(c, node)
        states = {zone: {"state": FULL, "seconds": 0, "last": None} for zone in found}
    elif not all_failed:
        if had_failed:
            c.memory[SPARED] = c.timestamp()
        for zone, state in found.items():
            before = states.get(zone, WELL)
            if had_failed or before["state"] != state:
                states[zone] = _changed(c, before, state, len(zones[zone]))
    if not all_failed:
        _take_turns(c, nodes, states)
    kept = {zone: state for zone, state in states.items() if state != WELL}
    if kept != (c.memory.get(STATES) or {}):
        c.memory[STATES] = kept
        if not kept:
            del c.memory[STATES]


def readiness(node: Json) -> str:
    """The status of the condition Ready; "" without one."""
    ready = condition_of((node.get("status") or EMPTY).get("conditions") or (), "Ready")
    return "" if ready is None else str(ready["status"])


def _state_of(members: list[Any]) -> str:
    failed = sum(not is_node_ready(node) for node in members)
    if failed == len(members):
        return FULL
    return PARTIAL if failed > FEW and failed / len(members) >= UNHEALTHY else NORMAL


def _changed(c: Client, before: Json, state: str, size: int) -> dict[str, Any]:
    """A zone in a new state. A pace that changes while somebody waits begins with a wait."""
    slow = SLOW_SECONDS if size > LARGE else 0
    seconds = slow if state == PARTIAL else SECONDS
    if seconds == before["seconds"]:
        return {**before, "state": state}
    waits = not before["seconds"] or (before["last"] is not None and not c.elapsed(before["last"], before["seconds"]))
    return {"state": state, "seconds": seconds, "last": c.timestamp() if waits and seconds else None}


def _take_turns(c: Client, nodes: list[Any], states: dict[str, dict[str, Any]]) -> None:
    """Sets the NoExecute taint of nodes that are not ready: those that have waited longest first."""
    waiting = [node for node in nodes if readiness(node) in EVICTING and not _has_taint(node)]
    for node in sorted(waiting, key=_since):
        zone = zone_of(node)
        state = states.get(zone, WELL)
        if not state["seconds"] or (state["last"] is not None and not c.after(state["last"], state["seconds"])):
            continue
        now = c.timestamp()
        taint = {"key": EVICTING[readiness(node)], "effect": "NoExecute", "timeAdded": now}
        taints = [*((node.get("spec") or EMPTY).get("taints") or ()), taint]
        c.patch(key_of(node), {"spec": {"taints": taints}}, rv=node["metadata"]["resourceVersion"])
        states[zone] = {**state, "last": now}
    for zone, state in states.items():
        if state["last"] is not None and c.elapsed(state["last"], state["seconds"]):
            states[zone] = {**state, "last": None}


def _has_taint(node: Json) -> bool:
    return any(is_evicting(each) for each in (node.get("spec") or EMPTY).get("taints") or ())


def _since(node: Json) -> tuple[str, str]:
    ready = condition_of(node["status"]["conditions"], "Ready") or EMPTY
    return ready.get("lastTransitionTime") or "", node["metadata"]["name"]


def _without_taints(c: Client, node: Json) -> None:
    if _has_taint(node):
        kept = [each for each in node["spec"]["taints"] if not is_evicting(each)]
        c.patch(key_of(node), {"spec": {"taints": kept or None}}, rv=node["metadata"]["resourceVersion"])
