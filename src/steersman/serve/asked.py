"""What a request asks for, as authorization names it, before anybody looks whether there is such a resource.

So somebody without rights learns nothing about which paths exist. Source of the rules: apiserver
pkg/endpoints/request/requestinfo.go, release 1.36.
"""

from __future__ import annotations

from typing import Final

from steersman.api.access.rbac import Ask
from steersman.api.field_select import demanded
from steersman.serve.message import Request

VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
NAMESPACE_PARTS: Final = frozenset({"status", "finalize"})
"""What behind `namespaces/NAME` is a part of the namespace and no resource in it."""
VERB_SEGMENTS: Final = frozenset({"proxy", "watch"})
"""First segments that are an old way to say a verb."""


def asked(request: Request, segments: list[str]) -> Ask:
    """The verb and what it is for. `segments` are those of the path, decoded."""
    core = segments[:1] == ["api"]
    if not ((core and len(segments) > 2) or (segments[:1] == ["apis"] and len(segments) > 3)):
        return Ask(request.method.lower(), path=request.path)
    group, rest = ("", segments[2:]) if core else (segments[1], segments[3:])
    verb = VERBS.get(request.method, "")
    if rest[0] in VERB_SEGMENTS and len(rest) > 1:
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in NAMESPACE_PARTS:
            rest = rest[2:]
    resource, name, part = (*rest, "", "")[:3]
    fields: tuple[tuple[str, str], ...] = ()
    if not name and verb == "get":
        verb = "watch" if request.query.flag("watch") else "list"
        fields = demanded(request.query.get("fieldSelector"))
        name = _selected(fields)
    elif not name and verb == "delete":
        verb = "deletecollection"
        fields = demanded(request.query.get("fieldSelector"))
    return Ask(verb, group, resource, part, namespace, name, "", fields)


def _selected(fields: tuple[tuple[str, str], ...]) -> str:
    """The one name a list or watch is narrowed to: rights on that name are enough for it."""
    name = next((value for field, value in fields if field == "metadata.name"), "")
    return "" if name in (".", "..") or "/" in name or "%" in name else name
