"""The options of a connection to a pod, node or service: read from the query, shown to admission, then obeyed.

What admission makes of them counts: a webhook may refuse an exec, or give it another command. Source of names, order
and texts: kubernetes core/v1 types and conversions of query parameters, apiserver pkg/endpoints/handlers/rest.go
(ConnectResource, getRequestOptions), release 1.36; shapes compared with a running kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from steersman.api import errors
from steersman.api.admission.about import CONNECTED
from steersman.serve.change import Change
from steersman.serve.message import Query

MAX_PORT: Final = 0xFFFF
_COMMAND: Final = {"stdin": bool, "stdout": bool, "stderr": bool, "tty": bool, "container": str}
FIELDS: Final[Mapping[str, Mapping[str, type]]] = {
    "PodExecOptions": {**_COMMAND, "command": list},
    "PodAttachOptions": _COMMAND,
    "PodPortForwardOptions": {"ports": list},
    "PodProxyOptions": {"path": str},
    "NodeProxyOptions": {"path": str},
    "ServiceProxyOptions": {"path": str},
}
"""The fields of each kind of options, in their order, with the type of their values."""
ITEMS: Final[Mapping[str, type]] = {"command": str, "ports": int}


class Wanted(NamedTuple):
    """What a connection is to be, as admission left it."""

    options: Mapping[str, Any]
    warnings: tuple[str, ...]

    def flag(self, name: str) -> bool:
        """A switch; off where nothing is said."""
        return bool(self.options.get(name))


async def admitted(change: Change, below: str = "") -> Wanted:
    """The options of the connection that a request asks for, once admission has let it pass. `below`: what of the path
    is behind the subresource, as the client wrote it. Raises ApiError."""
    route, query = change.route, change.http.query
    assert route.part is not None
    if query.get("dryRun"):
        raise errors.bad_request("dryRun is not supported")
    name = CONNECTED[route.kind.kind, route.part.name]
    asked = {"kind": name, "apiVersion": "v1", **{f: v for f in FIELDS[name] if (v := _READ[f](query, below, f))}}
    if name == "PodExecOptions":
        asked.setdefault("command", None)
    reply = await change.send("connect", route.part.name, asked, {})
    options = reply.status or asked
    if options is not asked:
        _check(name, options)
    return Wanted(options, reply.warnings)


def _check(name: str, options: Mapping[str, Any]) -> None:
    """Raises ApiError 500 where what admission made is none of these options."""
    for field, kind in FIELDS[name].items():
        value = options.get(field)
        fits = value is None or isinstance(value, kind)
        if fits and isinstance(value, list):
            fits = all(type(item) is ITEMS[field] for item in value)
        if not fits:
            raise errors.internal(f"admission has made {errors.show(value)} of {name}.{field}")


def _flag(query: Query, below: str, field: str) -> bool:
    return query.flag(field)


def _text(query: Query, below: str, field: str) -> str:
    return query.get(field)


def _texts(query: Query, below: str, field: str) -> list[str]:
    return query.all(field)


def _path(query: Query, below: str, field: str) -> str:
    return unquote(below)


def _ports(query: Query, below: str, field: str) -> list[int]:
    """Raises ApiError 400 in Go's words."""
    ports = []
    for text in [text for value in query.all(field) for text in value.split(",")]:
        digits = text.isascii() and text.isdigit()
        if not digits or len(text) > len(str(MAX_PORT)) or int(text) > MAX_PORT:
            problem = "value out of range" if digits else "invalid syntax"
            parsing = f"strconv.ParseUint: parsing {errors.quote(text[:60])}: {problem}"
            raise errors.bad_request(f"cannot convert to []int32: {parsing}")
        ports.append(int(text))
    return ports


_READ: Final[Mapping[str, Callable[[Query, str, str], Any]]] = {
    **dict.fromkeys(("stdin", "stdout", "stderr", "tty"), _flag),
    "container": _text,
    "command": _texts,
    "ports": _ports,
    "path": _path,
}
