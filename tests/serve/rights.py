"""Requests with the right that each needs, and users who have rights: what tests of authorization are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from steersman.api.access.rbac import GROUP, Ask
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.serve.served import PROXY, Served, parts_of
from tests.serve.plane import Plane

METHODS = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "delete": "DELETE"}
METHODS |= {"deletecollection": "DELETE"}
PATCHES = ("application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml")
PATCHES += ("application/strategic-merge-patch+json",)
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
NAMED = ("get", "update", "patch", "delete")
OPEN = ("selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews")
"""What system:basic-user grants to everybody: questions about oneself."""
RBAC = f"{GROUP}/v1"


class Case(NamedTuple):
    """One request and the right it needs."""

    ask: Ask
    method: str
    path: str
    content: str = "application/json"
    kinds: tuple[str, ...] = ()
    """All resources and subresources of the group."""

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.content}"


def cases(served: Served) -> Iterator[Case]:
    """A request for every verb of every kind and subresource that is served, and for each way to write it."""
    for group, versions in served.groups.items():
        for version in versions:
            kinds = served.kinds_of(group, version)
            names = tuple([k.plural for k in kinds] + [f"{k.plural}/{p.name}" for k in kinds for p in parts_of(k)])
            for kind in kinds:
                root = f"/apis/{group}/{version}" if group else f"/api/{version}"
                for verb in kind.verbs:
                    yield from requests(kind, verb, "", root, names)
                for part in parts_of(kind):
                    for verb in part.verbs:
                        yield from requests(kind, verb, part.name, root, names)


def requests(kind: Any, verb: str, part: str, root: str, kinds: tuple[str, ...]) -> Iterator[Case]:
    name = "x" if verb in NAMED or part else ""
    namespace = "default" if kind.namespaced else name if kind.kind == "Namespace" else ""
    ask = Ask(verb, kind.group, kind.plural, part, namespace, name)
    below = "/namespaces/default" * kind.namespaced + f"/{kind.plural}"
    path = f"{root}{below}" + f"/{name}" * bool(name) + f"/{part}" * bool(part)
    method = METHODS.get(verb, "PATCH")
    if verb == "watch":
        for old in (f"{root}/watch{below}", f"{root}/watch{below}/x"):  # Kubernetes' first way to write a watch
            named = "x" * old.endswith("/x")
            where = namespace or named * (kind.kind == "Namespace")
            yield Case(ask._replace(name=named, namespace=where), method, f"{old}?timeoutSeconds=1", kinds=kinds)
        path += "?watch=1&timeoutSeconds=1"
    for content in PATCHES if verb == "patch" else ("application/json",):
        yield Case(ask, method, path, content, kinds)
    if part == PROXY:
        for port in ("x:80", "https:x:web"):
            yield Case(ask._replace(name=port), method, f"{root}{below}/{port}/proxy/a/b?c=d", kinds=kinds)


class Users:
    """Four users whose roles change from case to case."""

    def __init__(self) -> None:
        self.plane = Plane()
        self.given: dict[tuple[str, str], list[Any]] = {}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
        self.plane.backend.write_now(Request("create", Key("", "Namespace", "", "other"), body, actor="x"))
        self.bearers = {name: "Bearer " + self.plane.tokens.issue(name) for name in ("right", "rest", "where", "who")}

    def put(self, kind: str, name: str, namespace: str, **parts: Any) -> None:
        meta = {"name": name, **({"namespace": namespace} if namespace else {})}
        key, backend = Key(GROUP, kind, namespace, name), self.plane.backend
        verb = "create" if backend.store.get(key) is None else "update"
        body = {"apiVersion": RBAC, "kind": kind, "metadata": meta, **parts}
        backend.write_now(Request(verb, key, body, actor="x", now=self.plane.time))

    def grant(self, user: str, rules: list[Any], namespace: str = "") -> None:
        """Exactly these rights, cluster-wide or in one namespace."""
        for where in ("", "default", "other"):
            prefix, wanted = "" if where else "Cluster", rules if where == namespace else []
            if self.given.get((user, where)) == wanted:
                continue
            self.put(f"{prefix}Role", user, where, rules=wanted)
            if (user, where) not in self.given:
                ref = {"apiGroup": GROUP, "kind": f"{prefix}Role", "name": user}
                subjects = [{"kind": "User", "name": user, "apiGroup": GROUP}]
                self.put(f"{prefix}RoleBinding", user, where, roleRef=ref, subjects=subjects)
            self.given[user, where] = wanted

    async def ask(self, case: Case, user: str) -> tuple[int, str]:
        body: Any = [] if "json-patch" in case.content else {}
        path = case.path + ("?fieldManager=me" if "apply" in case.content else "")
        response = await self.plane.send(
            case.method, path, None if case.method == "GET" else body,
            authorization=self.bearers[user], content_type=case.content,
        )  # fmt: skip
        if isinstance(response.body, bytes):
            return response.status, response.body.decode()
        await response.body.aclose()  # type: ignore[attr-defined]
        return response.status, ""


def rule(ask: Ask, *names: str) -> dict[str, Any]:
    resource = f"{ask.resource}/{ask.part}" if ask.part else ask.resource
    parts = {"verbs": [ask.verb], "apiGroups": [ask.group], "resources": [resource]}
    return {**parts, "resourceNames": list(names)} if names else parts


def everything_but(case: Case, groups: Iterable[str]) -> list[Any]:
    """Rules for every verb and resource of these groups but what the case needs."""
    ask = case.ask
    resource = f"{ask.resource}/{ask.part}" if ask.part else ask.resource
    others = [name for name in case.kinds if name != resource]
    return [
        {"verbs": [verb for verb in VERBS if verb != ask.verb], "apiGroups": [ask.group], "resources": [resource]},
        {"verbs": ["*"], "apiGroups": [group for group in groups if group != ask.group], "resources": ["*"]},
        *([{"verbs": ["*"], "apiGroups": [ask.group], "resources": others}] if others else []),
    ]


async def judge(users: Users, case: Case, groups: Iterable[str]) -> None:
    """Only who has the right that a request needs, where it is needed, gets past authorization."""
    ask = case.ask
    home = ask.namespace if ask.namespace == "default" else ""

    def grant_others() -> None:
        users.grant("rest", everything_but(case, groups))
        users.grant("where", [rule(ask)], "other") if home else None
        users.grant("who", [rule(ask, "another")])

    users.grant("right", [rule(ask)], home)
    grant_others()
    code, body = await users.ask(case, "right")
    assert code not in (401, 405, 500) and "cannot " + ask.verb not in body, (case, code, body)
    if ask.resource in OPEN:
        return
    if ask.group == GROUP and ask.verb == "deletecollection":  # it took what was granted with it
        users.given.clear()
        grant_others()
    for user in ("rest", "who", *(["where"] if home else [])):
        code, body = await users.ask(case, user)
        wanted = ask.refusal(user).replace('"', '\\"')
        assert code == 403 and wanted in body, (case, user, code, body)
