"""The client in the process of a control plane, as tests use it: `steersman.testing.control_plane()`, not durable.

    .venv/bin/python tests/bench/bench_inprocess.py [--pods N]

Means over some thousand calls from the caller's side, with the change of threads that a write needs; the best of three
rounds is judged, for whatever else the machine does only adds. Exits with 1 when a gate is missed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import steersman as sm
from tests.bench.bench_store import template

ROUNDS: Final = 3
GATES: Final = {"get": 15.0, "create": 150.0}
"""Microseconds."""


def mean(calls: int, call: Callable[[int], Any]) -> float:
    """Microseconds of one call. What was made before is collected first: it is no call's to pay for."""
    gc.collect()
    start = time.perf_counter()
    for number in range(calls):
        call(number)
    return (time.perf_counter() - start) / calls * 1e6


def rounds(cp: Any, pods: int) -> dict[str, list[float]]:
    """What each call took, round by round."""
    client, found = cp.client, {name: [] for name in ("create", "get", "get of an object", "list", "patch", "delete")}
    spec = template(0)["spec"]

    def named(round_: int, number: int) -> Any:
        return client.key("v1/Pod", f"web-{round_}-{number}", "default")

    for round_ in range(ROUNDS):
        bodies = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"web-{round_}-{number}", "namespace": "default", "labels": {"app": "web"}},
                "spec": spec,
            }
            for number in range(pods)
        ]
        keys = [named(round_, number) for number in range(pods)]
        found["create"].append(mean(pods, lambda n, bodies=bodies: client.create(bodies[n])))
        found["get"].append(mean(pods, lambda n, keys=keys: client.get(keys[n])))
        objects = [client.get(key) for key in keys]
        found["get of an object"].append(mean(pods, lambda n, objects=objects: client.get(objects[n])))
        found["list"].append(mean(10, lambda _: client.list("v1/Pod", "default")) / pods)
        patch = [{"metadata": {"annotations": {"n": str(number)}}} for number in range(pods)]
        found["patch"].append(mean(pods, lambda n, keys=keys, patch=patch: client.patch(keys[n], patch[n])))
        found["delete"].append(mean(pods, lambda n, keys=keys: client.delete(keys[n])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=3_000)
    pods = parser.parse_args().pods
    with sm.testing.control_plane(virtual_nodes=0, controllers=("-kube-scheduler", "-kubelet")) as cp:
        cp.client.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
        )
        found = rounds(cp, pods)
    missed = 0
    for name, times in found.items():
        gate = GATES.get(name)
        held = gate is None or min(times) <= gate
        missed += not held
        told = "" if gate is None else f"   gate {gate:.0f} us{'' if held else ': MISSED'}"
        print(f"{name:20}{' '.join(f'{each:8.1f}' for each in times)} us{told}")
    raise SystemExit(1 if missed else 0)


if __name__ == "__main__":
    main()
