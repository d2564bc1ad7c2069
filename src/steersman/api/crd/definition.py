"""The kinds a store's CustomResourceDefinitions declare: a pure function of those objects.

`declared_kinds(objects)` gives the served kinds, one an accepted definition. Compiling a schema takes milliseconds, so
it is done once for a spec, whatever becomes of the definition's status and metadata; a Kind stays the same object as
long as what it says does, and so do the documents, caches and marks that hang on its identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import orjson

from steersman.api.crd.structural import from_trusted
from steersman.api.kinds import Kind, custom_kind
from steersman.api.schema import Schema
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY

CRD: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
REMEMBERED: Final = 512
"""Specs whose schemas stay compiled: the definitions of a large cluster, at some 100 KB each."""


def condition_holds(status: Any, name: str) -> bool:
    """Whether a condition of an object with this status is True."""
    conditions = (status or EMPTY).get("conditions") or ()
    return any(found.get("type") == name and found.get("status") == "True" for found in conditions)


def declared_kinds(objects: Iterable[Object]) -> tuple[Kind, ...]:
    """The kinds of these definitions, those whose names are accepted or were established once."""
    found = []
    for obj in objects:
        status = obj.status_value
        if obj.spec is None or not (condition_holds(status, "NamesAccepted") or condition_holds(status, "Established")):
            continue
        names = orjson.dumps(status.get("acceptedNames") or EMPTY, option=orjson.OPT_SORT_KEYS)
        terminating = condition_holds(status, "Terminating")
        found.append(_kind(obj.key.name, obj.spec.raw, names, terminating))
    return tuple(found)


@lru_cache(REMEMBERED)
def _kind(crd: str, spec: bytes, names: bytes, terminating: bool) -> Kind:
    return custom_kind(crd, orjson.loads(spec), orjson.loads(names), _schemas(spec), terminating)


@lru_cache(REMEMBERED)
def _schemas(spec: bytes) -> dict[str, Schema]:
    """Version to its compiled schema."""
    read: Any = orjson.loads(spec)
    return {v["name"]: from_trusted(v["schema"]["openAPIV3Schema"]) for v in read["versions"] if v.get("schema")}
