"""Bootstrap tokens: Secrets by which a machine that has no credential yet is known, and sure of the cluster.

A token is `ID.SECRET`; its Secret is `bootstrap-token-ID` in kube-system. Source of the facts (names, what is required,
the signature): Kubernetes 1.36, plugin/pkg/auth/authenticator/token/bootstrap, pkg/controller/bootstrap, and
cluster-bootstrap token/{api,jws,util}; RFC 7515 for the signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from steersman.api.access.jose import b64
from steersman.api.access.user import User
from steersman.api.times import parse_time
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

TYPE: Final = "bootstrap.kubernetes.io/token"
NAMESPACE: Final = "kube-system"
PREFIX: Final = "bootstrap-token-"
"""Of the Secrets' names."""
USER_PREFIX: Final = "system:bootstrap:"
GROUP: Final = "system:bootstrappers"
EXPIRATION: Final = "expiration"
SIGNING: Final = "usage-bootstrap-signing"
AUTHENTICATION: Final = "usage-bootstrap-authentication"
CLUSTER_INFO: Final = Key("", "ConfigMap", "kube-public", "cluster-info")
KUBECONFIG: Final = "kubeconfig"
"""The field of cluster-info that is signed."""
SIGNATURE: Final = "jws-kubeconfig-"
"""Fields of cluster-info: a signature of its kubeconfig for each token, by id."""
_TOKEN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_GROUP: Final = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)
_ID: Final = re.compile(r"[a-z0-9]{6}", re.ASCII)


def bearer(store: Store, now: int, token: str) -> User | None:
    """Whom a bearer token speaks for, if it is a bootstrap token that is good now (microseconds)."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    secret = store.get(Key("", "Secret", NAMESPACE, PREFIX + match[1]))
    if secret is None or "deletionTimestamp" in secret.meta.value or secret.value.get("type") != TYPE:
        return None
    value = secret.value
    if not hmac.compare_digest(datum(value, "token-secret").encode(), match[2].encode()):
        return None
    ends = end_of(value)
    if datum(value, "token-id") != match[1] or (ends is not None and ends <= now):
        return None
    if datum(value, AUTHENTICATION) != "true":
        return None
    groups = {GROUP}
    extra = datum(value, "auth-extra-groups")
    for group in extra.split(",") if extra else ():
        if _GROUP.fullmatch(group) is None:
            return None
        groups.add(group)
    return User(USER_PREFIX + match[1], tuple(sorted(groups)))


def datum(secret: Mapping[str, Any], name: str) -> str:
    """A field of a Secret's data as text; "" when it is missing or is none."""
    try:
        return base64.b64decode((secret.get("data") or EMPTY).get(name) or "", validate=True).decode()
    except (ValueError, binascii.Error):
        return ""


def end_of(secret: Mapping[str, Any]) -> int | None:
    """When a token ends, in microseconds: 0 where that cannot be read, None when it does not end."""
    text = datum(secret, EXPIRATION)
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError:
        return 0


def signing_token(secret: Mapping[str, Any]) -> tuple[str, str] | None:
    """(id, secret) of a token that cluster-info is to be signed with, whether or not it has ended."""
    name = secret["metadata"]["name"]
    token, key = datum(secret, "token-id"), datum(secret, "token-secret")
    if secret.get("type") != TYPE or name != PREFIX + token or _ID.fullmatch(token) is None or not key:
        return None
    return (token, key) if datum(secret, SIGNING) == "true" else None


def signature(content: str, token: str, secret: str) -> str:
    """The signature of a text by a token: a JWS (HS256) whose content is left out, for who checks it has the text."""
    header = b64(orjson.dumps({"alg": "HS256", "kid": token}))
    signed = f"{header}.{b64(content.encode())}".encode("ascii")
    return f"{header}..{b64(hmac.new(secret.encode(), signed, hashlib.sha256).digest())}"
