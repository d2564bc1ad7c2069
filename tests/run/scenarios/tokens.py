"""Tokens of a kind that nobody makes any more: used today, mounted, made by hand, idle, and invalid for long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from steersman.api.rules.data_rules import ACCOUNT_NAME, TOKEN_TYPE
from steersman.controllers.legacy_tokens import INVALID_SINCE, LAST_USED, SINCE, TRACKING
from tests.run.scenarios.making import LONG_AGO, NAMESPACE, Step, create, made

LISTED: Final = ("idle", "old", "used", "mounted", "odd")
DAY: Final = LONG_AGO[:10]


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def token(name: str, **labels: str) -> dict[str, Any]:
    meta = {
        "name": name,
        "namespace": NAMESPACE,
        "annotations": {ACCOUNT_NAME: "robot"},
        "labels": {"a": "b", **labels},
    }
    return {"apiVersion": "v1", "kind": "Secret", "type": TOKEN_TYPE, "metadata": meta}


def before(c: Any) -> None:
    """What is there when the controllers begin: each looks at tokens then, and seldom afterwards."""
    meta = {"name": TRACKING.name, "namespace": TRACKING.namespace}
    c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {SINCE: DAY}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": NAMESPACE}}
    c.create({**account, "secrets": [{"name": name} for name in LISTED]})
    mounts = [{"name": "v", "secret": {"secretName": "mounted"}}]
    c.create(made("v1/Pod", "holder", containers=[{"name": "c", "image": "i"}], volumes=mounts,
                  serviceAccountName="robot", nodeSelector={"no": "where"}))  # fmt: skip
    create(
        token("idle"), token("old", **{INVALID_SINCE: DAY}), token("used", **{LAST_USED: today()}), token("mounted"),
        token("odd", **{LAST_USED: "sometimes"}), token("hand", **{INVALID_SINCE: DAY}),
    )(c)  # fmt: skip


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {"legacy-tokens": (lambda c: None,)}
BEFORE: Final[dict[str, Step]] = {"legacy-tokens": before}
