"""managedFields as clients send them: taken over where they can be read, and reset by an empty list.

That is how client-side apply is upgraded to server-side apply (kubectl, controller-runtime): the client renames its
entry and writes the list back, by PUT or JSON patch. A list that cannot be read is passed over, as the server's own
stays. Source of the facts: apimachinery `pkg/util/managedfields/internal` (fieldmanager.go, managedfields.go,
lastappliedmanager.go, lastappliedupdater.go), release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from steersman.api import fields
from steersman.api.go_html import encoded
from steersman.api.kinds import Kind
from steersman.kernel.fieldset import NOTHING, FieldSet, difference, from_json, node
from steersman.kernel.object import Manager, Object
from steersman.kernel.value import EMPTY

KUBECTL: Final = "kubectl"
"""The one manager whose applies look at what `kubectl apply` left before them."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""Who owns what an object had when nobody was on record and the first apply came."""
OPERATIONS: Final = ("Apply", "Update")
MAX_ENTRIES: Final = 1000
"""Entries of one list: far more than any object has; a bound on what one request makes the server read."""


def entries(sent: Any, known: tuple[Manager, ...], time: str) -> tuple[Manager, ...]:
    """The entries to go on from when a client sent `sent` for an object that has `known`."""
    if sent is None or not isinstance(sent, list):
        return known
    if not sent or (len(sent) == 1 and sent[0] == {}):
        return ()
    try:
        if [entry.to_json() for entry in known] == sent:
            return known
        read = _read(sent, time)
    except (ValueError, TypeError, KeyError, RecursionError):
        return known
    return read or known


def _read(sent: list[Any], time: str) -> tuple[Manager, ...]:
    if len(sent) > MAX_ENTRIES:
        raise ValueError("too many entries")
    out: dict[tuple[str, ...], Manager] = {}
    for entry in sent:
        operation, version = entry["operation"], entry["apiVersion"]
        name, part = entry.get("manager") or "", entry.get("subresource") or ""
        texts = (operation, version, name, part)
        readable = operation in OPERATIONS and version and entry.get("fieldsType") == "FieldsV1"
        if not readable or not all(isinstance(text, str) for text in texts):
            raise ValueError("an entry without operation, apiVersion or fieldsType")
        owned = from_json(entry.get("fieldsV1") or {})
        when = entry.get("time")
        identity = (name, operation, part, "" if operation == "Apply" else version)
        out[identity] = Manager(name, operation, part, version, when if isinstance(when, str) else time, owned)
    return tuple(out.values())


# -- from client-side apply ------------------------------------------------------------------------------------


def allowed_conflicts(kind: Kind, old: Object) -> FieldSet:
    """Fields that `kubectl apply` set and that still are as it set them: an apply by kubectl may take them over."""
    config = _last_applied(old)
    if config is None or config.get("apiVersion") != kind.api_version:
        return NOTHING
    value = old.value
    out: dict[str, FieldSet] = {}
    for part, given in config.items():
        schema = kind.schema.fields.get(part)
        if part in ("apiVersion", "kind") or schema is None:
            continue
        owned = fields.present(schema, given)
        if part not in value:
            continue
        changed, removed = fields.compare(schema, given, value[part])
        out[f"f:{part}"] = difference(difference(owned, changed), removed)
    return node({name: below for name, below in out.items() if below})


def _last_applied(old: Object) -> Mapping[str, Any] | None:
    text = (old.meta.value.get("annotations") or EMPTY).get(LAST_APPLIED)
    try:
        config = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    return config if isinstance(config, dict) else None


def with_last_applied(annotations: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The annotations of an object after kubectl applied `body`; None when they have no record to bring up to date."""
    if not annotations.get(LAST_APPLIED):
        return None
    meta = body.get("metadata") or EMPTY
    notes = {name: text for name, text in (meta.get("annotations") or EMPTY).items() if name != LAST_APPLIED}
    config = {**body, "metadata": {**{k: v for k, v in meta.items() if k != "annotations"}}}
    if notes:
        config["metadata"]["annotations"] = notes
    text = encoded(config) + "\n"
    return {**annotations, LAST_APPLIED: text}
