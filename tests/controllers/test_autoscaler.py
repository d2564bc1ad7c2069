"""The horizontal pod autoscaler: counts, tolerances, pods nothing is known of, windows, policies, conditions."""

import pytest

from steersman.controllers.autoscaler import PERIOD, HorizontalPodAutoscaler
from steersman.kernel.effect import MICRO
from steersman.kernel.object import Key
from steersman.nodes.usage import ask
from tests.controllers.worlds import LABELS, client, deployment, explore, make, one, settle, user

HPA = "autoscaling/v2/HorizontalPodAutoscaler"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


def autoscaler(name="web", metrics=(CPU,), low=1, high=10, target=None, **spec):
    ref = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": ref, "minReplicas": low, "maxReplicas": high, "metrics": list(metrics), **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}


def world(*objects, replicas=2, users=(), external=ask, **options):
    w = make([HorizontalPodAutoscaler], [deployment(replicas), *objects], users, external=external, **options)
    client(w).patch_status(Key("apps", "Deployment", "default", "web"), {"replicas": replicas})
    w.now += PERIOD * MICRO  # it is no longer new: what goes wrong is told
    return w


def add_pods(w, *usage, request="100m", phase="Running", ready="True", start="2020-01-01T00:00:00Z", first=0):
    """Running pods that use so much CPU; None: nothing is known of them."""
    c = client(w)
    for number, used in enumerate(usage, first):
        notes = {} if used is None else {"kwok.x-k8s.io/usage-cpu": used}
        meta = {"name": f"p{number}", "namespace": "default", "labels": LABELS, "annotations": notes}
        container = {"name": "web", "image": "i", "resources": {"requests": {"cpu": request}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
        made = c.create({**pod, "spec": {**pod["spec"], "nodeName": "node-1"}})
        conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": start}]
        c.patch_status(made, {"phase": phase, "startTime": start, "conditions": conditions})


def once(w):
    """Everything but the next look, 15 seconds later."""
    return settle(w)


def later(w, seconds):
    """The looks of the next seconds."""
    end = w.now + seconds * MICRO
    while w.wakes and min(w.wakes.values()) <= end:
        w.fire(min(w.wakes, key=lambda item: (w.wakes[item], item)))
        settle(w)
    return w


def replicas(w):
    return one(w, "apps/v1/Deployment").spec.replicas


def conditions(w, name="web"):
    return {each.type: (each.status, each.reason) for each in one(w, HPA, name).status.conditions}


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        (["50m", "50m"], 2),  # on target
        (["52m", "52m"], 2),  # within a tenth of it
        (["100m", "100m"], 4),
        (["60m", "50m"], 2),  # 55 %: 1.1, just within
        (["56m", "56m"], 3),
        (["10m", "10m"], 2),  # not down at once: the first count seen is a recommendation
    ],
)
def test_utilisation(usage, wanted):
    w = world(autoscaler())
    add_pods(w, *usage)
    once(w)
    assert replicas(w) == wanted


def test_the_status_says_what_was_seen():
    w = world(autoscaler())
    add_pods(w, "100m", "100m")
    once(w)
    status = one(w, HPA).status
    assert (status.currentReplicas, status.desiredReplicas) == (2, 4) and status.lastScaleTime
    current = {"averageUtilization": 100, "averageValue": "100m"}
    assert status.currentMetrics == [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    assert conditions(w) == {
        "AbleToScale": ("True", "SucceededRescale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }
    message = "the HPA was able to successfully calculate a replica count from cpu resource utilization"
    assert status.conditions[1].message == f"{message} (percentage of request)"


def test_down_after_the_window():
    w = world(autoscaler())
    add_pods(w, "10m", "10m")
    once(w)
    assert replicas(w) == 2 and conditions(w)["AbleToScale"] == ("True", "ScaleDownStabilized")
    assert replicas(later(w, 270)) == 2
    assert replicas(later(w, 60)) == 1


def test_a_new_one_says_nothing_of_what_may_still_come():
    w = make([HorizontalPodAutoscaler], [deployment(1), autoscaler()], external=ask)
    settle(w)
    assert "conditions" not in one(w, HPA).status
    add_pods(w, "100m")
    later(w, PERIOD)
    assert replicas(w) == 2 and conditions(w)["ScalingActive"] == ("True", "ValidMetricFound")
    w = make([HorizontalPodAutoscaler], [deployment(1), autoscaler()], external=ask)
    later(settle(w), PERIOD)
    assert conditions(w)["ScalingActive"] == ("False", "FailedGetResourceMetric")


def test_bounds():
    w = world(autoscaler(low=3))
    add_pods(w, "50m", "50m")
    assert replicas(once(w)) == 3
    w = world(autoscaler(high=3), replicas=5)
    assert replicas(once(w)) == 3
    w = world(autoscaler(high=3))
    add_pods(w, "100m", "100m")
    assert replicas(once(w)) == 3 and conditions(w)["ScalingLimited"] == ("True", "TooManyReplicas")
    w = world(autoscaler(high=100))
    add_pods(w, "900m", "900m")
    assert replicas(once(w)) == 4 and conditions(w)["ScalingLimited"] == ("True", "ScaleUpLimit")
    w = world(autoscaler(), replicas=0)
    once(w)
    assert replicas(w) == 0 and conditions(w)["ScalingActive"] == ("False", "ScalingDisabled")


def test_pods_that_are_not_ready_and_pods_without_metrics():
    w = world(autoscaler(), replicas=3)
    add_pods(w, "100m", "100m")
    add_pods(w, "100m", phase="Pending", first=2)
    assert replicas(once(w)) == 4  # counts as idle: 200 of 300, 67 %, times 3

    def two_of_three(system, query):
        answer = ask(system, query)
        return {"pods": [each for each in answer["pods"] if each["name"] != "p2"]}

    w = world(autoscaler(low=1), replicas=3, external=two_of_three)
    add_pods(w, "10m", "10m", "10m")
    once(w)  # down: the third counts as fully busy: 120 of 300, 40 %
    later(w, 330)
    assert replicas(w) == 3  # 0.8 times 3 is 3
    w = world(autoscaler(), replicas=1)
    add_pods(w, "100m", ready="False", start="2026-01-01T00:00:00Z")
    once(w)
    assert conditions(w)["ScalingActive"] == ("False", "FailedGetResourceMetric")
    message = one(w, HPA).status.conditions[1].message
    assert message.endswith("did not receive metrics for targeted pods (pods might be unready)")


def test_average_values_memory_and_containers():
    value = {"type": "AverageValue", "averageValue": "50m"}
    w = world(autoscaler(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": value}}]))
    add_pods(w, "75m", "75m")
    assert replicas(once(w)) == 3
    half = {"type": "Utilization", "averageUtilization": 50}
    inner = {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "web", "target": half}}
    w = world(autoscaler(metrics=[inner]))
    add_pods(w, "100m", "100m")
    assert replicas(once(w)) == 4
    assert one(w, HPA).status.currentMetrics[0].containerResource.container == "web"
    bad = {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "none", "target": half}}
    w = world(autoscaler(metrics=[bad]))
    add_pods(w, "100m", "100m")
    once(w)
    assert conditions(w)["ScalingActive"] == ("False", "FailedGetContainerResourceMetric")


def test_pods_object_and_external_metrics():
    answers = {
        "Pods": {"pods": [{"name": "p0", "value": "30"}, {"name": "p1", "value": "30"}]},
        "Object": {"value": "60"},
        "External": {"values": ["40", "50"]},
    }
    about = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    each = {"type": "AverageValue", "averageValue": "10"}
    whole = {"type": "Value", "value": "20"}
    pods = {"metric": {"name": "rps"}, "target": each}
    object_ = {"describedObject": about, "metric": {"name": "rps"}, "target": whole}
    for spec, wanted, field in (
        ({"type": "Pods", "pods": pods}, 4, "pods"),
        ({"type": "Object", "object": object_}, 4, "object"),
        ({"type": "External", "external": {"metric": {"name": "q"}, "target": each}}, 4, "external"),
        (
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {**whole, "value": "60"}}},
            3,
            "external",
        ),
    ):
        w = world(autoscaler(metrics=[spec]), external=lambda system, query: answers[query["type"]])
        add_pods(w, "1m", "1m")
        assert replicas(once(w)) == wanted, spec
        assert field in one(w, HPA).status.currentMetrics[0]


@pytest.mark.parametrize(
    ("type_", "metric", "reason", "message"),
    [
        (
            "Pods",
            {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "1"}},
            "FailedGetPodsMetric",
            "unable to get metric rps: unable to fetch metrics from custom metrics API: no custom metrics API",
        ),
        (
            "External",
            {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}},
            "FailedGetExternalMetric",
            "count: unable to get external metric default/q/nil: unable to fetch metrics "
            "from external metrics API: the server could not find the requested resource (get q.external.metrics.",
        ),
        (
            "Resource",
            {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 1}},
            "FailedGetResourceMetric",
            "failed to get memory utilization: missing request for memory in container web of Pod p0",
        ),
    ],
)  # fmt: skip
def test_metrics_nobody_has(type_, metric, reason, message):
    spec = {"type": type_, type_[0].lower() + type_[1:]: metric}
    w = world(autoscaler(metrics=[spec]))
    add_pods(w, "1m", "1m")
    once(w)
    assert replicas(w) == 2 and conditions(w)["ScalingActive"] == ("False", reason)
    assert message in one(w, HPA).status.conditions[1].message
    both = world(autoscaler(metrics=[spec, CPU]))  # up is safe, down is not
    add_pods(both, "100m", "100m")
    assert replicas(once(both)) == 4 and conditions(both)["ScalingActive"] == ("True", "ValidMetricFound")


def test_policies():
    slow = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
    w = world(autoscaler(behavior=slow))
    add_pods(w, "300m", "300m")
    assert replicas(once(w)) == 3 and conditions(w)["ScalingLimited"] == ("True", "ScaleUpLimit")
    assert replicas(later(w, 45)) == 3
    assert replicas(later(w, 30)) == 4
    rules = {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}], "stabilizationWindowSeconds": 0}
    w = world(autoscaler(behavior={"scaleDown": rules}), replicas=8)
    add_pods(w, *["1m"] * 8)
    assert replicas(once(w)) == 4 and conditions(w)["ScalingLimited"] == ("True", "ScaleDownLimit")
    w = world(autoscaler(behavior={"scaleDown": {**rules, "selectPolicy": "Disabled"}}), replicas=8)
    add_pods(w, *["1m"] * 8)
    assert replicas(once(w)) == 8
    wait = {"scaleUp": {"stabilizationWindowSeconds": 60}}
    w = world(autoscaler(behavior=wait))
    add_pods(w, "100m", "100m")
    assert replicas(once(w)) == 2 and conditions(w)["AbleToScale"] == ("True", "ScaleUpStabilized")
    assert replicas(later(w, 75)) == 4
    wide = {"scaleUp": {"tolerance": "0.5"}, "scaleDown": {}}
    w = world(autoscaler(behavior=wide))
    add_pods(w, "70m", "70m")
    assert replicas(once(w)) == 2


def test_targets():
    w = world(autoscaler(target={"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}))
    once(w)
    status = one(w, HPA).status
    assert conditions(w) == {"AbleToScale": ("False", "FailedGetScale")}
    assert status.conditions[0].message.endswith('current scale: deployments.apps "none" not found')
    w = world(autoscaler(target={"apiVersion": "x.io/v1", "kind": "Thing", "name": "none"}))
    once(w)
    assert 'no matches for kind "Thing" in group "x.io"' in one(w, HPA).status.conditions[0].message
    w = world(autoscaler(), autoscaler("two"))
    add_pods(w, "100m", "100m")
    once(w)
    assert conditions(w)["ScalingActive"] == ("False", "AmbiguousSelector")
    assert replicas(w) == 2
    assert "[default/two default/web]" in one(w, HPA).status.conditions[1].message


def test_every_order_of_load_and_looks_ends_within_bounds():
    def world_of():
        busy = {"metadata": {"annotations": {"kwok.x-k8s.io/usage-cpu": "300m"}}}
        steps = [user("load", lambda c: c.patch(Key("", "Pod", "default", "p0"), busy))]
        w = world(autoscaler(high=3), users=steps)
        add_pods(w, "50m", "50m")
        return w.fork()

    def within(w):
        return 1 <= replicas(w) <= 3

    found = explore(world_of, within, limit=3_000, skip=("fire",))
    assert found.states > 10 and not found.findings
