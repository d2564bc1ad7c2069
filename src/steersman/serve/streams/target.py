"""Which container a request for a pod's log or streams means. Source of rules and texts: kubernetes
pkg/registry/core/pod/strategy.go (LogLocation, streamLocation, validateContainer), release 1.36."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from steersman.api import errors
from steersman.api.references import CONTAINERS
from steersman.kernel.changelog import Gone
from steersman.kernel.object import Key, Object
from steersman.kernel.streams import Target
from steersman.serve.backend import Backend

POD: Final = ("", "Pod")


def existing_pod(backend: Backend, namespace: str, name: str) -> Object:
    """The pod. Raises ApiError 404."""
    found = backend.store.get(Key("", "Pod", namespace, name))
    if found is None:
        raise errors.not_found("pods", name)
    return found


def container_of(pod: Object, asked: str) -> str:
    """The container that was asked for, or the only one. Raises ApiError 400."""
    spec: Mapping[str, Any] = pod.value["spec"]
    names = [each["name"] for field in CONTAINERS for each in spec.get(field) or ()]
    if asked:
        if asked not in names:
            raise errors.bad_request(f"container {asked} is not valid for pod {pod.key.name}")
        return asked
    containers: Sequence[Any] = spec.get("containers") or ()
    if len(containers) == 1:
        only: str = containers[0]["name"]
        return only
    message = f"a container name must be specified for pod {pod.key.name}"
    raise errors.bad_request(f"{message}, choose one of: [{' '.join(names)}]" if containers else message)


def on_its_node(backend: Backend, pod: Object, container: str) -> Target:
    """The container for the node to find. Raises ApiError 404 when there is no such node."""
    node = pod.node or ""
    if backend.store.get(Key("", "Node", "", node)) is None:
        raise errors.not_found("nodes", node)
    return Target(pod, container, lambda: _changes(backend, pod))


async def _changes(backend: Backend, pod: Object) -> AsyncIterator[Object]:
    """Later versions of this incarnation of a pod, those missed included only as what came of them."""
    seen, rev = pod.rv, backend.store.rev
    while True:
        now = backend.store.get(pod.key)
        if now is None or now.uid != pod.uid:
            return
        if now.rv != seen:
            seen = now.rv
            yield now
        await backend.changed(POD, rev)
        try:
            events = backend.since(POD, rev)
        except Gone:
            events = []
        rev = events[-1].rev if events else backend.store.rev
