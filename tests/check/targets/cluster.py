"""Controllers of what every cluster has: namespaces, accounts, certificates, roles, definitions, quotas, garbage."""

from __future__ import annotations

import copy
from base64 import b64encode
from contextlib import suppress
from typing import Any

import steersman as sm
from steersman.api.access.bootstrap import CLUSTER_INFO, KUBECONFIG, SIGNATURE
from steersman.api.errors import ApiError
from steersman.controllers.builtin import builtin
from steersman.controllers.root_ca import SOURCE, SOURCE_FIELD
from steersman.kernel.object import Key
from tests.check.targets.making import LONG_AGO, gone, holds, named, web_pod
from tests.controllers import test_legacy_tokens as legacy
from tests.controllers.test_accounts import PUBLISHED, RBAC, REQUEST, SHOP, SYSTEM, account, role, secret
from tests.controllers.test_policy_status import policy
from tests.controllers.test_registration import CRD, SERVICE, TWO

ACCOUNT = Key("", "ServiceAccount", "default", "default")
SECRET = Key("", "Secret", "default", "s")
CONFIG = "v1/ConfigMap"


def garbage() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("garbage-collector"))
    owner = w.apply(named("v1", "ConfigMap", "owner"))

    def adopt(c: Any) -> None:
        """Something of an owner that has just been there."""
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "0"}
        found = c.get(owner)
        uid = ref["uid"] if found is None else found["metadata"]["uid"]
        c.create(named("v1", "ConfigMap", "owned", metadata={"ownerReferences": [{**ref, "uid": uid}]}))

    w.user("adopt", adopt)
    w.user("delete", lambda c: c.delete(owner))

    def owned(s: sm.State) -> bool:
        """Whatever is there has the owner that is there."""
        refs = [ref for each in s.list(CONFIG) for ref in each.metadata.ownerReferences or ()]
        return all(ref.uid == s[owner].metadata.uid for ref in refs)

    return w.converges(owned)


def namespace() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("namespace"))
    key = w.apply(SHOP)
    w.apply(named("v1", "ConfigMap", "a", "shop"))
    w.user("delete", lambda c: c.delete(key))
    w.user("add", lambda c: c.create(named("v1", "ConfigMap", "b", "shop")))
    return w.converges(lambda s: not s[key] and s.count(CONFIG) == 0)


def definition() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("customresourcedefinition"))

    def define(c: Any) -> None:
        """One, with an object of the new kind where it is served by then."""
        c.create(copy.deepcopy(TWO))
        with suppress(ApiError):
            c.create(named("example.com/v1", "Widget"))

    w.user("define", define)
    w.user("delete", lambda c: c.delete(CRD))
    return w.converges(lambda s: "deletionTimestamp" not in (s[CRD] or {"metadata": {}})["metadata"])


def registration() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("apiservice-registration", "customresourcedefinition"))
    w.user("define", lambda c: c.create(copy.deepcopy(TWO)))
    w.user("lose", lambda c: c.delete(SERVICE))
    return w.converges(lambda s: s.count("apiregistration.k8s.io/v1/APIService") == 2)


def event_ttl() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("event-ttl"))
    about = {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "default"}
    w.apply(named("v1", "Event", involvedObject=about, reason="R", message="m", type="Normal"))
    w.user("again", lambda c: c.create(named("v1", "Event", "two", involvedObject=about, reason="R", type="Normal")))
    return w.converges(lambda s: s.count("v1/Event") == 0)


def accounts() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("serviceaccount-controller"))
    w.user("lose", lambda c: c.delete(ACCOUNT))
    return w.converges(lambda s: bool(s[ACCOUNT]))


def tokens() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("tokens-controller"))
    for each in (SYSTEM, PUBLISHED, account(), secret()):
        w.apply(each)
    robot = Key("", "ServiceAccount", "default", "robot")
    w.user("delete", lambda c: c.delete(robot))
    return w.converges(lambda s: bool(s[robot]) or not s[SECRET])


def root_ca() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("root-ca-certificate-publisher-controller"))
    for each in (SYSTEM, PUBLISHED):
        w.apply(each)
    key = Key("", "ConfigMap", "default", "kube-root-ca.crt")
    w.user("lose", lambda c: c.delete(key))

    def published(s: sm.State) -> bool:
        pem = s[SOURCE].data[SOURCE_FIELD] if s[SOURCE] and SOURCE_FIELD in (s[SOURCE].data or {}) else ""
        return not pem or s[key].data["ca.crt"] == pem

    return w.converges(published)


def aggregation() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("clusterrole-aggregation-controller"))
    pods, nodes = ({"verbs": ["get"], "apiGroups": [""], "resources": [each]} for each in ("pods", "nodes"))
    key = w.apply(role("all", selects=[{"to": "all"}]))
    part = w.apply(role("part", [pods], {"to": "all"}))
    w.apply(role("stays", [nodes], {"to": "all"}))
    w.user("drop", lambda c: c.delete(part))

    def collected(s: sm.State) -> bool:
        """The rules of all roles that the selector means."""
        if gone(s, key) or not s[key].aggregationRule:
            return True
        labels = s[key].aggregationRule.clusterRoleSelectors[0].matchLabels or None
        parts = [each for each in s.list(f"{RBAC}/ClusterRole", labels=labels) if each.metadata.name != key.name]
        return list(s[key].rules or ()) == [rule for each in parts for rule in each.rules or ()]

    return w.converges(collected)


def quota() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("resourcequota-controller"))
    key = w.apply(named("v1", "ResourceQuota", "q", spec={"hard": {"pods": "3", "count/configmaps": "9"}}))
    w.apply(web_pod())
    w.user("add", lambda c: c.create(named("v1", "ConfigMap", "a")))
    w.user("delete", lambda c: c.delete(Key("", "Pod", "default", "web"), grace=0))

    def counted(s: sm.State) -> bool:
        pods = [each for each in s.list("v1/Pod") if each.status.phase not in ("Succeeded", "Failed")]
        used = {"pods": str(len(pods)), "count/configmaps": str(s.count(CONFIG))}
        return gone(s, key) or dict(s[key].status.used or {}) == {name: used[name] for name in s[key].spec.hard or ()}

    return w.converges(counted)


def _request(*conditions: str, signer: str = "example.com/x") -> dict[str, Any]:
    said = [{"type": each, "status": "True", "lastUpdateTime": LONG_AGO} for each in conditions]
    spec = {"request": REQUEST, "signerName": signer, "usages": ["client auth"]}
    out = named("certificates.k8s.io/v1", "CertificateSigningRequest", "a", "", spec=spec)
    return {**out, "status": {"conditions": said}} if said else out


def approving() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("certificatesigningrequest-approving-controller"))
    key = w.apply(_request(signer="kubernetes.io/kube-apiserver-client-kubelet"))
    w.user("delete", lambda c: c.delete(key))
    return w.converges(lambda s: not s[key])


def signing() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("certificatesigningrequest-signing-controller"))
    key = w.apply(_request(signer="kubernetes.io/kube-apiserver-client"))
    yes = {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}
    w.user("approve", lambda c: c.patch(key, {"status": yes}, "approval"))
    return w.converges(lambda s: holds(s[key], "Approved") != "True" or bool(s[key].status.certificate))


def cleaning() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("certificatesigningrequest-cleaner-controller"))
    key = w.apply(_request())
    w.user("label", lambda c: c.patch(key, {"metadata": {"labels": {"a": "b"}}}))
    return w.converges(lambda s: not s[key])


def _token(id_: str = "abcdef", **more: str) -> dict[str, Any]:
    fields = {"token-id": id_, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"}
    data = {field: b64encode(text.encode()).decode() for field, text in {**fields, **more}.items()}
    kind = "bootstrap.kubernetes.io/token"
    return named("v1", "Secret", f"bootstrap-token-{id_}", "kube-system", type=kind, data=data)


def token_cleaner() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("token-cleaner-controller"))
    w.apply(SYSTEM)
    w.apply(_token(expiration=LONG_AGO))
    w.user("again", lambda c: c.create(_token("ghijkl", expiration=LONG_AGO)))
    return w.converges(lambda s: not any("expiration" in each.data for each in s.list("v1/Secret")))


def signer() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("bootstrap-signer-controller"))
    w.apply(named("v1", "Namespace", "kube-public", ""))
    w.apply(SYSTEM)
    w.apply(named("v1", "ConfigMap", CLUSTER_INFO.name, CLUSTER_INFO.namespace, data={KUBECONFIG: "k"}))
    key = w.apply(_token())
    w.apply(_token("ghijkl"))
    w.user("drop", lambda c: c.delete(key))
    needed = {"token-id", "token-secret", "usage-bootstrap-signing"}

    def signed(s: sm.State) -> bool:
        """For each token that may sign, where there is something to be signed."""
        ids = {each.metadata.name[-6:] for each in s.list("v1/Secret") if needed <= set(each.data)}
        data = set(s[CLUSTER_INFO].data or ())
        return KUBECONFIG not in data or data == {KUBECONFIG, *[f"{SIGNATURE}{each}" for each in ids]}

    return w.converges(signed)


def policies() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("validatingadmissionpolicy-status"))
    key = w.apply(policy("object.replicas > 1"))
    better = [{"expression": "object.spec.replicas > 1"}]
    w.user("mend", lambda c: c.patch(key, {"spec": {"validations": better}}))
    return w.converges(lambda s: s[key].status.observedGeneration == s[key].metadata.generation)


def legacy_tokens() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("legacy-serviceaccount-token-cleaner"))
    for each in (legacy.SYSTEM, legacy.account(legacy.SECRET.name), legacy.token(), legacy.tracked()):
        w.apply(each)
    w.user("use", lambda c: c.patch(legacy.SECRET, {"metadata": {"labels": {legacy.LAST_USED: "2026-01-01"}}}))

    def unused(s: sm.State) -> bool:
        """What the account lists is gone in the end."""
        account = s[legacy.ACCOUNT]
        return gone(s, legacy.SECRET) or not account or not account.secrets or not s[legacy.TRACKING]

    return w.converges(unused)


TARGETS = {
    "garbage-collector": garbage,
    "namespace": namespace,
    "customresourcedefinition": definition,
    "apiservice-registration": registration,
    "event-ttl": event_ttl,
    "serviceaccount-controller": accounts,
    "tokens-controller": tokens,
    "root-ca-certificate-publisher-controller": root_ca,
    "clusterrole-aggregation-controller": aggregation,
    "resourcequota-controller": quota,
    "certificatesigningrequest-approving-controller": approving,
    "certificatesigningrequest-signing-controller": signing,
    "certificatesigningrequest-cleaner-controller": cleaning,
    "token-cleaner-controller": token_cleaner,
    "bootstrap-signer-controller": signer,
    "validatingadmissionpolicy-status": policies,
    "legacy-serviceaccount-token-cleaner": legacy_tokens,
}
