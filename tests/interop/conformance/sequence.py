"""The language of conformance sequences: requests in order, watches opened and closed, in a namespace of their own.

A step is plain JSON, so that a recorded sequence can be played again from its file:

    {"do": "POST", "path": "/api/v1/namespaces/$(ns)/pods?dryRun=All", "body": …}   and optionally
        type      the Content-Type of the body      accept  the Accept header      raw    the body as text
        raw64     the body as base64                as      who asks ("admin")     save   a name for the answer's body
    {"watch": NAME, "path": …}     opens a watch (the `watch` parameter is written in the path), with accept and as
    {"close": NAME}                reads what it has told, and ends it
    {"pause": SECONDS}             a remote server's caches catch up; nothing where there are none

In strings `$(ns)` is the sequence's namespace and `$(a.metadata.uid)` a field of the saved answer `a`; a string that is
only that keeps its type. A body `{"$base": "a", "$set": {"spec.replicas": 3}, "$drop": ["metadata.uid"]}` is an edited
copy of a saved answer.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Json = Any
Step = dict[str, Any]

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL: Final = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
REFERENCE: Final = re.compile(r"\$\(([a-z0-9]+)((?:\.[^.)]+)*)\)")


@dataclass(frozen=True)
class Case:
    """A named sequence. `name` is FAMILY/NAME in DNS letters; it names the namespace, too."""

    name: str
    steps: Sequence[Step]

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]

    @property
    def namespace(self) -> str:
        """One that no other sequence has."""
        return "c-" + self.name.replace("/", "-")[:60].rstrip("-")


def step(do: str, path: str, body: Json = None, **more: Any) -> Step:
    """A request."""
    made: Step = {"do": do, "path": path}
    if body is not None:
        made["body"] = body
    return made | more


def get(path: str, **more: Any) -> Step:
    return step("GET", path, **more)


def post(path: str, body: Json, **more: Any) -> Step:
    return step("POST", path, body, **more)


def put(path: str, body: Json, **more: Any) -> Step:
    return step("PUT", path, body, **more)


def patch(path: str, body: Json, type: str = MERGE, **more: Any) -> Step:
    return step("PATCH", path, body, type=type, **more)


def apply(path: str, body: Json, manager: str = "one", **more: Any) -> Step:
    """Server-side apply; `force=True` among the rest takes what others own."""
    force = "&force=true" if more.pop("force", False) else ""
    mark = "&" if "?" in path else "?"
    return step("PATCH", f"{path}{mark}fieldManager={manager}{force}", body, type=APPLY, **more)


def delete(path: str, body: Json = None, **more: Any) -> Step:
    return step("DELETE", path, body, **more)


def watch(name: str, path: str, **more: Any) -> Step:
    return {"watch": name, "path": path} | more


def close(name: str) -> Step:
    return {"close": name}


def edit(base: str, drop: Sequence[str] = (), **fields: Json) -> Json:
    """A copy of the saved answer `base` with fields set: `edit("a", **{"spec.replicas": 3})`."""
    made: Json = {"$base": base, "$set": fields}
    return made | {"$drop": list(drop)} if drop else made


def fill(value: Json, saved: Mapping[str, Json]) -> Json:
    """`value` with every reference replaced. Raises KeyError for one that names nothing."""
    if isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole:
            return copy.deepcopy(_named(whole, saved))
        return REFERENCE.sub(lambda found: str(_named(found, saved)), value)
    if isinstance(value, list):
        return [fill(item, saved) for item in value]
    if not isinstance(value, dict):
        return value
    if "$base" not in value:
        return {key: fill(item, saved) for key, item in value.items()}
    made = copy.deepcopy(saved[value["$base"]])
    for path, item in value.get("$set", {}).items():
        holder, last = _holder(made, path)
        holder[last] = fill(item, saved)
    for path in value.get("$drop", ()):
        holder, last = _holder(made, path)
        if isinstance(holder, dict):
            holder.pop(last, None)
        else:
            del holder[last]
    return made


def _named(found: re.Match[str], saved: Mapping[str, Json]) -> Json:
    value = saved[found[1]]
    for part in found[2].split(".")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _holder(value: Json, path: str) -> tuple[Json, Any]:
    """The container of the last part of a dotted path, and that part; maps on the way are made."""
    *way, last = path.split(".")
    for part in way:
        value = value[int(part)] if isinstance(value, list) else value.setdefault(part, {})
    return value, int(last) if isinstance(value, list) else last
