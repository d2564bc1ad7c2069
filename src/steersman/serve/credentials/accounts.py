"""Whom a service account's token speaks for, as long as everything it is bound to is there.

Source of the checks and their wording: Kubernetes 1.36, pkg/serviceaccount (claims.go, legacy.go, jwt.go).
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from steersman.api.access.token_request import ACCOUNT, ISSUER, LEGACY_ISSUER, SECRET
from steersman.api.access.user import AUTHENTICATED, User, account_groups, account_name, account_of
from steersman.api.times import parse_time
from steersman.kernel.effect import GK, MICRO
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

LEEWAY: Final = 60
"""Seconds by which clocks may differ, and for which what is deleted still counts."""
PREFIX: Final = "authentication.kubernetes.io/"
LEGACY: Final = "kubernetes.io/serviceaccount/"
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
INVALIDATED: Final = "service account token has been invalidated"


class Rejected(Exception):
    """Why a token is no good, or no good any more."""


class Account(NamedTuple):
    """Who a token speaks for, and the audiences asked for that it was made for."""

    user: User
    audiences: tuple[str, ...]


def judge(store: Store, now: int, token: str, claims: Mapping[str, Any], wanted: tuple[str, ...]) -> Account:
    """The service account of a token with a good signature. `now` in microseconds. Raises Rejected."""
    legacy = claims.get("iss") == LEGACY_ISSUER
    if not legacy and claims.get("iss") != ISSUER:
        raise Rejected("the token's issuer is not this cluster")
    audience = claims.get("aud") or (ISSUER,)
    meant = tuple([audience] if isinstance(audience, str) else audience)
    asked = wanted or (ISSUER,)
    audiences = tuple([one for one in meant if one in asked])
    if not audiences:
        raise Rejected(f"token audiences {listed(meant)} is invalid for the target audiences {listed(asked)}")
    user = _legacy(store, token, claims) if legacy else _bound(store, now // MICRO, claims)
    return Account(user, audiences)


def _bound(store: Store, now: int, claims: Mapping[str, Any]) -> User:
    if now > claims.get("exp", 0) + LEEWAY:
        raise Rejected("service account token has expired")
    if now < claims.get("nbf", 0) - LEEWAY:
        raise Rejected("service account token is not valid yet")
    if now < claims.get("iat", 0) - LEEWAY:
        raise Rejected("service account token is issued in the future")
    private = claims.get("kubernetes.io") or EMPTY
    namespace, account = private.get("namespace") or "", private.get("serviceaccount") or EMPTY
    found = _account(store, namespace, account.get("name") or "")
    if found.uid != account.get("uid"):
        raise Rejected(f"service account UID ({found.uid}) does not match claim ({account.get('uid')})")
    if _ended(found, now):
        raise Rejected(f"service account {namespace}/{found.key.name} has been deleted")
    extra: dict[str, str] = {}
    for part, kind in (("secret", SECRET), ("pod", ("", "Pod"))):
        if part in private:
            _check_alive(store, now, kind, namespace, private[part], f"service account {part} ref claim")
    if "pod" in private:
        extra |= {"pod-name": private["pod"]["name"], "pod-uid": private["pod"]["uid"]}
    if "node" in private:
        if "pod" not in private:
            _check_alive(store, now, ("", "Node"), "", private["node"], "service account node ref claim")
        extra["node-name"] = private["node"]["name"]
        if private["node"].get("uid"):
            extra["node-uid"] = private["node"]["uid"]
    if claims.get("jti"):
        extra["credential-id"] = f"JTI={claims['jti']}"
    return _user(namespace, found, tuple(sorted((PREFIX + name, (value,)) for name, value in extra.items())))


def _check_alive(store: Store, now: int, gk: GK, namespace: str, ref: Mapping[str, str], claim: str) -> None:
    found = store.get(Key(*gk, namespace, ref["name"]))
    if found is None or _ended(found, now):
        raise Rejected(INVALIDATED)
    if found.uid != ref["uid"]:
        raise Rejected(f"{gk[1].lower()} UID ({found.uid}) does not match {claim} ({ref['uid']})")


def _legacy(store: Store, token: str, claims: Mapping[str, Any]) -> User:
    """A token kept in a Secret: good as long as the Secret holds it."""
    namespace, name = claims.get(LEGACY + "namespace") or "", claims.get(LEGACY + "service-account.name") or ""
    if account_of(str(claims.get("sub") or "")) != (namespace, name):
        raise Rejected("sub claim is invalid")
    secret = store.get(Key(*SECRET, namespace, claims.get(LEGACY + "secret.name") or ""))
    if secret is None or "deletionTimestamp" in secret.meta.value:
        raise Rejected("Token has been invalidated")
    try:
        kept = base64.b64decode((secret.value.get("data") or EMPTY).get("token") or "")
    except (ValueError, binascii.Error):
        kept = b""
    if not hmac.compare_digest(kept, token.encode("ascii")):
        raise Rejected("Token does not match server's copy")
    found = _account(store, namespace, name)
    if "deletionTimestamp" in found.meta.value:
        raise Rejected(f"ServiceAccount {namespace}/{name} has been deleted")
    uid = claims.get(LEGACY + "service-account.uid")
    if found.uid != uid:
        raise Rejected(f"ServiceAccount UID ({found.uid}) does not match claim ({uid})")
    if (secret.meta.value.get("labels") or EMPTY).get(INVALID_SINCE):
        raise Rejected(
            f"the token in secret {namespace}/{secret.key.name} for service account {namespace}/{name} has been "
            "marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove "
            f"the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        )
    return _user(namespace, found, ())


def _account(store: Store, namespace: str, name: str) -> Object:
    found = store.get(Key(*ACCOUNT, namespace, name))
    if found is None:
        raise Rejected(f'serviceaccounts "{name}" not found')
    return found


def _user(namespace: str, account: Object, extra: tuple[tuple[str, tuple[str, ...]], ...]) -> User:
    groups = (*account_groups(namespace), AUTHENTICATED)
    return User(account_name(namespace, account.key.name), groups, account.uid, extra)


def _ended(obj: Object, now: int) -> bool:
    at = obj.meta.value.get("deletionTimestamp")
    return at is not None and parse_time(at) // MICRO < now - LEEWAY


def listed(texts: Iterable[str]) -> str:
    """Texts as Go shows a list of them."""
    return "[" + " ".join([f'"{text}"' for text in texts]) + "]"
