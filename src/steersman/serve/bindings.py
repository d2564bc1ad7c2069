"""POST of a Binding to `bindings` of a namespace: the pod is the one it is named after."""

from __future__ import annotations

from typing import Final

from steersman.api import errors
from steersman.serve.body import read_object
from steersman.serve.change import Change, Changed
from steersman.serve.served import part_of

BINDING: Final = ("", "Binding")


async def bind_named(change: Change) -> Changed:
    """As `pods/NAME/binding`. Raises ApiError."""
    body = read_object(change.http.headers.get("content-type"), change.http.body, ("v1", "Binding")).value
    meta = body.get("metadata") if isinstance(body, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not name:
        raise errors.bad_request("metadata.name of a Binding is the name of the pod; give it")
    pod = change.backend.api.kinds.get("", "Pod")
    route = change.route._replace(kind=pod, name=name, part=part_of(pod, "binding"))
    return await change._replace(route=route).create_part()
