"""The horizontal pod autoscaler: reads metrics, and sets the scale of whatever has one.

Metrics come from the external system "metrics": `c.external("metrics", query)`. A query says its `type` (Resource,
Pods, Object or External), the metric and its selector, the namespace and, of the pods meant, what is known of them; an
answer is `{"pods": [{"name", "containers": {name: quantity}} | {"name", "value": quantity}]}`, `{"value": quantity}` or
`{"values": [quantity]}`, or `{"error": text}`; of a pod it may say the `timestamp` and the `window` (seconds, 30 if it
does not) of the measurement. What answers by itself, everywhere, is `nodes.usage.measured`: the
resources that pods on virtual nodes say they use. A driver in run, or a model in check, can answer anything.

Source of the facts: Kubernetes 1.36, pkg/controller/podautoscaler (horizontal.go, metrics/client.go), with the default
flags of kube-controller-manager. The alpha feature HPAScaleToZero is off. What differs: a new autoscaler is looked at
at once, and not only after PERIOD.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api import quantity
from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import ApiError
from steersman.api.kinds import Kind, UnknownKind
from steersman.api.select import LabelSelector
from steersman.controllers import replica_count
from steersman.controllers.conditions import find
from steersman.controllers.go_text import selector_text
from steersman.controllers.replica_count import Measured, NoCount, Tolerance
from steersman.controllers.scaling_pace import Pace
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
PERIOD: Final = 15
"""Seconds between two looks at an autoscaler."""
SOURCE: Final = "horizontal-pod-autoscaler"
USAGE: Final = ("kwok.x-k8s.io/usage-cpu", "kwok.x-k8s.io/usage-memory")
"""The annotations that a query tells of a pod."""
REASONS: Final = {
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "Pods": "FailedGetPodsMetric",
    "Object": "FailedGetObjectMetric",
    "External": "FailedGetExternalMetric",
}


class Halt(Exception):
    """The autoscaler can do nothing now; the text says why."""


class HorizontalPodAutoscaler(Controller):
    """Scales by metrics."""

    name = "horizontal-pod-autoscaler-controller"
    kind = "autoscaling/v2/HorizontalPodAutoscaler"
    reads: ClassVar[tuple[str, ...]] = ("v1/Pod",)

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """An autoscaler is looked at when somebody changes it, and then every PERIOD; its own status does not count."""
        old, new = event.old, event.new
        same = old is not None and new is not None and old.uid == new.uid and old.spec_value == new.spec_value
        return () if same else (event.key,)

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Looks at the metrics of one autoscaler. Raises what the API refused."""
        hpa = c.get(key)
        place = f"{key.namespace}/{key.name}"
        if hpa is None:
            Pace.forget(c, place)
            return None
        _Look(c, hpa, Pace(c, place, hpa["spec"].get("behavior"))).take()
        return PERIOD


class Scale:
    """The scale of a workload of any kind. Raises `Halt` with the refusal's text where there is none."""

    def __init__(self, c: Client, ref: Json, namespace: str) -> None:
        self._c = c
        group = str(ref.get("apiVersion") or "").rpartition("/")[0]
        try:
            kind = c.kind_of(group, ref["kind"])
        except UnknownKind:
            raise Halt(f'no matches for kind "{ref["kind"]}" in group "{group}"') from None
        if "scale" not in kind.subresources:
            raise Halt("the server could not find the requested resource")
        found = c.get(Key(group, kind.kind, namespace, ref["name"]), fresh=True)
        if found is None:
            raise Halt(f'{kind.resource} "{ref["name"]}" not found')
        self.object = found
        self._paths = None if kind.origin is None else kind.origin.scale
        self.replicas = self._number(("spec", "replicas") if self._paths is None else self._paths.replicas, kind)
        self.running = self._number(
            ("status", "replicas") if self._paths is None else self._paths.status_replicas, None
        )
        self.selector = self._selector(kind)

    def set(self, replicas: int) -> None:
        """Writes it. Raises what the API refused."""
        path = ("spec", "replicas") if self._paths is None else self._paths.replicas
        patch: Any = replicas
        for field in reversed(path):
            patch = {field: patch}
        self._c.patch(self.object, patch, rv=self.object["metadata"]["resourceVersion"])

    def _at(self, path: Iterable[str]) -> Any:
        value: Any = self.object
        for field in path:
            value = value.get(field) if isinstance(value, Mapping) else None
        return value

    def _number(self, path: Iterable[str], kind: Kind | None) -> int:
        found = self._at(path)
        if isinstance(found, int):
            return found
        return 1 if kind is not None and not kind.custom else 0

    def _selector(self, kind: Kind) -> str:
        if self._paths is not None:
            found = self._at(self._paths.selector) if self._paths.selector else ""
            return found if isinstance(found, str) else ""
        selector = self._at(("spec", "selector"))
        if kind.kind == "ReplicationController":
            selector = {"matchLabels": selector} if selector else None
        return str(LabelSelector.compile(selector)) if selector else ""


class _Look:
    """One look at one autoscaler."""

    def __init__(self, c: Client, hpa: Json, pace: Pace) -> None:
        self.c, self.hpa, self.pace = c, hpa, pace
        self.namespace = hpa["metadata"]["namespace"]
        self.before = hpa.get("status") or EMPTY
        self.conditions = [dict(each) for each in self.before.get("conditions") or ()]
        self.metrics: list[Any] = []
        self.young = not c.after(hpa["metadata"]["creationTimestamp"], PERIOD)
        """Kubernetes looks for the first time after PERIOD. What goes wrong before is not told: it may still come."""

    def take(self) -> None:
        """See `HorizontalPodAutoscaler.reconcile`."""
        ref = self.hpa["spec"]["scaleTargetRef"]
        try:
            scale = Scale(self.c, ref, self.namespace)
        except Halt as halt:
            if self.young:
                return
            self.say("Warning", "FailedGetScale", str(halt))
            message = f"the HPA controller was unable to get the target's current scale: {halt}"
            self.condition("AbleToScale", "False", "FailedGetScale", message)
            self.write(self.before.get("currentReplicas", 0), self.before.get("desiredReplicas", 0), kept=True)
            return
        message = "the HPA controller was able to get the target's current scale"
        self.condition("AbleToScale", "True", "SucceededGetScale", message)
        self.pace.begin(scale.replicas)
        try:
            wanted, reason = self.decided(scale)
        except Halt as halt:
            if self.young:
                return
            self.write(scale.replicas, self.before.get("desiredReplicas", 0))
            self.say("Warning", "FailedComputeMetricsReplicas", str(halt))
            return
        if wanted == scale.replicas:
            self.write(scale.replicas, scale.replicas)
            return
        try:
            scale.set(wanted)
        except ApiError as refused:
            self.say("Warning", "FailedRescale", f"New size: {wanted}; reason: {reason}; error: {refused.message}")
            message = f"the HPA controller was unable to update the target scale: {refused.message}"
            self.condition("AbleToScale", "False", "FailedUpdateScale", message)
            self.write(scale.replicas, self.before.get("desiredReplicas", 0))
            raise
        message = f"the HPA controller was able to update the target scale to {wanted}"
        self.condition("AbleToScale", "True", "SucceededRescale", message)
        self.say("Normal", "SuccessfulRescale", f"New size: {wanted}; reason: {reason}")
        self.pace.moved(scale.replicas, wanted)
        self.write(scale.replicas, wanted, scaled=True)

    def decided(self, scale: Scale) -> tuple[int, str]:
        """(replicas, why). Raises `Halt`."""
        spec = self.hpa["spec"]
        least, most, current = spec.get("minReplicas", 1), spec["maxReplicas"], scale.replicas
        if current == 0:
            message = "scaling is disabled since the replica count of the target is zero"
            self.condition("ScalingActive", "False", "ScalingDisabled", message)
            return 0, ""
        if current > most:
            return most, "Current number of replicas above Spec.MaxReplicas"
        if current < least:
            return least, "Current number of replicas below Spec.MinReplicas"
        wanted, metric = self.from_metrics(scale)
        reason = f"{metric} above target" if wanted > current else ""
        if wanted < current:
            reason = "All metrics below target"
        paced = self.pace.paced(current, wanted, least, most)
        self.condition("AbleToScale", "True", *paced.able)
        self.condition("ScalingLimited", "True" if paced.limited else "False", *paced.limit)
        return paced.replicas, reason

    def from_metrics(self, scale: Scale) -> tuple[int, str]:
        """The largest count that any metric asks for, and its name. Raises `Halt`."""
        found = self.pods(scale)
        best, name, bad = 0, "", 0
        first: tuple[Json, NoCount] = EMPTY, NoCount("")
        specs = self.hpa["spec"].get("metrics") or ()
        for spec in specs:
            try:
                replicas, named, status = _Metric(self, spec, scale, found).count()
            except NoCount as problem:
                self.say("Warning", REASONS[spec["type"]], str(problem))
                self.metrics.append({"type": ""})
                first = first if bad else (spec, problem)
                bad += 1
                continue
            self.metrics.append(status)
            if best == 0 or replicas > best:
                best, name = replicas, named
        if bad >= len(specs) or (bad and best < scale.replicas):
            spec, fault = first
            message = f"the HPA was unable to compute the replica count: {fault}"
            self.condition("ScalingActive", "False", REASONS[spec["type"]], message)
            what = _outer(fault.outer, spec)
            raise Halt(f"invalid metrics ({bad} invalid out of {len(specs)}), first error is: {what}")
        message = f"the HPA was able to successfully calculate a replica count from {name}"
        self.condition("ScalingActive", "True", "ValidMetricFound", message)
        return best, name

    def pods(self, scale: Scale) -> list[Any]:
        """The pods of the scale, which no other autoscaler may mean as well. Raises `Halt`."""
        if not scale.selector:
            self.say("Warning", "SelectorRequired", "selector is required")
            message = "the HPA target's scale is missing a selector"
            self.condition("ScalingActive", "False", "InvalidSelector", message)
            raise Halt("selector is required")
        try:
            found = self.c.list("v1/Pod", self.namespace, labels=scale.selector)
        except ApiError as problem:
            message = f"couldn't convert selector into a corresponding internal selector object: {problem.message}"
            self.say("Warning", "InvalidSelector", message)
            self.condition("ScalingActive", "False", "InvalidSelector", message)
            raise Halt(message) from None
        rivals = self.rivals(found)
        if rivals:
            names = sorted([self.hpa["metadata"]["name"], *rivals])
            shown = " ".join(f"{self.namespace}/{name}" for name in names)
            message = f"pods by selector {scale.selector} are controlled by multiple HPAs: [{shown}]"
            self.say("Warning", "AmbiguousSelector", message)
            self.condition("ScalingActive", "False", "AmbiguousSelector", message)
            raise Halt(message)
        return found

    def rivals(self, found: list[Any]) -> list[str]:
        """Other autoscalers whose pods are among these."""
        out = []
        for other in self.c.list("autoscaling/v2/HorizontalPodAutoscaler", self.namespace):
            name = other["metadata"]["name"]
            if name == self.hpa["metadata"]["name"]:
                continue
            try:
                text = Scale(self.c, other["spec"]["scaleTargetRef"], self.namespace).selector
                selector = LabelSelector.parse(text) if text else None
            except (Halt, ApiError):
                continue
            if selector is not None and any(selector.matches(pod["metadata"].get("labels")) for pod in found):
                out.append(name)
        return out

    def condition(self, type_: str, status: str, reason: str, message: str) -> None:
        """Sets a condition; its time changes with its status."""
        known = find(self.conditions, type_)
        if known is None:
            known = {"type": type_}
            self.conditions.append(known)
        assert isinstance(known, dict)
        if known.get("status") != status:
            known["lastTransitionTime"] = self.c.timestamp()
        known.update(status=status, reason=reason, message=message)

    def say(self, type_: str, reason: str, message: str) -> None:
        """An event about the autoscaler."""
        if not self.young or type_ == "Normal":
            self.c.event(self.hpa, type_, reason, message, SOURCE)

    def write(self, current: int, desired: int, scaled: bool = False, kept: bool = False) -> None:
        """Writes the status, if it says anything new. `kept`: the metrics of the last look stay."""
        metrics = self.before.get("currentMetrics") if kept else self.metrics
        status = {
            "currentReplicas": current,
            "desiredReplicas": desired,
            "conditions": self.conditions,
            "currentMetrics": metrics,
            "lastScaleTime": self.c.timestamp() if scaled else self.before.get("lastScaleTime"),
            "observedGeneration": self.before.get("observedGeneration"),
        }
        after = {name: value for name, value in status.items() if value not in (None, [])}
        if after != self.before:
            self.c.update_status({**self.hpa, "status": after})


def _outer(problem: str, spec: Json) -> str:
    """The error of a metric as it is told further out: with the kind of metric before it."""
    kind = spec["type"]
    if kind == "Resource":
        return f"failed to get {spec['resource']['name']} resource metric value: {problem}"
    if kind == "ContainerResource":
        return f"failed to get {spec['containerResource']['container']} container metric value: {problem}"
    if kind == "External":
        return f"failed to get {spec['external']['metric']['name']} external metric value: {problem}"
    return f"failed to get {kind.lower()} metric value: {problem}"


class _Metric:
    """One metric of one autoscaler."""

    def __init__(self, look: _Look, spec: Json, scale: Scale, found: list[Any]) -> None:
        self.look, self.type, self.scale, self.found = look, spec["type"], scale, found
        self.field = self.type[0].lower() + self.type[1:]
        self.spec: Json = spec[self.field]
        self.target: Json = self.spec["target"]
        self.tolerance = _tolerance(look.hpa["spec"].get("behavior"))

    def count(self) -> tuple[int, str, dict[str, Any]]:
        """(replicas, name for people, status). Raises `NoCount`."""
        if self.type in ("Resource", "ContainerResource"):
            return self._resource()
        if self.type == "Pods":
            return self._pods()
        return self._single()

    def _resource(self) -> tuple[int, str, dict[str, Any]]:
        resource, container = self.spec["name"], self.spec.get("container", "")
        c, current = self.look.c, self.scale.replicas
        shown: dict[str, Any]
        average = self.target.get("averageValue")
        what = "usage" if average is not None else "utilization"
        try:
            metrics = self._of_pods(resource, container)
            if average is not None:
                target = quantity.milli(average)
                replicas, usage = replica_count.from_usage(
                    c, self.found, metrics, current, target, self.tolerance, resource
                )
                name, shown = f"{resource} resource", {}
            else:
                percent = self.target["averageUtilization"]
                replicas, now, usage = replica_count.from_utilisation(
                    c, self.found, metrics, current, percent, self.tolerance, resource, container
                )
                infix = " container" if container else ""
                name = f"{resource}{infix} resource utilization (percentage of request)"
                shown = {"averageUtilization": now}
        except NoCount as problem:
            raise NoCount(f"failed to get {resource} {what}: {problem}") from None
        shown["averageValue"] = _shown(usage, resource)
        status = {"name": resource, "current": shown}
        if container:
            status["container"] = container
        return replicas, name, {"type": self.type, self.field: status}

    def _pods(self) -> tuple[int, str, dict[str, Any]]:
        metric = self.spec["metric"]
        target = quantity.milli(self.target["averageValue"])
        try:
            answer = self._ask({"metric": metric}, "custom")
            metrics = {each["name"]: _measured(each, each["value"]) for each in answer.get("pods") or ()}
            if not metrics:
                raise NoCount("no metrics returned from custom metrics API")
        except NoCount as problem:
            raise NoCount(f"unable to get metric {metric['name']}: {problem}") from None
        replicas, usage = replica_count.from_usage(
            self.look.c, self.found, metrics, self.scale.replicas, target, self.tolerance
        )
        status = {"metric": metric, "current": {"averageValue": _shown(usage)}}
        return replicas, f"pods metric {metric['name']}", {"type": self.type, self.field: status}

    def _single(self) -> tuple[int, str, dict[str, Any]]:
        """Object and External metrics: one number."""
        metric, name = self.spec["metric"], self.spec["metric"]["name"]
        about = self.spec.get("describedObject")
        total, value = self._total(), self.target.get("value")
        named = f"external metric {name}({selector_text(metric.get('selector'))})"
        if value is not None:
            count = replica_count.from_value(
                self.found, self.scale.replicas, total, quantity.milli(value), self.tolerance
            )
            shown = {"value": _shown(total)}
            named = named if about is None else f"{about['kind']} metric {name}"
        else:
            count, each = replica_count.from_share(
                self.scale.running, total, quantity.milli(self.target["averageValue"]), self.tolerance
            )
            shown = {"averageValue": _shown(each)}
        status = {"metric": metric, "current": shown}
        if about is not None:
            status["describedObject"] = about
        return count, named, {"type": self.type, self.field: status}

    def _total(self) -> int:
        metric, name = self.spec["metric"], self.spec["metric"]["name"]
        about, namespace = self.spec.get("describedObject"), self.look.namespace
        try:
            if about is not None:
                answer = self._ask({"metric": metric, "object": about}, "custom")
                return quantity.milli(answer["value"])
            answer = self._ask({"metric": metric}, "external")
            values = answer.get("values") or ()
            if not values:
                raise NoCount("no metrics returned from external metrics API")
            return sum(quantity.milli(each) for each in values)
        except NoCount as problem:
            per = "averageValue" in self.target
            if about is not None:
                # Kubernetes' words in Kubernetes' order: the error comes last
                text = f"unable to get metric {name}: {about['kind']} on {namespace} {about['name']}/{problem}"
                raise NoCount(text, f"failed to get {name} object metric: {text}" if per else text) from None
            selector = selector_text(metric.get("selector"))
            text = f"unable to get external metric {namespace}/{name}/{selector}: {problem}"
            head = f"failed to get {name} external metric" if per else f"failed to get external metric {name}"
            raise NoCount(text, f"{head}: {text}") from None

    def _of_pods(self, resource: str, container: str) -> dict[str, Measured]:
        """What each pod, or one container of it, uses. Raises `NoCount`."""
        try:
            answer = self._ask({"resource": resource}, "resource")
            listed = answer.get("pods") or ()
            if not listed:
                raise NoCount("no metrics returned from resource metrics API")
        except NoCount as problem:
            raise NoCount(f"unable to get metrics for resource {resource}: {problem}") from None
        out = {}
        for each in listed:
            used = each.get("containers") or EMPTY
            if container:
                used = {container: used[container]} if container in used else EMPTY
            if used:
                out[each["name"]] = _measured(each, sum(quantity.milli(amount) for amount in used.values()))
        return out

    def _ask(self, query: dict[str, Any], api: str) -> Json:
        kind = "Resource" if api == "resource" else self.type
        about = {"type": kind, "namespace": self.look.namespace, "selector": self.scale.selector}
        answer: Json = self.look.c.external("metrics", {**about, **query, "pods": [_face(pod) for pod in self.found]})
        if "error" in answer:
            raise NoCount(f"unable to fetch metrics from {api} metrics API: {answer['error']}")
        return answer


def _face(pod: Json) -> dict[str, Any]:
    """What a query tells of a pod."""
    notes = pod["metadata"].get("annotations") or EMPTY
    return {
        "name": pod["metadata"]["name"],
        "phase": (pod.get("status") or EMPTY).get("phase", ""),
        "node": pod["spec"].get("nodeName", ""),
        "containers": [each["name"] for each in pod["spec"].get("containers") or ()],
        "annotations": {name: notes[name] for name in USAGE if name in notes},
    }


def _measured(each: Json, value: Any) -> Measured:
    amount = value if isinstance(value, int) else quantity.milli(value)
    return Measured(amount, each.get("timestamp", ""), each.get("window", 30.0))


def _shown(milli: int, resource: str = "") -> str:
    """A quantity as Kubernetes writes it: memory in powers of two."""
    format_ = quantity.BINARY_SI if resource == "memory" else quantity.DECIMAL_SI
    return quantity.Quantity(milli * (quantity.MILLI_IN_NANO), format_).canonical()


def _tolerance(behavior: Json | None) -> Tolerance:
    given = {}
    for field, direction in (("down", "scaleDown"), ("up", "scaleUp")):
        text = ((behavior or EMPTY).get(direction) or EMPTY).get("tolerance")
        if text is not None:
            given[field] = quantity.parse(text).nano / quantity.NANO
    return Tolerance(**given)
