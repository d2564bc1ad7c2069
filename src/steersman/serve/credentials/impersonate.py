"""Acting as somebody else: the Impersonate headers, and the right to each part of what they say.

Release 1.36 tries constrained modes first, which need two rights: to act as that user at all (`impersonate:MODE`), and
to do this one thing as somebody else (`impersonate-on:MODE:VERB`). The right `impersonate` on every part is the older
way, tried last. Who has none is told what the first mode that fits lacked. Source: apiserver
pkg/endpoints/filters/impersonation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import unquote

from steersman.api import errors
from steersman.api.access.rbac import Ask
from steersman.api.access.user import (
    ANONYMOUS,
    AUTHENTICATED,
    NODE_PREFIX,
    NODES,
    UNAUTHENTICATED,
    User,
    account_groups,
    account_of,
)
from steersman.serve.message import Headers

PREFIX: Final = "impersonate-"
EXTRA: Final = "impersonate-extra-"
GROUP: Final = "authentication.k8s.io"
MAX_PARTS: Final = 256
"""Groups and extra values of one request: each is a question to RBAC."""
NODE_NAME: Final = "authentication.kubernetes.io/node-name"
"""The extra that tells the node of a service account's pod."""
Authorize = Callable[[User, Ask], None]
"""Raises ApiError 403."""


class Wanted(NamedTuple):
    """Whom the headers name."""

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def bare(self) -> bool:
        """Whether they give a name and nothing else."""
        return not (self.uid or self.groups or self.extra)

    @property
    def node(self) -> str:
        """The node whose user it is; "" when it is none's."""
        return self.name.removeprefix(NODE_PREFIX) if self.name.startswith(NODE_PREFIX) else ""


def wanted(headers: Headers) -> Wanted | None:
    """What the headers ask for; None when they ask for nothing. Raises ApiError 400."""
    if not [name for name, _ in headers if name.startswith(PREFIX)]:
        return None
    groups = tuple(headers.all("impersonate-group"))
    extra: dict[str, list[str]] = {}
    for header, value in headers:
        if header.startswith(EXTRA):
            extra.setdefault(unquote(header[len(EXTRA) :]), []).append(value)
    if sum(map(len, extra.values())) + len(groups) > MAX_PARTS:
        raise errors.bad_request(f"a request may impersonate at most {MAX_PARTS} groups and extra values")
    sorted_extra = tuple((key, tuple(values)) for key, values in sorted(extra.items()))
    found = Wanted(headers.get("impersonate-user"), headers.get("impersonate-uid"), groups, sorted_extra)
    if not found.name:
        if found.bare:
            return None
        raise errors.bad_request(f"requested {_in_go(found)} without impersonating a user name")
    return found


def _in_go(found: Wanted) -> str:
    """What is wanted as Go's `%#v` shows it, which is how kube-apiserver tells it."""

    def texts(of: tuple[str, ...]) -> str:
        return f"[]string{{{', '.join([errors.quote(text) for text in of])}}}" if of else "[]string(nil)"

    extra = ", ".join([f"{errors.quote(key)}:{texts(values)}" for key, values in found.extra])
    parts = (
        f"Name:{errors.quote(found.name)}, UID:{errors.quote(found.uid)}, Groups:{texts(found.groups)}",
        f"Extra:map[string][]string{{{extra}}}" if extra else "Extra:map[string][]string(nil)",
    )
    return f"&user.DefaultInfo{{{', '.join(parts)}}}"


def impersonated(user: User, want: Wanted, ask: Ask, authorize: Authorize) -> User:
    """The user that `user` acts as for this request. Raises ApiError 403."""
    first: errors.ApiError | None = None
    for mode in (*_modes(user, want), ""):
        try:
            if mode:
                authorize(user, ask._replace(verb=f"impersonate-on:{mode}:{ask.verb}"))
            return _checked(user, want, mode, authorize)
        except errors.Forbidden as error:
            first = first or error
    assert first is not None
    raise first


def _modes(user: User, want: Wanted) -> list[str]:
    """The constrained modes that fit."""
    if want.node:
        if not want.bare:
            return []
        own = account_of(user.name) is not None and (want.node,) in [v for k, v in user.extra if k == NODE_NAME]
        return ["associated-node", "arbitrary-node"] if own else ["arbitrary-node"]
    if account_of(want.name) is not None:
        return ["serviceaccount"] if want.bare else []
    return ["user-info"]


def _checked(user: User, want: Wanted, mode: str, authorize: Authorize) -> User:
    """The right to be everything that is wanted, in one mode ("": the older way). Raises ApiError 403."""
    verb, group = (f"impersonate:{mode}", GROUP) if mode else ("impersonate", "")
    groups = list(want.groups)
    account = account_of(want.name)
    if mode and want.node:
        authorize(user, Ask(verb, group, "nodes", name="*" if mode == "associated-node" else want.node))
        groups = [NODES]
    elif account is not None:
        authorize(user, Ask(verb, group, "serviceaccounts", namespace=account[0], name=account[1]))
        groups = groups or list(account_groups(account[0]))
    else:
        authorize(user, Ask(verb, group, "users", name=want.name))
    if want.uid:
        authorize(user, Ask(verb, GROUP, "uids", name=want.uid))
    for name in want.groups:
        authorize(user, Ask(verb, group, "groups", name=name))
    for key, values in want.extra:
        for value in values:
            authorize(user, Ask(verb, GROUP, "userextras", key, name=value))
    added = UNAUTHENTICATED if want.name == ANONYMOUS else AUTHENTICATED
    if added not in groups and UNAUTHENTICATED not in groups:
        groups.append(added)
    return User(want.name, tuple(groups), want.uid, want.extra)
