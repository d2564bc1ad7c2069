"""Who asks, and whether they may. Nothing is anonymous but the bare answers of /healthz, /livez and /readyz, and what
an AuthenticationConfiguration opens.

A client says who it is by a certificate of our authority, by a token of the token store (the administrator's), by a
service account's or a bootstrap token, or by one of an issuer that is believed. What it may do is decided by the Node
authorizer and RBAC over the store. As in Kubernetes, a watch is authorized when it begins: rights that are withdrawn
later end at its timeout.
"""

from __future__ import annotations

import hashlib
import logging
from functools import lru_cache
from typing import Final, NamedTuple

from steersman.api import errors
from steersman.api.access import bootstrap
from steersman.api.access.authz import Decision, Rbac, forbidden
from steersman.api.access.rbac import Ask
from steersman.api.access.token_request import ISSUER
from steersman.api.access.user import ANONYMOUS, AUTHENTICATED, CREDENTIAL, NODES, UNAUTHENTICATED, User
from steersman.serve.backend import Backend
from steersman.serve.credentials.accounts import Rejected, judge
from steersman.serve.credentials.impersonate import impersonated, wanted
from steersman.serve.credentials.issuers.provider import Issuers
from steersman.serve.credentials.tls import TLSError, subject_of
from steersman.serve.credentials.tokens import Tokens
from steersman.serve.message import Request

BEARER: Final = "bearer "
BAD_TOKEN: Final = "invalid bearer token"
log = logging.getLogger("steersman.serve.credentials")
STREAMS: Final = frozenset({"attach", "exec", "portforward"})
"""Parts of a pod that need the verb create however they are asked for (Kubernetes 1.35 and later)."""


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
        self.certifies_nodes = True
        """Whether a certificate can make somebody a node here."""
        self.issuers = Issuers()
        """Who else makes tokens that are believed."""

    def user_of(self, request: Request, ask: Ask) -> User:
        """Who sent a request, or whom it may act as for what it asks. Raises ApiError 401; 403 for impersonation."""
        user = self._authenticate(request)
        request.known = user.name != ANONYMOUS
        trail = request.trail
        if trail is not None:
            trail.received(user, ask)
        want = wanted(request.headers)
        if want is None:
            return user
        other = impersonated(user, want, ask, self._check)
        if trail is not None:
            trail.acts_as(other)
        return other

    def known(self, request: Request) -> None:
        """Raises ApiError 401 unless the request's credentials are somebody's, or may turn out to be once the keys of
        an issuer are fetched."""
        if not self.issuers.lacks(_bearer(request)):
            self._authenticate(request)

    async def prepare(self, request: Request) -> None:
        """Fetches keys that are needed to tell whose the request's token is."""
        if self.issuers.providers:
            await self.issuers.prepare(_bearer(request))

    def decide(self, user: User, ask: Ask) -> Decision:
        """Whether a user may do that now."""
        return self.rbac.decide(self.backend.store, user, ask)

    def authorize(self, request: Request, user: User, ask: Ask) -> None:
        """Raises ApiError 403 unless the user may; what is decided of `ask` goes into the request's trail."""
        decision = self.decide(user, ask)
        if request.trail is not None:
            request.trail.decided(decision)
        if not decision.allowed:
            raise forbidden(user, ask, decision.reason)
        if ask.part in STREAMS and ask.verb == "get":  # a WebSocket begins with GET, and yet is no reading
            self._check(user, ask._replace(verb="create"))

    def _check(self, user: User, ask: Ask) -> None:
        decision = self.decide(user, ask)
        if not decision.allowed:
            raise forbidden(user, ask, decision.reason)

    def by_token(self, token: str, audiences: tuple[str, ...] = ()) -> Authenticated:
        """Whom a bearer token speaks for towards `audiences` (this server, when there are none)."""
        found = self.tokens.identify(token)
        if found is not None:
            return Authenticated(User(found.user, _with_authenticated(found.groups), found.uid), audiences or (ISSUER,))
        signer = self.backend.signer
        claims = None if signer is None else signer.verify(token)
        if claims is None:
            joining = bootstrap.bearer(self.backend.store, self.backend.now(), token)
            if joining is None:
                return self._of_issuer(token, audiences)
            return Authenticated(joining._replace(groups=_with_authenticated(joining.groups)), audiences or (ISSUER,))
        try:
            account = judge(self.backend.store, self.backend.now(), token, claims, audiences)
        except Rejected as error:
            return Authenticated(None, (), f"[{BAD_TOKEN}, {error}]")
        return Authenticated(account.user, account.audiences)

    def _of_issuer(self, token: str, audiences: tuple[str, ...]) -> Authenticated:
        """Their tokens are for this server, or for nobody (Kubernetes' audience agnostic authenticators)."""
        try:
            user = self.issuers.user(token, self.backend.now())
        except Rejected as error:
            log.debug("a token was refused: %s", error)
            return Authenticated(None, (), f"[{BAD_TOKEN}, {error}]")
        if user is None or (audiences and ISSUER not in audiences):
            return Authenticated(None, (), BAD_TOKEN)
        return Authenticated(user._replace(groups=_with_authenticated(user.groups)), (ISSUER,))

    def _authenticate(self, request: Request) -> User:
        """A certificate was verified by TLS and counts first, as in Kubernetes; a wrong token is never overlooked
        because of it, though: it is a mistake that its owner should see."""
        found = None
        if request.headers.get("authorization"):
            token = _bearer(request)
            if token:
                found = self.by_token(token).user
            if found is None:
                raise errors.unauthorized()
        if request.peer_certificate is not None:
            try:
                user, end = _by_certificate(request.peer_certificate)
                if self.backend.now() > end:  # the connection is older
                    raise errors.unauthorized()
                return self._of_here(user)
            except TLSError:
                raise errors.unauthorized() from None
        if found is None:
            if self.issuers.anybody(request.path):
                return User(ANONYMOUS, (UNAUTHENTICATED,))
            raise errors.unauthorized()
        return found

    def _of_here(self, user: User) -> User:
        """The authority is that of every workspace; the nodes it signed for are nodes of the root alone."""
        if self.certifies_nodes or NODES not in user.groups:
            return user
        return user._replace(groups=tuple([group for group in user.groups if group != NODES]))


def _bearer(request: Request) -> str:
    header = request.headers.get("authorization")
    return header[len(BEARER) :].strip() if header[: len(BEARER)].lower() == BEARER else ""


@lru_cache(maxsize=1024)  # as tls.subject_of: one entry for each client certificate in use
def _by_certificate(certificate: bytes) -> tuple[User, int]:
    """Whose a certificate is, and until when (microseconds)."""
    subject = subject_of(certificate)
    extra = ((CREDENTIAL, (f"X509SHA256={hashlib.sha256(certificate).hexdigest()}",)),)
    return User(subject.user, _with_authenticated(subject.groups), "", extra), subject.end


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if AUTHENTICATED in groups or UNAUTHENTICATED in groups else (*groups, AUTHENTICATED)
