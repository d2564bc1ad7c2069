"""Device taint eviction: pods whose claims hold a device with a NoExecute taint are deleted, at once or in a while.

The taints are those that drivers publish in ResourceSlices; what a claim tolerates stands in its allocation. A
toleration counts from when the taint was added. Source of the facts: Kubernetes 1.36, pkg/controller/
devicetainteviction and dynamic-resource-allocation/resourceclaim. Taints of a DeviceTaintRule are not looked at: both
the API and the gate of them (DRADeviceTaintRules) are off by default there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.select import tolerates
from steersman.api.times import MICRO, parse_time
from steersman.controllers import owned, pods
from steersman.controllers.resourceclaims import CLAIM, CLAIMS, POD
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
SLICE: Final = ("resource.k8s.io", "ResourceSlice")
SLICES: Final = "resource.k8s.io/v1/ResourceSlice"
EFFECT: Final = "NoExecute"
REASON: Final = "DeviceTaintManagerEviction"
SOURCE: Final = "device-taint-eviction-controller"
MESSAGE: Final = "Device Taint manager: deleting due to NoExecute taint"
Due = tuple[int, str, int]
"""Microseconds since the epoch when a pod goes; the time of the taint, and the seconds it is tolerated for."""


class DeviceTaintEviction(Controller):
    """Deletes pods from tainted devices."""

    name = "device-taint-eviction-controller"
    kind = "v1/Pod"
    watches: ClassVar[Mapping[str, Any]] = {CLAIMS: lambda claim: (), SLICES: lambda slice_: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A pod with claims wakes itself when it comes to a node or learns the name of a claim; an allocated claim the
        pods it is reserved for; a slice itself, where its taints changed."""
        old, new = event.old, event.new
        if event.key.gk == CLAIM:
            before = () if old is None else _holders(old.value)
            after = () if new is None else _holders(new.value)
            return [Key(*POD, event.key.namespace, name) for name in dict.fromkeys((*before, *after))]
        if event.key.gk == SLICE:
            was = None if old is None else _face(old.value)
            now = None if new is None else _face(new.value)
            return (event.key,) if was != now else ()
        if not (event.obj.spec_value or EMPTY).get("resourceClaims"):
            return ()
        if old is not None and new is not None and old.node == new.node and _named(old.value) == _named(new.value):
            return ()
        return (event.key,)

    def reconcile(self, c: Client, key: Key) -> None:
        """Deletes a pod if its time is over; or, for a slice, those of all pods with claims on devices."""
        taints = _taints(c)
        if key.gk == POD:
            _judge(c, key, taints)
            return
        holders = {(claim["metadata"]["namespace"], name): None for claim in c.list(CLAIMS) for name in _holders(claim)}
        for namespace, name in holders:
            _judge(c, Key(*POD, namespace, name), taints)


def _holders(claim: Json) -> list[str]:
    """The pods that an allocated claim is reserved for, by name."""
    status = claim.get("status") or EMPTY
    if not status.get("allocation"):
        return []
    return [each["name"] for each in status.get("reservedFor") or () if _is_pod(each)]


def _is_pod(holder: Json) -> bool:
    return not holder.get("apiGroup") and holder["resource"] == "pods"


def _named(pod: Json) -> Any:
    """What a pod says of the claims that were made for it."""
    return (pod.get("status") or EMPTY).get("resourceClaimStatuses") or ()


def _face(slice_: Json) -> tuple[Any, ...]:
    """What of a slice a pod's stay depends on: nothing, if no device of it drives pods away and none can have."""
    spec = slice_["spec"]
    pool = spec["pool"]
    tainted = [(each["name"], each["taints"]) for each in spec.get("devices") or () if each.get("taints")]
    return spec["driver"], pool["name"], pool["generation"], tainted


def _taints(c: Client) -> dict[tuple[str, str, str], list[Json]]:
    """(driver, pool, device) → the taints that drive pods away, of the newest generation of each pool."""
    slices = c.list(SLICES)
    newest: dict[tuple[str, str], int] = {}
    for each in slices:
        pool = each["spec"]["driver"], each["spec"]["pool"]["name"]
        newest[pool] = max(newest.get(pool, 0), each["spec"]["pool"]["generation"])
    found: dict[tuple[str, str, str], list[Json]] = {}
    for each in slices:
        driver, pool_name = pool = each["spec"]["driver"], each["spec"]["pool"]["name"]
        if each["spec"]["pool"]["generation"] != newest[pool]:
            continue
        for device in each["spec"].get("devices") or ():
            driving = [taint for taint in device.get("taints") or () if taint["effect"] == EFFECT]
            if driving:
                found[driver, pool_name, device["name"]] = driving
    return found


def _judge(c: Client, key: Key, taints: Mapping[tuple[str, str, str], list[Json]]) -> None:
    place = f"{key.namespace}/{key.name}"
    pod = c.get(key)
    if pod is None or owned.is_terminating(pod):
        c.memory.pop(place, None)
        return
    due = min(_dues(c, pod, taints), default=None)
    known = c.memory.get(place)
    if due is None:
        if known is not None:
            del c.memory[place]
            if known == pod["metadata"]["uid"]:
                c.event(pod, "Normal", REASON, "Cancelling deletion", SOURCE)
        return
    if not c.after(due[1], due[2]):
        c.memory[place] = pod["metadata"]["uid"]
        return
    c.memory.pop(place, None)
    c.event(pod, "Normal", REASON, "Marking for deletion", SOURCE)
    pods.disrupt(c, pod, "DeletionByDeviceTaintManager", MESSAGE)


def _dues(c: Client, pod: Json, taints: Mapping[tuple[str, str, str], list[Json]]) -> Iterator[Due]:
    """When the pod goes, for each taint that it does not tolerate for ever."""
    if not taints or not pod["spec"].get("nodeName"):
        return
    made = {each["name"]: each.get("resourceClaimName") for each in _named(pod)}
    uid = pod["metadata"]["uid"]
    for wanted in pod["spec"].get("resourceClaims") or ():
        given = wanted.get("resourceClaimName")
        name = given or made.get(wanted["name"])
        claim = c.get(Key(*CLAIM, pod["metadata"]["namespace"], name)) if name else None
        if claim is None or not (given or owned.controlled_by(claim, uid)):
            continue
        status = claim.get("status") or EMPTY
        if any(each["uid"] == uid for each in status.get("reservedFor") or ()):
            for device in ((status.get("allocation") or EMPTY).get("devices") or EMPTY).get("results") or ():
                for taint in taints.get((device["driver"], device["pool"], device["device"]), ()):
                    seconds = _tolerated(taint, device.get("tolerations") or ())
                    if seconds is not None and taint.get("timeAdded"):
                        added = taint["timeAdded"]
                        yield parse_time(added) + seconds * MICRO, added, seconds


def _tolerated(taint: Json, tolerations: Iterable[Json]) -> int | None:
    """Seconds that a taint is tolerated for; None for ever."""
    found = [each for each in tolerations if each.get("effect") == EFFECT and tolerates([each], taint)]
    if any(each.get("tolerationSeconds") is None for each in found):
        return None
    return min([max(0, each["tolerationSeconds"]) for each in found], default=0)
