"""The app: who may ask, which paths there are, and that every failure is a Status."""

import asyncio
import logging
import threading

import pytest

from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.serve.credentials.tls import Authority
from steersman.serve.health import BLOCKED, INFORMED, SHUTDOWN, STORAGE, Health, LogFlow
from steersman.serve.message import Headers, Query, Request
from tests.serve.harness import in_loop
from tests.serve.plane import DEPLOYMENTS, PODS, Plane, pod


def is_status(answer, code, reason):
    status = answer.json
    assert (answer.code, status["kind"], status["code"], status["reason"]) == (code, "Status", code, reason), answer
    return status


# -- who


@pytest.mark.parametrize("path", ["/version", "/api", "/apis", "/openapi/v3", PODS, "/nothing", "/readyz?verbose", "/"])
@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic YTpi", "Bearer"])
@in_loop
async def test_nobody_is_anonymous(path, header):
    answer = await Plane().ask("GET", path, authorization=header)
    is_status(answer, 401, "Unauthorized")
    assert answer.header("www-authenticate") == "Bearer"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/"])
@in_loop
async def test_health_is_told_to_all(path):
    assert (await Plane().get(path, authorization="")).body == b"ok"


@in_loop
async def test_health_in_detail():
    answer = await Plane().get("/readyz?verbose")
    assert answer.body == (
        b"[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n[+]shutdown ok\n"
        b"readyz check passed\n"
    )
    for path in ("/livez/ping", "/livez/etcd", "/readyz/etcd-readiness", "/readyz?exclude=etcd", "/healthz/etcd"):
        assert (await Plane().get(path)).body == b"ok"
    await Plane().get("/livez/etcd-readiness", code=404)


def test_readiness_waits_for_the_controllers_and_ends_before_the_server():
    wrong = {INFORMED: "not yet", SHUTDOWN: "process is shutting down"}
    health = Health({name: lambda name=name: wrong[name] for name in wrong})

    def asked(name, *rest):
        return health.answer(name, [*rest], Query("")).body.decode()

    assert asked("livez") == "ok" and asked("livez", INFORMED) == "404 page not found\n"
    assert "[-]informer-sync failed" in asked("readyz") and "[-]shutdown failed" in asked("readyz")
    assert asked("readyz", SHUTDOWN) == "internal server error: process is shutting down\n"
    wrong.update({INFORMED: "", SHUTDOWN: ""})
    assert asked("readyz") == "ok" and asked("readyz", "log") == "ok"


def test_a_log_that_takes_no_lines_is_noticed():
    now, handler = [0.0], logging.StreamHandler()
    flow = LogFlow(lambda: now[0])
    logging.getLogger().addHandler(handler)
    stuck, free = threading.Event(), threading.Event()

    def write():
        with handler.lock:
            stuck.set()
            free.wait(10)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert stuck.wait(10) and flow() == ""
        now[0] = BLOCKED
        assert flow() == "logging blocked"
        free.set()
        writer.join()
        assert flow() == ""
    finally:
        free.set()
        logging.getLogger().removeHandler(handler)


def test_who_keeps_the_objects_is_asked_by_its_name_in_kubernetes():
    wrong = ["the disk is full"]
    health = Health({STORAGE: lambda: wrong[0]})

    def asked(path, query=""):
        name, *rest = path.split("/")
        answer = health.answer(name, rest, Query(query))
        return answer.status, answer.body.decode()

    assert asked("livez/etcd") == (500, "internal server error: the disk is full\n")
    lines = "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n[-]journal failed: reason withheld\n"
    assert asked("livez") == (500, f"{lines}livez check failed\n")
    assert asked("livez", "exclude=etcd&exclude=journal") == (200, "ok")
    code, text = asked("readyz", "verbose&exclude=etcd&exclude=nope")
    assert code == 500 and "[+]etcd excluded: ok\n" in text and "[-]etcd-readiness failed" in text
    assert 'warn: some health checks cannot be excluded: no matches for "nope"\n' in text
    wrong[0] = ""
    assert asked("readyz") == (200, "ok") and asked("readyz/etcd-readiness") == (200, "ok")
    assert asked("livez/a/b")[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        *[("HEAD", path, 405) for path in ("/version", "/api", "/api/v1", "/apis/apps/v1", "/openid/v1/jwks")],
        *[("HEAD", path, 200) for path in ("/", "/apis", "/apis/apps", "/metrics", "/openapi/v3", "/livez")],
        *[("POST", path, 405) for path in ("/version", "/api", "/apis/apps/v1")],
        *[("POST", path, 200) for path in ("/livez", "/livez/ping", "/apis", "/openapi/v3")],
        *[(method, "/nothing", 404) for method in ("HEAD", "POST", "DELETE")],
        ("HEAD", PODS, 405),
    ],
)
@in_loop
async def test_methods_of_documents(method, path, code):
    """As kube-apiserver 1.36 answers them."""
    answer = await Plane().ask(method, path)
    assert answer.code == code


@in_loop
async def test_others_than_masters_are_forbidden():
    plane = Plane()
    bearer = "Bearer " + plane.tokens.issue("bob", ["developers"])
    status = is_status(await plane.get(PODS, code=403, authorization=bearer), 403, "Forbidden")
    assert status["message"] == (
        'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    answer = await plane.ask("DELETE", DEPLOYMENTS + "/web", authorization=bearer)
    assert (
        'deployments.apps "web" is forbidden: User "bob" cannot delete'
        in is_status(answer, 403, "Forbidden")["message"]
    )
    assert (await plane.get("/api", authorization=bearer)).json["kind"] == "APIVersions"  # system:discovery
    metrics = is_status(await plane.get("/metrics", code=403, authorization=bearer), 403, "Forbidden")
    assert metrics["message"] == 'forbidden: User "bob" cannot get path "/metrics"'


@in_loop
async def test_a_client_certificate_names_its_user(tmp_path):
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    plane = Plane()
    authority = Authority.open(tmp_path / "pki")

    async def ask(user, groups, **headers):
        pem = authority.client(user, groups).certificate
        der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
        request = Request("GET", PODS, PODS, "", Headers(list(headers.items())), peer_certificate=der)
        return (await plane.app(request)).status

    assert await ask("ann", ["system:masters"]) == 200
    assert await ask("ann", ["others"]) == 403
    assert await ask("ann", ["system:masters"], authorization="Bearer wrong") == 401
    plane.time += 10 * 366 * 86_400 * 10**6  # as on a connection that is older than the certificate's end
    assert await ask("ann", ["system:masters"]) == 401


@in_loop
async def test_who_impersonates_has_the_rights_of_the_other_and_no_more():
    status = is_status(await Plane().get(PODS, code=403, impersonate_user="bob"), 403, "Forbidden")
    assert 'User "bob" cannot list resource "pods"' in status["message"]


@in_loop
async def test_the_actor_and_the_manager_of_a_write():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    await plane.post(PODS + "?fieldManager=me", pod("b"))
    managers = [(await plane.get(f"{PODS}/{name}")).json["metadata"]["managedFields"][0]["manager"] for name in "ab"]
    assert managers == ["pytest", "me"], "the User-Agent's beginning, unless the client names itself"


# -- what


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/api/v1/nothings",
        "/apis/apps/v2",
        "/apis/apps/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/a",
        "/api/v1/namespaces/default/pods/a/nothing",
        "/api/v1/namespaces/default/pods/a/status/x",
        "/openapi/v3/apis/nothing/v1",
    ],
)
@in_loop
async def test_unknown_paths(path):
    is_status(await Plane().get(path, code=404), 404, "NotFound")


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/apis/nothing",
        "/apis/nothing/v1/things",
        "/openapi/v1",
        "/apis//v1/pods",
        "/a/b/c/d/e/f/g/h/i/j/k/l",
    ],
)
@in_loop
async def test_paths_where_nobody_is(path):
    answer = await Plane().get(path, code=404)
    assert answer.body == b"404 page not found\n"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/apis/networking.k8s.io/v1beta1/ipaddresses", "use networking.k8s.io/v1"),
        ("/api/v1/pods/a", "in namespaces"),
    ],
)
@in_loop
async def test_what_is_not_served_says_why(path, why):
    assert why in (await Plane().get(path, code=404)).json["message"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", PODS),
        ("PATCH", PODS),
        ("POST", PODS + "/a"),
        ("POST", "/api/v1/pods"),
        ("GET", PODS + "/a/binding"),
        ("DELETE", PODS + "/a/status"),
        ("DELETE", "/api/v1/namespaces"),
        ("OPTIONS", PODS),
        ("HEAD", PODS),
        ("POST", "/version"),
    ],
)
@in_loop
async def test_methods_that_there_are_not(method, path):
    is_status(await Plane().ask(method, path, pod()), 405, "MethodNotAllowed")


@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/api/v1/namespaces/", "/api/v1//namespaces"])
@in_loop
async def test_trailing_slashes(path):
    names = [item["metadata"]["name"] for item in (await Plane().get(path)).json["items"]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


@in_loop
async def test_namespaces_are_objects_and_places():
    plane = Plane()
    assert (await plane.get("/api/v1/namespaces/default")).json["kind"] == "Namespace"
    assert (await plane.get("/api/v1/namespaces/default/status")).json["kind"] == "Namespace"
    assert (await plane.get("/api/v1/namespaces/default/configmaps")).json["kind"] == "ConfigMapList"


@in_loop
async def test_an_encoded_slash_is_part_of_a_name():
    answer = await Plane().get(PODS + "/a%2Fstatus", code=404)
    assert answer.json["details"]["name"] == "a/status"


@in_loop
async def test_a_custom_kind_is_served_as_soon_as_it_is_registered():
    plane = Plane()
    path = "/apis/example.com/v1/namespaces/default/widgets"
    await plane.get(path, code=404)
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                        }
                    },
                }
            ],
        },
    }
    kind = Kinds.custom_from_yaml_dict(crd, "test")
    plane.backend.api = Api(plane.backend.api.kinds.with_custom(kind))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    await plane.post(path, widget)
    assert (await plane.get(path)).json["items"][0]["spec"] == {"size": 3}
    rows = (await plane.get("/apis/example.com/v1")).json["resources"]
    assert rows[0]["name"] == "widgets" and rows[0]["shortNames"] == ["wd"]
    schemas = (await plane.get("/openapi/v3/apis/example.com/v1")).json["components"]["schemas"]
    assert schemas["com.example.v1.Widget"]["properties"]["spec"]["properties"]["size"] == {"type": "integer"}


# -- failures


@in_loop
async def test_a_fault_of_ours_is_a_status_without_a_traceback(caplog):
    plane = Plane()

    async def broken(request, large=False):
        raise ZeroDivisionError("secret")

    plane.backend.write = broken
    answer = await plane.post(PODS, pod(), code=500)
    is_status(answer, 500, "InternalError")
    assert b"secret" not in answer.body and "ZeroDivisionError" in caplog.text


@in_loop
async def test_cancellation_passes_through():
    plane = Plane()

    async def slow(request, large=False):
        await asyncio.sleep(60)

    plane.backend.write = slow
    task = asyncio.create_task(plane.post(PODS, pod()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_loop
async def test_a_query_of_a_thousand_parameters_is_refused():
    is_status(await Plane().get(PODS + "?" + "a=1&" * 1001, code=400), 400, "BadRequest")


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/yaml", 200),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", 406),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/vnd.kubernetes.protobuf, */*", 200),
        ("*/*", 200),
        ("", 200),
        ("application/json;q=0, application/*;q=0.1", 406),
    ],
)
@in_loop
async def test_what_is_accepted(accept, code):
    await Plane().get(PODS, code=code, accept=accept)


@in_loop
async def test_nothing_is_written_when_the_answer_could_not_be_read():
    plane = Plane()
    is_status(await plane.post(PODS, pod(), code=406, accept="text/csv"), 406, "NotAcceptable")
    await plane.get(PODS + "/a", code=404)
