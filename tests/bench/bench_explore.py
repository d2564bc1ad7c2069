"""The explorer's gate: Deployment, ReplicaSet, garbage collector and a virtual node; 2 Deployments of 2 replicas.

`python tests/bench/bench_explore.py [TRANSITIONS]` searches call by call at lag 0 and lag 1, over the first 1,000,000
transitions or to COMPLETE, with both memos and (over fewer transitions) without. It prints transitions a second of CPU
time, memo hit rates, bytes a state and a transition, and the frontier apart. Exits 1 when a gate fails.
"""

from __future__ import annotations

import gc
import resource
import sys
import time

from steersman.check import Bounds, Explorer, Scenario
from steersman.controllers.deployment import Deployment
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.replicaset import ReplicaSet
from steersman.nodes.kubelet import VirtualKubelet

MIN_RATE = 10_000
MAX_FINGERPRINT_BYTES = 110
MAX_STATE_BYTES = 150
WITHOUT_MEMO = 20_000
"""Transitions searched without memos: enough for a rate."""


def scenario(deployments: int = 2, replicas: int = 2) -> Scenario:
    """Deployments whose pods run on one virtual node from the start."""
    w = Scenario(f"{deployments} deployments x {replicas} replicas")
    keys = []
    for number in range(deployments):
        name = f"web-{number}"
        labels = {"app": name}
        spec = {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1"}]}
        keys.append(
            w.apply(
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": name},
                    "spec": {
                        "replicas": replicas,
                        "selector": {"matchLabels": labels},
                        "template": {"metadata": {"labels": labels}, "spec": spec},
                    },
                }
            )
        )
    w.run(Deployment, ReplicaSet, GarbageCollector, VirtualKubelet)
    w.converges(lambda s: all(s[key].status.readyReplicas == replicas for key in keys))
    return w


def measure(lag: int, transitions: int, memo: bool) -> bool:
    """One search; prints its figures and says whether the gates hold."""
    explorer = Explorer(
        scenario(),
        Bounds(lag=lag, max_transitions=transitions),
        read_memo=memo,
        write_memo=memo,
        twice=memo,
        settle=False,
        clusters=False,
        sleep=False,
        symmetry=False,
    )
    start = time.process_time()
    verdict = explorer.run()
    rate = verdict.transitions / (time.process_time() - start)
    visited = explorer.graph.visited.memory / verdict.states
    states, edges = verdict.memory
    print(f"lag {lag}, {'both memos' if memo else 'no memo'}: {rate:,.0f} transitions/s")
    print(verdict.summary())
    print(
        f"  fingerprints {visited:.0f} B a state; with the graph {states / verdict.states:.0f} B a state and "
        f"{edges / verdict.transitions:.0f} B a transition"
    )
    print(f"  frontier at its peak: {verdict.frontier_peak:,} worlds")
    if not memo:
        return True
    small = visited <= MAX_FINGERPRINT_BYTES and states / verdict.states <= MAX_STATE_BYTES
    return rate >= MIN_RATE and small and verdict.holds


def main() -> int:
    """Both lags, with and without memos."""
    transitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    gc.disable()
    held = [measure(lag, transitions, True) for lag in (0, 1)]
    for lag in (0, 1):
        measure(lag, min(transitions, WITHOUT_MEMO), False)
    print(f"resident memory at the peak: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
