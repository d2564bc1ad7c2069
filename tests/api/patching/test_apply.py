"""Server-side apply: ownership, conflicts, pruning and merge order, as Kubernetes' "Server-Side Apply" page has them.

The expectations of merge order, of managedFields and of the texts of conflicts were compared with
structured-merge-diff 6.3 and apimachinery 0.36 on some ten thousand generated histories.
"""

import copy

import pytest

from steersman.api.errors import Conflict
from steersman.api.kinds import Kinds
from steersman.api.patching.apply import path_text
from steersman.api.patching.typed import merge
from steersman.kernel.effect import Reply
from steersman.kernel.value import freeze
from tests.api.cluster import NOW_TEXT, Cluster, crd, deployment, pod, refused

DEPLOYMENT, CONFIG, POD = "apps/v1/Deployment", "v1/ConfigMap", "v1/Pod"
A, B = ("a", "Apply", ""), ("b", "Apply", "")


def containers(*items):
    spec = deployment()
    spec["template"]["spec"]["containers"] = list(items)
    return spec


# -- creating and owning ---------------------------------------------------------------------------------------


def test_apply_creates_what_is_missing(cluster):
    reply = cluster.apply(DEPLOYMENT, "web", manager="a", metadata={"labels": {"x": "1"}}, spec=deployment(2))
    assert reply.code == 201
    made = cluster.get(DEPLOYMENT, "web")
    assert made["spec"]["replicas"] == 2
    assert made["spec"]["strategy"]["type"] == "RollingUpdate"  # a default
    assert made["metadata"]["generation"] == 1
    assert cluster.managed(DEPLOYMENT, "web") == {
        A: {
            "f:metadata": {"f:labels": {"f:x": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": {
                    "f:metadata": {"f:labels": {"f:app": {}}},
                    "f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:image": {}, "f:name": {}}}},
                },
            },
        }
    }


def test_defaulted_fields_are_unowned(cluster):
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=deployment())
    cluster.apply(DEPLOYMENT, "web", manager="b", spec={"replicas": 7})  # no conflict
    assert cluster.get(DEPLOYMENT, "web")["spec"]["replicas"] == 7


def test_a_manager_is_needed(cluster):
    error = refused(cluster.apply, CONFIG, "c", manager="", data={"a": "1"})
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )


@pytest.mark.parametrize(
    ("parts", "code", "words"),
    [
        ({"metadata": {"managedFields": [{}]}}, 400, "metadata.managedFields must be nil"),
        ({"metadata": {"resourceVersion": "77"}}, 409, "the object has been modified"),
        ({"metadata": {"uid": "other"}}, 409, "UID in precondition: other"),
        ({"spec": containers({"name": "a", "image": "x"}, {"name": "a", "image": "y"})}, 422, "Duplicate value"),
        ({"spec": containers({"image": "x"})}, 422, "containers[0].name: Required value"),
        ({"spec": containers({"name": "a", "image": 5})}, 400, "json: cannot unmarshal number into Go struct field"),
        ({"spec": {"replicas": -1}, "manager": "b"}, 422, "spec.replicas"),
        ({"spec": {"replica": 1}}, 400, ".spec.replica: field not declared in schema"),
    ],
)
def test_configurations_that_are_refused(cluster, parts, code, words):
    cluster.apply(DEPLOYMENT, "web", spec=deployment())
    before = cluster.read(DEPLOYMENT, "web")
    error = refused(cluster.apply, DEPLOYMENT, "web", **parts)
    assert error.code == code
    assert words in error.message
    assert cluster.read(DEPLOYMENT, "web") is before


def test_apply_of_a_version_of_what_is_not_there(cluster):
    assert cluster.apply(CONFIG, "c", metadata={"resourceVersion": "7"}).code == 201  # which asks for nothing yet
    error = refused(cluster.apply, CONFIG, "d", metadata={"uid": "7"})
    assert (error.code, "uid mismatch: the provided object specified uid 7" in error.message) == (409, True)
    assert refused(cluster.apply, DEPLOYMENT, "web", sub="status", status={"replicas": 1}).code == 404


def test_apply_with_the_right_version_and_uid(cluster):
    cluster.apply(CONFIG, "c", data={"a": "1"})
    meta = cluster.get(CONFIG, "c")["metadata"]
    given_meta = {"resourceVersion": meta["resourceVersion"], "uid": meta["uid"]}
    cluster.apply(CONFIG, "c", metadata=given_meta, data={"a": "2"})
    assert cluster.get(CONFIG, "c")["data"] == {"a": "2"}


def test_unknown_fields_are_refused_however_strict_the_request(cluster):
    """An applied configuration must be typed by the schema: nobody could own the field."""
    for validation in ("Ignore", "Warn", "Strict"):
        parts = {"spec": {**deployment(), "replica": 3, "rev": 1}, "options": {"validation": validation}}
        error = refused(cluster.apply, DEPLOYMENT, "web", **parts)
        what = "failed to create typed patch object (/web; apps/v1, Kind=Deployment)"
        assert error.message == (
            f"{what}: errors:\n  .spec.replica: field not declared in schema\n  .spec.rev: field not declared in schema"
        )


# -- conflicts -------------------------------------------------------------------------------------------------


def test_changing_what_another_manager_applied_is_a_conflict(cluster):
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=deployment(2))
    error = refused(cluster.apply, DEPLOYMENT, "web", manager="b", spec={"replicas": 3})
    assert isinstance(error, Conflict)
    assert error.message == 'Apply failed with 1 conflict: conflict with "a": .spec.replicas'
    assert error.status()["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".spec.replicas"}
    ]
    assert cluster.get(DEPLOYMENT, "web")["spec"]["replicas"] == 2


def test_conflicts_with_updates_name_the_version_and_subresource(cluster):
    cluster.create(POD, "web", manager="u", spec=pod())
    cluster.merge(POD, "web", {"status": {"phase": "Running"}}, manager="kubelet", sub="status")
    error = refused(cluster.apply, POD, "web", manager="b", spec={"containers": [{"name": "app", "image": "app:2"}]})
    assert error.message == (
        'Apply failed with 1 conflict: conflict with "u" using v1: .spec.containers[name="app"].image'
    )
    error = refused(cluster.apply, POD, "web", manager="b", sub="status", status={"phase": "Failed"})
    assert error.message == (
        'Apply failed with 1 conflict: conflict with "kubelet" with subresource "status" using v1: .status.phase'
    )


def test_several_conflicts_are_grouped_by_manager(cluster):
    cluster.apply(DEPLOYMENT, "web", manager="a", metadata={"labels": {"x": "1"}}, spec=deployment(2))
    cluster.apply(DEPLOYMENT, "web", manager="c", spec={"paused": True})
    parts = {"metadata": {"labels": {"x": "2"}}, "spec": {"paused": False, "replicas": 3}}
    error = refused(cluster.apply, DEPLOYMENT, "web", manager="b", **copy.deepcopy(parts))
    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "a":\n- .metadata.labels.x\n- .spec.replicas\n'
        'conflicts with "c":\n- .spec.paused'
    )
    cluster.apply(DEPLOYMENT, "web", manager="b", force=True, **parts)
    assert cluster.managed(DEPLOYMENT, "web")[B] == {
        "f:metadata": {"f:labels": {"f:x": {}}},
        "f:spec": {"f:paused": {}, "f:replicas": {}},
    }
    assert ("c", "Apply", "") not in cluster.managed(DEPLOYMENT, "web")  # it owns nothing any more
    assert "f:replicas" not in cluster.managed(DEPLOYMENT, "web")[A]["f:spec"]


def test_equal_values_are_shared(cluster):
    cluster.apply(CONFIG, "c", manager="a", data={"x": "1", "y": "1"})
    before = cluster.read(CONFIG, "c")
    cluster.apply(CONFIG, "c", manager="b", data={"x": "1"})
    assert cluster.managed(CONFIG, "c") == {
        A: {"f:data": {"f:x": {}, "f:y": {}}},
        B: {"f:data": {"f:x": {}}},
    }
    assert cluster.read(CONFIG, "c").rest is before.rest
    cluster.apply(CONFIG, "c", manager="a", data={"y": "1"})
    assert cluster.get(CONFIG, "c")["data"] == {"x": "1", "y": "1"}  # b still owns x
    cluster.apply(CONFIG, "c", manager="b", metadata={"labels": {"k": "v"}})
    assert cluster.get(CONFIG, "c")["data"] == {"y": "1"}


def test_what_an_update_changes_is_no_longer_the_appliers(cluster):
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=deployment(2))
    cluster.merge(DEPLOYMENT, "web", {"spec": {"replicas": 5}}, manager="u")
    managed = cluster.managed(DEPLOYMENT, "web")
    assert "f:replicas" not in managed[A]["f:spec"]
    assert managed[("u", "Update", "")] == {"f:spec": {"f:replicas": {}}}
    error = refused(cluster.apply, DEPLOYMENT, "web", manager="a", spec=deployment(2))
    assert error.message == ('Apply failed with 1 conflict: conflict with "u" using apps/v1: .spec.replicas')
    cluster.apply(DEPLOYMENT, "web", manager="a", force=True, spec=deployment(2))
    assert ("u", "Update", "") not in cluster.managed(DEPLOYMENT, "web")


def test_one_name_may_apply_and_update(cluster):
    cluster.create(CONFIG, "c", manager="a", data={"x": "1"})
    cluster.apply(CONFIG, "c", manager="a", data={"x": "1"})
    assert set(cluster.managed(CONFIG, "c")) == {A, ("a", "Update", "")}
    error = refused(cluster.apply, CONFIG, "c", manager="a", data={"x": "2"})
    assert 'conflict with "a" using v1: .data.x' in error.message


# -- taking back -----------------------------------------------------------------------------------------------


def test_what_is_no_longer_applied_goes(cluster):
    cluster.apply(
        DEPLOYMENT,
        "web",
        manager="a",
        metadata={"labels": {"x": "1", "y": "1"}, "annotations": {"n": "1"}, "finalizers": ["e.io/a", "e.io/b"]},
        spec={
            **containers(
                {"name": "one", "image": "i", "env": [{"name": "E", "value": "1"}], "args": ["x"]},
                {"name": "two", "image": "i"},
            ),
            "paused": True,
        },
    )
    cluster.apply(
        DEPLOYMENT,
        "web",
        manager="a",
        metadata={"labels": {"x": "1"}, "finalizers": ["e.io/b"]},
        spec=containers({"name": "one", "image": "i"}),
    )
    new = cluster.get(DEPLOYMENT, "web")
    assert new["metadata"]["labels"] == {"x": "1"}
    assert "annotations" not in new["metadata"]
    assert new["metadata"]["finalizers"] == ["e.io/b"]
    assert "paused" not in new["spec"]
    (one,) = new["spec"]["template"]["spec"]["containers"]
    assert one["name"] == "one"
    assert "env" not in one
    assert "args" not in one


def test_defaults_come_back_when_a_choice_is_taken_back(cluster):
    cluster.apply(DEPLOYMENT, "web", manager="a", spec={**deployment(5), "strategy": {"type": "Recreate"}})
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=deployment())
    spec = cluster.get(DEPLOYMENT, "web")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["type"] == "RollingUpdate"


def test_items_and_fields_of_others_are_kept(cluster):
    cluster.apply(
        DEPLOYMENT, "web", manager="a", spec=containers({"name": "one", "image": "i"}, {"name": "two", "image": "i"})
    )
    cluster.apply(
        DEPLOYMENT,
        "web",
        manager="b",
        spec={
            "template": {
                "spec": {"containers": [{"name": "two", "image": "i", "args": ["x"]}, {"name": "three", "image": "j"}]},
            }
        },
    )
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=containers({"name": "one", "image": "i"}))
    found = cluster.get(DEPLOYMENT, "web")["spec"]["template"]["spec"]["containers"]
    assert [item["name"] for item in found] == ["one", "two", "three"]
    assert found[1]["args"] == ["x"]
    assert found[1]["image"] == "i"  # shared with b


def test_an_item_with_nothing_but_defaults_goes_with_its_applier(cluster):
    cluster.apply(
        DEPLOYMENT, "web", manager="a", spec=containers({"name": "one", "image": "i"}, {"name": "two", "image": "i"})
    )
    found = cluster.get(DEPLOYMENT, "web")["spec"]["template"]["spec"]["containers"]
    assert "terminationMessagePath" in found[1]  # unowned
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=containers({"name": "one", "image": "i"}))
    found = cluster.get(DEPLOYMENT, "web")["spec"]["template"]["spec"]["containers"]
    assert [item["name"] for item in found] == ["one"]


def test_top_level_fields_are_taken_back(cluster):
    cluster.apply(CONFIG, "c", manager="a", data={"x": "1"}, immutable=False, binaryData={"b": "AA=="})
    cluster.apply(CONFIG, "c", manager="a", metadata={"labels": {"k": "v"}})
    made = cluster.get(CONFIG, "c")
    assert not {"data", "immutable", "binaryData"} & made.keys()


def test_atomic_lists_are_one_field(cluster):
    spec = containers({"name": "one", "image": "i", "args": ["a", "b"]})
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=spec)
    other = {"template": {"spec": {"containers": [{"name": "one", "args": ["a", "c"]}]}}}
    error = refused(cluster.apply, DEPLOYMENT, "web", manager="b", spec=copy.deepcopy(other))
    assert '.spec.template.spec.containers[name="one"].args' in error.message
    cluster.apply(DEPLOYMENT, "web", manager="b", force=True, spec=other)
    (one,) = cluster.get(DEPLOYMENT, "web")["spec"]["template"]["spec"]["containers"]
    assert one["args"] == ["a", "c"]


def test_keys_with_defaults_identify_items(cluster):
    """A port without protocol is the TCP one."""
    ports = [{"containerPort": 80, "protocol": "UDP", "name": "u"}, {"containerPort": 80, "name": "t"}]
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=containers({"name": "one", "image": "i", "ports": ports}))
    entry = cluster.managed(DEPLOYMENT, "web")[A]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert set(entry['k:{"name":"one"}']["f:ports"]) == {
        'k:{"containerPort":80,"protocol":"TCP"}',
        'k:{"containerPort":80,"protocol":"UDP"}',
    }
    ports = [{"containerPort": 80, "protocol": "TCP", "name": "new"}]
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=containers({"name": "one", "image": "i", "ports": ports}))
    (one,) = cluster.get(DEPLOYMENT, "web")["spec"]["template"]["spec"]["containers"]
    assert one["ports"] == ports
    error = refused(
        cluster.apply,
        DEPLOYMENT,
        "web",
        manager="b",
        spec=containers({"name": "one", "image": "i", "ports": [{"containerPort": 80, "name": "mine"}]}),
    )
    assert error.message.endswith('.ports[containerPort=80,protocol="TCP"].name')


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        ("a b c", "", "a b c"),
        ("", "a b", "a b"),
        ("a b c", "a b c", "a b c"),
        ("a b c", "c b a", "c b a"),
        ("a b x", "b a", "b x a"),
        ("x a b", "c a", "x c a b"),
        ("a x b", "b a", "x b a"),
        ("a x b y", "a n b m", "a x n b y m"),
        ("x y", "a b", "x y a b"),
        ("a", "b a c", "b a c"),
        ("x a y b z", "b n a", "x y b z n a"),
    ],
)
def test_order_of_merged_lists(old, new, merged):
    schema = Kinds.builtin().get("", "Pod").schema.fields["spec"].fields["containers"]

    def items(text):
        return freeze([{"name": name} for name in text.split()])

    result = merge(schema, items(old), items(new))
    assert " ".join(item["name"] for item in result) == merged


# -- nothing to do ---------------------------------------------------------------------------------------------


def test_applying_the_same_again_keeps_the_version(cluster):
    parts = {"metadata": {"labels": {"x": "1"}}, "spec": deployment(2)}
    cluster.apply(DEPLOYMENT, "web", manager="a", **copy.deepcopy(parts))
    before = cluster.read(DEPLOYMENT, "web")
    cluster.now += 100
    reply = cluster.apply(DEPLOYMENT, "web", manager="a", **copy.deepcopy(parts))
    assert isinstance(reply, Reply)
    assert cluster.read(DEPLOYMENT, "web") is before
    cluster.apply(DEPLOYMENT, "web", manager="b", spec={"replicas": 2})
    shared = cluster.read(DEPLOYMENT, "web")
    assert shared is not before
    assert shared.spec is before.spec
    cluster.apply(DEPLOYMENT, "web", manager="b", spec={"replicas": 2})
    cluster.apply(DEPLOYMENT, "web", manager="a", **copy.deepcopy(parts))
    assert cluster.read(DEPLOYMENT, "web") is shared


def test_times_of_entries(cluster):
    cluster.apply(CONFIG, "c", manager="a", data={"x": "1"})
    assert cluster.times(CONFIG, "c") == {("a", "Apply"): NOW_TEXT}
    cluster.now += 60
    cluster.apply(CONFIG, "c", manager="a", data={"x": "1"})
    assert cluster.times(CONFIG, "c") == {("a", "Apply"): NOW_TEXT}
    cluster.apply(CONFIG, "c", manager="a", data={"x": "2"})
    assert cluster.times(CONFIG, "c") == {("a", "Apply"): "2026-05-28T20:27:40Z"}
    cluster.now += 60
    cluster.merge(CONFIG, "c", {"data": {"x": "3"}}, manager="u")
    assert cluster.times(CONFIG, "c") == {("u", "Update"): "2026-05-28T20:28:40Z"}
    cluster.now += 60
    cluster.merge(CONFIG, "c", {"data": {"x": "4"}}, manager="u")
    assert cluster.times(CONFIG, "c") == {("u", "Update"): "2026-05-28T20:29:40Z"}


# -- status ----------------------------------------------------------------------------------------------------


def test_status_is_applied_on_its_own(cluster):
    cluster.apply(DEPLOYMENT, "web", manager="a", spec=deployment(2), status={"replicas": 9})
    assert cluster.get(DEPLOYMENT, "web").get("status", {}).get("replicas") != 9
    assert "f:status" not in cluster.managed(DEPLOYMENT, "web")[A]
    conditions = [{"type": "Available", "status": "True"}]
    cluster.apply(DEPLOYMENT, "web", manager="a", sub="status", spec={"replicas": 7}, status={"conditions": conditions})
    cluster.apply(DEPLOYMENT, "web", manager="b", sub="status", status={"replicas": 2})
    made = cluster.get(DEPLOYMENT, "web")
    assert made["spec"]["replicas"] == 2
    assert made["status"]["replicas"] == 2
    assert made["status"]["conditions"] == conditions
    managed = cluster.managed(DEPLOYMENT, "web")
    assert managed[("b", "Apply", "status")] == {"f:status": {"f:replicas": {}}}
    cluster.apply(DEPLOYMENT, "web", manager="a", sub="status", status={"readyReplicas": 1})
    status = cluster.get(DEPLOYMENT, "web")["status"]
    assert (status.get("conditions"), status["replicas"], status["readyReplicas"]) == (None, 2, 1)


# -- custom kinds ----------------------------------------------------------------------------------------------

TREE = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "plain": {"type": "array", "items": {"type": "string"}},
                "block": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                },
                "pools": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}
WIDGET = "example.com/v1/Widget"


@pytest.fixture
def widgets():
    made = Cluster(crd(TREE))
    made.create("v1/Namespace", "shop")
    return made


def test_sets_and_atomic_maps(widgets):
    widgets.apply(WIDGET, "w", manager="a", spec={"tags": ["x", "y"], "block": {"a": 1}, "plain": ["p"]})
    widgets.apply(WIDGET, "w", manager="b", spec={"tags": ["z", "x"]})
    assert widgets.get(WIDGET, "w")["spec"]["tags"] == ["z", "x", "y"]
    error = refused(widgets.apply, WIDGET, "w", manager="b", spec={"block": {"b": 2}, "tags": ["z"]})
    assert error.message == 'Apply failed with 1 conflict: conflict with "a": .spec.block'
    widgets.apply(WIDGET, "w", manager="b", force=True, spec={"block": {"b": 2}, "tags": ["z"]})
    spec = widgets.get(WIDGET, "w")["spec"]
    assert spec["block"] == {"b": 2}
    assert sorted(spec["tags"]) == ["x", "y", "z"]
    widgets.apply(WIDGET, "w", manager="a", spec={"tags": ["x"]})
    assert sorted(widgets.get(WIDGET, "w")["spec"]["tags"]) == ["x", "z"]
    assert widgets.managed(WIDGET, "w")[A] == {"f:spec": {"f:tags": {'v:"x"': {}}}}


def test_keys_of_maps_are_members(widgets):
    widgets.apply(WIDGET, "w", manager="a", spec={"pools": {"p": {"min": 1}}, "free": {"deep": {"x": 1}}})
    assert widgets.managed(WIDGET, "w")[A] == {
        "f:spec": {
            "f:pools": {"f:p": {".": {}, "f:min": {}}},
            "f:free": {"f:deep": {".": {}, "f:x": {}}},
        }
    }
    widgets.apply(WIDGET, "w", manager="b", spec={"pools": {"p": {"max": 5}}})
    widgets.apply(WIDGET, "w", manager="a", spec={"free": {"deep": {"x": True}}})
    spec = widgets.get(WIDGET, "w")["spec"]
    assert spec["pools"] == {"p": {"max": 5}}
    assert spec["free"]["deep"]["x"] is True  # though 1 == True in Python


def test_updates_of_custom_kinds_own_the_sections_too(widgets):
    widgets.create(WIDGET, "w", manager="u", spec={"size": 2})
    assert widgets.managed(WIDGET, "w") == {("u", "Update", ""): {"f:spec": {".": {}, "f:size": {}}}}


# -- texts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:a", 'k:{"name":"x"}', "f:b"), '.a[name="x"].b'),
        (("f:a", 'k:{"port":80,"protocol":"TCP"}'), '.a[port=80,protocol="TCP"]'),
        (("f:a", 'k:{"name":"odd\\":,\\"x"}'), '.a[name="odd\\":,\\"x"]'),
        (("f:a", 'v:"x"'), '.a[="x"]'),
        (("f:a", "v:5"), ".a[=5]"),
    ],
)
def test_paths_in_conflicts(path, text):
    assert path_text(path) == text
