"""Tokens that nobody uses."""

import pytest

from steersman.api.rules.data_rules import ACCOUNT_NAME, TOKEN_TYPE
from steersman.api.times import parse_time
from steersman.controllers.legacy_tokens import INVALID_SINCE, LAST_USED, SINCE, TRACKING, LegacyTokens
from steersman.kernel.object import Key
from tests.controllers.services import pod
from tests.controllers.worlds import client, explore, make, objects, one, settle, user

SECRET = Key("", "Secret", "default", "robot-token")
ACCOUNT = Key("", "ServiceAccount", "default", "robot")
LONG_AGO = "2020-01-01"
TODAY, YESTERDAY, A_YEAR_AGO = "2029-01-01", "2028-12-31", "2027-12-30"
"""Worlds begin in 2026."""
SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}


def token(**labels):
    """The token of an account, as Kubernetes once made it."""
    meta = {"name": SECRET.name, "namespace": "default", "annotations": {ACCOUNT_NAME: "robot"}, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "type": TOKEN_TYPE, "metadata": meta}


def account(*listed):
    meta = {"name": "robot", "namespace": "default"}
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    return {**body, "secrets": [{"name": name} for name in listed]} if listed else body


def tracked(day=LONG_AGO):
    meta = {"name": TRACKING.name, "namespace": TRACKING.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {SINCE: day}}


def world(secret, *more, day=LONG_AGO, listed=(SECRET.name,)):
    """As it is years later."""
    w = settle(make([LegacyTokens], [SYSTEM, account(*listed), secret, *more, *([tracked(day)] if day else [])]))
    w.now = parse_time(f"{TODAY}T12:00:00Z")
    client(w).patch(ACCOUNT, {"metadata": {"annotations": {"wakes": "it"}}})
    return settle(w)


def invalid_since(w):
    return one(w, "v1/Secret", SECRET.name).metadata.get("labels", {}).get(INVALID_SINCE)


def test_a_token_that_nobody_uses_is_invalidated_and_deleted_a_year_later():
    w = world(token())
    assert invalid_since(w) == TODAY
    settle(w, timers=True)
    assert not objects(w, "v1/Secret")


def test_it_is_not_deleted_the_day_it_was_invalidated():
    assert invalid_since(world(token(**{INVALID_SINCE: YESTERDAY}))) == YESTERDAY
    assert not objects(world(token(**{INVALID_SINCE: A_YEAR_AGO})), "v1/Secret")
    assert invalid_since(world(token(**{INVALID_SINCE: "yesterday"}))) == TODAY


@pytest.mark.parametrize(
    "kept",
    [
        {"secret": token(**{LAST_USED: YESTERDAY})},
        {"secret": token(**{LAST_USED: "sometimes"})},
        {"secret": token(), "day": YESTERDAY},
        {"secret": token(), "day": ""},
        {"secret": token(), "listed": ()},
        {"secret": {**token(), "type": "Opaque"}},
    ],
)
def test_what_is_used_made_by_hand_or_not_watched_long_enough_stays(kept):
    more = {name: value for name, value in kept.items() if name != "secret"}
    assert invalid_since(world(kept["secret"], **more)) is None


def test_what_a_pod_mounts_stays_until_the_pod_is_gone():
    holder = pod(0, volumes=[{"name": "t", "secret": {"secretName": SECRET.name}}])
    holder["spec"].pop("nodeName")
    w = world(token(), holder)
    assert invalid_since(w) is None
    client(w).delete(Key("", "Pod", "default", "p000"))
    assert invalid_since(settle(w)) == TODAY


def test_every_order_of_events_ends_alike():
    used = user("use", lambda c: c.patch(SECRET, {"metadata": {"labels": {LAST_USED: "2026-01-01"}}}))

    def start():
        return make([LegacyTokens], [SYSTEM, account(SECRET.name), token(), tracked(LONG_AGO)], [used], lag=1)

    found = explore(start)
    assert found.states > 1 and found.terminal and not found.findings
    assert all(not objects(w, "v1/Secret") for w in found.terminal)
