"""Tokens that Kubernetes once made for every service account and nobody uses: first invalidated, deleted a year later.

Such a Secret is one that its account lists. It is used while a pod mounts it, and for a year after the day that the
server noted on it; use counts only since the server has been keeping such notes, which a ConfigMap of it says. Source
of the facts: Kubernetes 1.36, pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go. What differs: it
acts when a year is over, or something changed, rather than once a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.references import secret_names
from steersman.api.rules.data_rules import ACCOUNT_NAME, ACCOUNT_UID, TOKEN_TYPE
from steersman.api.times import time_of
from steersman.controllers.owned import is_terminating
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
SECRET: Final = ("", "Secret")
ACCOUNT: Final = ("", "ServiceAccount")
POD: Final = ("", "Pod")
TRACKING: Final = Key("", "ConfigMap", "kube-system", "kube-apiserver-legacy-service-account-token-tracking")
SINCE: Final = "since"
LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
DAY: Final = 24 * 3600
UNUSED: Final = 365 * DAY
"""Seconds without use (--legacy-service-account-token-clean-up-period)."""


class LegacyTokens(Controller):
    """Invalidates and deletes tokens that nobody uses."""

    name = "legacy-serviceaccount-token-cleaner"
    kind = "v1/Secret"
    watches: ClassVar[Mapping[str, Any]] = {
        "v1/ServiceAccount": lambda account: (),
        "v1/Pod": lambda pod: (),
        "v1/ConfigMap": lambda config: (),
    }

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A token wakes itself; an account the tokens it lists; a pod that is gone those that it used; and the day
        since which use is noted all of them."""
        gk = event.key.gk
        if gk == SECRET:
            return (event.key,) if event.new is not None and event.new.value.get("type") == TOKEN_TYPE else ()
        if gk == POD:
            spec = event.obj.spec_value if event.new is None else None
            return [Key(*SECRET, event.key.namespace, name) for name in secret_names(spec)] if spec else ()
        if event.new is None:
            return ()
        if gk == ACCOUNT:
            listed = event.new.value.get("secrets") or ()
            return [Key(*SECRET, event.key.namespace, each["name"]) for each in listed if each.get("name")]
        return (event.key,) if event.key == TRACKING else ()

    def reconcile(self, c: Client, key: Key) -> None:
        """Judges one token, or all of them."""
        if key != TRACKING:
            _judge(c, c.get(key))
            return
        for secret in c.list("v1/Secret"):
            _judge(c, secret)


def _judge(c: Client, secret: Json | None) -> None:
    if secret is None or secret.get("type") != TOKEN_TYPE or is_terminating(secret):
        return
    meta = secret["metadata"]
    labels = meta.get("labels") or EMPTY
    if not _is_listed(c, secret) or not _is_over(c, ((c.get(TRACKING) or EMPTY).get("data") or EMPTY).get(SINCE)):
        return
    if not c.after(meta["creationTimestamp"], UNUSED):
        return
    if LAST_USED in labels and not _is_over(c, labels[LAST_USED]):
        return
    if _is_mounted(c, meta["namespace"], meta["name"]):
        return
    key = Key(*SECRET, meta["namespace"], meta["name"])
    if _day(labels.get(INVALID_SINCE)) is None:
        c.patch(key, {"metadata": {"uid": meta["uid"], "labels": {INVALID_SINCE: c.timestamp()[:10]}}})
    elif _is_over(c, labels[INVALID_SINCE]):
        c.delete(key, rv=meta["resourceVersion"])


def _is_over(c: Client, day: Any) -> bool:
    """Whether that day, whole, is so long ago; not if it is none."""
    begun = _day(day)
    return begun is not None and c.after(begun, DAY + UNUSED)


def _day(text: Any) -> int | None:
    """When a day (YYYY-MM-DD, UTC) begins, in microseconds since the epoch; None if the text is not one."""
    return time_of(f"{text}T00:00:00Z") if isinstance(text, str) and len(text) == len("2020-01-01") else None


def _is_listed(c: Client, secret: Json) -> bool:
    """Whether the account of a token is there, and lists it: then nobody has made the token by hand."""
    notes = secret["metadata"].get("annotations") or EMPTY
    name, uid = notes.get(ACCOUNT_NAME), notes.get(ACCOUNT_UID)
    account = c.get(Key(*ACCOUNT, secret["metadata"]["namespace"], name)) if name else None
    if account is None or (uid and account["metadata"]["uid"] != uid):
        return False
    return any(each.get("name") == secret["metadata"]["name"] for each in account.get("secrets") or ())


def _is_mounted(c: Client, namespace: str, name: str) -> bool:
    return any(name in secret_names(pod["spec"]) for pod in c.list("v1/Pod", namespace))
