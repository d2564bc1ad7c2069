"""Who a request is made by, as far as authentication can tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.kernel.value import EMPTY

MASTERS: Final = "system:masters"
"""Its members may do everything, whatever the roles say (kube-apiserver's privileged group)."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = "system:anonymous"
ACCOUNT_PREFIX: Final = "system:serviceaccount:"
ACCOUNTS: Final = "system:serviceaccounts"
NODE_PREFIX: Final = "system:node:"
NODES: Final = "system:nodes"
CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
"""The extra that tells which credential somebody came with."""


class User(NamedTuple):
    """A user with its groups. `extra` are sorted pairs of a key and its values: who authenticated may add them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @staticmethod
    def of(spec: Mapping[str, Any], name: str) -> User:
        """The user that the spec of an object tells of; `name`: its field with the user's name."""
        extra = tuple(sorted((key, tuple(values)) for key, values in (spec.get("extra") or EMPTY).items()))
        return User(spec.get(name) or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)

    def json(self) -> dict[str, Any]:
        """As `UserInfo` of authentication.k8s.io/v1 shows it; empty parts are left out."""
        parts: dict[str, Any] = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        parts["extra"] = {key: list(values) for key, values in self.extra}
        return {name: part for name, part in parts.items() if part}


def account_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{ACCOUNT_PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every service account of a namespace."""
    return (ACCOUNTS, f"{ACCOUNTS}:{namespace}")


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user name means, or None."""
    if not user.startswith(ACCOUNT_PREFIX):
        return None
    namespace, _, name = user[len(ACCOUNT_PREFIX) :].partition(":")
    return (namespace, name) if namespace and name and ":" not in name else None


def node_of(user: User) -> str | None:
    """The node that a user is; "" for a node without a name, None for everybody else.

    Source: Kubernetes 1.36, pkg/auth/nodeidentifier.
    """
    if not user.name.startswith(NODE_PREFIX) or NODES not in user.groups:
        return None
    return user.name[len(NODE_PREFIX) :]
