"""The disruption controller: how many pods of a PodDisruptionBudget are healthy, and how many may go.

Source of the facts: Kubernetes 1.36, pkg/controller/disruption. What differs: a condition DisruptionTarget that came to
nothing is taken back by the same controller, as there, but by a reconcile of the pod's own key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any, ClassVar, Final

from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Find
from steersman.api.eviction import ALLOWED, covers, is_ready, with_allowed
from steersman.api.kinds import UnknownKind
from steersman.controllers import owned, pods
from steersman.controllers.conditions import condition, find, without
from steersman.controllers.go_text import selector_text
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
POD: Final = ("", "Pod")
TARGET: Final = "DisruptionTarget"
SOURCE: Final = "controllermanager"
DELETION_SECONDS: Final = 120
"""How long an evicted pod counts as good as gone, and how long a pod may say that it is about to be disrupted."""
BY_KUBELET: Final = "TerminationByKubelet"
UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


class NotSynced(Exception):
    """The number of pods that should be there cannot be told; the text says why."""


class Disruption(Controller):
    """Keeps the status of PodDisruptionBudgets."""

    name = "disruption"
    kind = "policy/v1/PodDisruptionBudget"
    watches: ClassVar[Mapping[str, Any]] = {"v1/Pod": lambda pod: ()}
    reads = ("apps/v1/Deployment", "apps/v1/ReplicaSet", "apps/v1/StatefulSet", "v1/ReplicationController")

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A budget wakes itself, a pod the budgets that cover it, and itself where it is about to be disrupted or
        several budgets cover it."""
        if event.key.gk != POD:
            return (event.key,)
        woken: dict[Key, None] = {}
        for budget in find("budgets", event.key.namespace):
            for obj in (event.old, event.new):
                if obj is not None and covers(budget.value, obj.meta.value.get("labels")):
                    woken[budget.key] = None
        new = event.new
        if len(woken) > 1 or (new is not None and new.status is not None and _target(new.status.peek()) is not None):
            woken[event.key] = None
        return woken

    def reconcile(self, c: Client, key: Key) -> None:
        """Writes the status of a budget, or takes back a pod's condition. Raises what the API refused."""
        seen = c.get(key)
        if seen is None:
            return
        if key.gk == POD:
            _tell_of_many(c, seen)
            _clear(c, seen)
            return
        try:
            _sync(c, seen)
        except NotSynced as problem:
            _fail_safe(c, seen, str(problem))


def _sync(c: Client, budget: Json) -> None:
    selector = budget["spec"].get("selector")
    covered: list[Any] = []
    if selector is not None:
        covered = c.list("v1/Pod", budget["metadata"]["namespace"], labels=selector)
    if not covered:
        c.event(budget, "Normal", "NoPods", "No matching pods found", SOURCE)
    expected, desired = _counts(c, budget, covered)
    disrupted = _disrupted(c, budget, covered)
    # Who is on the list has not been there for long: `_disrupted` has asked.
    healthy = sum(
        not owned.is_terminating(pod) and pod["metadata"]["name"] not in disrupted and is_ready(pod) for pod in covered
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status = budget.get("status") or EMPTY
    generation = budget["metadata"]["generation"]
    counts = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": generation,
    }
    told = find(status.get("conditions") or (), ALLOWED)
    reason = "SufficientPods" if allowed else "InsufficientPods"
    same = all(status.get(name) == value for name, value in counts.items())
    if same and (status.get("disruptedPods") or EMPTY) == disrupted and told is not None and told["reason"] == reason:
        return
    conditions = with_allowed(status, allowed, generation, c.timestamp())
    _write(c, budget, {**counts, "disruptedPods": disrupted, "conditions": conditions})


def _tell_of_many(c: Client, pod: Json) -> None:
    """Tells of a pod that several budgets cover: no eviction of it is allowed."""
    meta = pod["metadata"]
    budgets = c.list("policy/v1/PodDisruptionBudget", meta["namespace"])
    names = [each["metadata"]["name"] for each in budgets if covers(each, meta.get("labels"))]
    if len(names) > 1:
        place = f'"{meta["namespace"]}"/"{meta["name"]}"'
        text = f'Pod {place} matches multiple PodDisruptionBudgets.  Chose "{names[0]}" arbitrarily.'
        c.event(pod, "Warning", "MultiplePodDisruptionBudgets", text, SOURCE)


def _write(c: Client, budget: Json, status: dict[str, Any]) -> None:
    body = {**budget, "status": {name: value for name, value in status.items() if value != {}}}
    c.update_status(body)


def _fail_safe(c: Client, budget: Json, why: str) -> None:
    """Nothing may be disrupted as long as nobody can say what would be left; the condition says why."""
    c.event(
        budget,
        "Warning",
        "CalculateExpectedPodCountFailed",
        f"Failed to calculate the number of expected pods: {why}",
        SOURCE,
    )
    status = budget.get("status") or EMPTY
    before = list(status.get("conditions") or ())
    told = find(before, ALLOWED)
    if told is not None and (told["reason"], told.get("message")) == ("SyncFailed", why):
        if status.get("disruptionsAllowed") == 0:
            return
        failed = told
    else:
        since = c.timestamp() if told is None or told["status"] != "False" else told["lastTransitionTime"]
        failed = {
            **condition(ALLOWED, "False", "SyncFailed", why, since),
            "observedGeneration": status.get("observedGeneration", 0),
        }
    numbers = {name: status.get(name, 0) for name in ("currentHealthy", "desiredHealthy", "expectedPods")}
    conditions = [*without(before, ALLOWED), failed]
    _write(c, budget, {**status, **numbers, "disruptionsAllowed": 0, "conditions": conditions})


# -- how many there should be ----------------------------------------------------------------------------------------


def _counts(c: Client, budget: Json, covered: list[Any]) -> tuple[int, int]:
    """(pods that should be there, pods that must be healthy). Raises `NotSynced`."""
    spec = budget["spec"]
    most = spec.get("maxUnavailable")
    if most is not None:
        expected = _expected(c, budget, covered)
        return expected, max(0, expected - _of(most, expected))
    least = spec.get("minAvailable")
    if least is None:
        return 0, 0
    if isinstance(least, int):
        return len(covered), least
    expected = _expected(c, budget, covered)
    return expected, _of(least, expected)


def _of(value: Any, total: int) -> int:
    """A number, or a percentage of a total, rounded up."""
    if isinstance(value, int):
        return value
    try:
        return ceil(int(value.removesuffix("%")) * total / 100)
    except ValueError:
        raise NotSynced(f'invalid value for IntOrString: invalid type: string is not a percentage: "{value}"') from None


def _expected(c: Client, budget: Json, covered: list[Any]) -> int:
    """The sum of the scales of all controllers of the pods."""
    scales: dict[str, int] = {}
    known: dict[str, None] = {}
    unmanaged = False
    for pod in covered:
        owner = owned.controller_of(pod)
        if owner is None:
            unmanaged = True
        elif owner["uid"] not in known:
            known[owner["uid"]] = None
            found = _scale_of(c, owner, budget["metadata"]["namespace"])
            if found is None:
                raise NotSynced(f'found no controllers for pod "{pod["metadata"]["name"]}"')
            scales[found[0]] = found[1]
    if unmanaged:
        c.event(
            budget,
            "Warning",
            "UnmanagedPods",
            UNMANAGED.format(selector_text(budget["spec"]["selector"])),
            SOURCE,
        )
    return sum(scales.values())


def _scale_of(c: Client, owner: Json, namespace: str) -> tuple[str, int] | None:
    """(uid, replicas) of what controls the number of pods: a ReplicaSet's Deployment in its place."""
    found = c.get(_key(owner, namespace))
    if found is None or found["metadata"]["uid"] != owner["uid"]:
        return None
    above = owned.controller_of(found) if owner["kind"] == "ReplicaSet" else None
    if above is not None and above["kind"] == "Deployment":
        return _scale_of(c, above, namespace)
    try:
        kind = c.kind_of(owner["apiVersion"].rpartition("/")[0], owner["kind"])
    except UnknownKind as unknown:
        raise NotSynced(str(unknown)) from None
    if "scale" not in kind.subresources:
        raise NotSynced(f"{kind.resource} does not implement the scale subresource")
    scale = None if kind.origin is None else kind.origin.scale
    replicas: Any = found
    for field in ("spec", "replicas") if scale is None else scale.replicas:
        replicas = replicas.get(field) if isinstance(replicas, Mapping) else None
    missing = 1 if scale is None else 0  # what is not said is one for built-in kinds, none for custom ones
    return found["metadata"]["uid"], replicas if isinstance(replicas, int) else missing


def _key(owner: Json, namespace: str) -> Key:
    return Key(owner["apiVersion"].rpartition("/")[0], owner["kind"], namespace, owner["name"])


# -- pods that are about to go ---------------------------------------------------------------------------------------


def _disrupted(c: Client, budget: Json, covered: list[Any]) -> dict[str, str]:
    """Evicted pods that are there yet, with the time of their eviction. One that has not gone in two minutes is not
    going to."""
    listed = (budget.get("status") or EMPTY).get("disruptedPods") or EMPTY
    left: dict[str, str] = {}
    for pod in covered if listed else ():
        name = pod["metadata"]["name"]
        if name not in listed or owned.is_terminating(pod):
            continue
        if c.after(listed[name], DELETION_SECONDS):
            meta = budget["metadata"]
            told = f"Pod was expected by PDB {meta['namespace']}/{meta['name']} to be deleted but it wasn't"
            c.event(pod, "Warning", "NotDeleted", told, SOURCE)
        else:
            left[name] = listed[name]
    return left


def _target(status: Json) -> Json | None:
    """A condition DisruptionTarget that is true and that somebody may have to take back."""
    for each in status.get("conditions") or ():
        if each["type"] == TARGET:
            stays = each["status"] != "True" or each.get("reason") == BY_KUBELET
            return None if stays or status.get("phase") in pods.ENDED else each
    return None


def _clear(c: Client, pod: Json) -> None:
    """Takes the condition back when the pod is not going after all."""
    status = pod.get("status") or EMPTY
    target = None if owned.is_terminating(pod) else _target(status)
    if target is None or not c.after(target["lastTransitionTime"], DELETION_SECONDS):
        return
    conditions = pods.with_condition(c, pod, TARGET, "False", "", "")
    c.patch(key_of(pod), {"status": {"conditions": conditions}}, "status", rv=pod["metadata"]["resourceVersion"])
