"""Service accounts: a `default` one in every namespace, and the tokens that Secrets are made for.

Source of the facts: Kubernetes 1.36, pkg/controller/serviceaccount (serviceaccounts_controller, tokens_controller).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import AlreadyExists, Conflict, Forbidden, NotFound
from steersman.api.rules.data_rules import ACCOUNT_NAME, ACCOUNT_UID, TOKEN_TYPE
from steersman.controllers.expectations import LOOK_AGAIN
from steersman.controllers.root_ca import authority_of
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Watches = Mapping[str, Callable[[Any], Iterable[Key]]]
DEFAULT: Final = "default"
NAMESPACE: Final = ("", "Namespace")
ACCOUNT: Final = ("", "ServiceAccount")
SECRET: Final = ("", "Secret")


class ServiceAccounts(Controller):
    """Makes the account that a pod has when it names none."""

    name = "serviceaccount-controller"
    kind = "v1/Namespace"
    reads = ("v1/ServiceAccount",)
    watches: ClassVar[Watches] = {
        "v1/ServiceAccount": lambda account: [Key(*NAMESPACE, "", account["metadata"]["namespace"])]
    }

    def reconcile(self, c: Client, key: Key) -> float | None:
        namespace = c.get(key)
        if namespace is None or "deletionTimestamp" in namespace["metadata"]:
            return None
        if c.get(Key(*ACCOUNT, key.name, DEFAULT)) is not None:
            return None
        with suppress(AlreadyExists, Forbidden, NotFound):  # made meanwhile, or the namespace goes
            meta = {"name": DEFAULT, "namespace": key.name}
            c.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        return LOOK_AGAIN  # no news comes of what is gone before it was seen


class TokenSecrets(Controller):
    """Fills the Secrets that are made for a token, and deletes those whose account is gone."""

    name = "tokens-controller"
    kind = "v1/Secret"
    reads = ("v1/ServiceAccount", "v1/ConfigMap")
    watches: ClassVar[Watches] = {"v1/ServiceAccount": lambda account: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A Secret of that type wakes itself; an account is a key of its own, for the Secrets that name it."""
        if event.key.gk == ACCOUNT:
            return (event.key,)
        value = event.obj.value
        return (event.key,) if value.get("type") == TOKEN_TYPE else ()

    def reconcile(self, c: Client, key: Key) -> float | None:
        if key.gk == ACCOUNT:
            for secret in c.list("v1/Secret", key.namespace):
                if secret.get("type") == TOKEN_TYPE and _account_of(secret) == key.name:
                    _fill(c, secret)
            return None
        secret = c.get(key)
        if secret is None:
            _forget(c, key)
        elif secret.get("type") == TOKEN_TYPE and _account_of(secret) and "deletionTimestamp" not in secret["metadata"]:
            _fill(c, secret)
        return None


def _account_of(secret: Any) -> str:
    name: str = (secret["metadata"].get("annotations") or EMPTY).get(ACCOUNT_NAME) or ""
    return name


def _fill(c: Client, secret: Any) -> None:
    meta = secret["metadata"]
    key = Key(*ACCOUNT, meta["namespace"], _account_of(secret))
    wanted = meta["annotations"].get(ACCOUNT_UID)
    account = c.get(key)
    if account is None or (wanted and account["metadata"]["uid"] != wanted):
        account = c.get(key, fresh=True)  # an account's Secret may be seen before the account
    try:
        if account is None or (wanted and account["metadata"]["uid"] != wanted):
            c.delete(secret, uid=meta["uid"])
            return
        authority = authority_of(c)
        data = secret.get("data") or EMPTY
        given = base64.b64encode(authority.encode()).decode()
        if not data.get("token") or not data.get("namespace") or (authority and data.get("ca.crt") != given):
            c.create_part(secret, "token", authority)
    except (Conflict, NotFound):  # it changed, and wakes us again
        return


def _forget(c: Client, key: Key) -> None:
    """Takes a Secret that is gone off the accounts that list it."""
    for account in c.list("v1/ServiceAccount", key.namespace):
        listed = account.get("secrets") or ()
        kept = [ref for ref in listed if ref.get("name") != key.name]
        if len(kept) != len(listed):
            c.patch(account, {"secrets": kept or None}, rv=account["metadata"]["resourceVersion"])
