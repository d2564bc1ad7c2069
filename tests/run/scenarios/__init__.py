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

from tests.run.scenarios import autoscalers, cronjobs, devices, nodes, services, silence, storage, tokens, workloads
from tests.run.scenarios.making import NAMESPACE, Step

VECTORS: Final = Path(__file__).parent.with_name("controllers.json.xz")
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
    "autoscaling/v2/HorizontalPodAutoscaler",
    "v1/Service",
    "v1/Endpoints",
    "discovery.k8s.io/v1/EndpointSlice",
    "v1/ResourceQuota",
    "v1/PersistentVolume",
    "v1/Namespace",
    "v1/Node",
    "v1/Secret",
    "v1/ServiceAccount",
    "resource.k8s.io/v1/ResourceClaim",
    "resource.k8s.io/v1/ResourceSlice",
)
APART: Final = ("kubernetes", "kube-system", "kube-public", "kube-node-lease", "default")
"""Objects by name that are there before anybody does anything."""
DRAWN: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "generation")
SPEED: Final = "endpoints.kubernetes.io/last-change-trigger-time"
"""An annotation that says how fast endpoints follow: whether it is there depends on that, too."""
OTHERS: Final = ("default-scheduler", "kubelet", "node-controller")
"""Those whose Events are not a controller's under comparison."""
RACE: Final = "Operation cannot be fulfilled on"
"""In Events about a write that came too late and was made again: who is late differs from run to run."""
_VIRTUAL: Final = re.compile(r"node-\d$")
"""Nodes that are there before anybody does anything."""
_SHARED: Final = re.compile(r"multiple HPAs: \[([^]]*)\]")
"""In the order of a Go map."""
_WORDS: Final = (
    (re.compile(r'"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)"'), '"TIME"'),
    (re.compile(r'"20[2-9]\d-\d\d-\d\d"'), '"DAY"'),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b[bcdfghjklmnpqrstvwxz2456789]{8,10}\b"), "HASH"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-DRAWN"),
    (re.compile(r"\bfd[0-9a-f:]+|\b10\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"\bnode-\d\b"), "NODE"),
    (re.compile(r"(?<=-)\d{8}\b"), "MINUTE"),
    (re.compile(r'(?<="resourceVersion":)"\d+"'), '"VERSION"'),
)

SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    name: steps
    for part in (workloads, cronjobs, autoscalers, services, storage, nodes, silence, devices, tokens)
    for name, steps in part.SCENARIOS.items()
}
"""What is done, step by step; after each step comes a rest."""
BEFORE: Final = tokens.BEFORE
"""What is there before the controllers are."""


def seen(c: Any) -> list[str]:
    """All that can be observed now, in order."""
    texts = [_plain(each) for kind in KINDS for each in listed(c, kind)]
    return sorted([*texts, *{text for event in c.list("v1/Event", NAMESPACE) if (text := _told(event))}])


def listed(c: Any, kind: str) -> list[Any]:
    """The objects of a kind that a scenario made, or that were made for it."""
    found = c.list(kind, NAMESPACE if c.kind(kind).namespaced else None)
    return [
        each for each in found if each["metadata"]["name"] not in APART and not _VIRTUAL.match(each["metadata"]["name"])
    ]


def _told(event: Any) -> str:
    about = event["involvedObject"]
    others = OTHERS if about["name"] != silence.SILENT else OTHERS[:2]
    if (event.get("source") or {}).get("component", event.get("reportingComponent")) in (None, *others):
        return ""
    if event["reason"] == "FailedScheduling" or event.get("reportingComponent") in others:
        return ""
    if RACE in event["message"]:
        return ""
    return _words(f"{about['kind']} {about['name']}: {event['type']} {event['reason']} {event['message']}")


def _plain(obj: Any) -> str:
    plain = orjson.loads(orjson.dumps(obj))
    for field in DRAWN:
        plain["metadata"].pop(field, None)
    (plain["metadata"].get("annotations") or {}).pop(SPEED, None)
    if plain["metadata"].get("annotations") == {}:
        del plain["metadata"]["annotations"]
    if "endpoints" in plain:  # in the order of a Go map
        plain["endpoints"].sort(key=_text)
    plain.pop("data" if plain["kind"] == "Secret" else "", None)  # a token is signed with a key of somebody's own
    if plain["kind"] == "Node":  # which of two that are set at once comes first is a race
        plain["spec"].get("taints", []).sort(key=_text, reverse=True)
    return _text(plain)


def _text(value: Any) -> str:
    return _words(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def _words(text: str) -> str:
    text = _SHARED.sub(lambda found: f"multiple HPAs: {sorted(found[1].split())}", text)
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
