"""Built-in kinds that are stored once and served in a second shape: events.k8s.io/v1 and autoscaling/v1.

An alias is a Kind of its own, with the schema of its version, that names the slot of the stored kind; `shown` makes its
objects of stored ones, `stored` makes bodies for the store of those that were sent. What one shape cannot say goes
into annotations, as kube-apiserver puts it there. Source of the facts: kubernetes `pkg/apis/autoscaling/v1` and
`pkg/apis/events/v1` (conversion.go), `pkg/apis/core/validation/events.go`, release 1.36.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

import orjson

from steersman.api import errors, managed
from steersman.api.errors import Cause
from steersman.api.fields import Change
from steersman.api.kinds import Kind, Kinds
from steersman.api.sent import meta_of
from steersman.kernel.fieldset import FieldSet, node
from steersman.kernel.object import Manager, Object, Section
from steersman.kernel.value import EMPTY, freeze

Json = dict[str, Any]
EVENT: Final = ("", "Event")
AUTOSCALER: Final = ("autoscaling", "HorizontalPodAutoscaler")
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS: Final = f"{_PREFIX}metrics"
CURRENT: Final = f"{_PREFIX}current-metrics"
CONDITIONS: Final = f"{_PREFIX}conditions"
BEHAVIOR: Final = f"{_PREFIX}behavior"
DEFAULT_CPU: Final = 80


@dataclasses.dataclass(frozen=True, slots=True)
class Alias:
    """How the objects of one stored kind look in another version. `up` leads from the stored shape to this one."""

    up: Callable[[Json], Json]
    down: Callable[[Json], Json]
    fields: Mapping[str, str]
    """Selectable fields beside name and namespace, with their path in the store."""
    check: Callable[[Json, Json | None], list[Cause]]
    """What is wrong with a stored-shape body that was sent in this version; with the old one when there is one."""


def aliases(kinds: Kinds) -> tuple[Kind, ...]:
    """The aliases of a registry's kinds, as they are served."""
    return _aliases(kinds.get(*EVENT), kinds.get("events.k8s.io", "Event"), kinds.get(*AUTOSCALER))


@lru_cache(maxsize=64)
def _aliases(event: Kind, new_event: Kind, autoscaler: Kind) -> tuple[Kind, ...]:
    first = first_version(autoscaler)
    second = dataclasses.replace(new_event, alias=_EVENT)
    object.__setattr__(second, "gk", event.gk)  # the slot in which its objects are
    return (first, second)


@lru_cache(maxsize=64)
def first_version(autoscaler: Kind) -> Kind:
    """The kind of autoscalers as autoscaling/v1 has it."""
    old = f"io.k8s.api.autoscaling.v1.{autoscaler.kind}"
    endpoints = tuple(part._replace(api_version="autoscaling/v1") for part in autoscaler.endpoints)
    return dataclasses.replace(
        autoscaler, version="v1", schema=Kinds.definition(old), served=(), endpoints=endpoints, alias=_AUTOSCALER
    )


def owned(kind: Kind, obj: Object, fields: FieldSet, served: str) -> FieldSet:
    """The fields of a new object, in the shape it was sent in."""
    if not served or kind.gk != AUTOSCALER:
        return told(fields) if served else fields
    first = first_version(kind)
    return managed.all_fields(first, shown(first, obj), status=False)


def across(kind: Kind, old: Object, new: Object, served: str = "") -> managed.Across | None:
    """What a change of an autoscaler is in the version of an entry of managedFields; None where nobody has written it
    in another version than it is stored in."""
    if kind.gk != AUTOSCALER:
        return None
    first = first_version(kind)
    if not served and all(entry.api_version != first.api_version for entry in old.managers):
        return None

    @cache
    def change_in(api_version: str) -> Change | None:
        if api_version == kind.api_version:
            return managed.changes(kind, old, new)
        return (
            managed.changes(first, shown(first, old), shown(first, new)) if api_version == first.api_version else None
        )

    return change_in


def shown(kind: Kind, obj: Object) -> Object:
    """A stored object in the shape of the alias."""
    alias: Alias = kind.alias
    body = alias.up(dict(obj.value))
    parts = {name: body.pop(name, None) for name in ("metadata", "spec", "status")}
    rest = {name: value for name, value in body.items() if name not in ("apiVersion", "kind")}
    # managedFields and resourceVersion are kept outside the metadata.
    meta = {
        name: value for name, value in (parts["metadata"] or EMPTY).items() if name in _KEPT or name in obj.metadata
    }
    return Object(
        obj.key,
        kind.api_version,
        obj.rv,
        Section(freeze(meta)),
        None if parts["spec"] is None else Section(freeze(parts["spec"])),
        Section(freeze(rest)) if rest else None,
        None if parts["status"] is None else Section(freeze(parts["status"])),
        obj.managers,
        obj.node,
    )


_KEPT: Final = ("annotations",)


def stored(kind: Kind, body: Any, old: Object | None = None) -> Json:
    """A body that was sent in the shape of the alias, for the store. Raises ApiError 400 and 422.

    `old` is the stored object that it replaces.
    """
    alias: Alias = kind.alias
    if not isinstance(body, dict):
        raise errors.bad_request(f"the body must be a {kind.kind} object")
    named = body.get("apiVersion", kind.api_version), body.get("kind", kind.kind)
    if named != (kind.api_version, kind.kind):
        raise errors.bad_request(f"the object is a {named[0]}/{named[1]}; this path takes {kind}")
    _map(body.get("metadata"), "metadata")
    made = alias.down(body)
    causes = alias.check(made, None if old is None else old.value)
    if causes:
        group = "" if kind.gk == EVENT else kind.group  # whose rules they are
        raise errors.invalid(kind.kind, str(meta_of(body).get("name", "")), causes, group)
    return made


def told(owned: FieldSet, names: Mapping[str, str] | None = None) -> FieldSet:
    """Fields of an Event of the core group, by the names they have in events.k8s.io/v1; or by other `names`."""
    named = {f"f:{old}": f"f:{new}" for old, new in (_EVENT_NAMES if names is None else names).items()}
    return node({named.get(name, name): below for name, below in zip(owned.names, owned.kids, strict=True)})


def known(kind: Kind, managers: tuple[Manager, ...], served: str) -> tuple[Manager, ...]:
    """The entries of an Event as a writer goes on from them, by the names of the core group; `served`: the apiVersion
    it is written in, "" for the core group's. A handler of one group cannot read the fields of the other, and lets
    such entries go."""
    if not served:
        return tuple([entry for entry in managers if entry.api_version == kind.api_version])
    return tuple(
        [
            entry._replace(api_version=kind.api_version, fields=told(entry.fields, _STORED_NAMES))
            for entry in managers
            if entry.api_version == served
        ]
    )


def noted(managers: tuple[Manager, ...], served: str) -> tuple[Manager, ...]:
    """What `known` gave, once it is brought up to date, as it is put on record."""
    if not served:
        return managers
    return tuple([entry._replace(api_version=served, fields=told(entry.fields)) for entry in managers])


def applied(kind: Kind, body: Any) -> Any:
    """What is applied in the shape of the alias, for the store: nothing is said of what the body leaves out."""
    alias: Alias = kind.alias
    if not isinstance(body, dict):
        return body
    made = alias.down(body)
    if kind.gk == EVENT and "regarding" not in body:
        del made["involvedObject"]
    return made


def _map(value: Any, path: str) -> Json:
    """An object of the body, a copy. Raises ApiError 400."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise errors.bad_request(f"{path} must be an object")
    return dict(value)


def _rename(body: Mapping[str, Any], names: Mapping[str, str]) -> Json:
    return {names.get(name, name): value for name, value in body.items()}


# -- events ----------------------------------------------------------------------------------------------------

_EVENT_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_STORED_NAMES: Final = {new: old for old, new in _EVENT_NAMES.items()}
_STAYING: Final = ("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type")
_STAYING_TOO: Final = ("eventTime", "action", "related", "reportingComponent", "reportingInstance")


def _event_up(body: Json) -> Json:
    out = {**_rename(body, _EVENT_NAMES), "apiVersion": "events.k8s.io/v1", "kind": "Event"}
    for name in ("reportingController", "reportingInstance"):  # which the core group writes when they are empty, too
        if out.get(name) == "":
            del out[name]
    return out


def _event_down(body: Json) -> Json:
    # A field by its old name is unknown in this version; it must not become one that counts.
    for name in _EVENT_NAMES:
        if name in body:
            raise errors.bad_request(f'strict decoding error: unknown field "{name}"')
    # An Event of the core group must name its object, if only as nothing.
    return {"involvedObject": {}, **_rename(body, _STORED_NAMES), "apiVersion": "v1", "kind": "Event"}


def _event_check(new: Json, old: Json | None) -> list[Cause]:
    out: list[Cause] = []
    series = new.get("series")
    if isinstance(series, dict) and (old is None or series != old.get("series")):
        if not isinstance(series.get("count"), int) or series["count"] < 2:
            out.append(Cause.invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            out.append(Cause.required("series.lastObservedTime"))
    if old is not None:
        for name in (*_STAYING, *_STAYING_TOO):
            if (new.get(name) or None) != (old.get(name) or None):
                path = "reportingController" if name == "reportingComponent" else name
                out.append(Cause.invalid(path, new.get(name), "field is immutable"))
        return out
    if not new.get("eventTime"):
        out.append(Cause.required("eventTime"))
    if new.get("type") not in ("Normal", "Warning"):
        out.append(Cause.invalid("type", "", f"has invalid value: {new.get('type') or ''}"))
    out += [
        Cause.invalid(name, "", "needs to be unset")
        for name in ("firstTimestamp", "lastTimestamp", "count", "source")
        if new.get(name)
    ]
    return out


# -- autoscalers -----------------------------------------------------------------------------------------------


def _cpu(metric: Any) -> int | None:
    """The CPU utilization a metric is about, which v1 has a field for."""
    if not isinstance(metric, dict) or metric.get("type") != "Resource":
        return None
    resource = metric.get("resource") or EMPTY
    if resource.get("name") != "cpu":
        return None
    found = (resource.get("target") or EMPTY).get("averageUtilization")
    return found if isinstance(found, int) else None


def _dump(value: Any) -> str:
    return orjson.dumps(value).decode()


def _autoscaler_up(body: Json) -> Json:
    spec, status, meta = (dict(body.get(part) or EMPTY) for part in ("spec", "status", "metadata"))
    notes = {name: text for name, text in (meta.get("annotations") or EMPTY).items() if not name.startswith(_PREFIX)}
    metrics: list[Any] = list(spec.pop("metrics", ()))
    behavior = spec.pop("behavior", None)
    used = next((found for metric in metrics if (found := _cpu(metric)) is not None), None)
    if used is not None:
        spec["targetCPUUtilizationPercentage"] = used
    others = [_metric_up(metric, "target") for metric in metrics if _cpu(metric) is None]
    current, conditions = status.pop("currentMetrics", None), status.pop("conditions", None)
    for metric in current or ():
        found = ((metric.get("resource") or EMPTY).get("current") or EMPTY).get("averageUtilization")
        if found is not None and metric["resource"].get("name") == "cpu":
            status["currentCPUUtilizationPercentage"] = found
    for name, value in ((METRICS, others), (BEHAVIOR, behavior), (CONDITIONS, conditions)):
        if value:
            notes[name] = _dump(value)
    if current:
        notes[CURRENT] = _dump([_metric_up(metric, "current") for metric in current])
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    return {"kind": body["kind"], "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


_SOURCES: Final = ("object", "pods", "resource", "containerResource", "external")


def _metric_up(metric: Mapping[str, Any], which: str) -> Json:
    """A metric of v2 in v1's shape, whose targets are flat fields; `which` is "target" or "current"."""
    out: Json = {"type": metric.get("type", "")}
    for kind in _SOURCES:
        source = metric.get(kind)
        if not isinstance(source, dict):
            continue
        flat = {name: value for name, value in source.items() if name in ("name", "container")}
        value, named = source.get(which) or EMPTY, source.get("metric") or EMPTY
        if named:
            flat["metricName"] = named.get("name", "")
            if "selector" in named:
                flat["metricSelector" if kind == "external" else "selector"] = named["selector"]
        if "describedObject" in source:
            flat["target"] = source["describedObject"]
        for name in ("averageUtilization", "averageValue", "value"):
            if name in value:
                flat[_flat(kind, name, which)] = value[name]
        out[kind] = flat
    return out


def _flat(kind: str, name: str, which: str) -> str:
    """`targetAverageValue` and its like; the average of an object stands by its own name."""
    if kind == "object" and name == "averageValue":
        return name
    return which + name[0].upper() + name[1:]


def _metric_down(metric: Any, which: str) -> Json:
    out: Json = {"type": metric.get("type", "")}
    for kind in _SOURCES:
        flat = metric.get(kind)
        if not isinstance(flat, dict):
            continue
        source: Json = {name: flat[name] for name in ("name", "container") if name in flat}
        if "metricName" in flat:
            selector = flat.get("metricSelector", flat.get("selector"))
            source["metric"] = {"name": flat["metricName"], **({"selector": selector} if selector else {})}
        if kind == "object":
            source["describedObject"] = flat.get("target") or {}
        value: Json = {}
        for name in ("averageUtilization", "averageValue", "value"):
            found = flat.get(_flat(kind, name, which))
            if found is not None:
                value[name] = found
        if which == "target":
            forms = (("averageUtilization", "Utilization"), ("averageValue", "AverageValue"), ("value", "Value"))
            value["type"] = next((form for name, form in forms if name in value), "Value")
        source[which] = value
        out[kind] = source
    return out


def _annotated(notes: Mapping[str, Any], name: str, shape: type) -> Any:
    """What an annotation holds; None when it is not there or no such JSON: Kubernetes then goes on without it."""
    text = notes.get(name)
    if not isinstance(text, str):
        return None
    try:
        value: Any = orjson.loads(text)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    if type(value) is not shape:
        return None
    found: Any = value
    return None if shape is list and not all(isinstance(item, dict) for item in found) else found


def _autoscaler_down(body: Json) -> Json:
    meta, spec = _map(body.get("metadata"), "metadata"), _map(body.get("spec"), "spec")
    status, notes = _map(body.get("status"), "status"), _map(meta.get("annotations"), "metadata.annotations")
    used = spec.pop("targetCPUUtilizationPercentage", None)
    if used is not None and type(used) is not int:
        raise errors.bad_request("spec.targetCPUUtilizationPercentage must be a whole number")
    others: list[Any] = _annotated(notes, METRICS, list) or []
    metrics = [_metric_down(metric, "target") for metric in others]
    if used is not None or not metrics:
        target = {"type": "Utilization", "averageUtilization": DEFAULT_CPU if used is None else used}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    for name in ("metrics", "behavior"):
        if name in spec:
            raise errors.bad_request(f'strict decoding error: unknown field "spec.{name}"')
    spec["metrics"] = metrics
    if behavior := _annotated(notes, BEHAVIOR, dict):
        spec["behavior"] = behavior
    status.pop("currentCPUUtilizationPercentage", None)
    if current := _annotated(notes, CURRENT, list):
        status["currentMetrics"] = [_metric_down(metric, "current") for metric in current]
    if conditions := _annotated(notes, CONDITIONS, list):
        status["conditions"] = conditions
    notes = {name: text for name, text in notes.items() if name not in (METRICS, CURRENT, CONDITIONS, BEHAVIOR)}
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    out = {**body, "apiVersion": "autoscaling/v2", "metadata": meta, "spec": spec}
    return {**out, "status": status} if status else out


def _nothing(_new: Json, _old: Json | None) -> list[Cause]:
    return []


_EVENT: Final = Alias(
    _event_up,
    _event_down,
    {
        **{
            f"regarding.{name}": f"involvedObject.{name}"
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reportingController": "reportingComponent",
        "reason": "reason",
        "type": "type",
    },
    _event_check,
)
_AUTOSCALER: Final = Alias(_autoscaler_up, _autoscaler_down, {}, _nothing)
