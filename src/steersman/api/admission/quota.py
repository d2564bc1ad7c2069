"""ResourceQuota: refuses what would use more of a namespace than its quotas allow.

Kubernetes keeps the usage in the quota's status and moves it, by compare and set, before the object is stored. Here a
write is judged and committed in one step on one head, so the sum over the objects that are there is exact, and no
number can be charged for an object that was refused later. The controller brings the status up to date afterwards.
Source of the facts: apiserver `pkg/admission/plugin/resourcequota/controller.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import pod_resources, quota
from steersman.api.admission.plugin import CREATE, UPDATE, Answer, Attempt, Plugin
from steersman.api.kinds import Kind
from steersman.api.pod_resources import Amounts
from steersman.api.quantity import Quantity
from steersman.kernel.object import Section
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

QUOTA: Final = ("", "ResourceQuota")
UPDATED: Final = frozenset({quota.SERVICE, quota.CLAIM})
"""Kinds whose usage a change of the object can raise; a pod's changes only by a resize, or with its scope."""
REMEMBERED: Final = 4096
"""Specs whose usage is remembered: templates, of which a namespace's thousand pods have a few."""


class ResourceQuota(Plugin):
    """See the module's text. It is the last of the chain."""

    name = "ResourceQuota"
    kinds = None
    operations = (CREATE, UPDATE)
    subresources = ("", "resize")
    needs = (QUOTA,)

    def __init__(self) -> None:
        self._known: dict[Section, Amounts] = {}

    def validate(self, attempt: Attempt) -> Answer:
        """See the class."""
        kind, body = attempt.kind, attempt.body
        if kind.gk in quota.EVENTS or body is None or not kind.namespaced or not _concerns(attempt):
            return None
        found = [
            (obj.key.name, spec)
            for obj in attempt.store.list(QUOTA, attempt.key.namespace)
            if quota.counts(kind, body, spec := obj.spec_value or EMPTY)
        ]
        for name, spec in found:
            missing = quota.unset(body.get("spec") or EMPTY, spec["hard"]) if kind.gk == quota.POD else ""
            if missing:
                raise attempt.forbidden(f"failed quota: {name}: {missing}")
        if found:
            self._judge(attempt, body, found)
        return None

    def _judge(self, attempt: Attempt, body: Mapping[str, Any], found: list[tuple[str, Mapping[str, Any]]]) -> None:
        kind, now = attempt.kind, attempt.request.now
        using = quota.usage(kind, body, now)
        negative = sorted(name for name, amount in using.items() if amount.nano < 0)
        if negative:
            raise attempt.forbidden(f"quota usage is negative for resource(s): {','.join(negative)}")
        before = attempt.old.value if attempt.old is not None else None
        for name, spec in found:
            more = using
            if before is not None and quota.counts(kind, before, spec):
                more = _increase(using, quota.usage(kind, before, now))
            hard = pod_resources.parsed(spec["hard"])
            asked = {resource: amount for resource, amount in more.items() if amount and resource in hard}
            if not asked:
                continue
            used = self.used(attempt.store, kind, attempt.key.namespace, spec, now)
            exceeded = [r for r, amount in asked.items() if amount + used.get(r, Quantity(0)) > hard[r]]
            if exceeded:
                told = [
                    quota.shown({resource: part.get(resource, Quantity(0)) for resource in exceeded})
                    for part in (asked, used, hard)
                ]
                raise attempt.forbidden(
                    f"exceeded quota: {name}, requested: {told[0]}, used: {told[1]}, limited: {told[2]}"
                )

    def used(self, store: Store, kind: Kind, namespace: str, spec: Mapping[str, Any], now: int) -> Amounts:
        """What the objects of a kind use of a quota, by the resources that it limits."""
        hard = spec.get("hard") or EMPTY
        out: Amounts = {}
        simple = not spec.get("scopes") and not spec.get("scopeSelector")
        for obj in store.list(kind.gk, namespace):
            if simple and kind.gk == quota.POD and obj.spec is not None and "deletionTimestamp" not in obj.meta.value:
                done = obj.status is not None and obj.status.peek().get("phase") in ("Succeeded", "Failed")
                using = {quota.count_name(kind): quota.one()} if done else self._of_spec(kind, obj.spec)
            else:
                value = obj.value
                if not quota.counts(kind, value, spec):
                    continue
                using = quota.usage(kind, value, now)
            pod_resources.add(out, {name: amount for name, amount in using.items() if name in hard})
        return out

    def _of_spec(self, kind: Kind, section: Section) -> Amounts:
        found = self._known.get(section)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[section] = quota.usage(kind, {"metadata": EMPTY, "spec": section.peek()}, 0)
        return found


def _concerns(attempt: Attempt) -> bool:
    if attempt.operation == CREATE:
        return not attempt.subresource
    if attempt.subresource == "resize":
        return attempt.kind.gk == quota.POD
    if attempt.kind.gk != quota.POD or attempt.old is None or attempt.body is None:
        return attempt.kind.gk in UPDATED
    old, new = attempt.old.spec_value or EMPTY, attempt.body.get("spec") or EMPTY
    return quota.is_terminating(old) != quota.is_terminating(new)


def _increase(now: Amounts, before: Amounts) -> Amounts:
    out = {name: amount - before[name] if name in before else amount for name, amount in now.items()}
    return {name: amount for name, amount in out.items() if amount.nano > 0}
