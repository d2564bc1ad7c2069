"""RuntimeClass: a pod takes over the overhead and the placement of its runtime class.

Source of the facts: kubernetes `plugin/pkg/admission/runtimeclass` and `pkg/util/tolerations`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api.admission.edit import spec_of, with_part
from steersman.api.admission.plugin import Answer, Attempt, Plugin
from steersman.api.errors import quote
from steersman.api.pod_resources import parsed
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY, Frozen, FrozenList

CLASS: Final = ("node.k8s.io", "RuntimeClass")
MISMATCH: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
UNEXPECTED: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
Toleration = Mapping[str, Any]


class RuntimeClass(Plugin):
    """See the module's text."""

    name = "RuntimeClass"
    kinds = (("", "Pod"),)

    def mutate(self, attempt: Attempt) -> Answer:
        """Adds overhead, node selector and tolerations of the class."""
        spec = spec_of(attempt)
        found = _class_of(attempt, spec)
        after = spec
        if found.get("overhead") is not None:
            fixed = found["overhead"].get("podFixed") or EMPTY
            if spec.get("overhead") and parsed(spec["overhead"]) != parsed(fixed):
                raise attempt.forbidden(MISMATCH)
            if fixed and fixed != spec.get("overhead"):
                after = Frozen({**after, "overhead": fixed})
        if found.get("scheduling") is not None:
            after = _placed(attempt, after, found["scheduling"])
        return with_part(attempt, "spec", after)

    def validate(self, attempt: Attempt) -> Answer:
        """Refuses an overhead that the class does not give."""
        spec = spec_of(attempt)
        overhead = spec.get("overhead")
        found = _class_of(attempt, spec)
        if found.get("overhead") is not None:
            if parsed(found["overhead"].get("podFixed")) != parsed(overhead):
                raise attempt.forbidden(MISMATCH)
        elif overhead is not None:
            raise attempt.forbidden(UNEXPECTED)
        return None


def _class_of(attempt: Attempt, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    name = spec.get("runtimeClassName")
    if name is None:
        return EMPTY
    found = attempt.store.get(Key(*CLASS, "", name))
    if found is None:
        raise attempt.forbidden(f"pod rejected: RuntimeClass {quote(name)} not found")
    return found.value


def _placed(attempt: Attempt, spec: Frozen, scheduling: Mapping[str, Any]) -> Frozen:
    mine: Mapping[str, Any] = spec.get("nodeSelector") or EMPTY
    its: Mapping[str, Any] = scheduling.get("nodeSelector") or EMPTY
    for key in sorted(its.keys() & mine.keys()):
        if mine[key] != its[key]:
            raise attempt.forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {its[key]}; "
                f"pod.spec.nodeSelector[{key}] = {mine[key]}"
            )
    out = dict(spec)
    if its:
        out["nodeSelector"] = Frozen({**mine, **its})
    tolerations = merged(spec.get("tolerations") or [], scheduling.get("tolerations") or [])
    if tolerations:
        out["tolerations"] = FrozenList(tolerations)
    return Frozen(out)


def merged(first: list[Toleration], second: list[Toleration]) -> list[Toleration]:
    """Both lists, without what another toleration covers; of equal ones the first stays."""
    every = [*first, *second]
    out: list[Toleration] = []
    for index, one in enumerate(every):
        if any(_covers(other, one) for other in out):
            continue
        if any(other != one and _covers(other, one) for other in every[index + 1 :]):
            continue
        out.append(one)
    return out


def _covers(wide: Toleration, one: Toleration) -> bool:
    if wide == one:
        return True
    exists = wide.get("operator") == "Exists"
    if one.get("key", "") != wide.get("key", "") and (wide.get("key") or not exists):
        return False
    if one.get("effect", "") != wide.get("effect", "") and wide.get("effect"):
        return False
    if wide.get("effect") == "NoExecute" and wide.get("tolerationSeconds") is not None:
        seconds = one.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if exists:
        return True
    same = one.get("value", "") == wide.get("value", "")
    return wide.get("operator", "") in ("", "Equal") and one.get("operator") == "Equal" and same
