"""Services and the pods behind them: what the Endpoints and EndpointSlice controllers both ask. Pure.

Source of the facts: Kubernetes 1.36, staging/src/k8s.io/endpointslice (utils.go, util/controller_utils.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.controller import Find
from steersman.api.errors import ApiError
from steersman.api.eviction import is_ready
from steersman.api.service_spec import HEADLESS, IPV4, IPV6, family_of
from steersman.controllers import owned, pods
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

__all__ = ["HEADLESS", "IPV4", "IPV6"]

Json = Mapping[str, Any]
POD: Final = ("", "Pod")
SERVICE: Final = ("", "Service")
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"


def is_served(service: Json) -> bool:
    """Whether controllers keep its endpoints: without a selector somebody else does."""
    spec = service["spec"]
    return spec.get("type") != "ExternalName" and "selector" in spec


def has_address(service: Json) -> bool:
    """Whether it has a clusterIP."""
    return service["spec"].get("clusterIP") not in (None, "", HEADLESS)


def families(service: Json) -> list[str]:
    """The address families it serves, the first one first."""
    spec = service["spec"]
    listed = list(spec.get("ipFamilies") or ())
    if listed:
        return listed
    return [family_of(spec["clusterIP"])] if has_address(service) else [IPV4, IPV6]


def addresses(pod: Json, family: str) -> list[str]:
    """The pod's addresses of a family."""
    listed = [each["ip"] for each in (pod.get("status") or EMPTY).get("podIPs") or ()]
    return [address for address in listed if family_of(address) == family]


def may_serve(pod: Json) -> bool:
    """Whether it has an address and has not ended."""
    status = pod.get("status") or EMPTY
    return pods.phase(pod) not in pods.ENDED and bool(status.get("podIP") or status.get("podIPs"))


def is_named(pod: Json, service: Json) -> bool:
    """Whether the pod's hostname is a name below the Service's."""
    spec = pod["spec"]
    return bool(spec.get("hostname")) and spec.get("subdomain") == service["metadata"]["name"]


def target(pod: Json) -> dict[str, str]:
    """The reference to a pod that an endpoint carries."""
    meta = pod["metadata"]
    return {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def port_of(pod: Json, port: Json) -> int:
    """The number of the pod's port that a Service's port means; 0: it has none of that name."""
    wanted = port.get("targetPort", port["port"])
    if isinstance(wanted, int):
        return wanted
    spec = pod["spec"]
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for each in container.get("ports") or ():
            if each.get("name") == wanted and each.get("protocol", "TCP") == port.get("protocol", "TCP"):
                return int(each["containerPort"])
    return 0


def selects(service: Json, labels: Mapping[str, str] | None) -> bool:
    """Whether a Service's selector covers these labels; one without a selector selects nothing."""
    selector = (service.get("spec") or EMPTY).get("selector")
    have = labels or EMPTY
    return selector is not None and all(have.get(name) == value for name, value in selector.items())


def woken(event: Event, find: Find) -> Iterable[Key]:
    """The Services an event of a Service or a pod concerns."""
    if event.key.gk != POD:
        return (event.key,)
    if event.old is not None and event.new is not None and _face(event.old) == _face(event.new):
        return ()
    keys: dict[Key, None] = {}
    for service in find("services", event.key.namespace):
        for pod in (event.old, event.new):
            if pod is not None and selects({"spec": service.spec_value}, pod.meta.value.get("labels")):
                keys[service.key] = None
    return keys


def _face(pod: Object) -> tuple[Any, ...]:
    """What of a pod can change an endpoint."""
    meta, status, spec = pod.meta.value, pod.status_value or EMPTY, pod.spec_value or EMPTY
    ready = is_ready({"status": status})
    ended = status.get("phase") in pods.ENDED
    names = (spec.get("hostname"), spec.get("subdomain"))
    return meta.get("labels"), "deletionTimestamp" in meta, ready, ended, status.get("podIPs"), pod.node, names, pod.uid


def namespace_goes(refused: ApiError) -> bool:
    """Whether a create was refused because the namespace is being deleted."""
    return any(cause.reason == "NamespaceTerminating" for cause in refused.causes) or refused.reason == "NotFound"


def is_going(service: Json) -> bool:
    """Whether the deletion of a Service has begun."""
    return owned.is_terminating(service)
