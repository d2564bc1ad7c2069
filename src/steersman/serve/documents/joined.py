"""The parts of /openapi/v2 that aggregated API servers describe, joined to the document of this one.

Of another server's document the paths of its group version count, and the definitions they lead to. A definition whose
name is taken by another one gets a number. Source: kube-aggregator pkg/controllers/openapi/aggregator and kube-openapi
pkg/aggregator (FilterSpecByPaths, MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters), release 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

Json = Any
DEFINITIONS: Final = "#/definitions/"
PARAMETERS: Final = "#/parameters/"
MAX_DEPTH: Final = 200
"""Levels of a document: far more than any schema has."""


class Unreadable(ValueError):
    """A document that is none."""


def joined(ours: Mapping[str, Any], theirs: Json, group: str, version: str) -> dict[str, Any]:
    """Our document with what another one says of a group version. Raises `Unreadable`."""
    paths, definitions = _part(theirs, "paths"), _part(theirs, "definitions")
    prefix = f"/apis/{group}/{version}/"
    kept = {
        path: _inlined(item, _part(theirs, "parameters"), 0)
        for path, item in paths.items()
        if f"{path}/".startswith(prefix) and path not in ours["paths"] and isinstance(item, dict)
    }
    reached = _reached(kept, definitions)
    names: dict[str, str] = {}
    for name in sorted(reached):
        names[name] = _free(name, reached[name], ours["definitions"])
    added = {names[name]: _renamed(schema, names, 0) for name, schema in reached.items()}
    return {
        **ours,
        "paths": dict(sorted({**ours["paths"], **_renamed(kept, names, 0)}.items())),
        "definitions": dict(sorted({**ours["definitions"], **added}.items())),
    }


def _part(document: Json, name: str) -> dict[str, Any]:
    found = document.get(name) if isinstance(document, dict) else ()
    if found is not None and not isinstance(found, dict):
        raise Unreadable(f"{name} is no object")
    return found or {}


def _deep(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise Unreadable("it is nested too deeply")


def _inlined(value: Json, parameters: Mapping[str, Any], depth: int) -> Json:
    """A path with its parameters written out where they are used."""
    _deep(depth)
    if isinstance(value, list):
        return [_inlined(item, parameters, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    target = value.get("$ref")
    if isinstance(target, str) and target.startswith(PARAMETERS):
        found = parameters.get(target.removeprefix(PARAMETERS))
        if not isinstance(found, dict):
            raise Unreadable(f"{target[:100]} is not there")
        return found
    return {key: _inlined(item, parameters, depth + 1) for key, item in value.items()}


def _references(value: Json, depth: int = 0) -> Iterable[str]:
    _deep(depth)
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str) and target.startswith(DEFINITIONS):
            yield target.removeprefix(DEFINITIONS)
        for item in value.values():
            yield from _references(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item, depth + 1)


def _reached(paths: Json, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that these paths lead to."""
    found: dict[str, Any] = {}
    open_names = list(_references(paths))
    while open_names:
        name = open_names.pop()
        if name in found:
            continue
        if not isinstance(definitions.get(name), dict):
            raise Unreadable(f"the definition {name[:100]} is not there")
        found[name] = definitions[name]
        open_names += _references(found[name])
    return found


def _free(name: str, schema: Json, taken: Mapping[str, Any]) -> str:
    """The name under which a definition can stand beside the others: its own, where that is free or means the same."""
    number, free = 1, name
    while free in taken and taken[free] != schema:
        number += 1
        free = f"{name}_v{number}"
    return free


def _renamed(value: Json, names: Mapping[str, str], depth: int) -> Json:
    _deep(depth)
    if isinstance(value, list):
        return [_renamed(item, names, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    out = {key: _renamed(item, names, depth + 1) for key, item in value.items()}
    target = value.get("$ref")
    if isinstance(target, str) and target.startswith(DEFINITIONS):
        name = target.removeprefix(DEFINITIONS)
        out["$ref"] = DEFINITIONS + names.get(name, name)
    return out
