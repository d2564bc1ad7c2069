"""The registry of kinds, and the committed data file against a fresh compile."""

import importlib.util
import zlib
from pathlib import Path

import pytest

from steersman.api.kinds import VERBS, Kinds, UnknownKind
from steersman.api.schema import SchemaError

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "compile_kinds.py"
DATA = ROOT / "src" / "steersman" / "api" / "data" / "kinds.json.z"


@pytest.fixture(scope="module")
def kinds() -> Kinds:
    return Kinds.builtin()


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("compile_kinds", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def crd(**changes):
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"], "categories": ["all"]},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    document["spec"].update(changes)
    return document


# The data file


def test_committed_file_is_a_fresh_compile(script):
    # Compared unpacked: another build of zlib may pack the same text into other bytes.
    assert zlib.decompress(DATA.read_bytes()) == script.compile_payload()


def test_compiling_twice_gives_the_same_bytes(script):
    assert script.compile_payload() == script.compile_payload()


def test_unknown_keyword_stops_the_compile(script):
    with pytest.raises(SystemExit, match=r"x\.y: keywords \['oneOf'\]"):
        script.node({"type": "string", "oneOf": []}, "x.y")


# Kinds of Kubernetes 1.36


def test_pod(kinds):
    pod = kinds.get("", "Pod")
    assert (pod.api_version, pod.plural, pod.singular, pod.list_kind) == ("v1", "pods", "pod", "PodList")
    assert (pod.gk, pod.resource, pod.short_names, pod.categories) == (("", "Pod"), "pods", ("po",), ("all",))
    assert pod.namespaced and pod.has_status and not pod.custom
    assert pod.verbs == VERBS
    assert {"status", "binding", "eviction", "log", "exec", "resize"} <= set(pod.subresources)
    assert pod.subresources == tuple(sorted(pod.subresources))


def test_scale_endpoint_has_the_kind_of_its_bodies(kinds):
    (scale,) = [e for e in kinds.get("apps", "Deployment").endpoints if e.name == "scale"]
    assert (scale.api_version, scale.kind, scale.verbs) == ("autoscaling/v1", "Scale", ("get", "patch", "update"))


def test_cluster_kinds_and_odd_verbs(kinds):
    namespace = kinds.get("", "Namespace")
    assert not namespace.namespaced
    assert "deletecollection" not in namespace.verbs
    assert kinds.get("", "ComponentStatus").verbs == ("get", "list", "watch")


def test_every_group_is_there_and_sorted(kinds):
    groups = {k.group for k in kinds.all()}
    assert {"", "apps", "batch", "autoscaling", "policy", "apiextensions.k8s.io", "coordination.k8s.io"} <= groups
    assert {"storage.k8s.io", "events.k8s.io", "discovery.k8s.io", "rbac.authorization.k8s.io"} <= groups
    assert [k.gk for k in kinds.all()] == sorted(k.gk for k in kinds.all())
    assert len(kinds.all()) == 69


def test_preferred_version_is_stored_and_the_others_served(kinds):
    hpa = kinds.get("autoscaling", "HorizontalPodAutoscaler")
    assert (hpa.version, hpa.served) == ("v2", ("v1",))
    claim = kinds.get("resource.k8s.io", "ResourceClaim")
    assert (claim.version, claim.served) == ("v1", ("v1beta2", "v1beta1"))


def test_reviews_and_bindings_are_virtual(kinds):
    names = {k.kind for k in kinds.virtual()}
    assert {"Binding", "TokenReview", "SelfSubjectAccessReview"} <= names
    with pytest.raises(UnknownKind):
        kinds.get("authentication.k8s.io", "TokenReview")


def test_every_schema_names_its_kind_and_has_object_meta(kinds):
    for kind in kinds.all():
        assert kind.schema.name.endswith("." + kind.kind), kind
        assert kind.schema.fields["metadata"] is kinds.get("", "Pod").schema.fields["metadata"], kind
        assert kind.has_status <= ("status" in kind.schema.fields), kind


def test_builtin_is_one_registry():
    assert Kinds.builtin() is Kinds.builtin()


def test_option_kinds_are_definitions(kinds):
    for name in (
        "io.k8s.api.policy.v1.Eviction",
        "io.k8s.api.autoscaling.v1.Scale",
        "io.k8s.api.core.v1.Binding",
        "io.k8s.api.authentication.v1.TokenRequest",
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    ):
        assert kinds.definition(name).fields["kind"].type == "string"
    with pytest.raises(SchemaError, match=r"did you mean io\.k8s\.api\.policy\.v1\.Eviction"):
        kinds.definition("io.k8s.api.policy.v1.Evicton")


# Lookups


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("deploy", "apps/v1/Deployment"),
        ("Deployment", "apps/v1/Deployment"),
        (" deployments ", "apps/v1/Deployment"),
        ("deployments.apps", "apps/v1/Deployment"),
        ("deployments.v1.apps", "apps/v1/Deployment"),
        ("apps/v1/Deployment", "apps/v1/Deployment"),
        ("apps/v1/deployments", "apps/v1/Deployment"),
        ("v1/Pod", "v1/Pod"),
        ("Pod", "v1/Pod"),
        ("pods.v1.", "v1/Pod"),
        ("crd", "apiextensions.k8s.io/v1/CustomResourceDefinition"),
        ("event", "v1/Event"),
        ("events.events.k8s.io", "events.k8s.io/v1/Event"),
    ],
)
def test_find(kinds, text, found):
    assert str(kinds.find(text)) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("deplyoment", "did you mean apps/v1/Deployment"),
        ("apps/v1beta1/Deployment", "does not exist: write apiVersion apps/v1"),
        ("autoscaling/v1/HorizontalPodAutoscaler", "by conversion only: write apiVersion autoscaling/v2"),
        ("extensions/v1beta1/Ingress", "did you mean networking.k8s.io/v1/Ingress"),
        ("pods.apps", "did you mean v1/Pod"),
        ("Widget", "register its CustomResourceDefinition"),
        ("", "no kind ''"),
        ("/", "no kind '/'"),
    ],
)
def test_find_says_what_to_do(kinds, text, words):
    with pytest.raises(UnknownKind) as caught:
        kinds.find(text)
    assert words in str(caught.value)


def test_by_api_version_and_plural(kinds):
    deployment = kinds.get("apps", "Deployment")
    assert kinds.by_api_version("apps/v1", "Deployment") is deployment
    assert kinds.by_plural("apps", "v1", "deployments") is deployment
    assert kinds.by_plural("", "v1", "pods") is kinds.by_api_version("v1", "Pod")
    with pytest.raises(UnknownKind, match=r"apps/v2 does not exist: write apiVersion apps/v1"):
        kinds.by_api_version("apps/v2", "Deployment")
    with pytest.raises(UnknownKind, match="did you mean apps/v1/Deployment"):
        kinds.by_api_version("v1", "Deployment")
    with pytest.raises(UnknownKind, match="did you mean v1/Pod"):
        kinds.by_plural("", "v1", "podz")


# Custom kinds


def test_custom_kind(kinds):
    widget = Kinds.custom_from_yaml_dict(crd(), "foo.yaml")
    assert (widget.api_version, widget.kind, widget.plural) == ("example.com/v1", "Widget", "widgets")
    assert (widget.singular, widget.list_kind) == ("widget", "WidgetList")
    assert widget.custom and widget.has_status and widget.namespaced and sorted(widget.verbs) == list(VERBS)
    more = kinds.with_custom(widget)
    assert [more.find(t) for t in ("wd", "Widget", "widgets.example.com", "example.com/v1/Widget")] == [widget] * 4
    assert more.get("", "Pod") is kinds.get("", "Pod")
    assert more.virtual() == kinds.virtual()
    with pytest.raises(UnknownKind):
        kinds.find("widgets")


def test_custom_kind_replaces_its_older_self_only(kinds):
    old = Kinds.custom_from_yaml_dict(crd(), "foo.yaml")
    new = Kinds.custom_from_yaml_dict(crd(scope="Cluster"), "foo.yaml")
    assert kinds.with_custom(old).with_custom(new).find("wd") is new
    document = crd(names={"kind": "Gadget", "plural": "widgets"})
    gadget = Kinds.custom_from_yaml_dict(document, "foo.yaml")
    with pytest.raises(ValueError, match=r"widgets\.example\.com already names example\.com/v1/Widget"):
        kinds.with_custom(old).with_custom(gadget)
    document = crd(group="batch.k8s.io", names={"kind": "Job", "plural": "jobs"})
    document["metadata"]["name"] = "jobs.batch.k8s.io"
    assert kinds.with_custom(Kinds.custom_from_yaml_dict(document, "foo.yaml")).find("job").group == "batch"


def test_builtin_kind_is_not_replaced(kinds):
    document = crd(group="storage.k8s.io", names={"kind": "CSINode", "plural": "csinodes"})
    document["metadata"]["name"] = "csinodes.storage.k8s.io"
    with pytest.raises(ValueError, match="is built in"):
        kinds.with_custom(Kinds.custom_from_yaml_dict(document, "foo.yaml"))


def test_word_of_two_custom_kinds_is_refused(kinds):
    for group in ("a.io", "b.io"):
        document = crd(group=group)
        document["metadata"]["name"] = f"widgets.{group}"
        kinds = kinds.with_custom(Kinds.custom_from_yaml_dict(document, "foo.yaml"))
    with pytest.raises(UnknownKind, match=r"'wd' may mean widgets\.a\.io or widgets\.b\.io"):
        kinds.find("wd")
    assert kinds.find("wd.b.io").group == "b.io"
