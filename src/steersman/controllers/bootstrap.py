"""Bootstrap tokens: those that have ended go, and cluster-info is signed with the others.

Source of the facts: Kubernetes 1.36, pkg/controller/bootstrap (tokencleaner, bootstrapsigner).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from steersman.api.access.bootstrap import (
    CLUSTER_INFO,
    KUBECONFIG,
    NAMESPACE,
    SIGNATURE,
    TYPE,
    end_of,
    signature,
    signing_token,
)
from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import Conflict, NotFound
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY


def _is_token(event: Event) -> bool:
    return event.key.namespace == NAMESPACE and event.obj.value.get("type") == TYPE


class TokenCleaner(Controller):
    """Deletes tokens when they end."""

    name = "token-cleaner-controller"
    kind = "v1/Secret"

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A bootstrap token wakes itself."""
        return (event.key,) if _is_token(event) else ()

    def reconcile(self, c: Client, key: Key) -> None:
        secret = c.get(key)
        if secret is None or secret.get("type") != TYPE:
            return
        ends = end_of(secret)
        if ends is not None and c.after(ends, 0):
            with suppress(Conflict, NotFound):  # it is gone, or another one
                c.delete(secret, uid=secret["metadata"]["uid"])


class BootstrapSigner(Controller):
    """Keeps a signature in cluster-info for every token that is meant for it."""

    name = "bootstrap-signer-controller"
    kind = "v1/ConfigMap"
    watches: ClassVar[Mapping[str, Callable[[Any], Iterable[Key]]]] = {"v1/Secret": lambda secret: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """The ConfigMap, for itself and for every token."""
        return (CLUSTER_INFO,) if event.key == CLUSTER_INFO or (event.key.kind == "Secret" and _is_token(event)) else ()

    def reconcile(self, c: Client, key: Key) -> None:
        found = c.get(key)
        data = EMPTY if found is None else found.get("data") or EMPTY
        if KUBECONFIG not in data:
            return
        wanted = {name: value for name, value in data.items() if not name.startswith(SIGNATURE)}
        for secret in c.list("v1/Secret", NAMESPACE):
            token = signing_token(secret)
            ends = end_of(secret) if token is not None else None
            if token is not None and (ends is None or not c.after(ends, 0)):
                wanted[SIGNATURE + token[0]] = signature(data[KUBECONFIG], *token)
        if wanted != data:
            with suppress(NotFound):  # it is gone, and wakes us again
                c.update({**found, "data": wanted})
