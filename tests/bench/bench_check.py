"""The reductions' gates: Deployment, ReplicaSet and a virtual node, and Kamera's independent writers.

`python tests/bench/bench_check.py [NAME...]` runs all gates or some of them, prints their figures and exits 1 when one
is missed. Seconds are of CPU time. The Deployments have no progress deadline: with one, time is part of every state.
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from steersman.check import Bounds, Explorer, Scenario
from steersman.check.properties.names import EVERY
from steersman.controllers.deployment import Deployment
from steersman.controllers.replicaset import ReplicaSet
from steersman.nodes.kubelet import VirtualKubelet

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.check.models import writers

NO_DEADLINE = 2**31 - 1
"""What Kubernetes takes for none."""
PATIENCE = 300
"""Seconds after which a search is given up."""


def deployments(count: int, replicas: int) -> Scenario:
    """Deployments whose pods run on one virtual node from the start."""
    w = Scenario(f"{count} x {replicas}")
    keys = []
    for number in range(count):
        name = f"web-{number}"
        labels = {"app": name}
        pod = {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1"}]}
        spec = {
            "replicas": replicas,
            "progressDeadlineSeconds": NO_DEADLINE,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        keys.append(w.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}))
    w.run(Deployment, ReplicaSet, VirtualKubelet)
    w.converges(lambda s: all(s[key].status.readyReplicas == replicas for key in keys)).confluent()
    return w


class Gate(NamedTuple):
    """One search that must be COMPLETE and hold within its seconds; None: it is only shown."""

    count: int
    replicas: int
    bounds: dict[str, Any]
    seconds: float | None


GATES = {
    "3x3": Gate(3, 3, {"atomic": True}, 1),
    "10x3": Gate(10, 3, {"atomic": True}, 10),
    "3x3 writes": Gate(3, 3, {"by_write": True}, None),
    "10x3 writes": Gate(10, 3, {"by_write": True}, 10),
    "3x2 calls": Gate(3, 2, {}, None),
    "1x3 calls": Gate(1, 3, {}, None),
    "1x2 lag": Gate(1, 2, {"lag": 1, "crashes": 1, "conflicts": 1}, 60),
    "1x2 lag writes": Gate(1, 2, {"by_write": True, "lag": 1, "crashes": 1, "conflicts": 1}, 60),
}


def measured(name: str, gate: Gate) -> bool:
    """Runs one search and prints its figures; whether the gate holds."""
    explorer = Explorer(deployments(gate.count, gate.replicas), Bounds(max_seconds=PATIENCE, **gate.bounds))
    start = time.process_time()
    verdict = explorer.run()
    seconds = time.process_time() - start
    good = verdict.complete and verdict.holds and (gate.seconds is None or seconds < gate.seconds)
    wanted = "" if gate.seconds is None else f" (gate {gate.seconds:g} s)"
    print(f"{name}: {seconds:.2f} s of CPU time{wanted}: {'holds' if good else 'MISSED'}")
    print(verdict.summary())
    return good or gate.seconds is None


def wrote_once_each(count: int) -> bool:
    """Independent writers make as many real reconciles as they are."""
    explorer = Explorer(writers(count, False), Bounds(atomic=True), without=[about.name for about in EVERY])
    verdict = explorer.run()
    reconciles = explorer.system.reexec.ended
    print(
        f"{count} independent writers: {plural(reconciles)}, {verdict.states} states, {verdict.transitions} transitions"
    )
    return verdict.complete and verdict.holds and reconciles == count


def plural(count: int) -> str:
    """`7 real reconciles`."""
    return f"{count:,} real reconcile{'' if count == 1 else 's'}"


def main(names: list[str]) -> int:
    """All gates, or those named."""
    gc.disable()
    good = [measured(name, gate) for name, gate in GATES.items() if not names or name in names]
    if not names:
        good += [wrote_once_each(count) for count in (4, 7, 40)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
