"""RBAC over a store: against a naive evaluator, in Kubernetes' words, and remembered no longer than it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api import errors
from steersman.api.access.authz import Decision, Rbac, forbidden
from steersman.api.access.rbac import GROUP, Ask, Rule, missing
from steersman.api.access.user import User, account_groups, account_name
from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.api.policy import AUTOUPDATE, aggregated, default_policy, reconciled
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.serve.memory import MemoryBackend

API = Api(Kinds.builtin())
JANE = User("jane", ("dev", "system:authenticated"))
MASTER = User("root", ("system:masters",))


class Cluster:
    """A store with roles and bindings in it."""

    def __init__(self) -> None:
        self.backend = MemoryBackend(API)
        self.backend.bootstrap()
        self.rbac = Rbac()

    @property
    def store(self) -> Store:
        return self.backend.store

    def write(
        self, verb: str, kind: str, name: str, namespace: str = "", user: User | None = None, **parts: Any
    ) -> Any:
        meta = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
        body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, **parts}
        options = {"user": user, "force": True} if user else {}
        request = Request(verb, Key(GROUP, kind, namespace, name), body, "", "x", "x", 0, options)
        return self.backend.write_now(request)

    def role(self, name: str, rules: list[Any], namespace: str = "", **more: Any) -> None:
        self.write("create", "Role" if namespace else "ClusterRole", name, namespace, rules=rules, **more)

    def bind(
        self, name: str, role: str, subjects: list[Any], namespace: str = "", local: bool = False, **more: Any
    ) -> Any:
        ref = {"apiGroup": GROUP, "kind": "Role" if local else "ClusterRole", "name": role}
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        return self.write("create", kind, name, namespace, roleRef=ref, subjects=subjects, **more)

    def may(self, user: User, *ask: str, path: str = "") -> bool:
        return self.rbac.decide(self.store, user, Ask(*ask, path=path)).allowed


def subject(kind: str, name: str, namespace: str = "") -> dict[str, str]:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"kind": kind, "name": name, "apiGroup": GROUP}


def rule(verbs: str, groups: str, resources: str, *names: str) -> dict[str, Any]:
    parts = {"verbs": verbs.split(), "apiGroups": groups.split(","), "resources": resources.split()}
    return {**parts, "resourceNames": list(names)} if names else parts


# -- against a naive evaluator -----------------------------------------------------------------------------------

VERBS, GROUPS, RESOURCES, PARTS = (
    ("get", "list", "create"),
    ("", "apps"),
    ("pods", "deployments"),
    ("", "scale", "exec"),
)
NAMESPACES, NAMES, USERS = ("default", "shop"), ("web", "db"), ("ann", "bob")
PATHS = ("/healthz", "/metrics", "/api/v1", "/")


def some(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


RULES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "verbs": some(*VERBS, "*"),
                "apiGroups": some(*GROUPS, "*"),
                "resources": some(*RESOURCES, "*", "*/scale", "pods/exec", "deployments/scale"),
            },
            optional={"resourceNames": some(*NAMES)},
        ),
        st.fixed_dictionaries(
            {"verbs": some(*VERBS, "*"), "nonResourceURLs": some("/healthz", "/api/*", "*", "/metr*")}
        ),
    ),
    max_size=2,
)
SUBJECTS = st.lists(
    st.one_of(
        st.builds(subject, st.just("User"), st.sampled_from(USERS)),
        st.builds(subject, st.just("Group"), st.sampled_from(("dev", "system:serviceaccounts:shop"))),
        st.builds(subject, st.just("ServiceAccount"), st.just("robot"), st.sampled_from(NAMESPACES)),
    ),
    max_size=2,
)
ASKS = st.one_of(
    st.builds(
        Ask,
        st.sampled_from(VERBS),
        st.sampled_from(GROUPS),
        st.sampled_from(RESOURCES),
        st.sampled_from(PARTS),
        st.sampled_from(("", *NAMESPACES)),
        st.sampled_from(("", *NAMES)),
    ),
    st.builds(lambda verb, path: Ask(verb, path=path), st.sampled_from(VERBS), st.sampled_from(PATHS)),
)
WHO = st.one_of(
    st.builds(User, st.sampled_from(USERS), st.sampled_from(((), ("dev",)))),
    st.builds(lambda ns: User(account_name(ns, "robot"), account_groups(ns)), st.sampled_from(NAMESPACES)),
)


def naive(roles: Any, bindings: Any, user: User, ask: Ask) -> bool:
    """The documented meaning, word by word."""
    for where, role, local, subjects in bindings:
        if where and (ask.path or ask.namespace != where):
            continue
        means_user = any(
            (s["kind"] == "User" and s["name"] == user.name)
            or (s["kind"] == "Group" and s["name"] in user.groups)
            or (s["kind"] == "ServiceAccount" and user.name == f"system:serviceaccount:{s['namespace']}:{s['name']}")
            for s in subjects
        )
        if not means_user:
            continue
        for rule in roles.get((where if local else "", role), ()):
            if not {ask.verb, "*"} & set(rule["verbs"]):
                continue
            if ask.path:
                urls = rule.get("nonResourceURLs", ())
                if any(url == ask.path or (url[-1] == "*" and ask.path.startswith(url[:-1])) for url in urls):
                    return True
                continue
            full = f"{ask.resource}/{ask.part}" if ask.part else ask.resource
            wanted = {full, "*"} | ({f"*/{ask.part}"} if ask.part else set())
            names = rule.get("resourceNames")
            if (
                {ask.group, "*"} & set(rule.get("apiGroups", ()))
                and wanted & set(rule.get("resources", ()))
                and (not names or ask.name in names)
            ):
                return True
    return False


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from([("", "a"), ("", "b"), ("shop", "a"), ("default", "a")]), RULES, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(("", *NAMESPACES)), st.sampled_from("abc"), st.booleans(), SUBJECTS), max_size=4
    ),
    st.lists(st.tuples(WHO, ASKS), min_size=1, max_size=12),
)
def test_decisions_are_those_of_a_naive_evaluator(roles, bindings, questions):
    cluster = Cluster.__new__(Cluster)
    cluster.backend, cluster.rbac = MemoryBackend(API), Rbac()
    for name in NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        cluster.backend.write_now(Request("create", Key("", "Namespace", "", name), body))
    for (namespace, name), rules in roles.items():
        if namespace:  # no role of a namespace speaks of paths
            rules[:] = [rule for rule in rules if "nonResourceURLs" not in rule]
        cluster.role(name, rules, namespace)
        cluster.may(*questions[0][:1], "get", "", "pods")  # what is remembered now must not be believed later
    bindings = [(where, role, local and bool(where), subjects) for where, role, local, subjects in bindings]
    for number, (where, role, local, subjects) in enumerate(bindings):
        cluster.bind(f"b{number}", role, subjects, where, local)
        cluster.may(questions[0][0], *questions[0][1][:6], path=questions[0][1].path)
    for user, ask in questions:
        assert cluster.rbac.decide(cluster.store, user, ask).allowed == naive(roles, bindings, user, ask), (user, ask)


def test_a_decision_is_remembered_until_a_role_or_binding_changes_and_forks_have_their_own():
    cluster = Cluster()
    assert not cluster.may(JANE, "get", "", "pods", "", "default")
    cluster.role("reader", [rule("get", "", "pods")])
    cluster.bind("readers", "reader", [subject("Group", "dev")])
    assert cluster.may(JANE, "get", "", "pods", "", "default")
    fork = cluster.store.fork()
    cluster.backend.write_now(Request("delete", Key(GROUP, "ClusterRoleBinding", "", "readers")))
    assert not cluster.may(JANE, "get", "", "pods", "", "default")
    ask = Ask("get", "", "pods", "", "default")
    assert cluster.rbac.decide(fork, JANE, ask).allowed and not cluster.rbac.decide(cluster.store, JANE, ask).allowed


# -- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            Ask("list", "", "pods", "", "ns"),
            'pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "ns"',
        ),
        (
            Ask("get", "apps", "deployments", "scale", "ns", "web"),
            'deployments.apps "web" is forbidden: User "x" cannot get resource "deployments/scale" '
            'in API group "apps" in the namespace "ns"',
        ),
        (
            Ask("list", "", "nodes"),
            'nodes is forbidden: User "x" cannot list resource "nodes" in API group "" at the cluster scope',
        ),
        (Ask("get", path="/metrics"), 'forbidden: User "x" cannot get path "/metrics"'),
        (Ask("get", path="/<b>&"), 'forbidden: User "x" cannot get path "/&lt;b&gt;&amp;"'),
    ],
)
def test_a_refusal_reads_as_kubernetes_writes_it(ask, text):
    error = forbidden(User("x"), ask)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", text)
    assert error.details.kind == ask.resource and error.details.name == ask.name


def test_reasons_name_the_binding_and_what_is_missing():
    cluster = Cluster()
    ask = Ask("get", "", "pods", "", "default")
    cluster.bind("lost", "gone", [subject("User", "jane")])
    cluster.bind("also", "gone", [subject("User", "jane")], "default")
    found = cluster.rbac.decide(cluster.store, JANE, ask)
    assert found == Decision(False, f'RBAC: clusterrole.{GROUP} "gone" not found')
    cluster.bind("viewers", "view", [subject("Group", "ops"), subject("Group", "dev")], "default")
    found = cluster.rbac.decide(cluster.store, JANE, ask)
    assert found.reason == 'RBAC: allowed by RoleBinding "viewers/default" of ClusterRole "view" to Group "dev"'


# -- escalation --------------------------------------------------------------------------------------------------


def author(cluster: Cluster, *rules: Any) -> User:
    """Somebody who may write roles and bindings, and hold `rules`."""
    cluster.role("author", [rule("create update patch", GROUP, "roles clusterroles rolebindings"), *rules])
    cluster.bind("authors", "author", [subject("User", "jane")])
    return JANE


def test_nobody_grants_what_they_do_not_hold():
    cluster = Cluster()
    jane = author(cluster, rule("get list", "", "pods"), {"verbs": ["get"], "nonResourceURLs": ["/metrics"]})
    wanted = [rule("get list watch delete", "", "pods secrets"), {"verbs": ["get"], "nonResourceURLs": ["/debug/*"]}]
    with pytest.raises(errors.Forbidden) as refused:
        cluster.role("big", wanted, user=jane)
    assert refused.value.message == (
        f'clusterroles.{GROUP} "big" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) is attempting '
        "to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "watch" "delete"]}\n'
        '{NonResourceURLs:["/debug/*"], Verbs:["get"]}'
    )
    cluster.role("small", [rule("get", "", "pods", "web")], "default", user=jane)
    wanted = wanted[:1]
    with pytest.raises(errors.Forbidden):  # by an update as well
        cluster.write("update", "Role", "small", "default", jane, rules=wanted)
    with pytest.raises(errors.Forbidden):  # and by apply
        cluster.write("apply", "Role", "small", "default", jane, rules=wanted)
    with pytest.raises(errors.Forbidden, match="must have cluster-admin privileges"):
        more = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
        cluster.role("all", [], user=jane, **more)
    cluster.role("big", wanted, "default", user=MASTER)
    cluster.role("own", wanted, "default")  # no user: a part of the control plane


def test_escalate_and_bind_are_verbs():
    cluster = Cluster()
    jane = author(cluster, rule("escalate", GROUP, "roles"), rule("bind", GROUP, "clusterroles", "edit"))
    cluster.role("big", [rule("*", "*", "*")], "default", user=jane)
    with pytest.raises(errors.Forbidden):
        cluster.role("big", [rule("*", "*", "*")], user=jane)
    cluster.bind("b", "edit", [subject("User", "bob")], "default", user=jane)
    with pytest.raises(errors.Forbidden, match="not currently held"):
        cluster.bind("c", "view", [subject("User", "bob")], "default", user=jane)
    with pytest.raises(errors.NotFound):
        cluster.bind("d", "nowhere", [subject("User", "bob")], "default", user=jane)


def test_garbage_collection_needs_no_rights_of_the_role():
    cluster = Cluster()
    jane = author(cluster)
    cluster.role("big", [rule("*", "*", "*")], "default", metadata={"finalizers": ["a/b"]})
    key = Key(GROUP, "Role", "default", "big")
    body = {"metadata": {"finalizers": None}}
    cluster.backend.write_now(Request("patch", key, body, "", "jane", "x", 0, {"user": jane, "patch": "merge"}))
    with pytest.raises(errors.Forbidden):
        body = {"metadata": {"labels": {"a": "b"}}}
        cluster.backend.write_now(Request("patch", key, body, "", "jane", "x", 0, {"user": jane, "patch": "merge"}))


def test_stars_cover_what_they_match():
    scale = Rule(("get",), ("apps",), ("deployments/scale",))
    assert not missing([Rule(("*",), ("*",), ("*/scale",))], [scale])
    assert not missing([Rule(("get",), ("apps",), ("*",))], [scale])
    assert missing([Rule(("get",), ("apps",), ("deployments",))], [scale])
    assert missing([Rule(("get",), ("apps",), ("deployments/scale",), ("web",))], [scale])
    assert not missing([Rule(("*",), urls=("/a/*",))], [Rule(("get",), urls=("/a/b", "/a/*"))])
    assert missing([Rule(("*",), urls=("/a/*",))], [Rule(("get",), urls=("*",))])


# -- default policy ----------------------------------------------------------------------------------------------


def test_default_roles_get_back_what_they_lack_and_keep_what_they_have():
    body = {
        "metadata": {"name": "r", "labels": {"a": "b"}, "annotations": {AUTOUPDATE: "true"}},
        "rules": [rule("get list", "", "pods")],
    }
    assert reconciled(body, body) is None
    more = {**body, "rules": [rule("*", "", "pods"), rule("get", "", "nodes")]}
    assert reconciled(more, body) is None
    less = {"metadata": {"name": "r", "labels": {"a": "other"}}, "rules": [rule("get", "", "pods")]}
    assert reconciled(less, body) == {
        "metadata": {"annotations": {AUTOUPDATE: "true"}},
        "rules": [rule("get", "", "pods"), rule("list", "", "pods")],
    }
    assert reconciled({**less, "metadata": {"annotations": {AUTOUPDATE: "false"}}}, body) is None
    ref = {"kind": "ClusterRole", "name": "r"}
    binding = {"metadata": body["metadata"], "roleRef": ref, "subjects": [subject("User", "a")]}
    found = {"metadata": body["metadata"], "roleRef": ref, "subjects": [subject("User", "b")]}
    assert reconciled(found, binding) == {"subjects": [subject("User", "b"), subject("User", "a")]}


def test_the_default_policy_is_that_of_kubernetes():
    cluster = Cluster()
    policy = dict(default_policy())
    names = {key.name for key in policy if key.kind == "ClusterRole"}
    assert {"cluster-admin", "admin", "edit", "view", "system:basic-user", "system:discovery", "system:node"} <= names
    assert "system:controller:deployment-controller" in names and "system:kube-scheduler" in names
    for key, body in policy.items():
        found = cluster.store.get(key).value
        assert found["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert found["metadata"]["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}
        assert found.get("rules", []) == body.get("rules", []) and found.get("roleRef") == body.get("roleRef")
    roles = [body for key, body in policy.items() if key.kind == "ClusterRole"]
    for name in ("admin", "edit", "view"):
        role = policy[Key(GROUP, "ClusterRole", "", name)]
        assert list(role["rules"]) == aggregated(role, roles)
        assert len(role["rules"]) > 5
    anybody = User("x", ("system:authenticated",))
    assert cluster.may(anybody, "create", "authorization.k8s.io", "selfsubjectaccessreviews")
    assert cluster.may(anybody, "get", path="/openapi/v3/api/v1") and not cluster.may(anybody, "get", path="/metrics")
    assert not cluster.may(anybody, "list", "", "namespaces")
    scheduler = User("system:kube-scheduler", ("system:authenticated",))
    assert cluster.may(scheduler, "create", "", "pods", "binding", "default", "web")
    cluster.bind("v", "view", [subject("User", "x")], "default")
    assert cluster.may(anybody, "list", "apps", "deployments", "", "default")
    assert not cluster.may(anybody, "get", "", "secrets", "", "default", "s")
