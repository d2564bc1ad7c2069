"""A check that starts from a recording at a time, or from a cluster's state."""

import pytest
import yaml

import steersman as sm
from steersman.api.times import time_text
from steersman.check.mistake import ScenarioError
from steersman.check.origin import cluster
from steersman.check.origin.source import HIDDEN, started
from steersman.testing import control_plane
from steersman.trace import sktrace
from steersman.trace.recording import Trace, TraceEvent
from tests.check.models import config, controller, key

ROLLOUT = "examples/rollout.sktrace"


class Watches(sm.Controller):
    kind = "apps/v1/Deployment"
    owns = ("apps/v1/ReplicaSet",)
    reads = ("v1/ConfigMap:data", "v1/Secret:data")

    def reconcile(self, c, key):
        c.get(key)


def start(source, *applied, run=Watches):
    w = sm.Scenario("real")
    for obj in applied:
        w.apply(obj)
    w.run(run)
    other = started(w, source)
    return w, other.world(other.system()).store


def names(store, gk=("apps", "Deployment")):
    return [obj.key.name for obj in store.list(gk)]


@pytest.mark.parametrize(
    "at, there",
    [("@0", ["web"]), ("@1", ["cart", "web"]), ("@116", ["cart", "web"]), ("@117", ["web"]), ("", ["web"]),
     ("@2026-11-30T12:00:00Z", ["cart", "web"])],
)  # fmt: skip
def test_a_recording_at_a_time(at, there):
    trace = sktrace.read(ROLLOUT)
    at = f"@{time_text(trace.events[0].ts + 1)}" if "T" in at else at
    assert names(start(f"{ROLLOUT}{at}")[1]) == there


def deployment(name, **more):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": "shop", **more}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def recorded(path, *objects):
    trace = Trace(config={}, events=(TraceEvent(100, tuple(objects)),), index={}, lifecycles={})
    sktrace.write(path, trace)
    return str(path)


def test_objects_are_theirs_and_not_their_incarnations(tmp_path):
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "there", "controller": True}
    gone = {**owner, "name": "gone"}
    copy = deployment("web-1", ownerReferences=[owner, gone]) | {"kind": "ReplicaSet"}
    web = deployment("web", uid="there", resourceVersion="77", generation=7, finalizers=["example.com/f"])
    web["status"] = {"replicas": 1, "observedGeneration": 7}
    _, store = start(recorded(tmp_path / "t.sktrace", copy, web))
    found = store.get(sm.Key("apps", "Deployment", "shop", "web"))
    assert found.uid not in ("", "there") and found.metadata["generation"] == 1
    assert found.status_value == {"replicas": 1, "observedGeneration": 1}
    assert found.metadata["finalizers"] == ["example.com/f"]
    (kept,) = store.get(sm.Key("apps", "ReplicaSet", "shop", "web-1")).metadata["ownerReferences"]
    assert (kept["name"], kept["uid"]) == ("web", found.uid)


def test_what_is_real_takes_the_place_of_what_is_applied(tmp_path):
    path = recorded(
        tmp_path / "t.sktrace", config("a", x="real"), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    )
    w, store = start(path, config("a", x="applied"), config("b"))
    assert store.get(key("a")).value["data"] == {"x": "real"} and store.get(key("b")) is not None
    assert store.get(sm.Key("", "Node", "", "n")) is None, "nobody reads it"
    plain = w.world(w.system()).store
    assert plain.get(key("a")).value["data"] == {"x": "applied"}, "the scenario itself is as it was"


def test_a_check_starts_there(tmp_path):
    path = recorded(tmp_path / "t.sktrace", config("a", x="1"))

    def reconcile(c, at):
        if c.get(at).data.x:
            c.patch(at, {"data": {"y": "1"}})

    w = sm.Scenario("real")
    w.run(controller("reacts", reconcile))
    w.always("no y", lambda s: not s[key("a")].data.y)
    assert sm.check(w).holds
    assert [v.name for v in sm.check(w, from_=path).violations] == ["no y"]


def test_cycles_of_owners_end(tmp_path):
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "u"} for name in "ab"]
    objects = [config(name) for name in "ab"]
    for obj, owner in zip(objects, reversed(owners), strict=True):
        obj["metadata"]["ownerReferences"] = [owner]
    assert names(start(recorded(tmp_path / "t.sktrace", *objects))[1], ("", "ConfigMap")) == ["a", "b"]


@pytest.mark.parametrize(
    "source, says",
    [
        (f"{ROLLOUT}@soon", "'soon' is not a time"),
        ("no.sktrace@3", "cannot read it"),
        ("pyproject.toml", "it is no YAML"),
        ("no-such-file", "No such file"),
        ("examples/web.yaml", "it has no current-context; give a kubeconfig, or a recording"),
    ],
)
def test_a_source_that_is_none(source, says):
    with pytest.raises(ScenarioError, match=says):
        start(source)


def kubeconfig(path, cluster, user):
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    path.write_text(yaml.safe_dump({"current-context": "c", "contexts": [context], "clusters": [
        {"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}]}))  # fmt: skip
    return str(path)


HERE = {"server": "https://127.0.0.1:1"}


@pytest.mark.parametrize(
    "cluster, user, says",
    [
        ({}, {}, "its cluster has no server"),
        ({"server": "file:///etc/passwd"}, {}, "its cluster has no server"),
        (HERE, {"exec": {"command": "sh"}}, r"its user asks a program \(exec\)"),
        (HERE | {"insecure-skip-tls-verify": True}, {}, "would trust anybody"),
        (HERE | {"certificate-authority-data": "!"}, {}, "is no base64"),
        (HERE | {"certificate-authority-data": "YQ=="}, {}, "certificates cannot be used"),
        (HERE, {}, "the cluster cannot be reached"),
    ],
)
def test_a_kubeconfig_that_does_not_do(tmp_path, cluster, user, says):
    with pytest.raises(ScenarioError, match=says):
        start(kubeconfig(tmp_path / "config", cluster, user))


def test_a_cluster_is_read(tmp_path, monkeypatch):
    """The objects of a real API server, page by page."""
    monkeypatch.setattr(cluster, "PAGE", 2)
    with control_plane(controllers=[]) as plane:
        source = cluster.Cluster(str(plane.kubeconfig))
        kinds = sm.Scenario().kinds
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
        for obj in [*[config(name, x=name) for name in "abcde"], {**secret, "stringData": {"password": "p"}}]:
            plane.client.create(obj)
        with source:
            assert {"a", "b", "c", "d", "e"} <= {o["metadata"]["name"] for o in source.list(kinds.find("v1/ConfigMap"))}
        _, store = start(str(plane.kubeconfig))
        assert store.get(key("c")).value["data"] == {"x": "c"}
        assert store.get(sm.Key("", "Secret", "default", "s")).value["data"] == {"password": HIDDEN}
        monkeypatch.setattr(cluster, "MAX_OBJECTS", 3)
        with pytest.raises(ScenarioError, match="more than 3 objects"):
            start(str(plane.kubeconfig))
