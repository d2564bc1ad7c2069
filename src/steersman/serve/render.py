"""Objects as bytes: whole, as metadata only, or as rows of a Table.

Sections are spliced in as the bytes they already have. So are the field sets of managedFields: thousands of objects
share one, and writing it out anew would be four fifths of the cost of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from steersman.api.born import TEMPLATE_GENERATION
from steersman.api.go_html import encoded
from steersman.api.validate import REVISION
from steersman.kernel.fieldset import FieldSet
from steersman.kernel.object import Manager, Object
from steersman.serve.accept import META_VERSION, PARTIAL, PARTIAL_LIST, TABLE, Form
from steersman.serve.table.column import Columns
from steersman.serve.table.pod_row import pod_conditions

MAX_FIELD_SETS: Final = 1 << 13
"""Field sets kept as bytes: all of a large cluster's, at about 1 KB each."""
POD: Final = ("", "Pod")
DAEMON_SET: Final = ("apps", "DaemonSet")
_field_sets: dict[int, tuple[FieldSet, orjson.Fragment]] = {}


def _fields(fields: FieldSet) -> orjson.Fragment:
    found = _field_sets.get(id(fields))
    if found is None:
        if len(_field_sets) >= MAX_FIELD_SETS:
            _field_sets.clear()
        found = (fields, orjson.Fragment(orjson.dumps(fields.to_json())))
        _field_sets[id(fields)] = found  # the set is kept alive, so its id stays its own
    return found[1]


def _manager(entry: Manager) -> dict[str, Any]:
    out = {
        "manager": entry.name,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        **({"time": entry.time} if entry.time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields(entry.fields),
    }
    if entry.subresource:
        out["subresource"] = entry.subresource
    return out


def metadata(obj: Object) -> dict[str, Any]:
    """The metadata as clients see it, resourceVersion and managedFields included."""
    meta: dict[str, Any] = {**obj.meta.value, "resourceVersion": str(obj.rv)} if obj.rv else dict(obj.meta.value)
    if obj.managers:
        meta["managedFields"] = [_manager(entry) for entry in obj.managers]
    return meta


def object_json(obj: Object, typed: bool = True) -> bytes:
    """The whole object; without `typed` it does not say its kind and apiVersion."""
    out: dict[str, Any] = {"kind": obj.key.kind, "apiVersion": obj.api_version} if typed else {}
    out["metadata"] = metadata(obj)
    if obj.spec is not None:
        out["spec"] = orjson.Fragment(obj.spec.raw) if obj.node is None else _with_node(obj)
    if obj.rest is not None:
        out.update(obj.rest.value if obj.key.gk != REVISION else _revision(obj.rest.value))
    if obj.status is not None:
        out["status"] = orjson.Fragment(obj.status.raw)
    return orjson.dumps(out)


def _revision(rest: Mapping[str, Any]) -> dict[str, Any]:
    """What a ControllerRevision holds, in the bytes that Go's encoder makes of it: a controller that finds other ones
    than it would write takes them for another template, and makes one revision after the other."""
    out = dict(rest)
    if "data" in out:
        out["data"] = orjson.Fragment(encoded(out["data"]))
    return out


def _with_node(obj: Object) -> orjson.Fragment:
    """The spec's bytes with nodeName put in front; no need to parse a spec that only has bytes."""
    assert obj.spec is not None
    head = b'{"nodeName":' + orjson.dumps(obj.node)
    raw = obj.spec.raw
    return orjson.Fragment(head + b"}" if raw == b"{}" else head + b"," + raw[1:])


def partial(obj: Object, version: str = META_VERSION) -> dict[str, Any]:
    """PartialObjectMetadata of an apiVersion of `META_VERSIONS`."""
    meta = metadata(obj)
    # This annotation kube-apiserver adds to whole objects only, as it writes them out.
    if obj.key.gk == DAEMON_SET and TEMPLATE_GENERATION in meta.get("annotations", ()):
        meta["annotations"] = {key: text for key, text in meta["annotations"].items() if key != TEMPLATE_GENERATION}
        if not meta["annotations"]:
            del meta["annotations"]
    return {"kind": PARTIAL, "apiVersion": version, "metadata": meta}


def in_form(obj: Object, form: Form, include: str, now: int, columns: Columns | None = None) -> bytes:
    """One object in the form that was asked for. `include` is includeObject and `columns` are those of its kind, for
    tables; `now` in microseconds."""
    if columns is not None:
        return table([obj], columns, include, now, {"resourceVersion": str(obj.rv)}, form.version)
    if form.kind in (PARTIAL, PARTIAL_LIST):
        return orjson.dumps(partial(obj, form.version))
    return object_json(obj)


def table(
    objects: Iterable[Object],
    columns: Columns,
    include: str,
    now: int,
    meta: dict[str, Any],
    version: str = META_VERSION,
) -> bytes:
    """A Table of objects of one kind."""
    return orjson.dumps(
        {
            "kind": TABLE,
            "apiVersion": version,
            "metadata": meta,
            "columnDefinitions": columns.definitions(),
            "rows": [row(obj, columns.row, include, now, version) for obj in objects],
        }
    )


def row(obj: Object, cells: Any, include: str, now: int, version: str = META_VERSION) -> dict[str, Any]:
    """A row of a Table, with its object as includeObject says: None, Metadata or Object."""
    value = obj.value
    out: dict[str, Any] = {"cells": cells(value, now)}
    if obj.key.gk == POD and (conditions := pod_conditions(value)):
        out["conditions"] = conditions
    if include == "Object":
        out["object"] = orjson.Fragment(object_json(obj))
    else:
        out["object"] = None if include == "None" else partial(obj, version)
    return out
