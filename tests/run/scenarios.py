"""What users do to workloads, and what they observe once it has come to rest: for any set of controllers.

`play` drives a control plane by its client; after each step `settled` gives the objects and Events in a form in which
two clusters with the same controllers are equal: no names, uids or times that somebody drew.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

VECTORS: Final = Path(__file__).with_name("controllers.json.xz")
NAMESPACE: Final = "default"
KINDS: Final = (
    "v1/Pod",
    "v1/PersistentVolumeClaim",
    "v1/ReplicationController",
    "apps/v1/Deployment",
    "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
    "apps/v1/DaemonSet",
    "apps/v1/ControllerRevision",
    "batch/v1/Job",
    "batch/v1/CronJob",
    "policy/v1/PodDisruptionBudget",
)
DRAWN: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "generation")
OTHERS: Final = ("default-scheduler", "kubelet", "node-controller")
"""Those whose Events are not a controller's under comparison."""
RACE: Final = "Operation cannot be fulfilled on"
"""In Events about a write that came too late and was made again: who is late differs from run to run."""
_WORDS: Final = (
    (re.compile(r'"\d{4}-\d\d-\d\dT[\d:.]+Z"'), '"TIME"'),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b[bcdfghjklmnpqrstvwxz2456789]{8,10}\b"), "HASH"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-DRAWN"),
    (re.compile(r"\bfd[0-9a-f:]+|\b10\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"\bnode-\d\b"), "NODE"),
)
LABELS: Final = {"matchLabels": {"app": "web"}}


def template(image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def made(kind: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    version, _, short = kind.rpartition("/")
    return {"apiVersion": version, "kind": short, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def job(name: str, exit_code: str = "0", lifetime: str = "0", **spec: Any) -> dict[str, Any]:
    inner = template(restartPolicy="Never")
    inner["metadata"] = {
        "annotations": {"steersman.dev/exit-code": exit_code, "steersman.dev/lifetime-seconds": lifetime}
    }
    return made("batch/v1/Job", name, template=inner, **spec)


def image(text: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": text}]}}}}


Step = Callable[[Any], Any]


def create(*objects: dict[str, Any]) -> Step:
    return lambda c: [c.create(each) for each in objects]


def patch(kind: str, body: dict[str, Any], name: str = "web") -> Step:
    return lambda c: c.patch(c.key(kind, name, NAMESPACE), body, form="strategic")


def delete(kind: str, propagation: str, name: str = "web") -> Step:
    return lambda c: c.delete(c.key(kind, name, NAMESPACE), propagation=propagation)


DEPLOYMENT, SETS, DAEMONS = "apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/DaemonSet"
CLAIM: Final = {
    "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}},
}  # fmt: skip
ONE_BY_ONE: Final = {"maxSurge": 1, "maxUnavailable": 0}


def _deployment(**spec: Any) -> dict[str, Any]:
    return made(DEPLOYMENT, selector=LABELS, template=template(), **spec)


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "deployment-rolling": (
        create(_deployment(replicas=2, strategy={"rollingUpdate": ONE_BY_ONE})),
        patch(DEPLOYMENT, image("nginx:2")),
        patch(DEPLOYMENT, {"spec": {"paused": True, **image("nginx:3")["spec"]}}),
        patch(DEPLOYMENT, {"spec": {"replicas": 1}}),
        patch(DEPLOYMENT, {"spec": {"paused": False}}),
        patch(DEPLOYMENT, image("nginx:1")),
        delete(DEPLOYMENT, "Foreground"),
    ),
    "deployment-recreate": (
        create(_deployment(replicas=2, strategy={"type": "Recreate"})),
        patch(DEPLOYMENT, image("nginx:2")),
        patch(DEPLOYMENT, {"spec": {"replicas": 0}}),
    ),
    "deployment-deadline": (
        create(
            made(
                DEPLOYMENT, replicas=1, progressDeadlineSeconds=2, selector=LABELS,
                template=template(nodeSelector={"no": "where"}),
            )
        ),
    ),
    "statefulset-partition": (
        create(
            made(
                SETS, replicas=3, serviceName="web", selector=LABELS, template=template(),
                updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            )
        ),
        patch(SETS, image("nginx:2")),
        patch(SETS, {"spec": {"replicas": 1}}),
    ),
    "statefulset-claims": (
        create(
            made(
                SETS, replicas=2, podManagementPolicy="Parallel", updateStrategy={"type": "OnDelete"},
                persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
                serviceName="web", selector=LABELS,
                template=template(), volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": CLAIM}],
            )
        ),
        patch(SETS, image("nginx:2")),
        delete(SETS, "Background"),
    ),
    "daemonset": (
        create(made(DAEMONS, selector=LABELS, template=template())),
        patch(DAEMONS, image("nginx:2")),
        patch(DAEMONS, {"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}}),
        patch(DAEMONS, image("nginx:1")),
    ),
    "job": (
        create(job("done", completions=2, parallelism=1), job("held", suspend=True)),
        patch("batch/v1/Job", {"spec": {"suspend": False}}, "held"),
    ),
    "job-failures": (
        create(
            job("limit", "3", backoffLimit=0),
            job("rule", "3", podFailurePolicy={
                "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]
            }),
            job("late", lifetime="60", activeDeadlineSeconds=1),
            job("each", "3", completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=0),
            job("enough", completionMode="Indexed", completions=2, parallelism=1, successPolicy={
                "rules": [{"succeededCount": 1}]
            }),
        ),
    ),
    "budget": (
        create(_deployment(replicas=3)),
        create(made("policy/v1/PodDisruptionBudget", selector=LABELS, minAvailable=2)),
        patch("policy/v1/PodDisruptionBudget", {"spec": {"minAvailable": None, "maxUnavailable": "50%"}}),
    ),
    "replicationcontroller": (
        create(made("v1/ReplicationController", replicas=2, selector={"app": "web"}, template=template())),
        patch("v1/ReplicationController", {"spec": {"replicas": 1}}),
        delete("v1/ReplicationController", "Orphan"),
    ),
    "ephemeral-volume": (
        create(
            made("v1/Pod", containers=[{"name": "c", "image": "i"}], volumes=[
                {"name": "d", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"x": "y"}}, "spec": CLAIM}}}
            ])
        ),
    ),
}  # fmt: skip
"""What is done, step by step; after each step comes a rest."""


def seen(c: Any) -> list[str]:
    """All that can be observed now, in order."""
    texts = [_plain(each) for kind in KINDS for each in c.list(kind, NAMESPACE)]
    return sorted([*texts, *{text for event in c.list("v1/Event", NAMESPACE) if (text := _told(event))}])


def _told(event: Any) -> str:
    if (event.get("source") or {}).get("component", event.get("reportingComponent")) in (None, *OTHERS):
        return ""
    if event["reason"] == "FailedScheduling" or event.get("reportingComponent") in OTHERS:
        return ""
    if RACE in event["message"]:
        return ""
    about = event["involvedObject"]
    return _words(f"{about['kind']} {about['name']}: {event['type']} {event['reason']} {event['message']}")


def _plain(obj: Any) -> str:
    plain = orjson.loads(orjson.dumps(obj))
    for field in DRAWN:
        plain["metadata"].pop(field, None)
    return _words(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode())


def _words(text: str) -> str:
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return text


def play(c: Any, name: str, settled: Callable[[Any, int], list[str]]) -> Iterator[list[str]]:
    """Takes a scenario's steps; `settled(c, step)` waits for the rest after each and gives what is seen then."""
    for number, step in enumerate(SCENARIOS[name]):
        step(c)
        yield settled(c, number)


def load() -> dict[str, list[list[str]]]:
    """What kube-controller-manager 1.36 made of each scenario, by its steps."""
    found: dict[str, list[list[str]]] = orjson.loads(lzma.decompress(VECTORS.read_bytes()))
    return found
