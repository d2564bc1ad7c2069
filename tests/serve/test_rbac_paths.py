"""Paths that are no resources: who has no right to exactly this path with exactly this method gets nothing."""

from __future__ import annotations

import pytest

from steersman.api.access.rbac import GROUP
from steersman.kernel.effect import Request
from tests.serve.harness import in_loop
from tests.serve.rights import Users

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
HEALTH = ("/healthz", "/livez", "/readyz")
"""Anybody may GET these, without credentials, as they are: load balancers do."""
PATHS = (
    *("/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/nowhere", "/apis/nowhere/v1", "/version"),
    *("/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/logs", "/logs/x", "/debug/pprof/profile"),
    *(
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/nowhere",
        "/healthz/ping",
        "/livez/etcd",
        "/clusters/a",
    ),
    *HEALTH,
)


@pytest.fixture
def users():
    """Users without what Kubernetes grants to everybody who has a name: discovery, health, the version."""
    users = Users()
    backend = users.plane.backend
    for binding in list(backend.store.list((GROUP, "ClusterRoleBinding"))):
        backend.write_now(Request("delete", binding.key, None, actor="x"))
    return users


def on(paths, verbs):
    return [{"verbs": list(verbs), "nonResourceURLs": list(paths)}]


@pytest.mark.parametrize("path", PATHS)
@in_loop
async def test_a_right_to_another_path_or_method_is_no_right(users, path):
    plane, others = users.plane, [other for other in PATHS if other != path]
    target = f"{path}?verbose" if path in HEALTH else path
    for method in METHODS:
        verb = method.lower()
        users.grant("right", on([path], [verb]))
        users.grant("rest", on([path], [each.lower() for each in METHODS if each != method]) + on(others, ["*"]))
        users.grant("who", [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])
        answer = await plane.ask(method, target, authorization=users.bearers["right"])
        assert answer.code not in (401, 403), (method, answer)
        for user in ("rest", "who"):
            answer = await plane.ask(method, target, authorization=users.bearers[user])
            assert answer.code == 403, (method, user, answer)
            assert f'User "{user}" cannot {verb} path "{path}"' in answer.json["message"], answer
        answer = await plane.ask(method, target, authorization="")
        assert answer.code == 401, (method, answer)


@in_loop
async def test_a_star_at_the_end_is_for_what_is_below(users):
    users.grant("right", on(["/healthz/*", "/openapi*"], ["get"]))
    bearer = users.bearers["right"]
    for path in ("/healthz/ping", "/healthz/", "/openapi/v2", "/openapi/v3/api/v1"):
        assert (await users.plane.ask("GET", path, authorization=bearer)).code != 403, path
    for path in ("/healthz?verbose", "/healthy", "/open", "/livez/ping"):
        await users.plane.get(path, code=403, authorization=bearer)
    users.grant("right", on(["*"], ["get"]))
    for path in ("/metrics", "/anything/at/all"):
        assert (await users.plane.ask("GET", path, authorization=bearer)).code != 403
    await users.plane.get("/api/v1/pods", code=403, authorization=bearer)  # a resource is no path


@in_loop
async def test_what_everybody_may_read_who_has_a_name():
    """The default roles: discovery and health, and not what tells of the server."""
    users = Users()
    for path in (
        "/api",
        "/apis",
        "/apis/apps/v1",
        "/openapi/v2",
        "/openapi/v3",
        "/version",
        "/healthz/",
        "/livez?verbose",
    ):
        assert (await users.plane.ask("GET", path, authorization=users.bearers["who"])).code != 403, path
    for path in ("/metrics", "/logs/", "/debug/pprof/", "/clusters/a", "/"):
        await users.plane.get(path, code=403, authorization=users.bearers["who"])
