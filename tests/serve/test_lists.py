"""Lists over HTTP: selectors, pages of one snapshot, revisions, tables and metadata."""

import asyncio

import pytest

from steersman.kernel.changelog import ChangeLog
from steersman.serve import listing
from tests.serve.harness import in_loop
from tests.serve.plane import DEPLOYMENTS, PARTIAL, PARTIAL_LIST, PODS, TABLE, Plane, configmap, deployment, pod

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def some_configmaps(plane, names):
    for name in names:
        await plane.post(CONFIGMAPS, configmap(name, of=name))


def names_of(answer):
    return [item["metadata"]["name"] for item in answer.json["items"]]


@in_loop
async def test_a_list():
    plane = Plane()
    await some_configmaps(plane, "ba")
    await plane.post("/api/v1/namespaces/kube-public/configmaps", configmap("c"))
    found = (await plane.get(CONFIGMAPS)).json
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert found["metadata"] == {"resourceVersion": str(plane.backend.store.rev)}
    assert names_of(await plane.get(CONFIGMAPS)) == ["a", "b"]
    assert names_of(await plane.get("/api/v1/configmaps")) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("labelSelector=app%3Dx", ["a", "b"]),
        ("labelSelector=app+in+(y),tier", ["c"]),
        ("labelSelector=!app", ["d"]),
        ("fieldSelector=metadata.name%3Da,metadata.name%3Da", ["a"]),
        ("fieldSelector=spec.nodeName%3Dn1", ["b"]),
        ("fieldSelector=status.phase!%3DPending", []),
        ("labelSelector=app%3Dx&fieldSelector=metadata.name!%3Da", ["b"]),
        ("labelSelector=app%3Dx&limit=1", ["a"]),
    ],
)
@in_loop
async def test_selectors(query, names):
    plane = Plane()
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "x"}), ("c", {"app": "y", "tier": "1"}), ("d", {})):
        await plane.post(PODS, pod(name, labels=labels))
    await plane.post(PODS + "/b/binding", {"target": {"name": "n1"}})
    assert names_of(await plane.get(f"{PODS}?{query}")) == names


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=a%3D%3D%3Db",
        "fieldSelector=spec.nothing%3Da",
        "limit=x",
        "continue=x",
        "continue=W10",
        "resourceVersion=x",
        "resourceVersion=-1",
        "timeoutSeconds=1.5&watch=1",
        "includeObject=All",
    ],
)
@in_loop
async def test_wrong_queries(query):
    assert (await Plane().get(f"{PODS}?{query}", code=400, accept=TABLE)).json["reason"] == "BadRequest"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersionMatch=Exact&resourceVersion=0", "resourceVersionMatch"),
        ("resourceVersionMatch=Other&resourceVersion=1", "resourceVersionMatch"),
        ("resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x", "resourceVersionMatch"),
        ("sendInitialEvents=true", "sendInitialEvents"),
        ("watch=1&sendInitialEvents=true", "resourceVersionMatch"),
        ("watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", "resourceVersionMatch"),
        ("watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1", "resourceVersionMatch"),
    ],
)
@in_loop
async def test_rules_of_versions(query, field):
    answer = await Plane().get(f"{PODS}?{query}", code=422)
    assert answer.json["details"]["causes"][0]["field"] == field


# -- pages


@in_loop
async def test_pages_are_of_one_snapshot():
    plane = Plane()
    await some_configmaps(plane, "bdfh")
    first = await plane.get(CONFIGMAPS + "?limit=2")
    rev = first.json["metadata"]["resourceVersion"]
    assert names_of(first) == ["b", "d"] and first.json["metadata"]["remainingItemCount"] == 2
    await some_configmaps(plane, "ceg")  # behind and before the cursor
    await plane.delete(CONFIGMAPS + "/f")
    for change in ("changed", "changed again"):
        await plane.merge(CONFIGMAPS + "/h", {"data": {"of": change}})
    second = await plane.get(f"{CONFIGMAPS}?limit=1&continue={first.json['metadata']['continue']}")
    assert names_of(second) == ["f"] and second.json["metadata"]["resourceVersion"] == rev
    third = await plane.get(f"{CONFIGMAPS}?limit=1&continue={second.json['metadata']['continue']}")
    assert names_of(third) == ["h"] and third.json["items"][0]["data"] == {"of": "h"}
    assert "continue" not in third.json["metadata"]
    assert names_of(await plane.get(CONFIGMAPS)) == ["b", "c", "d", "e", "g", "h"]


@in_loop
async def test_a_snapshot_that_is_gone_may_be_continued_with_the_present():
    plane = Plane(log=ChangeLog(max_events=2))
    await some_configmaps(plane, "ac")
    first = await plane.get(CONFIGMAPS + "?limit=1")
    await some_configmaps(plane, "bdef")
    token = first.json["metadata"]["continue"]
    gone = (await plane.get(f"{CONFIGMAPS}?limit=1&continue={token}", code=410)).json
    assert gone["reason"] == "Expired"
    second = await plane.get(f"{CONFIGMAPS}?continue={gone['metadata']['continue']}")
    assert names_of(second) == ["b", "c", "d", "e", "f"]


@in_loop
async def test_pages_over_namespaces_with_a_selector():
    plane = Plane()
    for namespace in ("kube-system", "default"):
        for name in "ab":
            await plane.post(f"/api/v1/namespaces/{namespace}/pods", pod(name, labels={"in": namespace}))
    seen, token = [], ""
    while True:
        page = (await plane.get(f"/api/v1/pods?labelSelector=in&limit=1&continue={token}")).json
        seen += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in page["items"]]
        token = page["metadata"].get("continue")
        assert "remainingItemCount" not in page["metadata"]
        if not token:
            break
    assert seen == [("default", "a"), ("default", "b"), ("kube-system", "a"), ("kube-system", "b")]


# -- revisions


@in_loop
async def test_lists_at_a_revision():
    plane = Plane()
    await some_configmaps(plane, "ab")
    then = plane.backend.store.rev
    await plane.delete(CONFIGMAPS + "/a")
    await some_configmaps(plane, "c")
    exact = await plane.get(f"{CONFIGMAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert names_of(exact) == ["a", "b"] and exact.json["metadata"]["resourceVersion"] == str(then)
    for query in (
        f"resourceVersion={then}&resourceVersionMatch=NotOlderThan",
        f"resourceVersion={then}",
        "resourceVersion=0",
    ):
        assert names_of(await plane.get(f"{CONFIGMAPS}?{query}")) == ["b", "c"]


@pytest.mark.parametrize("path", [CONFIGMAPS, CONFIGMAPS + "/a"])
@in_loop
async def test_a_revision_from_the_future(path):
    plane = Plane()
    await some_configmaps(plane, "a")
    answer = await plane.get(f"{path}?resourceVersion=1000", code=504)
    assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert answer.header("retry-after") == "1"


# -- forms


@in_loop
async def test_a_table_of_pods():
    plane = Plane()
    await plane.post(PODS, pod())
    plane.time += 90 * 1_000_000
    answer = await plane.get(PODS, accept=TABLE)
    assert answer.header("content-type") == "application/json"
    table = answer.json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    shown = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    assert shown == ["Name", "Ready", "Status", "Restarts", "Age"]
    row = table["rows"][0]
    assert row["cells"] == ["a", "0/1", "Pending", "0", "90s", "<none>", "<none>", "<none>", "<none>"]
    assert row["object"]["kind"] == "PartialObjectMetadata" and row["object"]["metadata"]["name"] == "a"
    assert table["metadata"]["resourceVersion"] == str(plane.backend.store.rev)


@pytest.mark.parametrize(
    ("include", "kind"), [("Object", "Pod"), ("Metadata", "PartialObjectMetadata"), ("None", None)]
)
@in_loop
async def test_include_object(include, kind):
    plane = Plane()
    await plane.post(PODS, pod())
    for path in (PODS, PODS + "/a"):
        row = (await plane.get(f"{path}?includeObject={include}", accept=TABLE)).json["rows"][0]
        assert (row["object"] or {}).get("kind") == kind


@in_loop
async def test_metadata_only():
    plane = Plane()
    await plane.post(PODS, pod())
    one = (await plane.get(PODS + "/a", accept=PARTIAL)).json
    assert (one["kind"], one["apiVersion"], "spec" in one) == ("PartialObjectMetadata", "meta.k8s.io/v1", False)
    many = (await plane.get(PODS, accept=PARTIAL_LIST)).json
    assert many["kind"] == "PartialObjectMetadataList" and many["items"] == [one]
    patched = (await plane.merge(PODS + "/a", {"metadata": {"labels": {"x": "y"}}}, accept=PARTIAL)).json
    assert patched["kind"] == "PartialObjectMetadata" and patched["metadata"]["labels"] == {"x": "y"}
    missing = await plane.get(PODS + "/none", code=404, accept=PARTIAL)
    assert missing.json["kind"] == "Status"


@pytest.mark.parametrize("accept", ["application/json", TABLE, PARTIAL_LIST])
@in_loop
async def test_a_long_list_comes_in_pieces_and_is_the_same(accept):
    plane = Plane()
    for index in range(2005):
        plane.backend.write_now(_create(plane, f"c{index:04d}"))
    response = await plane.send("GET", CONFIGMAPS, accept=accept)
    assert not isinstance(response.body, bytes) and not response.endless
    answer = (await plane.get(CONFIGMAPS, accept=accept)).json
    items = answer["rows"] if accept == TABLE else answer["items"]
    assert len(items) == 2005
    few = (await plane.get(CONFIGMAPS + "?limit=3", accept=accept)).json
    assert (few["rows"] if accept == TABLE else few["items"]) == items[:3]


def _create(plane, name):
    from steersman.kernel.effect import Request
    from steersman.kernel.object import Key

    return Request("create", Key("", "ConfigMap", "default", name), configmap(name), actor="t", now=plane.time)


@in_loop
async def test_a_bound_pod_shows_its_node_without_a_parse():
    plane = Plane()
    await plane.post(PODS, pod())
    await plane.post(PODS + "/a/binding", {"target": {"name": "n1"}})
    found = (await plane.get(PODS + "/a")).json
    assert found["spec"]["nodeName"] == "n1" and found["spec"]["containers"][0]["name"] == "c"
    obj = plane.backend.store.get(
        plane.backend.store.query(plane.backend.api.query(plane.backend.api.kinds.get("", "Pod"), None)).__next__().key
    )
    assert {**found, "metadata": None} == {**_plain(obj), "metadata": None}


def _plain(obj):
    import json

    return json.loads(obj.to_json())


@in_loop
async def test_deployments_have_their_columns():
    plane = Plane()
    await plane.post(DEPLOYMENTS, deployment())
    await plane.merge(
        DEPLOYMENTS + "/web/status", {"status": {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3}}
    )
    row = (await plane.get(DEPLOYMENTS, accept=TABLE)).json["rows"][0]["cells"]
    assert row == ["web", "2/3", 3, 0, "0s", "c", "nginx:1", "app=web"]


@in_loop
async def test_the_old_version_of_a_table_says_so_everywhere():
    """As a kube-apiserver 1.36 still does."""
    plane = Plane()
    await some_configmaps(plane, "ab")
    old = {form: form.replace("v=v1", "v=v1beta1") for form in (TABLE, PARTIAL, PARTIAL_LIST)}
    for _ in range(2):  # the second one is made of what is kept of the first
        for form, version in ((TABLE, "v1"), (old[TABLE], "v1beta1")):
            table = (await plane.get(CONFIGMAPS, accept=form)).json
            versions = {table["apiVersion"], *[row["object"]["apiVersion"] for row in table["rows"]]}
            assert table["kind"] == "Table" and versions == {f"meta.k8s.io/{version}"} and len(table["rows"]) == 2
        for form, version in ((PARTIAL_LIST, "v1"), (old[PARTIAL_LIST], "v1beta1")):
            found = (await plane.get(CONFIGMAPS, accept=form)).json
            versions = {found["apiVersion"], *[item["apiVersion"] for item in found["items"]]}
            assert found["kind"] == "PartialObjectMetadataList" and versions == {f"meta.k8s.io/{version}"}
    whole = (await plane.get(f"{CONFIGMAPS}/a?includeObject=Object", accept=old[TABLE])).json
    assert (whole["apiVersion"], whole["rows"][0]["object"]["apiVersion"]) == ("meta.k8s.io/v1beta1", "v1")
    assert (await plane.get(f"{CONFIGMAPS}/a", accept=old[PARTIAL])).json["apiVersion"] == "meta.k8s.io/v1beta1"
    for form, version in ((old[TABLE], "v1beta1"), (TABLE, "v1")):
        watch = await plane.watch(f"{CONFIGMAPS}?watch=1&timeoutSeconds=1", accept=form)
        assert (await watch.next())["object"]["apiVersion"] == f"meta.k8s.io/{version}"
        await watch.close()
    await plane.get(CONFIGMAPS, accept=TABLE.split(",")[0].replace("v=v1", "v=v1beta2"), code=406)


def labelled(name, **labels):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


@in_loop
async def test_a_selector_over_many_objects_is_held_against_them_as_they_were(monkeypatch):
    """Beside the loop, while others write: the answer is of the moment in which it was asked for."""
    monkeypatch.setattr(listing, "HELD_AGAINST", 10)
    plane = Plane()
    for number in range(40):
        await plane.post(CONFIGMAPS, labelled(f"m{number:02d}", odd=str(number % 2)))
    selected = f"{CONFIGMAPS}?labelSelector=odd%3D1"
    for turn, accept in enumerate(("application/json", TABLE)):
        rev = plane.backend.store.rev
        asked = asyncio.create_task(plane.get(selected, accept=accept))
        await asyncio.sleep(0)
        await plane.post(CONFIGMAPS, labelled(f"late-{turn}", odd="1"))
        answer = (await asked).json
        found = answer.get("items") or [row["object"] for row in answer["rows"]]
        assert int(answer["metadata"]["resourceVersion"]) == rev
        assert [item["metadata"]["name"] for item in found if item["metadata"]["name"].startswith("m")] == [
            f"m{number:02d}" for number in range(1, 40, 2)
        ]
        events = await plane.watch(f"{selected}&watch=1&resourceVersion={rev}&timeoutSeconds=1")
        assert (await events.next())["object"]["metadata"]["name"] == f"late-{turn}"
        await events.close()
    page = (await plane.get(f"{selected}&limit=3")).json
    rest = (await plane.get(f"{selected}&continue={page['metadata']['continue']}")).json
    assert len(page["items"]) + len(rest["items"]) == 22
    await plane.get(f"{CONFIGMAPS}?labelSelector=a%3D%3D%3Db", code=400)


@in_loop
async def test_a_list_of_one_name_is_as_any_other():
    plane = Plane()
    for name in ("a", "b"):
        await plane.post(CONFIGMAPS, labelled(name, of=name))
        await plane.post("/api/v1/namespaces/kube-public/configmaps", configmap(name))
    every = "/api/v1/configmaps?fieldSelector=metadata.name%3Da"
    assert [item["metadata"]["namespace"] for item in (await plane.get(every)).json["items"]] == [
        "default", "kube-public"
    ]  # fmt: skip
    page = (await plane.get(f"{every}&limit=1")).json
    second = (await plane.get(f"{every}&limit=1&continue={page['metadata']['continue']}")).json
    assert [item["metadata"]["namespace"] for item in page["items"] + second["items"]] == ["default", "kube-public"]
    for selector, names in {
        "fieldSelector=metadata.name%3Da": ["a"],
        "fieldSelector=metadata.name%3Da&labelSelector=of%3Db": [],
        "fieldSelector=metadata.name%3Da,metadata.name%3Db": [],
        "fieldSelector=metadata.name%3Da,metadata.namespace%3Ddefault": ["a"],
        "fieldSelector=metadata.name!%3Da": ["b"],
        "fieldSelector=metadata.name%3Dnone": [],
    }.items():
        assert names_of(await plane.get(f"{CONFIGMAPS}?{selector}")) == names, selector
