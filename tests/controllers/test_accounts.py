"""Accounts, tokens, the authority's certificate, aggregated roles: kept as they should be, in worlds of their own."""

from __future__ import annotations

import base64

from steersman.controllers.accounts import ServiceAccounts, TokenSecrets
from steersman.controllers.aggregation import ClusterRoleAggregation
from steersman.controllers.certificates import CertificateCleaner
from steersman.controllers.root_ca import DESCRIPTION, NAME, SOURCE, SOURCE_FIELD, RootCA
from steersman.kernel.object import Key
from steersman.kernel.transition import enabled
from tests.controllers.worlds import client, make, settle

SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
PUBLISHED = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": SOURCE.name, "namespace": SOURCE.namespace},
    "data": {SOURCE_FIELD: "PEM"},
}
RBAC = "rbac.authorization.k8s.io/v1"


def account(name="robot"):
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}


def secret(name="s", owner="robot", **annotations):
    notes = {"kubernetes.io/service-account.name": owner, **annotations}
    meta = {"name": name, "namespace": "default", "annotations": notes}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "kubernetes.io/service-account-token"}


def test_every_namespace_has_a_default_account_and_keeps_it():
    w = settle(make([ServiceAccounts], [SHOP]))
    key = Key("", "ServiceAccount", "shop", "default")
    assert w.store.get(key) is not None and w.store.get(key._replace(namespace="default")) is not None
    client(w).delete(key)
    assert w.store.get(key) is None
    settle(w)
    assert w.store.get(key) is not None
    client(w).delete(Key("", "Namespace", "", "shop"))
    client(w).delete(key)
    settle(w)
    assert w.store.get(key) is None


def test_a_secret_is_filled_once_and_goes_with_its_account():
    w = settle(make([TokenSecrets], [SYSTEM, PUBLISHED, account(), secret(), secret("other", "nobody")]))
    assert w.store.get(Key("", "Secret", "default", "other")) is None
    made = w.store.get(Key("", "Secret", "default", "s"))
    data = {name: base64.b64decode(text).decode() for name, text in made.value["data"].items()}
    assert data["ca.crt"] == "PEM" and data["namespace"] == "default" and data["token"].startswith("token-")
    rev = w.store.rev
    settle(w)
    assert w.store.rev == rev
    client(w).delete(Key("", "ServiceAccount", "default", "robot"))
    settle(w)
    assert w.store.get(made.key) is None


def test_a_secret_that_is_gone_is_listed_no_more():
    listed = {**account(), "secrets": [{"name": "s"}, {"name": "t"}]}
    w = settle(make([TokenSecrets], [listed, secret()]))
    client(w).delete(Key("", "Secret", "default", "s"))
    settle(w)
    found = w.store.get(Key("", "ServiceAccount", "default", "robot")).value
    assert list(found["secrets"]) == [{"name": "t"}]


def test_the_certificate_is_everywhere_and_put_back():
    w = settle(make([RootCA], [SHOP, SYSTEM, PUBLISHED]))
    for namespace in ("default", "kube-system", "shop"):
        found = w.store.get(Key("", "ConfigMap", namespace, NAME)).value
        assert found["data"] == {"ca.crt": "PEM"} and DESCRIPTION in found["metadata"]["annotations"]
    shop = Key("", "ConfigMap", "shop", NAME)
    client(w).patch(shop, {"data": {"ca.crt": "other"}})
    client(w).delete(Key("", "ConfigMap", "default", NAME))
    client(w).patch(SOURCE, {"data": {SOURCE_FIELD: "NEW"}})
    settle(w)
    for namespace in ("default", "shop"):
        assert w.store.get(shop._replace(namespace=namespace)).value["data"] == {"ca.crt": "NEW"}


def test_without_a_published_certificate_nothing_is_written():
    w = settle(make([RootCA], [SHOP]))
    assert w.store.count(("", "ConfigMap")) == 0


def role(name, rules=(), labels=None, selects=()):
    meta = {"name": name, **({"labels": labels} if labels else {})}
    out = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": meta, "rules": list(rules)}
    if selects:
        out["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels} for labels in selects]}
    return out


def test_rules_are_collected_also_through_other_collections():
    pods = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    nodes = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}
    objects = [
        role("all", selects=[{"to": "all"}]),
        role("some", labels={"to": "all"}, selects=[{"to": "some"}]),
        role("a", [pods], {"to": "some"}),
        role("b", [nodes, pods], {"to": "all"}),
    ]
    w = settle(make([ClusterRoleAggregation], objects))
    key = Key("rbac.authorization.k8s.io", "ClusterRole", "", "all")
    assert list(w.store.get(key).value["rules"]) == [nodes, pods]
    client(w).delete(key._replace(name="b"))
    settle(w)
    assert list(w.store.get(key).value["rules"]) == [pods]
    assert not [action for action in enabled(w) if action.op != "user"]


def test_requests_that_nobody_decides_go_after_a_day():
    request = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "a"},
        "spec": {"request": REQUEST, "signerName": "example.com/x", "usages": ["any"]},
    }
    w = settle(make([CertificateCleaner], [request]))
    assert w.store.count(("certificates.k8s.io", "CertificateSigningRequest")) == 1
    start = w.now
    settle(w, timers=True)
    assert w.store.count(("certificates.k8s.io", "CertificateSigningRequest")) == 0
    assert w.now - start >= 24 * 3600 * 1_000_000


def _request():
    from tests.serve.test_certificates import asked

    return asked("jane")


REQUEST = _request()
