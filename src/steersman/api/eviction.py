"""Evictions: the deletion of a pod, unless a PodDisruptionBudget forbids it.

An eviction is several exchanges, not one write: what is read, a budget that is counted down, the pod's condition, the
deletion. So it is written once, as a generator of Effects whose values are sent back into it, and whoever evicts
(the HTTP face, a controller's client) performs them, each in its own way. Others may come between any two of them.

Source of the facts: Kubernetes 1.36, pkg/registry/core/pod/storage/eviction.go; component-helpers
apps/poddisruptionbudget.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from steersman.api import deletion, errors
from steersman.api.errors import Cause, Conflict, Details
from steersman.api.kinds import Kinds
from steersman.api.select import LabelSelector
from steersman.api.times import MICRO, time_text
from steersman.kernel.effect import Effect, ListQuery, Request
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import EMPTY, Frozen, FrozenList

Json = Mapping[str, Any]
Steps = Generator[Effect, Any, None]
BUDGET: Final = ("policy", "PodDisruptionBudget")
SUBRESOURCE: Final = "eviction"
ENDED: Final = ("Succeeded", "Failed")
TRIES: Final = 20
"""How often a write is tried again that somebody else got ahead of (kube-apiserver: 20 times within ten seconds)."""
MAX_DISRUPTED: Final = 2_000
"""Evicted pods that a budget's controller has not taken note of yet."""
ALLOWED: Final = "DisruptionAllowed"
VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL: Final = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


class Eviction:
    """One eviction under way. Whoever evicts performs `effect` and says what came of it, until it is None."""

    __slots__ = ("_steps", "effect")

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.effect: Effect | None = next(steps, None)

    def answer(self, value: Any) -> None:
        """Goes on with what the effect gave. Raises `ApiError` where the eviction is refused."""
        self._go_on(lambda: self._steps.send(value))

    def refuse(self, error: errors.ApiError) -> None:
        """Goes on where the effect was refused. Raises `ApiError` where the eviction is."""
        self._go_on(lambda: self._steps.throw(error))

    def _go_on(self, go: Callable[[], Effect]) -> None:
        try:
            self.effect = go()
        except StopIteration:
            self.effect = None


def evict(kinds: Kinds, key: Key, options: Json, manager: str = "") -> Steps:
    """The exchanges of one eviction, under the options of the deletion it comes to (see `effect.Request.options`).
    Raises `TooManyRequests` where a budget forbids it, `Conflict`, `NotFound` and what else a write is refused with.
    """
    for _ in range(TRIES):
        pod = yield Effect("get", key, True)
        if pod is None:
            raise errors.not_found("pods", key.name)
        phase = _phase(pod)
        if phase not in (*ENDED, "Pending") and "deletionTimestamp" not in pod.meta.value:
            break
        moving = phase not in ENDED and "deletionTimestamp" not in pod.meta.value
        pinned = {**options, "rv": str(pod.rv)} if moving and not options.get("rv") else options
        try:
            yield from _delete(kinds, key, pinned, manager)
            return
        except Conflict:
            if options.get("rv"):
                raise
    else:
        raise errors.conflict("pods", key.name)
    yield from _evict_running(kinds, pod, options, manager)


def _evict_running(kinds: Kinds, pod: Object, options: Json, manager: str) -> Steps:
    budgets = yield Effect("list", ListQuery(BUDGET, pod.key.namespace), True)
    covering = [each for each in budgets if covers(each.value, pod.meta.value.get("labels"))]
    if len(covering) > 1:
        raise errors.ApiError(500, "", SEVERAL)
    pinned = options
    if covering:
        budget = covering[0]
        if _needs_no_leave(budget.value, pod):
            pinned = {**options, "rv": options.get("rv") or str(pod.rv)}
        else:
            yield from _count_down(budget, pod.key.name, bool(options.get("dry_run")))
    try:
        yield from _delete(kinds, pod.key, pinned, manager)
    except Conflict:
        if pinned is options or options.get("rv"):
            raise
        raise _still_processed(covering[0].key.name) from None


def covers(budget: Json, labels: Json | None) -> bool:
    """Whether a budget's selector matches: an empty one matches every pod of its namespace, none matches none."""
    selector = budget["spec"].get("selector")
    return selector is not None and LabelSelector.compile(selector).matches(labels)


def is_ready(pod: Json) -> bool:
    """Whether the pod's condition Ready is true."""
    conditions = (pod.get("status") or EMPTY).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _phase(pod: Object) -> str:
    return (pod.status_value or EMPTY).get("phase") or ""


def _needs_no_leave(budget: Json, pod: Object) -> bool:
    """An unhealthy pod may go without counting, where the budget says so or is met without it."""
    if is_ready(pod.value):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or EMPTY
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _count_down(budget: Object, pod: str, dry_run: bool) -> Steps:
    """Takes one disruption off a budget, in the pod's name."""
    found: Object | None = budget
    for _ in range(TRIES):
        if found is None:
            raise errors.not_found("poddisruptionbudgets", budget.key.name, "policy")
        _check(found)
        if dry_run:
            return
        now = yield Effect("stamp", None)
        value = {**found.value, "status": _counted(found.value, pod, time_text(now // MICRO))}
        request = Request("update", found.key, value, "status", manager="kube-apiserver")
        try:
            yield Effect("write", request._replace(options=Frozen(rv=str(found.rv))))
            return
        except Conflict:
            found = yield Effect("get", budget.key, True)
    text = f"couldn't update PodDisruptionBudget {errors.quote(budget.key.name)} due to conflicts"
    raise errors.timeout(text, 10)


def _check(found: Object) -> None:
    """Raises 429 or 403 where the budget allows no disruption."""
    name, status = found.key.name, found.status_value or EMPTY
    if status.get("observedGeneration", 0) < found.meta.value.get("generation", 0):
        raise _still_processed(name)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise errors.forbidden("poddisruptionbudget", name, "pdb disruptions allowed is negative", "policy")
    if len(status.get("disruptedPods") or EMPTY) > MAX_DISRUPTED:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("poddisruptionbudget", name, text, "policy")
    if allowed == 0:
        raise _refused(_why(name, status), 0)


def _why(name: str, status: Json) -> str:
    condition = next((each for each in status.get("conditions") or () if each["type"] == ALLOWED), EMPTY)
    said = condition.get("message") if condition.get("status") == "False" else ""
    head = f"The disruption budget {name}"
    if said and condition.get("reason") == "SyncFailed":
        return f"{head} does not allow evicting pods currently because it failed sync: {said}"
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if current <= desired:
        return f"{head} needs {desired} healthy pods and has {current} currently"
    if said:
        return f"{head} does not allow evicting pods currently ({condition.get('reason')}): {said}"
    return f"{head} does not allow evicting pods currently"


def _refused(message: str, retry_after: int) -> errors.ApiError:
    details = Details(causes=(Cause("DisruptionBudget", message),), retry_after_seconds=retry_after)
    return errors.TooManyRequests(429, "TooManyRequests", VIOLATED, details)


def _still_processed(name: str) -> errors.ApiError:
    return _refused(f"The disruption budget {name} is still being processed by the server.", 10)


def _counted(budget: Json, pod: str, time: str) -> dict[str, Any]:
    """A budget's status with one disruption less."""
    status = budget["status"]
    allowed = status["disruptionsAllowed"] - 1
    counted = {**status, "disruptionsAllowed": allowed}
    counted["disruptedPods"] = {**(status.get("disruptedPods") or EMPTY), pod: time}
    if not allowed:
        counted["conditions"] = with_allowed(status, allowed, status.get("observedGeneration", 0), time)
    return counted


def with_allowed(status: Json, allowed: int, generation: int, time: str) -> list[Any]:
    """A budget's conditions, with DisruptionAllowed as the number says."""
    value = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    before = list(status.get("conditions") or ())
    place = next((at for at, each in enumerate(before) if each["type"] == ALLOWED), len(before))
    old = before[place] if place < len(before) else EMPTY
    since = old.get("lastTransitionTime", time) if old.get("status") == value[0] else time
    condition = {"type": ALLOWED, "status": value[0], "observedGeneration": generation, "lastTransitionTime": since}
    before[place : place + 1] = [{**condition, "reason": value[1], "message": ""}]
    return before


def _delete(kinds: Kinds, key: Key, options: Json, manager: str) -> Steps:
    """The condition DisruptionTarget, then the deletion."""
    kind = kinds.get(key.group, key.kind)
    if not options.get("dry_run"):
        for _ in range(TRIES):
            pod = yield Effect("get", key, True)
            if pod is None:
                raise errors.not_found("pods", key.name)
            deletion.check(pod, kind, options)
            try:
                request = Request("create", key, EMPTY, SUBRESOURCE, manager=manager, options=Frozen(rv=str(pod.rv)))
                marked = yield Effect("write", request)
                break
            except Conflict:
                continue
        else:
            raise errors.conflict("pods", key.name)
        if options.get("rv"):
            options = {**options, "rv": str(marked.rv)}
    given = Frozen({name: value for name, value in options.items() if value or name == "grace"})
    yield Effect("write", Request("delete", key, None, manager=manager, options=given))


def mark(pod: Object, time: str) -> Object:
    """The version of a pod that says it is evicted; nobody manages that field, as in Kubernetes."""
    status = pod.status_value or EMPTY
    before = list(status.get("conditions") or ())
    place = next((at for at, each in enumerate(before) if each["type"] == "DisruptionTarget"), len(before))
    old = before[place] if place < len(before) else EMPTY
    said = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    since = old.get("lastTransitionTime", time) if old.get("status") == "True" else time
    condition = Frozen(type="DisruptionTarget", status="True", lastProbeTime=None, lastTransitionTime=since, **said)
    if old == condition:
        return pod
    before[place : place + 1] = [condition]
    return pod.replace(status=Section(Frozen({**status, "conditions": FrozenList(before)})), rv=0)
