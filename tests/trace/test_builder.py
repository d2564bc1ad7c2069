"""A recording made from versions of objects."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.trace import sktrace
from steersman.trace.builder import TraceBuilder
from steersman.trace.filters import ExportFilters
from steersman.trace.gvk import GVK
from steersman.trace.podlife import PodLife
from steersman.trace.recording import TraceError, TraceEvent
from steersman.trace.spechash import pod_hash, spec_hash
from steersman.trace.tracked import Tracked

DEPLOYMENTS = {"apps/v1.Deployment": Tracked(lifecycle=True)}
BARE = {"v1.Pod": Tracked(lifecycle=True, skip_owned=True)}


def make(kind, name, spec=None, *, namespace="shop", owner=None, uid="", labels=None, status=None):
    """An object as an API server sends it; `kind` as in `apps/v1.Deployment`, `owner` another object."""
    gvk = GVK.parse(kind)
    metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": "1"}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    if owner:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        metadata["ownerReferences"] = [{**reference, "name": owner["metadata"]["name"], "uid": "u"}]
    obj = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}
    if spec is not None:
        obj["spec"] = spec
    if status is not None:
        obj["status"] = status
    return obj


POD_SPEC = {"containers": [{"name": "c", "image": "i"}]}


def moment(second):
    return f"1970-01-01T00:{second // 60:02}:{second % 60:02}Z"


def pod(name, start=None, end=None, **more):
    """A pod whose only container runs since `start` or ran until `end`."""
    state = {"waiting": {}}
    if start is not None:
        state = {"running": {"startedAt": moment(start)}}
    if end is not None:
        state = {"terminated": {"startedAt": moment(start), "finishedAt": moment(end)}}
    return make("v1.Pod", name, POD_SPEC, status={"containerStatuses": [{"state": state}]}, **more)


def names(objects):
    return [(obj["kind"], obj["metadata"]["name"]) for obj in objects]


WEB = make("apps/v1.Deployment", "web", {"replicas": 1})
SET = make("apps/v1.ReplicaSet", "web-1", {"replicas": 1}, owner=WEB)


def test_only_a_change_of_the_spec_is_an_event():
    b = TraceBuilder(DEPLOYMENTS)
    b.apply(WEB, 10.9)
    b.apply(make("apps/v1.Deployment", "web", {"replicas": 1}, labels={"a": "b"}, status={"replicas": 1}), 12)
    b.apply(make("apps/v1.Deployment", "web", {"replicas": 2}), 13.2)
    b.apply(make("v1.ConfigMap", "settings"), 13.5)
    b.delete(WEB, 20)
    b.delete(WEB, 21)
    trace = b.export(5, 30)
    assert [(e.ts, len(e.applied), len(e.deleted)) for e in trace.events] == [
        (5, 0, 0),
        (10, 1, 0),
        (13, 1, 0),
        (20, 0, 1),
    ]
    assert trace.events[3].deleted[0] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"annotations": {}, "name": "web", "namespace": "shop"},
    }
    assert trace.index == {"apps/v1.Deployment": {"shop/web": spec_hash({"replicas": 2})}}
    assert trace.config == DEPLOYMENTS
    assert sktrace.loads(sktrace.dumps(trace)) == trace


def test_what_is_kept_is_a_copy():
    b = TraceBuilder(DEPLOYMENTS)
    obj = make("apps/v1.Deployment", "web", {"replicas": 1})
    b.apply(obj, 1)
    obj["spec"]["replicas"] = 5
    assert b.export().events[1].applied[0]["spec"] == {"replicas": 1}


def test_events_of_one_second_are_merged():
    b = TraceBuilder(DEPLOYMENTS)
    other = make("apps/v1.Deployment", "other", {})
    b.apply(WEB, 10.1)
    b.apply(other, 10.2)
    b.delete(WEB, 10.9)
    assert [(names(e.applied), names(e.deleted)) for e in b.export(10, 11).events[1:]] == [
        ([("Deployment", "web"), ("Deployment", "other")], [("Deployment", "web")])
    ]


def test_deleted_and_applied_again_within_a_second_is_not_lost():
    b = TraceBuilder(DEPLOYMENTS)
    b.apply(WEB, 5)
    b.delete(WEB, 10.1)
    b.apply(WEB, 10.2)
    events = b.export(0, 20).events
    assert [(e.ts, len(e.applied), len(e.deleted)) for e in events[2:]] == [(10, 0, 1), (10, 1, 0)]


def test_a_clock_that_steps_back():
    b = TraceBuilder(DEPLOYMENTS)
    b.apply(WEB, 10)
    b.delete(WEB, 7)
    assert [e.ts for e in b.export().events] == [10, 10]


def test_state_at_the_start():
    b = TraceBuilder(DEPLOYMENTS)
    gone = make("apps/v1.Deployment", "gone", {})
    b.apply(gone, 1)
    b.apply(WEB, 2)
    b.apply(make("apps/v1.Deployment", "web", {"replicas": 3}), 3)
    b.delete(gone, 4)
    b.apply(make("apps/v1.Deployment", "late", {}), 10)
    trace = b.export(5, 10)
    assert [e.ts for e in trace.events] == [5]
    assert [obj["spec"] for obj in trace.events[0].applied] == [{"replicas": 3}]
    assert trace.index == {"apps/v1.Deployment": {"shop/web": spec_hash({"replicas": 3})}}


def test_same_name_different_kind():
    # In SimKube 2.7 one of the two is lost: the state at the start is keyed by name alone.
    config = {"apps/v1.Deployment": Tracked(), "apps/v1.StatefulSet": Tracked()}
    b = TraceBuilder(config)
    b.apply(WEB, 1)
    b.apply(make("apps/v1.StatefulSet", "web", {}), 1)
    b.apply(make("apps/v1.StatefulSet", "web", {}, namespace="other"), 1)
    assert names(b.export(5, 10).events[0].applied) == [
        ("Deployment", "web"),
        ("StatefulSet", "web"),
        ("StatefulSet", "web"),
    ]
    b.delete(make("apps/v1.StatefulSet", "web"), 2)
    assert [obj["metadata"]["namespace"] for obj in b.export(5, 10).events[0].applied] == ["shop", "other"]


def test_what_an_exported_object_owns_is_left_out():
    config = {**DEPLOYMENTS, "apps/v1.ReplicaSet": Tracked(), "v1.Pod": Tracked()}
    b = TraceBuilder(config)
    lone = make("apps/v1.ReplicaSet", "lone", {})
    for obj in (WEB, SET, pod("web-1-a", owner=SET), lone, pod("d", owner=make("apps/v1.DaemonSet", "d"))):
        b.apply(obj, 1)
    assert names(b.export(0, 5).events[1].applied) == [("Deployment", "web"), ("ReplicaSet", "lone")]
    b.delete(SET, 6)
    assert len(b.export(0, 10).events) == 2
    only = ExportFilters(excluded_labels=({"matchExpressions": [{"key": "x", "operator": "Exists"}]},))
    b.apply(make("apps/v1.Deployment", "hidden", {}, labels={"x": ""}), 7)
    b.apply(make("apps/v1.Deployment", "there", {}, namespace="kube-system"), 7)
    assert names(b.export(6, 10, only).events[1].applied) == [("Deployment", "there")]
    outside = ExportFilters(excluded_namespaces=frozenset({"kube-system"}))
    assert names(b.export(6, 10, outside).events[1].applied) == [("Deployment", "hidden")]


def test_skip_owned():
    b = TraceBuilder({"apps/v1.ReplicaSet": Tracked(skip_owned=True)})
    b.apply(SET, 1)
    b.apply(make("apps/v1.ReplicaSet", "lone", {}), 1)
    b.delete(SET, 2)
    assert [(names(e.applied), names(e.deleted)) for e in b.export(0, 9).events[1:]] == [([("ReplicaSet", "lone")], [])]


def test_lives_go_to_the_first_tracked_owner():
    b = TraceBuilder(DEPLOYMENTS)
    for obj in (WEB, SET, pod("a", owner=SET), pod("b", owner=SET)):
        b.apply(obj, 1)
    b.apply(pod("b", 5, owner=SET), 6)
    b.apply(pod("a", 7, owner=SET), 8)
    b.apply(pod("b", 5, 15, owner=SET), 16)
    b.apply(pod("b", 5, 19, owner=SET), 20)  # not further: ignored
    b.delete(pod("b", 5, 15, owner=SET), 21)
    here = ("apps/v1.Deployment", "shop/web")
    assert b.export(0, 30).lifecycles == {here: {pod_hash(POD_SPEC): (PodLife(5, 15), PodLife(7))}}
    b.delete(pod("a", owner=SET), 25)
    assert b.export(0, 30).lifecycles == {here: {pod_hash(POD_SPEC): (PodLife(5, 15), PodLife(7, 25))}}
    assert b.export(10, 20).lifecycles == {here: {pod_hash(POD_SPEC): (PodLife(10, 15), PodLife(10, 25))}}
    assert b.export(26, 30).lifecycles == {}


def test_a_container_that_restarts_keeps_its_first_start():
    b = TraceBuilder(BARE)
    b.apply(pod("p", 5), 6)
    b.apply(pod("p", 9), 10)
    b.apply(pod("p", 9, 12), 13)
    b.delete({**pod("p"), "status": {}}, 20)
    assert b.export(0, 30).lifecycles["v1.Pod", "shop/p"] == {pod_hash(POD_SPEC): (PodLife(5, 20),)}


def test_a_pod_made_again_under_its_name_has_a_life_of_its_own():
    b = TraceBuilder(BARE)
    b.apply(pod("p", 5, uid="one"), 6)
    b.delete(pod("p", 5, uid="one"), 10)
    b.apply(pod("p", 12, uid="two"), 13)
    b.delete({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}, 20)
    assert b.export(0, 30).lifecycles["v1.Pod", "shop/p"] == {pod_hash(POD_SPEC): (PodLife(5, 10), PodLife(12, 20))}


def test_a_bare_pod_first_seen_ended_at_its_deletion():
    b = TraceBuilder(BARE)
    b.apply(pod("p"), 1)
    b.delete(pod("p", 2, 4), 9)
    assert b.export(0, 30).lifecycles["v1.Pod", "shop/p"] == {pod_hash(POD_SPEC): (PodLife(2, 4),)}


def test_bare_pods_that_finished_before_the_start_are_left_out():
    b = TraceBuilder(BARE)
    for name, start, end in (("old", 1, 3), ("long", 2, 12), ("new", 11, 13)):
        b.apply(pod(name, start), start)
        b.apply(pod(name, start, end), end)
    trace = b.export(10, 20)
    assert [names(e.applied) for e in trace.events] == [[("Pod", "long")], [("Pod", "new")]]
    assert set(trace.index["v1.Pod"]) == {"shop/long", "shop/new"}


def test_lookup_of_owners_that_were_never_fed():
    asked = []

    def lookup(gvk, namespace, name):
        asked.append((str(gvk), namespace, name))
        return SET if gvk.kind == "ReplicaSet" else None

    b = TraceBuilder({**DEPLOYMENTS, "v1.Pod": Tracked()}, lookup)
    b.apply(WEB, 1)
    b.apply(pod("a", 5, owner=SET), 6)
    assert asked == [("apps/v1.ReplicaSet", "shop", "web-1")]
    trace = b.export(0, 9)
    assert list(trace.lifecycles) == [("apps/v1.Deployment", "shop/web")]
    assert [names(e.applied) for e in trace.events[1:]] == [[("Deployment", "web")]]


def test_owners_in_a_circle():
    b = TraceBuilder({"v1.Pod": Tracked(lifecycle=True)})
    one, two = make("x/v1.A", "one"), make("x/v1.A", "two")
    b.apply(make("x/v1.A", "one", owner=two), 1)
    b.apply(make("x/v1.A", "two", owner=one), 1)
    b.apply(pod("p", 5, owner=one), 6)
    assert b.export(0, 9).lifecycles == {}


@pytest.mark.parametrize(
    "obj",
    [
        None,
        {},
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": {1, 2}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": [1]},
    ],
)
def test_what_is_no_object_is_refused(obj):
    b = TraceBuilder(BARE)
    for feed in (b.apply, b.delete):
        with pytest.raises(TraceError, match="not a Kubernetes object"):
            feed(obj, 1)


def test_refused_times_and_exports():
    b = TraceBuilder(DEPLOYMENTS)
    with pytest.raises(TraceError, match="nothing of a tracked kind"):
        b.export()
    for ts in (-1, float("nan"), float("inf")):
        with pytest.raises(TraceError, match="is no time"):
            b.apply(WEB, ts)
    b.apply(WEB, 1)
    with pytest.raises(TraceError, match="no time from"):
        b.export(5, 5)
    with pytest.raises(ValueError, match="does not name a kind"):
        TraceBuilder({"Deployment": Tracked()})


steps = st.lists(
    st.tuples(
        st.sampled_from(["apply", "delete"]),
        st.sampled_from(["apps/v1.Deployment", "apps/v1.StatefulSet"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
        st.floats(0, 2.5),
    ),
    max_size=25,
)


def replayed(events):
    """What a replay of `events` leaves: it applies before it deletes."""
    state = {}
    for event in events:
        for obj in event.applied:
            state[obj["kind"], obj["metadata"]["name"]] = obj["spec"]
        for obj in event.deleted:
            state.pop((obj["kind"], obj["metadata"]["name"]), None)
    return state


@settings(max_examples=150, deadline=None)
@given(steps, st.integers(0, 40), st.integers(1, 40))
def test_a_replay_ends_where_the_cluster_was(steps, start, length):
    b = TraceBuilder({"apps/v1.Deployment": Tracked(), "apps/v1.StatefulSet": Tracked()})
    end, now, state = start + length, 0.0, {}
    for verb, kind, name, replicas, wait in steps:
        now += wait
        obj = make(kind, name, {"replicas": replicas})
        getattr(b, verb)(obj, now)
        if now < end and verb == "apply":
            state[obj["kind"], name] = obj["spec"]
        elif now < end:
            state.pop((obj["kind"], name), None)
    trace = b.export(start, end)
    assert replayed(trace.events) == state
    assert isinstance(trace.events[0], TraceEvent) and trace.events[0].ts == start
    assert sktrace.loads(sktrace.dumps(trace)) == trace
