"""What HorizontalPodAutoscalers and PodDisruptionBudgets must look like.

Source of the facts: kubernetes `pkg/apis/autoscaling/validation`, `pkg/apis/policy/validation`, release 1.36.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api import quantity
from steersman.api.errors import Cause
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes, Object, chosen
from steersman.kernel.value import EMPTY

MAX_PERIOD: Final = 1800  # seconds a scaling policy looks back
MAX_STABILIZATION: Final = 3600  # seconds
_SOURCES: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_ORDER: Final = ("object", "external", "pods", "resource", "containerResource")
_TARGETS: Final = ("Utilization", "Value", "AverageValue")


def autoscaler(out: Causes, path: str, spec: Object) -> None:
    """The spec of a HorizontalPodAutoscaler (autoscaling/v2)."""
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        out.append(Cause.invalid(f"{path}.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        out.append(Cause.required(f"{path}.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        out.append(Cause.invalid(f"{path}.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        out.append(Cause.invalid(f"{path}.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or EMPTY
    _target_ref(out, f"{path}.scaleTargetRef", target)
    if target.get("kind") != "ReplicationController" and "/" not in str(target.get("apiVersion") or ""):
        version, detail = target.get("apiVersion") or "", "apiVersion must specify API group"
        out.append(Cause.invalid(f"{path}.scaleTargetRef.apiVersion", version, detail))
    for index, metric in enumerate(spec.get("metrics") or ()):
        _metric(out, f"{path}.metrics[{index}]", metric)
    for way in ("scaleUp", "scaleDown"):
        found = (spec.get("behavior") or EMPTY).get(way)
        if found is not None:
            _scaling(out, f"{path}.behavior.{way}", found)


def _target_ref(out: Causes, path: str, ref: Object) -> None:
    rules.segments(out, path, ref, "kind", "name")
    if str(ref.get("apiVersion") or "").count("/") > 1:
        detail = f"unexpected GroupVersion string: {ref['apiVersion']}"
        out.append(Cause.invalid(f"{path}.apiVersion", ref["apiVersion"], detail))


def _metric(out: Causes, path: str, metric: Object) -> None:
    kind = metric.get("type") or ""
    if not kind:
        out.append(Cause.required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCES:
        out.append(Cause.unsupported(f"{path}.type", kind, tuple(_SOURCES)))
    present = [field for field in _ORDER if metric.get(field) is not None]
    if present:
        _source(out, f"{path}.{present[0]}", present[0], metric[present[0]])
    expected = _SOURCES.get(kind)
    if expected is None:
        out.append(Cause.unsupported(f"{path}.type", kind, tuple(_SOURCES)))
    elif expected not in present:
        out.append(Cause.required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        for field in present:
            if field != expected:
                out.append(Cause.forbidden(f"{path}.{field}", "must populate the given metric source only"))


def _source(out: Causes, path: str, kind: str, source: Object) -> None:
    target, at = source.get("target") or EMPTY, f"{path}.target"
    value, average = target.get("value"), target.get("averageValue")
    if kind in ("resource", "containerResource"):
        _resource(out, path, kind, source)
    else:
        if kind == "object":
            _target_ref(out, f"{path}.describedObject", source.get("describedObject") or EMPTY)
        metric = source.get("metric") or EMPTY
        if not metric.get("name"):
            out.append(Cause.required(f"{path}.metric.name", "must specify a metric name"))
        else:
            rules.segments(out, f"{path}.metric", metric, "name")
    _target(out, at, target)
    if kind in ("resource", "containerResource"):
        used = target.get("averageUtilization")
        if used is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            out.append(Cause.required(f"{at}.averageUtilization", detail))
        elif used is not None and average is not None:
            detail = "may not set both a target raw value and a target utilization"
            out.append(Cause.forbidden(f"{at}.averageValue", detail))
    elif kind == "pods" and average is None:
        out.append(Cause.required(f"{at}.averageValue", "must specify a positive target averageValue"))
    elif kind == "object" and value is None and average is None:
        out.append(Cause.required(f"{at}.averageValue", "must set either a target value or averageValue"))
    elif kind == "external":
        if value is None and average is None:
            detail = "must set either a target value for metric or a per-pod target"
            out.append(Cause.required(f"{at}.averageValue", detail))
        elif value is not None and average is not None:
            detail = "may not set both a target value for metric and a per-pod target"
            out.append(Cause.forbidden(f"{at}.value", detail))


def _resource(out: Causes, path: str, kind: str, source: Object) -> None:
    if not source.get("name"):
        out.append(Cause.required(f"{path}.name", "must specify a resource name"))
    elif kind == "containerResource":
        rules.container_resource(out, f"{path}.name", source["name"])
    if kind == "containerResource":
        if not source.get("container"):
            out.append(Cause.required(f"{path}.container", "must specify a container"))
        else:
            rules.named(out, f"{path}.container", source["container"], rules.dns_label)


def _target(out: Causes, path: str, target: Object) -> None:
    kind = target.get("type") or ""
    if not kind:
        out.append(Cause.required(f"{path}.type", "must specify a metric target type"))
    if kind not in _TARGETS:
        detail = "must be either Utilization, Value, or AverageValue"
        out.append(Cause.invalid(f"{path}.type", kind, detail))
    for field in ("value", "averageValue"):
        text = target.get(field)
        if text is not None and _nano(text) <= 0:
            out.append(Cause.invalid(f"{path}.{field}", text, "must be positive"))
    used = target.get("averageUtilization")
    if used is not None and used < 1:
        out.append(Cause.invalid(f"{path}.averageUtilization", used, "must be greater than 0"))


def _nano(text: Any) -> int:
    try:
        return quantity.parse(text).nano
    except quantity.QuantityError:
        return 1  # its form is judged by the schema


def _scaling(out: Causes, path: str, found: Object) -> None:
    window = found.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        detail = "must be greater than or equal to zero"
        out.append(Cause.invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    if window is not None and window > MAX_STABILIZATION:
        detail = f"must be less than or equal to {MAX_STABILIZATION}"
        out.append(Cause.invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    select = found.get("selectPolicy")
    if select is not None and select not in ("Disabled", "Max", "Min"):
        out.append(Cause.unsupported(f"{path}.selectPolicy", select, ("Disabled", "Max", "Min")))
    if not found.get("policies"):
        out.append(Cause.required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(found.get("policies") or ()):
        at = f"{path}.policies[{index}]"
        kind, period = policy.get("type") or "", policy.get("periodSeconds") or 0
        if kind not in ("Percent", "Pods"):
            out.append(Cause.unsupported(f"{at}.type", kind, ("Percent", "Pods")))
        for field, number in (("value", policy.get("value") or 0), ("periodSeconds", period)):
            if number <= 0:
                out.append(Cause.invalid(f"{at}.{field}", number, rules.NOT_POSITIVE))
        if period > MAX_PERIOD:
            out.append(Cause.invalid(f"{at}.periodSeconds", period, f"must be less than or equal to {MAX_PERIOD}"))
    tolerance = found.get("tolerance")
    if tolerance is not None and _nano(tolerance) < 0:
        out.append(Cause.invalid(f"{path}.tolerance", tolerance, rules.NEGATIVE))


def disruption_budget(out: Causes, path: str, spec: Object) -> None:
    """The spec of a PodDisruptionBudget."""
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        out.append(Cause.invalid(path, spec, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if spec.get(field) is not None:
            rules.count_or_percent(out, f"{path}.{field}", spec[field])
            rules.at_most_all(out, f"{path}.{field}", spec[field])
    if spec.get("selector") is not None:
        rules.selector(out, f"{path}.selector", spec["selector"])
    chosen(
        out,
        f"{path}.unhealthyPodEvictionPolicy",
        spec.get("unhealthyPodEvictionPolicy"),
        ("AlwaysAllow", "IfHealthyBudget"),
    )


def budget_status(out: Causes, path: str, status: Object) -> None:
    """The status of a PodDisruptionBudget."""
    rules.not_negative(out, path, status, "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def autoscaler_status(out: Causes, path: str, status: Object) -> None:
    """The status of a HorizontalPodAutoscaler."""
    rules.not_negative(out, path, status, "currentReplicas", "desiredReplicas")
