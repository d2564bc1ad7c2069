"""Writes over HTTP: create, update, patch, apply, delete, and the subresources."""

import asyncio

import pytest

from tests.serve.harness import in_loop
from tests.serve.plane import DEPLOYMENTS, PODS, Plane, configmap, deployment, pod

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@in_loop
async def test_create_get_update_delete():
    plane = Plane()
    made = (await plane.post(CONFIGMAPS, configmap("a", x="1"))).json
    assert made["data"] == {"x": "1"} and made["metadata"]["uid"]
    assert (await plane.get(CONFIGMAPS + "/a")).json == made
    changed = (await plane.put(CONFIGMAPS + "/a", {**made, "data": {"x": "2"}})).json
    assert changed["data"] == {"x": "2"}
    stale = await plane.put(CONFIGMAPS + "/a", {**made, "data": {"x": "3"}}, code=409)
    assert stale.json["reason"] == "Conflict"
    gone = (await plane.delete(CONFIGMAPS + "/a")).json
    assert gone["status"] == "Success"
    assert gone["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    await plane.get(CONFIGMAPS + "/a", code=404)
    await plane.delete(CONFIGMAPS + "/a", code=404)


@in_loop
async def test_create_again_is_a_conflict():
    plane = Plane()
    await plane.post(PODS, pod())
    assert (await plane.post(PODS, pod(), code=409)).json["reason"] == "AlreadyExists"


@in_loop
async def test_generate_name():
    body = pod()
    body["metadata"] = {"generateName": "job-"}
    name = (await Plane().post(PODS, body)).json["metadata"]["name"]
    assert name.startswith("job-") and len(name) == 9


@in_loop
async def test_the_wrong_place():
    plane = Plane()
    await plane.post("/api/v1/namespaces/nowhere/pods", pod(), code=404)
    await plane.post(PODS, pod(namespace="other"), code=400)
    await plane.post(PODS, configmap("a"), code=400)
    await plane.post(PODS, [1], code=400)


@in_loop
async def test_dry_run_writes_nothing():
    plane = Plane()
    assert (await plane.post(PODS + "?dryRun=All", pod())).json["metadata"]["name"] == "a"
    await plane.get(PODS + "/a", code=404)
    await plane.post(PODS, pod())
    await plane.delete(PODS + "/a?dryRun=All")
    await plane.delete(PODS + "/a", {"dryRun": ["All"]})
    await plane.get(PODS + "/a")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("dryRun=Some", "dryRun"),
        ("fieldValidation=strict", "fieldValidation"),
        ("fieldManager=" + "x" * 129, "fieldManager"),
        ("fieldManager=a%00b", "fieldManager"),
    ],
)
@in_loop
async def test_wrong_options(query, field):
    answer = await Plane().post(f"{PODS}?{query}", pod(), code=422)
    assert answer.json["details"]["causes"][0]["field"] == field


@pytest.mark.parametrize(("level", "code"), [("Strict", 400), ("Warn", 201), ("", 201), ("Ignore", 201)])
@in_loop
async def test_unknown_and_duplicate_fields(level, code):
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"nosuch":1,"data":{"k":"1","k":"2"}}'
    answer = await Plane().post(f"{CONFIGMAPS}?fieldValidation={level}", body, code=code)
    if code == 400:
        assert (
            "strict decoding error" in answer.json["message"] and 'duplicate field "data.k"' in answer.json["message"]
        )
        return
    assert answer.json["data"] == {"k": "2"} and "nosuch" not in answer.json
    warned = answer.header("warning")
    if level == "Ignore":
        assert "duplicate" not in warned
    else:
        assert warned == '299 - "duplicate field \\"data.k\\"", 299 - "unknown field \\"nosuch\\""'


@in_loop
async def test_merge_and_json_patch():
    plane = Plane()
    await plane.post(CONFIGMAPS, configmap("a", x="1", y="1"))
    path = CONFIGMAPS + "/a"
    assert (await plane.merge(path, {"data": {"x": None, "z": "3"}})).json["data"] == {"y": "1", "z": "3"}
    steps = [{"op": "test", "path": "/data/y", "value": "1"}, {"op": "remove", "path": "/data/y"}]
    json_patch = {"content_type": "application/json-patch+json"}
    assert (await plane.ask("PATCH", path, steps, 200, **json_patch)).json["data"] == {"z": "3"}
    assert (await plane.ask("PATCH", path, steps, 422, **json_patch)).json["reason"] == "Invalid"
    await plane.merge(CONFIGMAPS + "/b", {"data": {}}, code=404)


@pytest.mark.parametrize(
    ("media", "advice"),
    [
        ("application/json", "accepted media types include"),
        ("", "accepted media types include"),
    ],
)
@in_loop
async def test_patches_that_are_not_read(media, advice):
    plane = Plane()
    await plane.post(PODS, pod())
    answer = await plane.ask("PATCH", PODS + "/a", {}, 415, content_type=media)
    assert answer.json["reason"] == "UnsupportedMediaType" and advice in answer.json["message"]


@in_loop
async def test_server_side_apply():
    plane = Plane()
    path = DEPLOYMENTS + "/web?fieldManager="
    made = await plane.apply(path + "one", deployment(), code=201)
    assert made.json["metadata"]["managedFields"][0]["operation"] == "Apply"
    again = await plane.apply(path + "one", deployment())
    assert again.json["metadata"]["resourceVersion"] == made.json["metadata"]["resourceVersion"]
    clash = await plane.apply(path + "two", deployment(replicas=5), code=409)
    assert clash.json["details"]["causes"][0]["field"] == ".spec.replicas"
    forced = await plane.apply(path + "two&force=true", deployment(replicas=5))
    assert forced.json["spec"]["replicas"] == 5


@in_loop
async def test_apply_needs_a_manager_and_others_no_force():
    plane = Plane()
    answer = await plane.apply(DEPLOYMENTS + "/web", deployment(), code=422)
    assert answer.json["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )
    await plane.merge(DEPLOYMENTS + "/web?force=true", {}, code=422)


@in_loop
async def test_apply_reads_yaml():
    plane = Plane()
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: 'yes'}\n"
    answer = await plane.apply(CONFIGMAPS + "/a?fieldManager=m", text, code=201)
    assert answer.json["data"] == {"k": "yes"}
    flow = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: v}}"
    assert (await plane.apply(CONFIGMAPS + "/b?fieldManager=m", flow, code=201)).json["data"] == {"k": "v"}


@in_loop
async def test_status_is_apart():
    plane = Plane()
    await plane.post(PODS, pod())
    body = {"status": {"phase": "Running"}, "spec": {"containers": []}}
    changed = (await plane.merge(PODS + "/a/status", body)).json
    assert changed["status"]["phase"] == "Running" and changed["spec"]["containers"]
    assert changed["metadata"]["managedFields"][-1]["subresource"] == "status"
    await plane.merge(PODS + "/a", {"status": {"phase": "Failed"}})
    assert (await plane.get(PODS + "/a/status")).json["status"]["phase"] == "Running"
    whole = (await plane.get(PODS + "/a")).json
    whole["status"]["phase"] = "Succeeded"
    assert (await plane.put(PODS + "/a/status", whole)).json["status"]["phase"] == "Succeeded"


@in_loop
async def test_binding():
    plane = Plane()
    await plane.post(PODS, pod())
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "n1"},
    }
    assert (await plane.post(PODS + "/a/binding", binding)).json["status"] == "Success"
    assert (await plane.get(PODS + "/a")).json["spec"]["nodeName"] == "n1"
    await plane.post(PODS + "/a/binding", binding, code=409)
    await plane.post(PODS + "/a/binding", {**binding, "metadata": {"name": "b"}}, code=400)
    await plane.post(PODS + "/b/binding", {**binding, "metadata": {"name": "b"}}, code=404)
    await plane.post(PODS + "/a/binding", {**binding, "metadata": 3}, code=400)


@in_loop
async def test_a_bound_pod_dies_slowly():
    plane = Plane()
    await plane.post(PODS, pod())
    await plane.post(PODS + "/a/binding", {"target": {"name": "n1"}})
    marked = (await plane.delete(PODS + "/a", {"gracePeriodSeconds": 5})).json
    assert marked["kind"] == "Pod" and marked["metadata"]["deletionGracePeriodSeconds"] == 5
    await plane.get(PODS + "/a")
    for text in ("%C2%B2", "soon", "9" * 30):
        await plane.delete(PODS + f"/a?gracePeriodSeconds={text}", code=400)
    assert (await plane.delete(PODS + "/a?gracePeriodSeconds=0")).json["kind"] == "Pod"
    await plane.get(PODS + "/a", code=404)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"preconditions": {"uid": "wrong"}}, 409),
        ({"preconditions": {"resourceVersion": "1"}}, 409),
        ({"propagationPolicy": "Sideways"}, 422),
        ({"propagationPolicy": "Background", "orphanDependents": True}, 422),
        ({"gracePeriodSeconds": "5"}, 400),
        ({"kind": "Pod"}, 400),
        ([], 400),
        ({"dryRun": ["No"]}, 422),
        ({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}, 200),
    ],
)
@in_loop
async def test_delete_options(body, code):
    plane = Plane()
    await plane.post(PODS, pod())
    await plane.delete(PODS + "/a", body, code=code)


@in_loop
async def test_delete_a_collection():
    plane = Plane()
    for name in "abc":
        await plane.post(PODS, pod(name, labels={"app": "x" if name != "c" else "y"}))
    await plane.delete(PODS, {"preconditions": {"uid": "another"}}, code=409)
    gone = (await plane.delete(PODS + "?labelSelector=app%3Dx")).json
    assert gone["kind"] == "PodList" and [item["metadata"]["name"] for item in gone["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in (await plane.get(PODS)).json["items"]] == ["c"]


@in_loop
async def test_a_namespace_ends_by_its_finalizers():
    plane = Plane()
    path = "/api/v1/namespaces/shop"
    made = (await plane.post("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "shop"}})).json
    assert made["spec"]["finalizers"] == ["kubernetes"]
    ending = (await plane.delete(path)).json
    assert ending["status"]["phase"] == "Terminating"
    await plane.post(path + "/pods", pod(), code=403)
    await plane.put(path + "/finalize", {**made, "spec": {}}, code=409)
    ending["spec"]["finalizers"] = []
    assert (await plane.put(path + "/finalize", ending)).json["metadata"]["name"] == "shop"
    await plane.get(path, code=404)
    await plane.put(path + "/finalize", ending, code=404)


# -- scale


@in_loop
async def test_scale():
    plane = Plane()
    await plane.post(DEPLOYMENTS, deployment())
    path = DEPLOYMENTS + "/web/scale"
    scale = (await plane.get(path)).json
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 3} and scale["status"] == {"replicas": 0, "selector": "app=web"}
    assert (await plane.merge(path, {"spec": {"replicas": 7}})).json["spec"] == {"replicas": 7}
    await plane.put(path, {**scale, "spec": {"replicas": 1}}, code=409)
    del scale["metadata"]["resourceVersion"]
    assert (await plane.put(path, {**scale, "spec": {"replicas": 1}})).json["spec"] == {"replicas": 1}
    steps = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
    await plane.ask("PATCH", path, steps, 200, content_type="application/json-patch+json")
    assert (await plane.get(DEPLOYMENTS + "/web")).json["spec"]["replicas"] == 4


@pytest.mark.parametrize(
    ("body", "code"),
    [({"spec": {"replicas": -1}}, 422), ({"spec": {"replicas": "x"}}, 422), ({"spec": 1}, 400), ([], 400)],
)
@in_loop
async def test_wrong_scales(body, code):
    plane = Plane()
    await plane.post(DEPLOYMENTS, deployment())
    await plane.merge(DEPLOYMENTS + "/web/scale", body, code=code)
    await plane.get(PODS + "/a/scale", code=404)
    await plane.get(DEPLOYMENTS + "/none/scale", code=404)


# -- hostile bodies


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("application/json", b"[" * 100_000),
        ("application/json", b"[" * 500 + b"]" * 500),
        ("application/json", b'{"a":' * 300 + b"1" + b"}" * 300),
        ("application/json", b""),
        ("application/json", b"{"),
        ("application/json", b"\xff\xfe"),
        ("application/yaml", b"[" * 200_000),
        ("application/yaml", b"- " * 5_000),
        ("application/yaml", b"\xff"),
        ("application/yaml", b"a: b: c"),
        ("application/yaml", b"--- 1\n--- 2\n"),
        ("application/yaml", b"a: *nothing"),
        ("application/yaml", b"a: !!python/object/apply:os.system [ls]"),
        ("application/yaml", b"{[1]: 2}"),
        ("application/yaml", b"a: &a [*a]"),
        ("application/yaml", b""),
    ],
)
@in_loop
async def test_hostile_bodies_are_refused(media, body):
    answer = await Plane().ask("POST", PODS, body, 400, content_type=media)
    assert answer.json["reason"] == "BadRequest"


@in_loop
async def test_a_billion_laughs():
    lines = ["a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    answer = await Plane().ask("POST", PODS, "\n".join(lines).encode(), 400, content_type="application/yaml")
    assert "aliases" in answer.json["message"]


@in_loop
async def test_concurrent_deletes_of_a_collection_do_not_fail():
    plane = Plane()
    for index in range(20):
        await plane.post(PODS, pod(f"p{index}"))
    first, second = await asyncio.gather(plane.delete(PODS), plane.delete(PODS))
    assert first.code == second.code == 200
    assert (await plane.get(PODS)).json["items"] == []


@in_loop
async def test_a_binding_may_be_sent_to_its_namespace():
    plane = Plane()
    await plane.post(PODS, pod("a"))
    bindings = "/api/v1/namespaces/default/bindings"
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert (await plane.post(bindings, body)).json["status"] == "Success"
    assert (await plane.get(f"{PODS}/a")).json["spec"]["nodeName"] == "n"
    assert "already assigned" in (await plane.post(bindings, body, 409)).json["message"]
    assert (await plane.post(bindings, body | {"metadata": {"name": "x"}}, 404)).json["details"]["name"] == "x"
    await plane.post(bindings, body | {"metadata": {}}, 400)
    await plane.get(bindings, 405)
