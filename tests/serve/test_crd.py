"""CustomResourceDefinitions over HTTP: routes, discovery, documents, versions, tables and scale follow at once."""

import copy

import pytest

from steersman.kernel.object import Key
from tests.serve.harness import in_loop
from tests.serve.plane import TABLE, Plane

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
BETA = "/apis/example.com/v1beta1/namespaces/default/widgets"


def version(name, storage=False, **more):
    spec = {
        "type": "object",
        "description": "What is wanted.",
        "properties": {
            "replicas": {"type": "integer", "default": 2},
            "colour": {"type": "string"},
            name: {"type": "string"},
        },
    }
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **more}


FULL = {
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    "additionalPrinterColumns": [
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
    "selectableFields": [{"jsonPath": ".spec.colour"}],
}


def definition(*versions, **spec):
    names = {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"], "categories": ["all"]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions), **spec}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    }


def widget(name="w", api="v1", **spec):
    return {"apiVersion": f"example.com/{api}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


TWO = definition(version("v1", True, **FULL), version("v1beta1", deprecated=True))


async def planned(document=TWO):
    plane = Plane()
    await plane.post(CRDS, copy.deepcopy(document), code=201)
    return plane


@in_loop
async def test_a_definition_is_served_at_once_and_gone_with_it():
    plane = Plane()
    await plane.get(WIDGETS, code=404)
    made = (await plane.post(CRDS, copy.deepcopy(TWO), code=201)).json
    conditions = {c["type"]: c["status"] for c in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert made["spec"]["names"]["singular"] == "widget"
    assert (await plane.get(WIDGETS)).json["kind"] == "WidgetList"
    groups = (await plane.get("/apis")).json["groups"]
    (group,) = [g for g in groups if g["name"] == "example.com"]
    assert [v["version"] for v in group["versions"]] == ["v1", "v1beta1"]
    rows = {r["name"]: r for r in (await plane.get("/apis/example.com/v1")).json["resources"]}
    assert set(rows) == {"widgets", "widgets/status", "widgets/scale"}
    assert (rows["widgets"]["shortNames"], rows["widgets"]["categories"]) == (["wd"], ["all"])
    assert [r["name"] for r in (await plane.get("/apis/example.com/v1beta1")).json["resources"]] == ["widgets"]
    aggregated = (
        await plane.get("/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    ).json
    assert "example.com" in [item["metadata"]["name"] for item in aggregated["items"]]


@in_loop
async def test_the_document_has_the_schema_as_it_was_written():
    plane = await planned()
    document = (await plane.get("/openapi/v3/apis/example.com/v1")).json
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["description"] == "What is wanted."
    assert schema["properties"]["metadata"]["allOf"][0]["$ref"].endswith("ObjectMeta")
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Widget"}]


@in_loop
async def test_one_object_in_two_versions():
    plane = await planned()
    made = await plane.post(BETA, widget(api="v1beta1", colour="red", v1beta1="x"), code=201)
    assert made.json["apiVersion"] == "example.com/v1beta1"
    assert made.json["spec"] == {"replicas": 2, "colour": "red", "v1beta1": "x"}
    assert "is deprecated" in made.header("warning")
    assert made.json["metadata"]["managedFields"][0]["apiVersion"] == "example.com/v1beta1"
    seen = (await plane.get(f"{WIDGETS}/w")).json
    assert (seen["apiVersion"], seen["spec"]) == ("example.com/v1", {"replicas": 2, "colour": "red"})
    assert [item["apiVersion"] for item in (await plane.get(BETA)).json["items"]] == ["example.com/v1beta1"]
    wrong = await plane.post(BETA, widget("w2"), code=400)
    assert "does not match the expected API version (example.com/v1beta1)" in wrong.json["message"]


@in_loop
async def test_stored_objects_get_defaults_that_came_later():
    document = definition(version("v1", True))
    plane = await planned(document)
    await plane.post(WIDGETS, widget(colour="red"), code=201)
    spec = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    changed = copy.deepcopy(document)
    added = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    added["tone"] = {"type": "string", "default": "dark"}
    del added["colour"]
    assert "tone" not in spec
    await plane.merge(f"{CRDS}/widgets.example.com", {"spec": changed["spec"]}, code=200)
    seen = (await plane.get(f"{WIDGETS}/w")).json
    assert seen["spec"] == {"replicas": 2, "tone": "dark"}
    assert plane.backend.store.get(Key("example.com", "Widget", "default", "w")).spec.value["colour"] == "red"
    rev = seen["metadata"]["resourceVersion"]
    again = (await plane.put(f"{WIDGETS}/w", seen, code=200)).json  # a write of nothing migrates what is stored
    assert again["metadata"]["resourceVersion"] != rev


@in_loop
async def test_columns_selectors_and_scale():
    plane = await planned()
    await plane.post(WIDGETS, widget("a", colour="red"), code=201)
    await plane.post(WIDGETS, widget("b", colour="blue", replicas=5), code=201)
    table = (await plane.get(WIDGETS, accept=TABLE)).json
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Colour", "Size", "Age"]
    assert [row["cells"] for row in table["rows"]] == [["a", "red", 2, "0s"], ["b", "blue", 5, "0s"]]
    found = (await plane.get(f"{WIDGETS}?fieldSelector=spec.colour%3Dblue")).json
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]
    await plane.get(f"{BETA}?fieldSelector=spec.colour%3Dblue", code=400)
    scale = (await plane.get(f"{WIDGETS}/b/scale")).json
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 5},
        {"replicas": 0},
    )
    scale["spec"]["replicas"] = 7
    await plane.put(f"{WIDGETS}/b/scale", scale, code=200)
    assert (await plane.get(f"{WIDGETS}/b")).json["spec"]["replicas"] == 7
    await plane.get(f"{BETA}/b/scale", code=404)


@in_loop
async def test_the_scale_of_what_has_no_replicas_names_the_field_and_is_no_fault_of_the_server():
    plane = Plane()
    paths = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": open_},
        "subresources": {"scale": paths},
    }
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    meta = {"name": "things.example.org"}
    await plane.post(crds, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                            "metadata": meta, "spec": spec})  # fmt: skip
    things = "/apis/example.org/v1/namespaces/default/things"
    for odd in ({}, {"spec": {}}):
        body = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"generateName": "t-"}, **odd}
        name = (await plane.post(things, body)).json["metadata"]["name"]
        status = (await plane.get(f"{things}/{name}/scale", code=422)).json
        assert status["reason"] == "Invalid" and status["details"]["causes"][0]["field"] == ".spec.count"


@in_loop
async def test_status_is_written_through_its_subresource_only():
    plane = await planned()
    made = (await plane.post(WIDGETS, {**widget(colour="red"), "status": {"replicas": 9}}, code=201)).json
    assert "status" not in made
    assert made["metadata"]["generation"] == 1
    done = (await plane.merge(f"{WIDGETS}/w/status", {"status": {"replicas": 3, "other": 1}}, code=200)).json
    assert (done["status"], done["metadata"]["generation"]) == ({"replicas": 3}, 1)
    done = (await plane.merge(f"{WIDGETS}/w", {"spec": {"colour": "blue"}}, code=200)).json
    assert done["metadata"]["generation"] == 2
    await plane.merge(f"{BETA}/w/status", {"status": {}}, code=404)


@in_loop
async def test_a_kind_that_is_going_takes_nothing_new():
    plane = await planned()
    await plane.post(WIDGETS, widget("a"), code=201)
    gone = (await plane.delete(f"{CRDS}/widgets.example.com", code=200)).json
    assert gone["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert [c["reason"] for c in gone["status"]["conditions"] if c["type"] == "Terminating"] == [
        "InstanceDeletionPending"
    ]
    refused = await plane.post(WIDGETS, widget("b"), code=0)
    assert refused.code == 403
    assert refused.json["message"].endswith("create not allowed while custom resource definition is terminating")
    assert (await plane.get(f"{WIDGETS}/a")).json["metadata"]["name"] == "a"
    rows = (await plane.get("/apis/example.com/v1")).json["resources"]
    assert "create" not in rows[0]["verbs"]


@in_loop
async def test_names_that_are_taken():
    plane = await planned()
    other = definition(version("v1", True))
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"] = {"kind": "Gadget", "plural": "gadgets", "shortNames": ["wd"]}
    made = (await plane.post(CRDS, other, code=201)).json
    accepted = made["status"]["conditions"][0]
    assert (accepted["status"], accepted["reason"], accepted["message"]) == (
        "False",
        "ShortNamesConflict",
        '"wd" is already in use',
    )
    assert made["status"]["acceptedNames"]["plural"] == "gadgets"
    await plane.get("/apis/example.com/v1/namespaces/default/gadgets", code=404)


@pytest.mark.parametrize("media", ["application/strategic-merge-patch+json", "application/vnd.kubernetes.protobuf"])
@in_loop
async def test_what_custom_kinds_do_not_take(media):
    plane = await planned()
    await plane.post(WIDGETS, widget(), code=201)
    await plane.ask("PATCH", f"{WIDGETS}/w", {"spec": {}}, 415, content_type=media)
    await plane.ask("PUT", f"{WIDGETS}/w", widget(), 415, content_type=media)


@in_loop
async def test_a_watch_sees_the_end_of_its_kind():
    plane = await planned()
    await plane.post(WIDGETS, widget("a"), code=201)
    watch = await plane.watch(f"{WIDGETS}?watch=true&timeoutSeconds=30")
    assert (await watch.next())["object"]["metadata"]["name"] == "a"
    beta = await plane.watch(f"{BETA}?watch=true&timeoutSeconds=30")
    assert (await beta.next())["object"]["apiVersion"] == "example.com/v1beta1"
    await plane.merge(f"{WIDGETS}/a", {"spec": {"colour": "red"}})
    assert [(await w.next())["object"]["apiVersion"] for w in (watch, beta)] == [
        "example.com/v1",
        "example.com/v1beta1",
    ]
    changed = copy.deepcopy(TWO)
    changed["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["more"] = {"type": "string"}
    await plane.merge(f"{CRDS}/widgets.example.com", {"spec": changed["spec"]})
    assert await watch.next() is None and await beta.next() is None


@in_loop
async def test_numbers_of_scale_and_names_of_finalizers_are_judged():
    plane = await planned()
    refused = await plane.post(WIDGETS, widget(replicas=-1), code=422)
    (cause,) = refused.json["details"]["causes"]
    assert (cause["field"], cause["message"]) == (
        ".spec.replicas",
        "Invalid value: -1: should be a non-negative integer",
    )
    await plane.post(f"{WIDGETS}?dryRun=All", widget(replicas=-1), code=422)
    held = widget()
    held["metadata"]["finalizers"] = ["hold.example.com"]
    told = (await plane.post(WIDGETS, held, code=201)).header("warning")
    assert "prefer a domain-qualified finalizer name including a path (/)" in told
    assert "finalizer" not in (await plane.merge(f"{WIDGETS}/w", {"spec": {"colour": "x"}})).header("warning")


@in_loop
async def test_formats_known_and_unknown():
    plane = Plane()
    document = definition(version("v1", True))
    fields = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields |= {"ip": {"type": "string", "format": "ipv4"}, "odd": {"type": "string", "format": "odd-one"}}
    made = await plane.post(CRDS, document, code=201)
    assert 'unrecognized format \\"odd-one\\"' in made.header("warning")
    again = await plane.merge(f"{CRDS}/widgets.example.com", {"metadata": {"labels": {"a": "b"}}})
    assert again.header("warning") == ""
    refused = await plane.post(WIDGETS, widget(ip="1.2.3"), code=422)
    assert 'spec.ip: Invalid value: "1.2.3": spec.ip in body must be of type ipv4: "1.2.3"' in refused.json["message"]
    await plane.post(WIDGETS, widget(ip="1.2.3.4", odd="anything"), code=201)


@in_loop
async def test_nulls_that_are_applied_are_of_the_wrong_type():
    """As a kube-apiserver 1.36 tells it."""
    plane = Plane()
    loose = {"x-kubernetes-int-or-string": True}
    fields = {"either": loose, "number": {"type": "integer"}, "maybe": {**loose, "nullable": True}}
    fields["map"] = {"type": "object", "additionalProperties": loose}
    spec = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": spec}}
    names = {"plural": "nulls", "kind": "Null"}
    body = {"group": "n.io", "scope": "Namespaced", "names": names, "versions": [version]}
    await plane.post(CRDS, {"metadata": {"name": "nulls.n.io"}, "spec": body})
    path = "/apis/n.io/v1/namespaces/default/nulls"
    for given, at, kind in (
        ({"either": None}, "spec.either", "integer,string"),
        ({"number": None}, "spec.number", "integer"),
        ({"map": {"k": None}}, "spec.map.k", "integer,string"),
    ):
        config = {"apiVersion": "n.io/v1", "kind": "Null", "metadata": {"name": "a"}, "spec": given}
        (cause,) = (await plane.apply(f"{path}/a?fieldManager=x", config, code=422)).json["details"]["causes"]
        told = f'Invalid value: "null": {at} in body must be of type {kind}: "null"'
        assert cause == {"reason": "FieldValueTypeInvalid", "message": told, "field": at}
    await plane.apply(f"{path}/a?fieldManager=x", {**config, "spec": {"maybe": None}}, code=201)
