"""Who asks, and whether they may. There is nothing anonymous but the bare answers of /healthz, /livez and /readyz.

A client says who it is by a bearer token or by a certificate of our authority. In this version one group may do
everything, system:masters, and others nothing; RBAC comes later.
"""

from __future__ import annotations

from typing import Final

from steersman.api import errors
from steersman.serve.message import Request
from steersman.serve.route import Route
from steersman.serve.tls import TLSError, subject_of
from steersman.serve.tokens import Identity, Tokens

MASTERS: Final = "system:masters"
BEARER: Final = "bearer "


def identify(request: Request, tokens: Tokens) -> Identity:
    """Who sent a request. Raises ApiError 401, and 403 for impersonation, which must not be overlooked.

    A certificate was verified by TLS and counts first, as in Kubernetes; a wrong token is never overlooked
    because of it, though: it is a mistake that its owner should see.
    """
    if any(name.startswith("impersonate-") for name, _ in request.headers):
        raise errors.forbidden("", "", "impersonation (kubectl --as) is not supported by this version")
    header = request.headers.get("authorization")
    found = None
    if header:
        found = tokens.identify(header[len(BEARER) :].strip()) if header[: len(BEARER)].lower() == BEARER else None
        if found is None:
            raise errors.unauthorized()
    if request.peer_certificate is not None:
        try:
            subject = subject_of(request.peer_certificate)
        except TLSError:
            raise errors.unauthorized() from None
        return Identity(subject.user, subject.groups)
    if found is None:
        raise errors.unauthorized()
    return found


def authorize(identity: Identity, verb: str, route: Route) -> None:
    """Raises ApiError 403 unless `identity` may do `verb` on a resource."""
    if MASTERS in identity.groups:
        return
    kind = route.kind
    where = f' in the namespace "{route.namespace}"' if route.namespace else " at the cluster scope"
    detail = (
        f"User {errors.quote(identity.user)} cannot {verb} resource {errors.quote(route.resource)} "
        f'in API group "{kind.group}"{where}'
    )
    raise errors.forbidden(route.resource, route.name, detail, kind.group)


def authorize_path(identity: Identity, verb: str, path: str) -> None:
    """Raises ApiError 403 unless `identity` may read a path that is no resource (discovery, /version)."""
    if MASTERS not in identity.groups:
        detail = f"User {errors.quote(identity.user)} cannot {verb} path {errors.quote(path[:200])}"
        raise errors.forbidden("", "", detail)
