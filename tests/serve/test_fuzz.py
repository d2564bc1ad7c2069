"""Whatever a client sends, the answer is no fault of the server (5xx) and every error is a Status."""

import asyncio
import json
from urllib.parse import urlencode

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.plane import PARTIAL, TABLE, Plane, configmap, deployment, pod

SEGMENTS = st.sampled_from(
    [
        *(
            "api",
            "apis",
            "v1",
            "apps",
            "namespaces",
            "default",
            "pods",
            "deployments",
            "configmaps",
            "nodes",
            "a",
            "web",
        ),
        *(
            "status",
            "scale",
            "binding",
            "finalize",
            "openapi",
            "v3",
            "version",
            "readyz",
            "%2F",
            "%",
            "..",
            "",
            "é",
            "\x00",
        ),
    ]
)
DEFAULT = "/api/v1/namespaces/default"
WEB = "/apis/apps/v1/namespaces/default/deployments/web"
NOISE = st.lists(SEGMENTS, max_size=8).map(lambda parts: "/" + "/".join(parts))
TARGETS = st.one_of(
    st.tuples(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "LIST", "watch"]), NOISE),
    st.tuples(
        st.just("GET"), st.sampled_from([DEFAULT + "/pods", DEFAULT + "/pods/a", WEB + "/scale", "/api/v1/pods"])
    ),
    st.tuples(st.just("POST"), st.sampled_from([DEFAULT + "/pods", DEFAULT + "/pods/a/binding", "/api/v1/namespaces"])),
    st.tuples(
        st.sampled_from(["PUT", "PATCH", "PATCH"]),
        st.sampled_from(
            [DEFAULT + "/pods/a", DEFAULT + "/pods/a/status", DEFAULT + "/configmaps/a", WEB, WEB + "/scale"]
        ),
    ),
    st.tuples(st.just("PUT"), st.just(DEFAULT + "/finalize")),
    st.tuples(st.just("DELETE"), st.sampled_from([DEFAULT + "/pods/b", DEFAULT + "/pods", "/api/v1/namespaces/n"])),
)
VALUES = st.sampled_from(
    ["", "0", "1", "5", "-1", "true", "All", "Strict", "Exact", "NotOlderThan", "a=b", "!x", "é", "²"]
)
VALUES |= st.text(max_size=8)
NAMES = st.sampled_from(
    [
        *("limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "dryRun"),
        *("fieldManager", "fieldValidation", "force", "gracePeriodSeconds", "propagationPolicy", "sendInitialEvents"),
        *("includeObject", "orphanDependents", "hash", "verbose", "timeout"),
    ]
)
LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PATCHES = [
    "application/strategic-merge-patch+json",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
]
OBJECTS = ["application/json", "application/yaml", ""]
OTHERS = ["", "application/cbor", "text/plain", ";", "é"]
ACCEPTS = st.sampled_from(["application/json", TABLE, PARTIAL, "*/*", ";;,q=,", "application/json;q=x;as,*/*"])


@st.composite
def bodies(draw):
    """Nothing, noise, or an object of ours with one place replaced by something else."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.binary(max_size=20))
    if kind == 1:
        return json.dumps(draw(JSON)).encode()
    body = draw(
        st.sampled_from([pod(), configmap("a", x="1"), deployment(), {"metadata": {}, "target": {}, "spec": {}}])
    )
    body = json.loads(json.dumps(body))
    place = body
    while isinstance(place, dict | list) and place:
        key = draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else draw(st.integers(0, len(place) - 1))
        if draw(st.booleans()):
            place[key] = draw(JSON)
            break
        place = place[key]
    return json.dumps(body).encode()


@settings(max_examples=400, deadline=None)
@given(TARGETS, st.lists(st.tuples(NAMES, VALUES), max_size=2), st.data(), ACCEPTS, bodies())
def test_no_request_is_a_fault_of_the_server(target, pairs, data, accept, body):
    method, path = target
    fitting = PATCHES if method == "PATCH" else OBJECTS
    media = data.draw(st.sampled_from(fitting * 4 + OTHERS))
    if media == PATCHES[2] and data.draw(st.booleans()):
        pairs = [*pairs, ("fieldManager", "fuzz"), ("force", "1")]
    query = urlencode(pairs, errors="surrogatepass")
    answer = asyncio.run(PLANES[0].ask(method, f"{path}?{query}", body, content_type=media, accept=accept))
    assert answer.code < 500 or answer.code == 504, (method, path, pairs, media, body, answer)
    if answer.code >= 400 and answer.body != b"404 page not found\n":  # Go's words for a path that is nowhere
        status = answer.json
        assert status["kind"] == "Status" and status["code"] == answer.code


def a_plane():
    plane = Plane()

    async def fill():
        await plane.post("/api/v1/namespaces/default/pods", pod())
        await plane.post("/api/v1/namespaces/default/configmaps", configmap("a", x="1"))
        await plane.post("/apis/apps/v1/namespaces/default/deployments", deployment())

    asyncio.run(fill())
    return plane


# One plane for all examples: what earlier ones wrote is more to stumble over.
PLANES = [a_plane()]
