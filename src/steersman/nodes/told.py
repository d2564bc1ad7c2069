"""What a kubelet tells people of a pod's containers: pulling, pulled, created, started, killing. Pure.

It follows from how a pod changed, so each is told once and by whoever sees the change. Source of the facts: the kubelet
of Kubernetes 1.36 (pkg/kubelet/images/image_manager.go, kuberuntime/kuberuntime_container.go, container/ref.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.api.events import Note, about_pod
from steersman.api.references import CONTAINERS
from steersman.api.times import MICRO
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY
from steersman.nodes.stages import Draw, Stages
from steersman.nodes.status import ACCEPT, START, next_edge

KUBELET: Final = "kubelet"
THERE: Final = 'Container image "{}" already present on machine and can be accessed by the pod'
PULLED: Final = 'Successfully pulled image "{}" in {} ({} including waiting). Image size: 0 bytes.'


def notes(old: Object | None, new: Object, stages: Stages, draw: Draw) -> Iterator[Note]:
    """What the kubelet of a pod's node has to tell after this change of it."""
    was = next_edge(old.value) if old is not None and old.node else ""
    pod = new.value
    if was == ACCEPT and next_edge(pod) == START:
        for container, path in _containers(pod):
            if _pulls(container, stages):
                yield _note(new, path, "Pulling", f'Pulling image "{container.get("image", "")}"')
    elif was == START and (pod.get("status") or EMPTY).get("phase") == "Running":
        took = _duration(stages.pull.micro(draw(new.uid, "pull")))
        for container, path in _containers(pod):
            image = container.get("image", "")
            text = PULLED.format(image, took, took) if _pulls(container, stages) else THERE.format(image)
            yield _note(new, path, "Pulled", text)
            yield _note(new, path, "Created", "Container created")
            yield _note(new, path, "Started", "Container started")
    elif "deletionTimestamp" in new.meta.value and (old is None or "deletionTimestamp" not in old.meta.value):
        running = _running(pod)
        for container, path in _containers(pod):
            if container["name"] in running:
                yield _note(new, path, "Killing", f"Stopping container {container['name']}")


def _containers(pod: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Each container, and the path by which events name it."""
    for place in CONTAINERS:
        for container in pod["spec"].get(place) or ():
            yield container, f"spec.{place}{{{container['name']}}}"


def _running(pod: Mapping[str, Any]) -> dict[str, None]:
    status = pod.get("status") or EMPTY
    fields = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    said = [each for field in fields for each in status.get(field) or ()]
    return {each["name"]: None for each in said if (each.get("state") or EMPTY).get("running") is not None}


def _pulls(container: Mapping[str, Any], stages: Stages) -> bool:
    """Whether it is said to be pulled: where that takes no time, the image was there."""
    takes = stages.pull.seconds > 0 or stages.pull.up_to > 0
    return takes and container.get("imagePullPolicy") != "Never"


def _duration(micro: int) -> str:
    """As Go writes a duration that was rounded to milliseconds."""
    milli = micro * 1_000 // MICRO
    if milli < 1_000:
        return f"{milli}ms"
    return f"{milli / 1_000:g}s"


def _note(pod: Object, path: str, reason: str, message: str) -> Note:
    return Note(about_pod(pod, fieldPath=path), "Normal", reason, message, KUBELET, pod.node or "")
