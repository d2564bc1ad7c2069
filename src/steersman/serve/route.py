"""From a path to what it names: `/apis/apps/v1/namespaces/shop/deployments/web/status`."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import unquote

from steersman.api import errors
from steersman.api.kinds import Kind
from steersman.serve.served import PROXY, Part, Served, part_of

MAX_SEGMENTS: Final = 10
"""No path of the API has more than nine."""


class Route(NamedTuple):
    """One resource path. `namespace` and `name` are "" where the path has none."""

    kind: Kind
    namespace: str
    name: str
    part: Part | None = None
    watch: bool = False
    """The path says that it is a watch: an old way to do so."""

    @property
    def resource(self) -> str:
        """`pods/binding`, as authorization and error messages name it."""
        return f"{self.kind.plural}/{self.part.name}" if self.part else self.kind.plural


def segments_of(raw_path: str) -> list[str]:
    """The decoded segments of a path, without the empty last one of a trailing slash.

    Split before decoding, so that an encoded slash stays part of a name (and is then refused as a name).
    What is behind MAX_SEGMENTS stays together, for whoever is asked through a proxy.
    """
    parts = raw_path.strip("/").split("/", MAX_SEGMENTS)
    return [unquote(part) if "%" in part else part for part in parts if part]


def resource_route(served: Served, segments: list[str]) -> Route:
    """The route of a resource path, given as its segments from `api` or `apis` on. Raises ApiError 404."""
    core = segments[0] == "api"
    group, version = ("", segments[1]) if core else (segments[1], segments[2])
    rest = segments[2:] if core else segments[3:]
    watch, namespace = rest[0] == "watch" and len(rest) > 1, ""
    if watch:
        rest = rest[1:]
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and _is_part_of_namespace(rest)):
        namespace, rest = rest[1], rest[2:]
    plural, name, part_name = (*rest, "", "", "")[:3]
    kind = served.find(group, version, plural)
    if kind is None or (len(rest) > 3 and part_name != PROXY) or (namespace and not kind.namespaced):
        raise _not_found(served.hint(group, version, plural))
    if kind.namespaced and not namespace and name:
        raise _not_found(f"{kind.plural} are in namespaces")
    part = None
    if part_name and watch:
        raise _not_found("")
    if part_name:
        part = part_of(kind, part_name)
        if part is None:
            if kind.custom and part_name in ("status", "scale"):
                raise errors.not_found(kind.plural, name, kind.group)
            known = part_name in kind.subresources
            raise _not_found(f"{kind.plural}/{part_name} is not served by this version" if known else "")
    return Route(kind, namespace, name, part, watch)


def _is_part_of_namespace(rest: list[str]) -> bool:
    """Whether `namespaces/NAME/X` names a part of the namespace rather than a resource in it."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")


def _not_found(hint: str) -> errors.ApiError:
    error = errors.resource_not_found()
    if hint:
        error.message = f"{error.message} ({hint})"
    return error
