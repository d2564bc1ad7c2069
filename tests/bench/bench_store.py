"""Gate 1: the cost of a write and the memory of a pod, at 100,000 pods.

`python tests/bench/bench_store.py [PODS]` makes, binds, reports on (three times) and deletes every pod through the real
request machine, with validation and managedFields, in one namespace and spread over 1,000. It prints each verb's mean,
the resident memory a pod at the peak, the longest pause between two writes, and the cost of indexed lists.
Exits 1 when a gate does not hold.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Call, Commit, ListQuery, Request
from steersman.kernel.object import PARSED, Key
from steersman.kernel.store import Store, StoreConfig
from steersman.kernel.value import Frozen, freeze

MAX_WRITE_US = 60.0
MAX_POD_BYTES = 8 * 1024
MAX_PAUSE_MS = 100.0
TEMPLATES = 100
AT_ONCE = 20
NODES = 5_000
START = 1_780_000_000 * 1_000_000
POD = ("", "Pod")


def rss() -> int:
    """Resident memory now, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def template(number: int) -> Frozen:
    """A pod template of ordinary size: two containers with probes, resources, env, mounts and volumes."""
    container = {
        "name": "app",
        "image": f"registry.example/team-{number}/app:1.{number}",
        "args": ["--listen=:8080", f"--shard={number}"],
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        "env": [{"name": f"SETTING_{i}", "value": f"value-{number}-{i}"} for i in range(8)],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}, {"name": "cache", "mountPath": "/cache"}],
    }
    sidecar = {"name": "log", "image": "registry.example/log:2", "args": ["--follow"]}
    labels = {"app": f"app-{number}", "team": f"team-{number % 7}", "pod-template-hash": f"{number:08x}"}
    spec = {
        "containers": [container, sidecar],
        "volumes": [{"name": "config", "configMap": {"name": f"app-{number}"}}, {"name": "cache", "emptyDir": {}}],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"app-{number}-{number:08x}",
        "uid": f"{number:08d}-0000-4000-8000-000000000000",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return freeze({"metadata": {"labels": labels, "ownerReferences": [owner]}, "spec": spec})


def status(number: int, phase: int, image: str) -> dict[str, object]:
    """A fresh status, as a kubelet sends it: 0 scheduled, 1 starting, 2 ready. As a kubelet does, a condition keeps the
    time at which it last changed."""
    times = [f"2026-05-28T20:{number % 60:02d}:{second:02d}Z" for second in range(3)]
    turned = {
        "Initialized": 0,
        "PodScheduled": 0,
        "PodReadyToStartContainers": 1,
        "ContainersReady": 2,
        "Ready": 2,
    }
    conditions = [
        {
            "type": kind,
            "status": "True" if phase >= when else "False",
            "lastTransitionTime": times[when if phase >= when else 0],
        }
        for kind, when in turned.items()
    ]
    out: dict[str, object] = {"phase": "Running" if phase else "Pending", "conditions": conditions}
    out["qosClass"] = "Burstable"
    if phase:
        ip = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        out |= {"hostIP": f"192.168.{number % 250}.7", "podIP": ip, "podIPs": [{"ip": ip}], "startTime": times[1]}
        running = {"running": {"startedAt": times[2]}}
        out["containerStatuses"] = [
            {
                "name": name,
                "image": image,
                "imageID": f"sha256:{number:064x}",
                "containerID": f"containerd://{number:064x}",
                "ready": phase == 2,
                "started": phase == 2,
                "restartCount": 0,
                "state": running if phase == 2 else {"waiting": {"reason": "ContainerCreating"}},
            }
            for name in ("app", "log")
        ]
    return out


class Run:
    """One store, one request machine, and the time each verb took."""

    def __init__(self) -> None:
        self.api = Api(Kinds.builtin())
        self.store = Store(StoreConfig(compact=True))
        self.spent: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self.longest = 0.0
        self.uids = 0

    def do(self, request: Request) -> None:
        """Begins and commits one request, as a face does."""
        outcome = self.api.begin(self.store, request)
        while isinstance(outcome, Call):
            self.uids += 1
            outcome = outcome.resume(f"{self.uids:08d}-1111-4000-8000-{self.uids:012x}")
        assert isinstance(outcome, Commit), outcome
        assert self.store.commit(outcome) is not None

    def all(self, name: str, requests: Iterable[Request]) -> None:
        """Does requests a few at a time, each few made just before, and counts the time of the process. Reading that
        clock is a system call, a microsecond here, so it is not read for every write."""
        requests = iter(requests)
        while few := list(islice(requests, AT_ONCE)):
            start = time.process_time()
            for request in few:
                begun = time.perf_counter()
                self.do(request)
                self.longest = max(self.longest, time.perf_counter() - begun)
            self.spent[name] = self.spent.get(name, 0.0) + time.process_time() - start
            self.counts[name] = self.counts.get(name, 0) + len(few)


def creates(keys: list[Key], templates: list[Frozen]) -> Iterator[Request]:
    """A pod from a template for each key."""
    for n, key in enumerate(keys):
        made = templates[n % TEMPLATES]
        body = {"metadata": {"name": key.name, **made["metadata"]}, "spec": made["spec"]}
        now = START + n * 1000
        yield Request("create", key, body, actor="replicaset", manager="kube-controller-manager", now=now)


def binding(key: Key, n: int) -> Request:
    """The n-th pod's way to its node."""
    return Request(
        "create", key, {"target": {"name": f"node-{n % NODES:05d}"}}, "binding", "scheduler", now=START + n * 1000
    )


def reports(keys: list[Key], templates: list[Frozen], phase: int) -> Iterator[Request]:
    """A fresh status for each pod."""
    for n, key in enumerate(keys):
        body = {"status": status(n, phase, templates[n % TEMPLATES]["spec"]["containers"][0]["image"])}
        yield Request("update", key, body, "status", "kubelet", "kubelet", START + n * 1000)


def measure(pods: int, namespaces: int) -> bool:
    """One gate run; prints its figures and says whether the gates hold."""
    run = Run()
    templates = [template(number) for number in range(TEMPLATES)]
    for number in range(namespaces):
        name = f"ns-{number:04d}"
        run.do(Request("create", Key("", "Namespace", "", name), {"metadata": {"name": name}}, now=START))
    gc.collect()
    gc.freeze()
    before = rss()
    keys = [Key("", "Pod", f"ns-{n % namespaces:04d}", f"app-{n % TEMPLATES}-{n:08x}") for n in range(pods)]
    run.all("create", creates(keys, templates))
    run.all("bind", (binding(key, n) for n, key in enumerate(keys)))
    for phase in range(3):
        run.all(f"status {phase}", reports(keys, templates, phase))
    memory = (rss() - before) / pods
    lists = time_lists(run.store)
    ends = {"grace": 0}
    run.all("delete", (Request("delete", key, None, "", "kubelet", now=START, options=ends) for key in keys))
    writes = sum(run.counts.values())
    mean = sum(run.spent.values()) / writes * 1e6
    print(f"{pods:,} pods in {namespaces:,} namespace(s): {writes:,} writes, {mean:.1f} us a write on average")
    for name, spent in run.spent.items():
        print(f"  {name:10} {spent / run.counts[name] * 1e6:7.1f} us")
    print(f"  resident memory {memory:,.0f} B a pod (parsed values kept: {PARSED.held / 2**20:.0f} MiB)")
    print(f"  longest write {run.longest * 1e3:.1f} ms; {lists}")
    gc.unfreeze()
    return mean <= MAX_WRITE_US and memory <= MAX_POD_BYTES and run.longest * 1e3 <= MAX_PAUSE_MS


def time_lists(store: Store) -> str:
    """Lists by node and by owner, against the number of objects they return."""
    out = []
    for index, value in (("node", "node-00007"), ("owner", "00000007-0000-4000-8000-000000000000")):
        start = time.perf_counter()
        found = sum(1 for _ in store.query(ListQuery(POD, None, index, value)))
        spent = time.perf_counter() - start
        out.append(f"list by {index}: {found} objects, {spent / found * 1e6:.2f} us each")
    return "; ".join(out)


def main() -> int:
    """Runs both shapes, each in a process of its own; the exit code says whether the gates hold."""
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    if len(sys.argv) > 2:
        gc.disable()
        return 0 if measure(pods, int(sys.argv[2])) else 1
    shapes = [subprocess.call([sys.executable, __file__, str(pods), shape]) for shape in ("1", "1000")]
    return max(shapes)


if __name__ == "__main__":
    sys.exit(main())
