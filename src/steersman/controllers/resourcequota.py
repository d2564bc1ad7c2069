"""The quota controller: the status of ResourceQuotas says what is allowed and what is used.

Source of the facts: Kubernetes 1.36, pkg/controller/resourcequota. Usage is summed anew at each look; any object of a
namespace that has a quota wakes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.api import pod_resources, quota
from steersman.api.client import Client
from steersman.api.controller import EVERY_KIND, Controller, Find
from steersman.api.kinds import Kind
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]


class ResourceQuotaController(Controller):
    """Keeps status.hard and status.used."""

    name = "resourcequota-controller"
    kind = EVERY_KIND

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A quota wakes itself when it is made or changed; another object the quotas of its namespace."""
        if event.key.gk == ("", "ResourceQuota"):
            mine = () if event.new is None else (event.key,)
            return (*mine, *[obj.key for obj in find("quotas", event.key.namespace) if _counts(event, obj)])
        if event.key.gk in quota.EVENTS:
            return ()
        return [obj.key for obj in find("quotas", event.key.namespace) if _counts(event, obj)]

    def reconcile(self, c: Client, key: Key) -> None:
        """Writes the status if it has changed."""
        found = c.get(key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        spec = found["spec"]
        hard = spec.get("hard") or EMPTY
        used = {name: quota.one(0) for name in hard if _tracked(c, name)}
        for kind in _kinds(c, hard):
            for value in c.list(f"{kind.api_version}/{kind.kind}", key.namespace):
                if quota.counts(kind, value, spec):
                    seen = _gone(value) if _is_overdue(c, kind, value) else value
                    using = quota.usage(kind, seen, 0)
                    pod_resources.add(used, {name: amount for name, amount in using.items() if name in hard})
        status = found.get("status") or EMPTY
        if status.get("hard") != hard or "used" not in status or pod_resources.parsed(status["used"]) != used:
            told = {name: str(used[name]) for name in sorted(used)}
            c.update_status({**found, "status": {"hard": dict(hard), "used": told}})


def _counts(event: Event, obj: Object) -> bool:
    """Whether the event can change what the quota counts."""
    hard = (obj.spec_value or EMPTY).get("hard") or EMPTY
    made_or_gone = event.old is None or event.new is None
    gk = event.key.gk
    if gk == quota.POD:
        return made_or_gone or _pod_facts(event.old) != _pod_facts(event.new)
    if gk in (quota.SERVICE, quota.CLAIM):
        return made_or_gone or _parts(event.old) != _parts(event.new)
    return made_or_gone and any(name.startswith("count/") or name in quota.ALIASES.values() for name in hard)


def _parts(obj: Object | None) -> tuple[Any, ...]:
    return () if obj is None else (obj.spec, obj.status)


def _pod_facts(pod: Object | None) -> tuple[Any, ...]:
    if pod is None:
        return ()
    phase = None if pod.status is None else pod.status.peek().get("phase")
    return (pod.spec, phase, pod.meta.value.get("deletionTimestamp"))


def _kinds(c: Client, hard: Json) -> list[Kind]:
    """The kinds whose objects use any of these resources."""
    return [
        kind
        for kind in c.api.kinds.all()
        if kind.namespaced and kind.gk not in quota.EVENTS and quota.concerns(kind, hard)
    ]


def _tracked(c: Client, name: str) -> bool:
    return any(kind.namespaced and quota.concerns(kind, (name,)) for kind in c.api.kinds.all())


def _is_overdue(c: Client, kind: Kind, value: Json) -> bool:
    """Whether a pod under deletion should have been gone by now; if not yet, the quota is looked at again then."""
    meta = value["metadata"]
    begun, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    return kind.gk == quota.POD and bool(begun) and grace is not None and c.after(begun, grace)


def _gone(pod: Json) -> Json:
    """The pod as one that is done, which uses nothing but its place."""
    return {**pod, "status": {"phase": "Failed"}}
