"""Priority: a pod's priority and preemption policy follow from its PriorityClass.

Source of the facts: kubernetes `plugin/pkg/admission/priority`, `pkg/apis/scheduling/v1/helpers.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.admission.edit import Edits, sent, spec_of, with_part
from steersman.api.admission.plugin import CREATE, UPDATE, Answer, Attempt, Plugin
from steersman.api.pod_defaults import SYSTEM_PRIORITIES
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY, Frozen

POD: Final = ("", "Pod")
CLASS: Final = ("scheduling.k8s.io", "PriorityClass")
LOWER: Final = "PreemptLowerPriority"
SYSTEM_CLASSES: Final[Mapping[str, dict[str, Any]]] = {
    name: {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": SYSTEM_PRIORITIES[name],
        "description": f"Used for system critical pods that must {must}.",
        "preemptionPolicy": LOWER,
    }
    for name, must in (
        ("system-node-critical", "not be moved from their current node"),
        ("system-cluster-critical", "run in the cluster, but can be moved to another node if necessary"),
    )
}
"""The classes that every cluster has from its start, by name."""


class Priority(Plugin):
    """See the module's text."""

    name = "Priority"
    kinds = (POD, CLASS)
    operations = (CREATE, UPDATE)

    def __init__(self) -> None:
        self._edits = Edits()

    def mutate(self, attempt: Attempt) -> Answer:
        """Sets what the class says when a pod is created; keeps it when the pod is updated."""
        if attempt.kind.gk != POD:
            return None
        spec, given = spec_of(attempt), sent(attempt)
        if attempt.operation == UPDATE:
            return _kept(attempt, spec, given)
        name, priority, policy = _established(attempt, spec.get("priorityClassName") or "")
        asked = given.get("priority")
        if asked is not None and asked != priority:
            raise attempt.forbidden(
                f"the integer value of priority ({asked}) must not be provided in pod spec; "
                f"priority admission controller computed {priority} from the given PriorityClass name"
            )
        asked = given.get("preemptionPolicy")
        if asked is not None and policy and asked != policy:
            raise attempt.forbidden(
                f"the string value of PreemptionPolicy ({asked}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
        wanted: dict[str, Any] = {"priority": priority}
        if name:
            wanted["priorityClassName"] = name
        if policy:
            wanted["preemptionPolicy"] = policy
        if all(spec.get(field) == value for field, value in wanted.items()):
            return None
        how = (name, priority, policy)
        return with_part(attempt, "spec", self._edits(spec, how, lambda spec: Frozen({**spec, **wanted})))

    def validate(self, attempt: Attempt) -> Answer:
        """Refuses a second class that would be everybody's default."""
        body = attempt.body
        assert body is not None
        if attempt.kind.gk == CLASS and body.get("globalDefault"):
            known = _default_class(attempt)
            if known is not None and known.key.name != attempt.key.name:
                detail = f"PriorityClass {known.key.name} is already marked as default. Only one default can exist"
                raise attempt.forbidden(detail)
        return None


def _kept(attempt: Attempt, spec: Frozen, given: Any) -> Answer:
    """An update that leaves the two fields out keeps them."""
    old = attempt.old.spec_value if attempt.old is not None else EMPTY
    kept = {
        field: old[field]
        for field in ("priority", "preemptionPolicy")
        if field in old and given.get(field) is None and spec.get(field) != old[field]
    }
    if attempt.request.verb != "update" or not kept:
        return None
    return with_part(attempt, "spec", Frozen({**spec, **kept}))


def _established(attempt: Attempt, name: str) -> tuple[str, int, str]:
    """(class, priority, preemption policy) for a pod of this class, or of none."""
    if not name:
        found = _default_class(attempt)
        return ("", 0, LOWER) if found is None else _facts(found)
    found = attempt.store.get(Key(*CLASS, "", name))
    if found is not None:
        return _facts(found)
    raise attempt.forbidden(f"no PriorityClass with name {name} was found")


def _facts(found: Object) -> tuple[str, int, str]:
    value = found.value
    return found.key.name, value.get("value", 0), value.get("preemptionPolicy", "")


def _default_class(attempt: Attempt) -> Object | None:
    """The class that is everybody's default; of several the lowest."""
    found = attempt.store.derived(CLASS, _defaults)
    return found[0] if found else None


def _defaults(classes: Iterable[Object]) -> tuple[Object, ...]:
    """Those that say they are everybody's default, the one of the lowest value first."""
    marked = [obj for obj in classes if obj.value.get("globalDefault")]
    return tuple(sorted(marked, key=lambda obj: obj.value["value"]))
