"""The policies of a Job: which failures of pods count, and when a Job has succeeded early.

Source of the facts: kubernetes `pkg/apis/batch/validation`, release 1.36.
"""

from __future__ import annotations

import re
from typing import Any, Final

from steersman.api.errors import Cause
from steersman.api.label_select import LabelSelector, label_selector_causes
from steersman.api.prepare import NAME_LABELS, UID_LABELS
from steersman.api.rules import internal, rules
from steersman.api.rules.rules import Causes, Object
from steersman.kernel.value import EMPTY, EMPTY_LIST

MAX_RULES: Final = 20
MAX_EXIT_CODES: Final = 255
MAX_MANAGED_BY: Final = 63
MAX_INDEXES_TEXT: Final = 64 * 1024
MAX_PARALLELISM: Final = 100_000  # of an indexed Job
MAX_FAILED_INDEXES: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
"""With more completions and a back-off limit per index, the limits below hold."""
PARALLELISM_OF_MANY: Final = 10_000
FAILED_INDEXES_OF_MANY: Final = 10_000
MISMATCH: Final = "`selector` does not match template `labels`"
ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_INTERVAL: Final = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")


def selected(out: Causes, meta: Object, spec: Object, rest: Object) -> None:
    """A Job's selector and the labels of its pods, once they are complete: made of its uid and name, or its own."""
    selector, template = spec.get("selector"), spec.get("template") or EMPTY
    labels = (template.get("metadata") or EMPTY).get("labels") or EMPTY
    compiled: LabelSelector | None = LabelSelector.nothing() if selector is None else None
    if selector is not None and not label_selector_causes(selector, "spec.selector"):
        compiled = LabelSelector.compile(selector)
    if selector is not None and not spec.get("manualSelector"):
        _generated(out, meta, labels, selector, compiled)
    if selector is None:
        out.append(Cause.required("spec.selector"))
    if compiled is not None and not compiled.matches(labels):
        out.append(Cause.invalid("spec.template.metadata.labels", internal.sorted_map(labels), MISMATCH))


def _generated(out: Causes, meta: Object, labels: Object, selector: Object, compiled: LabelSelector | None) -> None:
    prefixed = UID_LABELS[1] in labels or NAME_LABELS[1] in labels or "batch.kubernetes.io" in str(selector)
    expected: dict[str, str] = {}
    for index in (0, 1) if prefixed else (0,):
        for label, value in ((UID_LABELS[index], meta["uid"]), (NAME_LABELS[index], meta["name"])):
            expected[label] = value
            at, must = f"spec.template.metadata.labels[{label}]", f"must be '{value}'"
            if label not in labels:
                out.append(Cause.required(at, must))
            elif labels[label] != value:
                out.append(Cause.invalid(at, internal.sorted_map(labels), must))
    if compiled is not None and not compiled.matches(expected):
        out.append(Cause.invalid("spec.selector", internal.selector(selector), "`selector` not auto-generated"))


def policies(out: Causes, path: str, spec: Object) -> None:
    """Everything in a Job's spec that its policies and its mode restrict."""
    indexed = spec.get("completionMode", "NonIndexed") == "Indexed"
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        out.append(Cause.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("managedBy") is not None:
        rules.domain_path(out, f"{path}.managedBy", spec["managedBy"])
        if len(spec["managedBy"]) > MAX_MANAGED_BY:
            out.append(Cause.too_long(f"{path}.managedBy", MAX_MANAGED_BY))
    if indexed:
        _indexed(out, path, spec)
    if spec.get("podFailurePolicy") is not None:
        _failure(out, f"{path}.podFailurePolicy.rules", spec)
        replaced = spec.get("podReplacementPolicy")
        if replaced not in (None, "Failed"):
            out.append(Cause.unsupported(f"{path}.podReplacementPolicy", replaced, ("Failed",)))
    if spec.get("successPolicy") is not None:
        if not indexed:
            detail = "requires indexed completion mode"
            shown = internal.shown(spec["successPolicy"], internal.SUCCESS_POLICY)
            out.append(Cause.invalid(f"{path}.successPolicy", shown, detail))
        else:
            _success(out, f"{path}.successPolicy.rules", spec)


def _indexed(out: Causes, path: str, spec: Object) -> None:
    width, total, failed = (spec.get(name) for name in ("parallelism", "completions", "maxFailedIndexes"))
    if width is not None and width > MAX_PARALLELISM:
        detail = f"must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed"
        out.append(Cause.invalid(f"{path}.parallelism", width, detail))
    if failed is not None and total is not None and failed > total:
        out.append(Cause.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > MAX_FAILED_INDEXES:
        out.append(
            Cause.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {MAX_FAILED_INDEXES}")
        )
    if total is None or total <= MANY_COMPLETIONS or "backoffLimitPerIndex" not in spec:
        return
    why = f"when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
    if failed is None:
        detail = f"must be specified when completions is above {MANY_COMPLETIONS}"
        out.append(Cause.required(f"{path}.maxFailedIndexes", detail))
    if width is not None and width > PARALLELISM_OF_MANY:
        detail = f"must be less than or equal to {PARALLELISM_OF_MANY} {why}"
        out.append(Cause.invalid(f"{path}.parallelism", width, detail))
    if failed is not None and failed > FAILED_INDEXES_OF_MANY:
        detail = f"must be less than or equal to {FAILED_INDEXES_OF_MANY} {why}"
        out.append(Cause.invalid(f"{path}.maxFailedIndexes", failed, detail))


def _failure(out: Causes, path: str, spec: Object) -> None:
    listed = spec["podFailurePolicy"].get("rules") or EMPTY_LIST
    if len(listed) > MAX_RULES:
        out.append(Cause.too_many(path, len(listed), MAX_RULES))
    pod = (spec.get("template") or EMPTY).get("spec") or EMPTY
    containers = {
        container.get("name")
        for field in ("containers", "initContainers")
        for container in pod.get(field) or EMPTY_LIST
    }
    for index, rule in enumerate(listed):
        at, action = f"{path}[{index}]", rule.get("action") or ""
        if not action:
            out.append(Cause.required(f"{at}.action", f"valid values: {_listed(ACTIONS)}"))
        elif action == "FailIndex":
            if "backoffLimitPerIndex" not in spec:
                detail = "requires the backoffLimitPerIndex to be set"
                out.append(Cause.invalid(f"{at}.action", action, detail))
        elif action not in ACTIONS:
            out.append(Cause.unsupported(f"{at}.action", action, ACTIONS))
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or EMPTY_LIST
        if codes is not None:
            _exit_codes(out, f"{at}.onExitCodes", codes, containers)
        _conditions(out, f"{at}.onPodConditions", conditions)
        if codes is not None and conditions:
            out.append(_plain(at, "specifying both OnExitCodes and OnPodConditions is not supported"))
        if codes is None and not conditions:
            out.append(_plain(at, "specifying one of OnExitCodes and OnPodConditions is required"))


def _plain(path: str, detail: str) -> Cause:
    """Invalid, without showing the value."""
    return Cause("FieldValueInvalid", f"Invalid value: {detail}", path)


def _listed(values: tuple[str, ...]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _conditions(out: Causes, path: str, patterns: Any) -> None:
    if len(patterns) > MAX_RULES:
        out.append(Cause.too_many(path, len(patterns), MAX_RULES))
    for index, pattern in enumerate(patterns):
        at, status = f"{path}[{index}]", pattern.get("status") or ""
        rules.named(out, f"{at}.type", pattern.get("type") or "", rules.qualified_name)
        known = ("False", "True", "Unknown")
        if not status:
            out.append(Cause.required(f"{at}.status", f"valid values: {_listed(known)}"))
        elif status not in known:
            out.append(Cause.unsupported(f"{at}.status", status, known))


def _exit_codes(out: Causes, path: str, found: Object, containers: set[Any]) -> None:
    operator, values = found.get("operator") or "", found.get("values") or EMPTY_LIST
    if not operator:
        out.append(Cause.required(f"{path}.operator", f"valid values: {_listed(('In', 'NotIn'))}"))
    elif operator not in ("In", "NotIn"):
        out.append(Cause.unsupported(f"{path}.operator", operator, ("In", "NotIn")))
    name = found.get("containerName")
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        out.append(Cause.invalid(f"{path}.containerName", name, detail))
    if not values:
        out.append(Cause.invalid(f"{path}.values", values, "at least one value is required"))
    elif len(values) > MAX_EXIT_CODES:
        out.append(Cause.too_many(f"{path}.values", len(values), MAX_EXIT_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            out.append(Cause.invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            out.append(Cause.duplicate(f"{path}.values[{index}]", value))
        seen.add(value)
    if list(values) != sorted(values):
        out.append(Cause.invalid(f"{path}.values", values, "must be ordered"))


def _success(out: Causes, path: str, spec: Object) -> None:
    listed = spec["successPolicy"].get("rules") or EMPTY_LIST
    completions = spec.get("completions") or 0
    if not listed:
        detail = "at least one rules must be specified when the successPolicy is specified"
        out.append(Cause.required(path, detail))
    if len(listed) > MAX_RULES:
        out.append(Cause.too_many(path, len(listed), MAX_RULES))
    for index, rule in enumerate(listed):
        at, count, text = f"{path}[{index}]", rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and text is None:
            detail = "at least one of succeededCount or succeededIndexes must be specified"
            out.append(Cause.required(at, detail))
        total = 0
        if text is not None:
            if len(text) > MAX_INDEXES_TEXT:
                out.append(Cause.too_long(f"{at}.succeededIndexes", MAX_INDEXES_TEXT))
            try:
                total = _indexes(text[:MAX_INDEXES_TEXT], completions)
            except ValueError as error:
                detail = f"error parsing succeededIndexes: {error}"
                out.append(Cause.invalid(f"{at}.succeededIndexes", text, detail))
        if count is None:
            continue
        rules.not_negative(out, at, rule, "succeededCount")
        most = [(completions, "the number of specified completions")]
        if text is not None:
            most.append((total, "the number of indexes in the specified succeededIndexes field"))
        for limit, what in most:
            if count > limit:
                detail = f"must be less than or equal to {limit} ({what})"
                out.append(Cause.invalid(f"{at}.succeededCount", count, detail))


def _indexes(text: str, completions: int) -> int:
    """How many indexes `1,3-5` names. Raises ValueError with what is wrong."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        match = _INTERVAL.fullmatch(interval)
        if match is None:
            raise ValueError(f'cannot convert string to integer for index: "{interval}"')
        first, end = int(match[1]), int(match[2] or match[1])
        if end < first:
            raise ValueError(f"non-increasing order, previous: {first}, current: {end}")
        for index in (first, end):
            if index >= completions:
                raise ValueError(f'too large index: "{index}"')
        if last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total
