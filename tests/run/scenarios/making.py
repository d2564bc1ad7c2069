"""Objects of users, and what users do with them: the words that scenarios are written in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

NAMESPACE: Final = "default"
LONG_AGO: Final = "2020-01-01T00:00:00Z"
LABELS: Final = {"matchLabels": {"app": "web"}}
CONTAINERS: Final = [{"name": "c", "image": "i"}]


def template(image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def made(kind: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    version, _, short = kind.rpartition("/")
    return {"apiVersion": version, "kind": short, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def labelled(obj: dict[str, Any]) -> dict[str, Any]:
    """The object, with the label that everybody selects by."""
    return {**obj, "metadata": {**obj["metadata"], "labels": {"app": "web"}}}


def ends(exit_code: str = "0", lifetime: str = "0") -> dict[str, Any]:
    """The template of a pod that ends."""
    notes = {"steersman.dev/exit-code": exit_code, "steersman.dev/lifetime-seconds": lifetime}
    return {**template(restartPolicy="Never"), "metadata": {"annotations": notes}}


def job(name: str, exit_code: str = "0", lifetime: str = "0", **spec: Any) -> dict[str, Any]:
    return made("batch/v1/Job", name, template=ends(exit_code, lifetime), **spec)


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


def deployment(**spec: Any) -> dict[str, Any]:
    return made(DEPLOYMENT, selector=LABELS, template=template(), **spec)


def status(kind: str, body: dict[str, Any], name: str = "web") -> Step:
    """What a user, or a part of the cluster that is not there, says about an object."""
    return lambda c: c.patch_status(c.key(kind, name, NAMESPACE), body)


def together(*steps: Step) -> Step:
    """Several at once: no rest between them."""
    return lambda c: [step(c) for step in steps]
