"""`authorizer`: asks whether an actor may do something, through a pure function of the attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from steersman.api import names
from steersman.api.cel.faults import CelError
from steersman.api.cel.functions import Registry, functions
from steersman.api.cel.types import OPAQUE
from steersman.api.cel.values import Opaque


class Ask(NamedTuple):
    """One question: may this user do this? A path for URLs that are no resources, else group and resource."""

    user: str
    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Answer(NamedTuple):
    """Allowed, and why; `error` when it could not be found out."""

    allowed: bool
    reason: str = ""
    error: str = ""


Judge = Callable[[Ask], Answer]


class _Check(Opaque):
    """A question under construction."""

    __slots__ = ("ask", "judge")

    def __init__(self, judge: Judge, ask: Ask) -> None:
        self.judge = judge
        self.ask = ask

    def cel_equal(self, other: Any) -> bool:
        """The same question."""
        return bool(self.ask == other.ask)


class Authorizer(_Check):
    """The variable `authorizer`: the questions of one user."""

    __slots__ = ()
    kind = OPAQUE["authorizer"].name

    def __init__(self, judge: Judge, user: str) -> None:
        super().__init__(judge, Ask(user, ""))


class _Path(_Check):
    __slots__ = ()
    kind = OPAQUE["pathcheck"].name


class _Group(_Check):
    __slots__ = ()
    kind = OPAQUE["groupcheck"].name


class Resource(_Check):
    """A resource, or one object of it."""

    __slots__ = ()
    kind = OPAQUE["resourcecheck"].name


class _Decision(Opaque):
    __slots__ = ("answer",)
    kind = OPAQUE["decision"].name

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def cel_equal(self, other: Any) -> bool:
        """The same answer."""
        return bool(self.answer == other.answer)


def _path(authorizer: Authorizer, path: str) -> _Path:
    if not path.strip():
        raise CelError("path must not be empty")
    return _Path(authorizer.judge, authorizer.ask._replace(path=path))


def _account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if names.dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if names.dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    return Authorizer(authorizer.judge, f"system:serviceaccount:{namespace}:{name}")


def _resource(group: _Group, resource: str) -> Resource:
    if not resource.strip():
        raise CelError("resource must not be empty")
    return Resource(group.judge, group.ask._replace(resource=resource))


def _narrowed(field: str) -> Callable[[Resource, str], Resource]:
    return lambda check, value: Resource(check.judge, check.ask._replace(**{field: value}))


def _check(check: _Check, verb: str) -> _Decision:
    return _Decision(check.judge(check.ask._replace(verb=verb)))


def authz() -> Registry:
    """The library."""
    table: list[tuple[str, str, Any]] = [
        ("path", ". authorizer string -> pathcheck", _path),
        ("group", ". authorizer string -> groupcheck", lambda a, group: _Group(a.judge, a.ask._replace(group=group))),
        ("serviceAccount", ". authorizer string string -> authorizer", _account),
        ("resource", ". groupcheck string -> resourcecheck", _resource),
        ("check", ". pathcheck string -> decision", _check),
        ("check", ". resourcecheck string -> decision", _check),
        ("errored", ". decision -> bool", lambda d: bool(d.answer.error)),
        ("error", ". decision -> string", lambda d: d.answer.error),
        ("allowed", ". decision -> bool", lambda d: d.answer.allowed),
        ("reason", ". decision -> string", lambda d: d.answer.reason),
    ]
    for name, field in (("subresource", "subresource"), ("namespace", "namespace"), ("name", "name"),
                        ("fieldSelector", "field_selector"), ("labelSelector", "label_selector")):  # fmt: skip
        table.append((name, ". resourcecheck string -> resourcecheck", _narrowed(field)))
    return functions(table)
