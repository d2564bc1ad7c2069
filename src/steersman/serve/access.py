"""Who asks, and whether they may. There is nothing anonymous but the bare answers of /healthz, /livez and /readyz.

A client says who it is by a certificate of our authority, by a token of the token store (the administrator's), or by a
service account's token. What it may do is decided by RBAC over the store. A watch is authorized when it begins, as in
Kubernetes: rights that are withdrawn later end at its timeout.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from steersman.api import errors
from steersman.api.authz import Decision, Rbac, forbidden
from steersman.api.rbac import Ask
from steersman.api.token_request import ISSUER
from steersman.api.user import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    User,
    account_groups,
    account_of,
)
from steersman.serve.accounts import Rejected, judge
from steersman.serve.backend import Backend
from steersman.serve.message import Headers, Request
from steersman.serve.tls import TLSError, subject_of
from steersman.serve.tokens import Tokens

BEARER: Final = "bearer "
BAD_TOKEN: Final = "invalid bearer token"
CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
AUTHENTICATION: Final = "authentication.k8s.io"
IMPERSONATE: Final = "impersonate-"
EXTRA: Final = "impersonate-extra-"
STREAMS: Final = frozenset({"attach", "exec", "portforward"})
"""Parts of a pod that need the verb create however they are asked for (Kubernetes 1.35 and later)."""
MAX_IMPERSONATED: Final = 256
"""Impersonation headers of one request: each is a question to RBAC."""


class Authenticated(NamedTuple):
    """What came of a token: a user, and the audiences asked for that it was issued for; or what is wrong with it."""

    user: User | None
    audiences: tuple[str, ...] = ()
    problem: str = ""


class Access:
    """Authentication and authorization in front of one backend."""

    def __init__(self, backend: Backend, tokens: Tokens) -> None:
        self.backend = backend
        self.tokens = tokens
        self.rbac = Rbac()

    def user_of(self, request: Request) -> User:
        """Who sent a request, or whom it may impersonate. Raises ApiError 401; 403 for impersonation refused."""
        user = self._authenticate(request)
        if any(name.startswith(IMPERSONATE) for name, _ in request.headers):
            return self._impersonate(user, request.headers)
        return user

    def decide(self, user: User, ask: Ask) -> Decision:
        """Whether a user may do that now."""
        return self.rbac.decide(self.backend.store, user, ask)

    def authorize(self, user: User, ask: Ask) -> None:
        """Raises ApiError 403 unless the user may."""
        decision = self.decide(user, ask)
        if not decision.allowed:
            raise forbidden(user, ask, decision.reason)
        if ask.part in STREAMS and ask.verb == "get":  # a WebSocket begins with GET, and yet is no reading
            self.authorize(user, ask._replace(verb="create"))

    def by_token(self, token: str, audiences: tuple[str, ...] = ()) -> Authenticated:
        """Whom a bearer token speaks for towards `audiences` (this server, when there are none)."""
        found = self.tokens.identify(token)
        if found is not None:
            return Authenticated(User(found.user, _with_authenticated(found.groups)), audiences or (ISSUER,))
        signer = self.backend.signer
        claims = None if signer is None else signer.verify(token)
        if claims is None:
            return Authenticated(None, (), BAD_TOKEN)
        try:
            account = judge(self.backend.store, self.backend.now(), token, claims, audiences)
        except Rejected as error:
            return Authenticated(None, (), f"[{BAD_TOKEN}, {error}]")
        return Authenticated(account.user, account.audiences)

    def _authenticate(self, request: Request) -> User:
        """A certificate was verified by TLS and counts first, as in Kubernetes; a wrong token is never overlooked
        because of it, though: it is a mistake that its owner should see."""
        header = request.headers.get("authorization")
        found = None
        if header:
            if header[: len(BEARER)].lower() == BEARER:
                found = self.by_token(header[len(BEARER) :].strip()).user
            if found is None:
                raise errors.unauthorized()
        if request.peer_certificate is not None:
            try:
                return _by_certificate(request.peer_certificate)
            except TLSError:
                raise errors.unauthorized() from None
        if found is None:
            raise errors.unauthorized()
        return found

    def _impersonate(self, user: User, headers: Headers) -> User:
        """The user that the Impersonate headers name. Raises ApiError 400; 403 unless `user` may be each part of it."""
        name, uid = headers.get("impersonate-user"), headers.get("impersonate-uid")
        groups = headers.all("impersonate-group")
        extra: dict[str, list[str]] = {}
        for header, value in headers:
            if header.startswith(EXTRA):
                extra.setdefault(unquote(header[len(EXTRA) :]), []).append(value)
        if sum(map(len, extra.values())) + len(groups) > MAX_IMPERSONATED:
            raise errors.bad_request(f"a request may impersonate at most {MAX_IMPERSONATED} groups and extra values")
        if not name:
            given = [*groups, *extra, uid]
            raise errors.bad_request(f"requested {[text for text in given if text]} without impersonating a user")
        account = account_of(name)
        if account is None:
            self.authorize(user, Ask("impersonate", "", "users", name=name))
        else:
            self.authorize(user, Ask("impersonate", "", "serviceaccounts", namespace=account[0], name=account[1]))
        for group in groups:
            self.authorize(user, Ask("impersonate", "", "groups", name=group))
        for key, values in sorted(extra.items()):
            for value in values:
                self.authorize(user, Ask("impersonate", AUTHENTICATION, "userextras", key, name=value))
        if uid:
            self.authorize(user, Ask("impersonate", AUTHENTICATION, "uids", name=uid))
        if account is not None and not groups:
            groups = list(account_groups(account[0]))
        added = UNAUTHENTICATED if name == ANONYMOUS else AUTHENTICATED
        if added not in groups and UNAUTHENTICATED not in groups:
            groups.append(added)
        return User(name, tuple(groups), uid, tuple((key, tuple(values)) for key, values in sorted(extra.items())))


@lru_cache(maxsize=1024)  # as tls.subject_of: one entry for each client certificate in use
def _by_certificate(certificate: bytes) -> User:
    subject = subject_of(certificate)
    extra = ((CREDENTIAL, (f"X509SHA256={hashlib.sha256(certificate).hexdigest()}",)),)
    return User(subject.user, _with_authenticated(subject.groups), "", extra)


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if AUTHENTICATED in groups or UNAUTHENTICATED in groups else (*groups, AUTHENTICATED)
