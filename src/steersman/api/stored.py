"""The stored form of an object: one whole object as canonical JSON, and back.

A journal holds these bytes; `load` makes of them an object with the digests it had when it was written (law J1).
Sections that many objects share (a template's spec) are shared again when one `Loader` reads them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from steersman.kernel.fieldset import FieldSet, from_json
from steersman.kernel.object import SORTED, Key, Manager, Object, Section
from steersman.kernel.value import freeze

NOT_REST: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
SHARED_LIMIT: Final = 1 << 16
"""Sections and field sets a loader remembers in order to share them; emptied when full, which costs memory only."""


RENDERED_LIMIT: Final = 1 << 12
"""Field sets whose JSON is remembered, by digest: objects of one template have few, and rendering one anew costs more
than all the rest of a dump. A few megabytes; emptied when full."""
_rendered: dict[int, bytes] = {}


class StoredError(ValueError):
    """Bytes that are no stored object. The text says which field is wrong."""


def dump(obj: Object) -> bytes:
    """The whole object, resourceVersion and managedFields included: keys sorted, no spaces."""
    meta: dict[str, Any] = {**obj.meta.value, "resourceVersion": str(obj.rv)}
    if obj.managers:
        meta["managedFields"] = [_manager_json(manager) for manager in obj.managers]
    out: dict[str, Any] = {"apiVersion": obj.api_version, "kind": obj.key.kind, "metadata": meta}
    if obj.spec is not None:
        out["spec"] = orjson.Fragment(obj.spec.raw) if obj.node is None else obj.spec_value
    if obj.rest is not None:
        out.update(obj.rest.value)
    if obj.status is not None:
        out["status"] = orjson.Fragment(obj.status.raw)
    return orjson.dumps(out, option=SORTED)


def _manager_json(manager: Manager) -> dict[str, Any]:
    digest = manager.fields.digest()
    fields = _rendered.get(digest)
    if fields is None:
        if len(_rendered) >= RENDERED_LIMIT:
            _rendered.clear()
        fields = _rendered[digest] = orjson.dumps(manager.fields.to_json(), option=SORTED)
    out: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": orjson.Fragment(fields),
    }
    if manager.subresource:
        out["subresource"] = manager.subresource
    return out


def load(data: bytes) -> Object:
    """The object of `dump`'s bytes. Raises `StoredError`."""
    return Loader().load(data)


class Loader:
    """Loads objects, sharing their equal sections."""

    def __init__(self) -> None:
        self._shared: dict[bytes, Section] = {}
        self._fields: dict[bytes, FieldSet] = {}

    def load(self, data: bytes) -> Object:
        """The object of `dump`'s bytes. Raises `StoredError`."""
        try:
            return self._load(orjson.loads(data))
        except KeyError as error:
            raise StoredError(f"a stored object lacks {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise StoredError(f"a stored object cannot be read: {error}") from None

    def _load(self, value: dict[str, Any]) -> Object:
        meta = value["metadata"]
        managers = tuple([self._manager(entry) for entry in meta.pop("managedFields", ())])
        rv = int(meta.pop("resourceVersion"))
        api_version, kind = value["apiVersion"], value["kind"]
        group = api_version.rpartition("/")[0]
        spec, node = value.get("spec"), None
        if group == "" and kind == "Pod" and spec is not None and spec.get("nodeName"):
            node = spec.pop("nodeName")
        rest = {name: part for name, part in value.items() if name not in NOT_REST}
        return Object(
            Key(group, kind, meta.get("namespace", ""), meta["name"]),
            api_version,
            rv,
            Section(freeze(meta)),
            self._section(spec),
            self._section(rest or None),
            self._section(value.get("status")),
            managers,
            node,
        )

    def _section(self, value: Mapping[str, Any] | None) -> Section | None:
        """A section that has its bytes only: it is parsed when somebody looks into it."""
        if value is None:
            return None
        raw = memoryview(orjson.dumps(value, option=SORTED)).tobytes()  # a right-sized copy
        found = self._shared.get(raw)
        if found is None:
            _make_room(self._shared)
            found = self._shared[raw] = Section(None, raw)
        return found

    def _manager(self, entry: Mapping[str, Any]) -> Manager:
        text = orjson.dumps(entry["fieldsV1"])
        fields = self._fields.get(text)
        if fields is None:
            _make_room(self._fields)
            fields = self._fields[text] = from_json(entry["fieldsV1"])
        get = entry.get
        return Manager(
            entry["manager"], entry["operation"], get("subresource", ""), entry["apiVersion"], entry["time"], fields
        )


def _make_room(shared: dict[bytes, Any]) -> None:
    if len(shared) >= SHARED_LIMIT:
        shared.clear()
