"""Each rule finds its breach, and only there; a repaired trace has nothing left to repair."""

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.trace import sktrace
from steersman.trace.podlife import PodLife
from steersman.trace.recording import Trace, TraceEvent
from steersman.trace.spechash import pod_hash, spec_hash
from steersman.trace.tracked import Tracked
from steersman.trace.validate import RULES, fixed, validate
from tests.trace.strategies import traces

UNREPAIRABLE = {code for code, rule in RULES.items() if not rule.fix}


def deployment(pod_spec, **more):
    metadata = {"annotations": {}, "name": "web", "namespace": "shop"}
    spec = {"template": {"spec": pod_spec}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec, **more}


def other(kind, name, **more):
    metadata = {"annotations": {}, "name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def recording(*events, index=None, lifecycles=None):
    kinds = ("apps/v1.Deployment", "v1.Pod", "v1.Secret", "v1.ConfigMap", "v1.ServiceAccount")
    config = {kind: Tracked() for kind in kinds}
    return Trace(2, config, tuple(TraceEvent(i, *each) for i, each in enumerate(events)), index or {}, lifecycles or {})


def codes(trace):
    return [finding.rule.code for finding in validate(trace)]


def container(**fields):
    return {"containers": [{"name": "main", **fields}]}


def secret_env(**more):
    return container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", **more}}}])


BROKEN = {
    "E0001": ({"serviceAccountName": "s"}, "ServiceAccount", {}),
    "E0002": (secret_env(), "Secret", container(env=[])),
    "E0003": (container(envFrom=[{"configMapRef": {"name": "s"}}]), "ConfigMap", container(envFrom=[])),
    "E0004": (
        {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
        "Secret",
        {"volumes": [{"name": "v", "emptyDir": {}}]},
    ),
    "E0005": (
        {"volumes": [{"name": "v", "configMap": {"name": "s"}}]},
        "ConfigMap",
        {"volumes": [{"name": "v", "emptyDir": {}}]},
    ),
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_reference_to_what_is_not_there(code):
    spec, kind, repaired = BROKEN[code]
    broken = recording([(deployment(spec),)])
    assert codes(broken) == [code]
    assert fixed(broken).events[0].applied[0]["spec"]["template"]["spec"] == repaired
    assert codes(recording([(deployment(spec), other(kind, "s"))])) == []
    assert codes(recording([(other(kind, "s"),)], [(deployment(spec),)])) == []
    gone = recording([(other(kind, "s"),)], [(), (other(kind, "s"),)], [(deployment(spec),)])
    assert codes(gone) == [code]
    elsewhere = other(kind, "s")
    elsewhere["metadata"]["namespace"] = "bank"
    assert codes(recording([(elsewhere, deployment(spec))])) == [code]


def test_the_name_counts_and_what_is_optional_is_not_needed():
    assert codes(recording([(deployment(secret_env()), other("Secret", "k"))])) == ["E0002"]
    assert codes(recording([(deployment(secret_env(optional=True)),)])) == []
    init = {"initContainers": secret_env()["containers"]}
    assert codes(recording([(deployment(init),)])) == ["E0002"]


def test_status_secrets_and_kinds():
    assert codes(recording([(deployment({}, status={"replicas": 1}),)])) == ["W0000"]
    assert codes(recording([(deployment({}, status=None),)])) == []
    secret = recording([(other("Secret", "s", data={"k": "aGVsbG8="}),)])
    assert codes(secret) == ["S0003"] and "data" not in fixed(secret).events[0].applied[0]
    assert codes(recording([(other("Endpoints", "e"),)])) == ["S0004"]


def test_a_deletion_of_nothing():
    twice = recording([(deployment({}),)], [(), (deployment({}),)], [(), (deployment({}),)])
    assert codes(twice) == ["S0002"]
    assert [len(event.deleted) for event in fixed(twice).events] == [0, 1, 0]


def test_the_index_follows_what_is_repaired():
    spec = {"template": {"spec": {"serviceAccountName": "s"}}}
    broken = recording(
        [(deployment({"serviceAccountName": "s"}),)], index={"apps/v1.Deployment": {"shop/web": spec_hash(spec)}}
    )
    assert codes(broken) == ["E0001"]
    hashes = fixed(broken).index["apps/v1.Deployment"]
    assert hashes == {"shop/web": spec_hash({"template": {"spec": {}}})}
    stale = recording([(deployment({}),)], index={"apps/v1.Deployment": {"shop/web": 7}})
    assert codes(stale) == ["S0001"] and codes(fixed(stale)) == []


def test_a_bare_pod_keeps_its_life():
    pod = other("Pod", "p", spec=secret_env())
    lives = {("v1.Pod", "shop/p"): {pod_hash(pod["spec"]): (PodLife(1, 5),)}}
    repaired = fixed(recording([(pod,)], lifecycles=lives))
    assert repaired.lifecycles == {("v1.Pod", "shop/p"): {pod_hash(container(env=[])): (PodLife(1, 5),)}}


def test_a_life_that_ends_before_it_begins():
    broken = recording(lifecycles={("v1.Pod", "shop/p"): {1: (PodLife(5, 3),)}})
    assert codes(broken) == ["S0005"]
    assert fixed(broken).lifecycles == {("v1.Pod", "shop/p"): {1: (PodLife(5, 5),)}}


things = st.sampled_from(
    [deployment(spec) for spec, _, _ in BROKEN.values()]
    + [other("Pod", "p", spec=spec, status={"phase": "Running"}) for spec, _, _ in BROKEN.values()]
    + [other(kind, "s", data={"k": "aGVsbG8="}) for kind in ("Secret", "ConfigMap", "ServiceAccount")]
)
some = st.lists(things, max_size=3).map(tuple)
wrong = st.lists(st.tuples(some, some), max_size=5).map(
    lambda events: recording(
        *events, index={"v1.Pod": {"shop/p": 3}}, lifecycles={("v1.Pod", "shop/p"): {1: (PodLife(5, 3),)}}
    )
)


@given(wrong | traces())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_whatever_the_trace_a_repair_leaves_nothing_and_changes_no_input(trace):
    before = copy.deepcopy(trace)
    repaired = fixed(trace)
    assert trace == before
    assert set(codes(repaired)) <= UNREPAIRABLE
    assert fixed(repaired) == repaired
    sktrace.dumps(repaired)


@pytest.mark.parametrize(("name", "found"), [("bare-pods", {"S0001"}), ("cronjob", set()), ("dsb-scaling", set())])
def test_the_recordings_of_simkube(name, found, real_inputs):
    """bare-pods was transformed after it was exported, and SimKube's transform leaves the index as it was."""
    trace = sktrace.read(real_inputs / f"{name}.sktrace")
    assert set(codes(trace)) == found
    assert codes(fixed(trace)) == []
    if not found:
        assert sktrace.dumps(fixed(trace)) == (real_inputs / f"{name}.sktrace").read_bytes()
