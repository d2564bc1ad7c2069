"""How many pods a second the scheduler's core places on 5,000 nodes. By hand: `python tests/bench/bench_sched.py`.

Each line is one workload on a fresh cluster: pods of one template; of 50 templates in turn; of one template that
prefers a zone (scores are normalised each time); pods that fit nowhere; and one pod pinned to each node. Every placed
pod is also confirmed, as its binding would be seen. Times include reading the objects.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from steersman.sched.core import Scheduler
from tests.sched.clusters import container, node, pod, required

NODES = 5_000
ZONES = ("a", "b", "c")

Json = dict[str, Any]


def fresh() -> Scheduler:
    scheduler = Scheduler()
    for index in range(NODES):
        labels = {"kubernetes.io/hostname": f"node-{index:05}", "zone": ZONES[index % len(ZONES)]}
        scheduler.node_upsert(node(f"node-{index:05}", "16", "64Gi", labels=labels))
    return scheduler


def one_template(count: int) -> Iterator[Json]:
    for index in range(count):
        yield pod(f"p{index:06}", container("c", {"cpu": "500m", "memory": "1Gi"}))


def many_templates(count: int) -> Iterator[Json]:
    for index in range(count):
        yield pod(f"p{index:06}", container("c", {"cpu": f"{100 + index % 50}m", "memory": "1Gi"}))


def preferring(count: int) -> Iterator[Json]:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    prefer = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": term}]}
    for each in one_template(count):
        each["spec"]["affinity"] = {"nodeAffinity": prefer}
        yield each


def fitting_nowhere(count: int) -> Iterator[Json]:
    for index in range(count):
        yield pod(f"p{index:06}", container("c", {"cpu": "17"}))


def pinned(count: int) -> Iterator[Json]:
    for index, each in enumerate(one_template(count)):
        names = [f"node-{index:05}"]
        each["spec"]["affinity"] = required(
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]}
        )
        yield each


def measure(name: str, pods: Callable[[int], Iterator[Json]], count: int) -> None:
    scheduler, objects = fresh(), {("default", each["metadata"]["name"]): each for each in pods(count)}
    start = perf_counter()
    for each in objects.values():
        scheduler.pod_upsert(each)
    read = perf_counter()
    placed = 0
    while decisions := scheduler.schedule(0, 1000):
        for decision in decisions:
            if decision.node:
                placed += 1
                each = objects[decision.pod]
                scheduler.pod_upsert({**each, "spec": {**each["spec"], "nodeName": decision.node}})
    end = perf_counter()
    each_read, each_decided = (read - start) / count * 1e6, (end - read) / count * 1e6
    print(f"{name:17} {count:6} pods, {placed:6} placed: {count / (end - start):8,.0f} pods/s in all, ", end="")
    print(f"{each_read:5.1f} µs to read one, {each_decided:6.1f} µs to decide and confirm")


if __name__ == "__main__":
    start = perf_counter()
    fresh()
    print(f"{NODES:,} nodes read in {perf_counter() - start:.2f} s")
    measure("one template", one_template, 20_000)
    measure("50 templates", many_templates, 20_000)
    measure("preferring", preferring, 5_000)
    measure("fitting nowhere", fitting_nowhere, 2_000)
    measure("pinned", pinned, 1_000)
