"""LimitRanger: gives containers the namespace's default resources, and refuses what is out of its bounds.

Source of the facts: kubernetes `plugin/pkg/admission/limitranger`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.api import pod_resources
from steersman.api.admission.edit import raise_all, spec_of
from steersman.api.admission.plugin import CREATE, UPDATE, Answer, Attempt, Plugin, Verdict
from steersman.api.filling import each
from steersman.api.pod_resources import Amounts, parsed
from steersman.api.quantity import NANO, Quantity
from steersman.kernel.value import EMPTY, Frozen

LIMIT_RANGE: Final = ("", "LimitRange")
POD: Final = ("", "Pod")
CLAIM: Final = ("", "PersistentVolumeClaim")
ANNOTATION: Final = "kubernetes.io/limit-ranger"
GROUPS: Final = (("containers", "container"), ("initContainers", "init container"))
MAX_MILLI: Final = ((1 << 63) - 1) // 1000
"""Above it Kubernetes compares whole units, because thousandths would overflow."""


class LimitRanger(Plugin):
    """See the module's text. Pods are judged when they are created and resized, claims when they change, too."""

    name = "LimitRanger"
    kinds = (POD, CLAIM)
    operations = (CREATE, UPDATE)
    subresources = ("", "resize")
    needs = (LIMIT_RANGE,)

    def mutate(self, attempt: Attempt) -> Answer:
        """Adds the defaults of every LimitRange in turn, and says so in an annotation."""
        if not _concerns(attempt) or attempt.kind.gk != POD:
            return None
        body = before = attempt.body
        for items in _ranges(attempt):
            body = _defaulted(body, items)
        return None if body is before else Verdict(body)

    def validate(self, attempt: Attempt) -> Answer:
        """Refuses what breaks a bound; the first LimitRange that is broken is told."""
        if not _concerns(attempt):
            return None
        judge = _claim_problems if attempt.kind.gk == CLAIM else _pod_problems
        for items in _ranges(attempt):
            raise_all(attempt, judge(items, spec_of(attempt)))
        return None


def _concerns(attempt: Attempt) -> bool:
    if attempt.old is not None and "deletionTimestamp" in attempt.old.meta.value:
        return False
    if attempt.kind.gk == POD:
        return attempt.operation == CREATE or attempt.subresource == "resize"
    return not attempt.subresource


def _ranges(attempt: Attempt) -> Iterator[list[Mapping[str, Any]]]:
    for found in attempt.store.list(LIMIT_RANGE, attempt.key.namespace):
        yield (found.spec_value or EMPTY).get("limits") or []


def _defaulted(body: Any, items: list[Mapping[str, Any]]) -> Any:
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in items:
        if item.get("type") == "Container":
            requests.update(item.get("defaultRequest") or EMPTY)
            limits.update(item.get("default") or EMPTY)
    told: list[str] = []
    spec = body.get("spec") or EMPTY
    for group, word in GROUPS:

        def fill(container: Frozen, word: str = word) -> Frozen:
            return _filled(container, requests, limits, word, told)

        spec = each(spec, group, fill)
    if not told:
        return body
    meta = body.get("metadata") or EMPTY
    noted = {**meta.get("annotations", EMPTY), ANNOTATION: "LimitRanger plugin set: " + "; ".join(told)}
    return Frozen({**body, "metadata": Frozen({**meta, "annotations": Frozen(noted)}), "spec": spec})


def _filled(
    container: Frozen, requests: Mapping[str, Any], limits: Mapping[str, Any], word: str, told: list[str]
) -> Frozen:
    found = container.get("resources") or EMPTY
    changed: dict[str, Any] = {}
    for part, wanted in (("requests", requests), ("limits", limits)):
        given = found.get(part) or EMPTY
        added = {name: wanted[name] for name in sorted(wanted) if name not in given}
        if added:
            changed[part] = Frozen({**given, **added})
            told.append(f"{', '.join(added)} {part[:-1]} for {word} {container.get('name')}")
    return Frozen({**container, "resources": Frozen({**found, **changed})}) if changed else container


def _claim_problems(items: list[Mapping[str, Any]], spec: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    requests = pod_resources.of(spec, "requests")
    for item in items:
        if item.get("type") != "PersistentVolumeClaim":
            continue
        _minimum(out, item, requests, {})
        for name, most in _bounds(item, "max"):
            asked = requests.get(name)
            if asked is None:
                out.append(f"maximum {name} usage per {item['type']} is {most}.  No request is specified")
            elif _over(asked, most, None):
                out.append(f"maximum {name} usage per {item['type']} is {most}, but request is {asked}")
    return out


def _pod_problems(items: list[Mapping[str, Any]], spec: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    for item in items:
        if item.get("type") == "Container":
            for group, _ in GROUPS:
                for container in spec.get(group) or ():
                    parts = (pod_resources.of(container, "requests"), pod_resources.of(container, "limits"))
                    _bounded(out, item, *parts)
        elif item.get("type") == "Pod":
            parts = (pod_resources.totals(spec, "requests", False), pod_resources.totals(spec, "limits", False))
            _bounded(out, item, *parts)
    return out


def _bounded(out: list[str], item: Mapping[str, Any], requests: Amounts, limits: Amounts) -> None:
    _minimum(out, item, requests, limits)
    _maximum(out, item, requests, limits)
    _ratio(out, item, requests, limits)


def _bounds(item: Mapping[str, Any], field: str) -> list[tuple[str, Quantity]]:
    return sorted(parsed(item.get(field)).items())


def _minimum(out: list[str], item: Mapping[str, Any], requests: Amounts, limits: Amounts) -> None:
    for name, least in _bounds(item, "min"):
        request, limit = requests.get(name), limits.get(name)
        text = f"minimum {name} usage per {item['type']} is {least}"
        if request is None:
            out.append(f"{text}.  No request is specified")
        elif _over(least, request, limit):
            out.append(f"{text}, but request is {request}")
        elif limit is not None and _over(least, limit, request):
            out.append(f"{text}, but limit is {limit}")


def _maximum(out: list[str], item: Mapping[str, Any], requests: Amounts, limits: Amounts) -> None:
    for name, most in _bounds(item, "max"):
        request, limit = requests.get(name), limits.get(name)
        text = f"maximum {name} usage per {item['type']} is {most}"
        if limit is None:
            out.append(f"{text}.  No limit is specified")
        elif _over(limit, most, request):
            out.append(f"{text}, but limit is {limit}")
        elif request is not None and _over(request, most, limit):
            out.append(f"{text}, but request is {request}")


def _ratio(out: list[str], item: Mapping[str, Any], requests: Amounts, limits: Amounts) -> None:
    for name, most in _bounds(item, "maxLimitRequestRatio"):
        request, limit = requests.get(name), limits.get(name)
        text = f"{name} max limit to request ratio per {item['type']} is {most}"
        if request is None or not request:
            out.append(f"{text}, but no request is specified or request is 0")
        elif limit is None or not limit:
            out.append(f"{text}, but no limit is specified or limit is 0")
        else:
            unit = _unit(request, limit, Quantity(0))
            ratio = unit(limit) / unit(request)
            scaled = most.value() <= MAX_MILLI
            if (ratio * 1000 > most.milli()) if scaled else (ratio > most.value()):
                out.append(f"{text}, but provided ratio is {ratio:f}")


def _unit(*amounts: Quantity) -> Any:
    """How amounts are compared: in thousandths where none of them is too big for that."""
    fine = all(amount.nano <= MAX_MILLI * NANO for amount in amounts)
    return Quantity.milli if fine else Quantity.value


def _over(one: Quantity, other: Quantity, third: Quantity | None) -> bool:
    unit = _unit(one, other, third or Quantity(0))
    return bool(unit(one) > unit(other))
