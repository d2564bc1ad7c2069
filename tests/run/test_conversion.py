"""Conversion webhooks over real HTTPS: the versions of a kind that another program converts."""

from __future__ import annotations

import asyncio
import base64
import json
import time

import pytest

from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.run.head import Heads
from steersman.serve.credentials.tls import Authority
from steersman.serve.hooks import Hooks
from tests.run.plane import memory
from tests.run.test_webhook import Hook
from tests.serve.plane import Plane

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1 = "/apis/example.com/v1/namespaces/default/widgets"
V2 = "/apis/example.com/v2/namespaces/default/widgets"
SIZES = {"v1": "replicas", "v2": "size"}
"""v1 counts spec.replicas, v2 calls the same spec.size."""
NAME = "widgets.example.com"


class Converter(Hook):
    """Renames the field; tests replace `convert`."""

    @staticmethod
    def wrapped(review, response):
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
        return {**kind, "response": {"uid": review["request"]["uid"], **response}}


def convert(review):
    request = review["request"]
    wanted = request["desiredAPIVersion"]
    objects = [renamed(obj, wanted) for obj in request["objects"]]
    return {"convertedObjects": objects, "result": {"status": "Success"}}


def renamed(obj, wanted):
    was, now = SIZES[obj["apiVersion"].rpartition("/")[2]], SIZES[wanted.rpartition("/")[2]]
    spec = dict(obj.get("spec") or {})
    if was in spec:
        spec[now] = spec.pop(was)
    return {**obj, "apiVersion": wanted, "spec": spec}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.open(tmp_path_factory.mktemp("pki") / "ca")


@pytest.fixture
def serve(authority):
    hooks = []

    def start(answer=convert):
        hooks.append(Converter(authority, answer))
        return hooks[-1]

    yield start
    for hook in hooks:
        hook.close()


def definition(hook, authority, storage="v1", **conversion):
    bundle = base64.b64encode(authority.pem.encode() if isinstance(authority.pem, str) else authority.pem).decode()
    webhook = {
        "clientConfig": {"url": f"https://127.0.0.1:{hook.port}/convert", "caBundle": bundle},
        "conversionReviewVersions": ["v1"],
        **conversion,
    }
    versions = []
    for name, field in SIZES.items():
        fields = {field: {"type": "integer"}, "colour": {"type": "string"}, "parts": {"type": "integer", "default": 1}}
        if name == "v2":
            del fields["parts"]
        spec = {"type": "object", "properties": fields}
        status = {"type": "object", "properties": {"ready": {"type": "integer"}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
        parts = {"specReplicasPath": f".spec.{field}", "statusReplicasPath": ".status.ready"}
        versions.append(
            {
                "name": name,
                "served": True,
                "storage": name == storage,
                "schema": schema,
                "subresources": {"status": {}, "scale": parts},
                "selectableFields": [{"jsonPath": f".spec.{field}"}],
            }
        )
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": versions,
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": NAME}, "spec": spec}


def widget(api="v1", name="w", **spec):
    return {"apiVersion": f"example.com/{api}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def stored(plane, name="w"):
    return plane.backend.store.get(Key("example.com", "Widget", "default", name))


@pytest.fixture
def play(authority):
    """Runs a coroutine function of a plane that has the definition of widgets."""

    def run(act, hook, storage="v1", **conversion):
        async def main():
            plane = Plane()
            await plane.post(CRDS, definition(hook, authority, storage, **conversion), code=201)
            return await act(plane)

        return asyncio.run(asyncio.wait_for(main(), 30))

    return run


def test_writes_and_reads_in_either_version(play, serve):
    hook = serve()

    async def act(plane):
        made = (await plane.post(V2, widget("v2", size=3, colour="red"), code=201)).json
        assert (made["apiVersion"], made["spec"]) == ("example.com/v2", {"size": 3, "colour": "red"})
        assert stored(plane).api_version == "example.com/v1"
        assert stored(plane).value["spec"] == {"replicas": 3, "colour": "red"}
        assert (await plane.get(f"{V1}/w")).json["spec"] == {"replicas": 3, "colour": "red", "parts": 1}
        body = (await plane.get(f"{V2}/w")).json
        body["spec"]["size"] = 4
        assert (await plane.ask("PUT", f"{V2}/w", body, 200)).json["spec"]["size"] == 4
        merge = {"content_type": "application/merge-patch+json"}
        patched = await plane.ask("PATCH", f"{V2}/w", {"spec": {"colour": "blue"}}, 200, **merge)
        assert patched.json["spec"] == {"size": 4, "colour": "blue"} and patched.json["metadata"]["generation"] == 3
        assert stored(plane).value["spec"] == {"replicas": 4, "colour": "blue"}
        status = await plane.ask("PATCH", f"{V2}/w/status", {"status": {"ready": 4}}, 200, **merge)
        assert status.json["status"] == {"ready": 4}
        scale = (await plane.get(f"{V2}/w/scale")).json
        assert (scale["spec"], scale["status"]["replicas"]) == ({"replicas": 4}, 4)
        scale["spec"]["replicas"] = 7
        assert (await plane.ask("PUT", f"{V2}/w/scale", scale, 200)).json["spec"] == {"replicas": 7}
        assert stored(plane).value["spec"]["replicas"] == 7
        assert (await plane.ask("DELETE", f"{V2}/w", None, 200)).json["status"] == "Success"

    play(act, hook)
    request = hook.reviews[0]["request"]
    assert hook.reviews[0]["apiVersion"] == "apiextensions.k8s.io/v1" and hook.paths[0] == "/convert"
    assert request["desiredAPIVersion"] == "example.com/v1" and len(request["objects"]) == 1
    sent = request["objects"][0]
    assert sent["spec"] == {"size": 3, "colour": "red"} and "resourceVersion" not in sent["metadata"]
    assert sent["metadata"]["managedFields"][0]["apiVersion"] == "example.com/v2"


def test_what_needs_no_conversion_asks_nobody(play, serve):
    hook = serve()

    async def act(plane):
        await plane.post(V1, widget(replicas=1), code=201)
        await plane.get(f"{V1}/w")
        await plane.get(V1)
        await plane.ask("DELETE", f"{V1}/w", None, 200)

    play(act, hook)
    assert hook.reviews == []


def test_lists_are_converted_in_batches_and_remembered(play, serve):
    hook = serve()

    async def act(plane):
        for number in range(450):
            await plane.post(V1, widget(name=f"w{number:03}", replicas=number), code=201)
        found = (await plane.get(V2)).json
        assert [item["spec"]["size"] for item in found["items"]] == list(range(450))
        assert {item["apiVersion"] for item in found["items"]} == {"example.com/v2"}
        assert [len(review["request"]["objects"]) for review in hook.reviews] == [200, 200, 50]
        page = (await plane.get(f"{V2}?limit=3")).json
        assert len(page["items"]) == 3 and page["metadata"]["remainingItemCount"] == 447
        one = (await plane.get(f"{V2}?fieldSelector=spec.size%3D7")).json
        assert [item["metadata"]["name"] for item in one["items"]] == ["w007"]
        assert len(hook.reviews) == 3  # the same objects in the same version: nobody is asked again

    play(act, hook)


def test_a_watch_tells_events_in_its_version(play, serve):
    hook = serve()

    async def act(plane):
        await plane.post(V1, widget(replicas=1), code=201)
        watches = [await plane.send("GET", f"{V2}?watch=1&timeoutSeconds=1") for _ in range(2)]
        chosen = await plane.send("GET", f"{V2}?watch=1&timeoutSeconds=1&fieldSelector=spec.size%3D2")

        async def told(response):
            return [json.loads(line) async for chunk in response.body for line in chunk.splitlines()]

        reading = [asyncio.create_task(told(response)) for response in (*watches, chosen)]
        await asyncio.sleep(0.2)
        merge = {"content_type": "application/merge-patch+json"}
        await plane.ask("PATCH", f"{V1}/w", {"spec": {"replicas": 2}}, 200, **merge)
        await plane.ask("DELETE", f"{V1}/w", None, 200)
        first, second, third = [await one for one in reading]
        shown = [(event["type"], event["object"]["spec"]["size"]) for event in first]
        assert shown == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)] and first == second
        assert [(event["type"], event["object"]["spec"]["size"]) for event in third] == [("ADDED", 2), ("DELETED", 2)]

    play(act, hook)
    assert len(hook.reviews) == 2  # once for each version of the object, not for each watch


def test_a_watch_ends_when_its_objects_cannot_be_shown(play, serve):
    hook = serve(lambda review: {"result": {"status": "Failure", "message": "no idea"}})

    async def act(plane):
        await plane.post(V1, widget(replicas=1), code=201)
        response = await plane.send("GET", f"{V2}?watch=1&timeoutSeconds=1")
        (event,) = [json.loads(line) async for chunk in response.body for line in chunk.splitlines()]
        assert event["type"] == "ERROR" and event["object"]["code"] == 500
        assert event["object"]["message"].endswith("Kind=Widget failed: no idea")

    play(act, hook)


BAD = {
    "failed: no idea": lambda review: {"result": {"status": "Failure", "message": "no idea"}},
    "failed: response.result.status was 'Failure', not 'Success'": lambda review: {"result": {"status": "Failure"}},
    "failed: response.result.status was '', not 'Success'": lambda review: {},
    "returned 0 objects, expected 1": lambda review: {"result": {"status": "Success"}, "convertedObjects": []},
    "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)": (
        lambda review: changed(review, lambda obj: obj.update(apiVersion="example.com/v1"))
    ),
    "returned invalid object at index 0: invalid kind (expected Widget, received Other)": (
        lambda review: changed(review, lambda obj: obj.update(kind="Other"))
    ),
    "returned invalid object: must have the same name: w != x": (
        lambda review: changed(review, lambda obj: obj["metadata"].update(name="x"))
    ),
    "returned invalid object: must have the same UID: ": (
        lambda review: changed(review, lambda obj: obj["metadata"].pop("uid"))
    ),
    "returned invalid metadata: metadata.labels[a] must be a string": (
        lambda review: changed(review, lambda obj: obj["metadata"].update(labels={"a": 1}))
    ),
    "returned invalid metadata: metadata.labels: Invalid value": (
        lambda review: changed(review, lambda obj: obj["metadata"].update(labels={"a": "no label!"}))
    ),
    'failed: expected response.uid="': lambda review: {**convert(review), "uid": "another"},
    "failed: couldn't get version/kind; json parse error": lambda review: b"nonsense",
    "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got v1, Kind=Pod": (
        lambda review: json.dumps(
            {"apiVersion": "v1", "kind": "Pod", "response": {"uid": review["request"]["uid"]}}
        ).encode()
    ),
    "failed: no response provided": (
        lambda review: b'{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}'
    ),
}


def changed(review, change):
    answer = convert(review)
    answer["convertedObjects"] = json.loads(json.dumps(answer["convertedObjects"]))
    change(answer["convertedObjects"][0])
    return answer


@pytest.mark.parametrize("text", BAD)
def test_what_is_wrong_with_an_answer_is_told(play, serve, text):
    hook = serve(BAD[text])

    async def act(plane):
        await plane.post(V1, widget(replicas=1), code=201)
        status = (await plane.get(f"{V2}/w", code=500)).json
        assert status["message"].startswith("conversion webhook for example.com/v1, Kind=Widget ")
        assert text in status["message"] and "reason" not in status, status
        assert (await plane.get(V2, code=500)).json["message"] == status["message"] or "uid" in text
        refused = await plane.ask("PUT", f"{V2}/w", widget("v2", size=2), 500)
        assert "conversion webhook for example.com/v" in refused.json["message"]
        assert stored(plane).value["spec"]["replicas"] == 1

    play(act, hook)


def test_metadata_stays_but_for_labels_and_annotations(play, serve):
    def change(obj):
        obj["metadata"].update(
            labels={"added": "yes"}, annotations={"from": "v1"}, finalizers=["example.com/no"], generation=99
        )
        obj["metadata"].pop("managedFields")
        obj["status"] = {"ready": 3, "undeclared": True}

    hook = serve(lambda review: changed(review, change))

    async def act(plane):
        await plane.post(V1, widget(replicas=1), code=201)
        found = (await plane.get(f"{V2}/w")).json
        meta = found["metadata"]
        assert (meta["labels"], meta["annotations"]) == ({"added": "yes"}, {"from": "v1"})
        assert meta["generation"] == 1 and "finalizers" not in meta and meta["managedFields"]
        assert meta["resourceVersion"] == str(stored(plane).rv)
        assert found["status"] == {"ready": 3}
        assert "labels" not in stored(plane).meta.value

    play(act, hook)


def test_the_storage_version_migrates_by_writes_that_change_nothing(play, serve, authority):
    hook = serve()

    async def act(plane):
        await plane.post(V1, widget(replicas=1), code=201)
        merge = {"content_type": "application/merge-patch+json"}
        moved = {"spec": {"versions": definition(hook, authority, "v2")["spec"]["versions"]}}
        crd = (await plane.ask("PATCH", f"{CRDS}/{NAME}", moved, 200, **merge)).json
        assert crd["status"]["storedVersions"] == ["v1", "v2"]
        assert stored(plane).api_version == "example.com/v1"
        for path in (V1, V2):
            await plane.ask("PATCH", f"{path}/w", {}, 200, **merge)
            assert stored(plane).api_version == "example.com/v2"
        assert stored(plane).value["spec"]["size"] == 1
        assert (await plane.get(f"{V1}/w")).json["spec"]["replicas"] == 1

    play(act, hook)


APPLY = {"content_type": "application/apply-patch+yaml"}


def managers(obj):
    return {
        entry["manager"]: (entry["apiVersion"], sorted(entry["fieldsV1"]["f:spec"]))
        for entry in obj["metadata"]["managedFields"]
        if "f:spec" in entry["fieldsV1"]
    }


def test_ownership_is_kept_up_across_versions(play, serve):
    hook = serve()

    async def apply(plane, path, manager, code=200, force="", **spec):
        api = path.split("/")[3]
        target = f"{path}/w?fieldManager={manager}{force}"
        return (await plane.ask("PATCH", target, widget(api, **spec), code, **APPLY)).json

    async def act(plane):
        await apply(plane, V1, "one", 201, replicas=1, colour="red")
        assert (await apply(plane, V2, "two", size=1))["spec"]["size"] == 1
        refused = await apply(plane, V2, "two", 409, size=2)
        assert refused["details"]["causes"][0]["field"] == ".spec.replicas"
        assert 'conflict with "one"' in refused["message"], refused
        forced = await apply(plane, V2, "two", force="&force=true", size=2)
        assert managers(forced) == {"one": ("example.com/v1", ["f:colour"]), "two": ("example.com/v2", ["f:size"])}
        shared = await apply(plane, V1, "one", replicas=2, colour="red")
        assert managers(shared)["one"] == ("example.com/v1", ["f:colour", "f:replicas"])
        given_up = await apply(plane, V1, "one", colour="red")  # two still owns it, under its other name
        assert given_up["spec"] == {"replicas": 2, "colour": "red", "parts": 1}
        moved = await apply(plane, V2, "one", colour="red")
        assert managers(moved) == {"one": ("example.com/v2", ["f:colour"]), "two": ("example.com/v2", ["f:size"])}
        gone = await apply(plane, V1, "two", colour="red")  # applied as size in v2; nobody else wants it
        assert gone["spec"] == {"colour": "red", "parts": 1}
        await apply(plane, V2, "one", colour="red", size=5)
        merge = {"content_type": "application/merge-patch+json"}
        edited = await plane.ask("PATCH", f"{V1}/w?fieldManager=ed", {"spec": {"replicas": 6}}, 200, **merge)
        assert managers(edited.json) == {
            "one": ("example.com/v2", ["f:colour"]),
            "two": ("example.com/v1", ["f:colour"]),
            "ed": ("example.com/v1", ["f:replicas"]),
        }

    play(act, hook)


def test_the_review_of_old(play, serve):
    def answer(review):
        response = {"uid": "", **convert(review)}
        return json.dumps(
            {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}
        ).encode()

    hook = serve(answer)

    async def act(plane):
        await plane.post(V1, widget(replicas=1), code=201)
        assert (await plane.get(f"{V2}/w")).json["spec"]["size"] == 1

    play(act, hook, conversionReviewVersions=["v7", "v1beta1"])
    assert hook.reviews[0]["apiVersion"] == "apiextensions.k8s.io/v1beta1"


def test_a_webhook_that_does_not_answer_times_out(play, serve, monkeypatch):
    hook = serve(lambda review: time.sleep(1.5) or convert(review))
    monkeypatch.setattr("steersman.api.crd.conversion.MAX_TIMEOUT", 1)

    async def act(plane):
        await plane.post(V1, widget(replicas=1), code=201)
        status = (await plane.get(f"{V2}/w", code=500)).json
        where = f"https://127.0.0.1:{hook.port}/convert"
        assert status["message"].endswith(f'Widget failed: Post "{where}": context deadline exceeded')

    play(act, hook)


def test_a_durable_control_plane_asks_too(serve, authority):
    hook = serve()

    async def main():
        heads = Heads(Api(Kinds.builtin(), admission=standard(controllers=())), memory())
        heads.questions.asking = Hooks()
        heads.start()

        async def send(verb, kind, group, name, body, namespace="", **options):
            key = Key(group, kind, namespace, name)
            return await heads.write(Request(verb, key, body, "", "me", "me", heads.now(), options))

        try:
            await send("create", "Namespace", "", "default", {"metadata": {"name": "default"}})
            crd = definition(hook, authority)
            await send("create", "CustomResourceDefinition", "apiextensions.k8s.io", NAME, crd)
            made = await send("create", "Widget", "example.com", "w", widget("v2", size=1), "default", version="v2")
            assert made.obj.api_version == "example.com/v1" and made.obj.value["spec"]["replicas"] == 1
            body = widget("v2", size=2)
            tasks = [
                send(
                    "patch", "Widget", "example.com", "w", {"spec": {"size": n}}, "default", version="v2", patch="merge"
                )
                for n in (2, 3)
            ]
            await asyncio.gather(*tasks)
            assert heads.store.get(made.obj.key).value["spec"]["replicas"] in (2, 3)
            with pytest.raises(ApiError) as caught:
                body["metadata"]["resourceVersion"] = str(made.obj.rv)
                await send("update", "Widget", "example.com", "w", body, "default", version="v2")
            assert caught.value.code == 409
        finally:
            await heads.close()
            heads.check()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_authorities_that_cannot_be_read(play, serve, authority):
    hook = serve()

    async def act(plane):
        crd = (await plane.get(f"{CRDS}/{NAME}")).json
        client = crd["spec"]["conversion"]["webhook"]["clientConfig"]
        client["caBundle"] = base64.b64encode(b"no certificate").decode()
        told = (await plane.ask("PUT", f"{CRDS}/{NAME}", crd, 422)).json
        assert told["details"]["causes"][0]["field"] == "spec.conversion.webhookClientConfig.caBundle"
        assert "unable to load root certificates" in told["message"]
        crd["metadata"] = {"name": "gadgets.example.com"}
        crd["spec"]["names"] = {"kind": "Gadget", "plural": "gadgets"}
        del crd["status"]
        made = (await plane.post(CRDS, crd, code=201)).json
        conditions = {c["type"]: (c["status"], c["reason"]) for c in made["status"]["conditions"]}
        assert conditions["Established"] == ("False", "InvalidCABundle")

    play(act, hook)
