"""Deployment, as its users see it: rollouts, scaling, pauses, revisions and conditions."""

from steersman.controllers.builtin import builtin
from steersman.controllers.deployment import Deployment
from steersman.controllers.replicaset import ReplicaSet
from steersman.kernel.object import Key
from steersman.kernel.transition import enabled, step
from steersman.nodes.kubelet import VirtualKubelet
from tests.controllers.worlds import (
    LABELS,
    client,
    deployment,
    make,
    objects,
    one,
    put,
    ready_pods,
    replicaset,
    settle,
    template,
)

ALL = [*builtin("deployment", "replicaset", "garbage-collector", "namespace"), VirtualKubelet]
WEB = Key("apps", "Deployment", "default", "web")
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


def rollout(w, image, **settings):
    client(w).patch(WEB, {"spec": {"template": template(image, "node-1")}})
    return settle(w, **settings)


def unplaced(image):
    """A template whose pods are bound to no node and so never become ready (as a merge patch: null removes)."""
    found = template(image, "")
    return {**found, "spec": {**found["spec"], "nodeName": None}}


def is_rolled_out(d):
    """What `kubectl rollout status` waits for (kubectl pkg/polymorphichelpers/rollout_status.go)."""
    status, spec = d.status, d.spec
    if d.metadata.generation > (status.observedGeneration or 0):
        return False
    if (status.updatedReplicas or 0) < spec.replicas or (status.replicas or 0) > (status.updatedReplicas or 0):
        return False
    return (status.availableReplicas or 0) >= (status.updatedReplicas or 0)


def condition(obj, type_):
    return next(each for each in obj.status.conditions if each.type == type_)


def deadlined(replicas=2, **spec):
    obj = deployment(replicas, **spec)
    del obj["spec"]["progressDeadlineSeconds"]
    return obj


def sizes(w):
    """Replicas by image."""
    return {rs.spec.template.spec.containers[0].image: rs.spec.replicas for rs in objects(w, "ReplicaSet")}


def test_a_first_rollout():
    w = settle(make(ALL, [deadlined(3)]))
    d, rs = one(w, "Deployment"), objects(w, "ReplicaSet")[0]
    assert ready_pods(w) == 3 and is_rolled_out(d)
    assert d.metadata.annotations[REVISION] == rs.metadata.annotations[REVISION] == "1"
    hashed = rs.metadata.labels[HASH]
    assert rs.metadata.name == f"web-{hashed}" == f"web-{rs.spec.selector.matchLabels[HASH]}"
    assert {pod.metadata.labels[HASH] for pod in objects(w, "Pod")} == {hashed}
    progressing, available = condition(d, "Progressing"), condition(d, "Available")
    assert (progressing.status, progressing.reason) == ("True", "NewReplicaSetAvailable")
    assert progressing.message == f'ReplicaSet "web-{hashed}" has successfully progressed.'
    assert (available.status, available.reason) == ("True", "MinimumReplicasAvailable")
    assert not w.wakes, "nothing is timed once it is complete"


def test_a_rolling_update_keeps_to_its_bounds_at_every_step():
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    w = settle(make(ALL, [deployment(4, strategy=rolling)]))
    client(w).patch(WEB, {"spec": {"template": template("nginx:2", "node-1")}})
    for _ in range(5_000):
        actions = enabled(w)
        if not actions:
            break
        step(w, actions[-1])
        assert sum(rs.spec.replicas for rs in objects(w, "ReplicaSet")) <= 5
        assert ready_pods(w) >= 3
    assert is_rolled_out(one(w, "Deployment")) and sizes(w) == {"nginx:1": 0, "nginx:2": 4}
    assert one(w, "Deployment").metadata.annotations[REVISION] == "2"


def test_rolling_back_brings_the_old_replicaset_a_new_revision():
    w = settle(make(ALL, [deadlined(2)]))
    first = objects(w, "ReplicaSet")[0].metadata.name
    rollout(w, "nginx:2")
    rollout(w, "nginx:1")
    assert sizes(w) == {"nginx:1": 2, "nginx:2": 0} and len(objects(w, "ReplicaSet")) == 2
    old = one(w, "ReplicaSet", first).metadata.annotations
    assert old[REVISION] == one(w, "Deployment").metadata.annotations[REVISION] == "3"
    assert old["deployment.kubernetes.io/revision-history"] == "1"


def test_recreate_has_no_two_templates_at_a_time():
    w = settle(make(ALL, [deployment(2, strategy={"type": "Recreate"})]))
    client(w).patch(WEB, {"spec": {"template": template("nginx:2", "node-1")}})
    for _ in range(5_000):
        actions = [action for action in enabled(w) if action.op != "fire"]
        if not actions:
            break
        step(w, actions[len(actions) // 2])
        assert len({pod.spec.containers[0].image for pod in objects(w, "Pod")}) <= 1
    settle(w, timers=True)
    assert sizes(w) == {"nginx:1": 0, "nginx:2": 2} and ready_pods(w) == 2


def test_scaling_in_the_middle_of_a_rollout_is_in_proportion():
    """Kubernetes' own example: 10 replicas, maxSurge 3, maxUnavailable 2, a bad image, scaled to 15."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    w = settle(make(ALL, [deployment(10, strategy=rolling)]))
    c = client(w)
    c.patch(WEB, {"spec": {"template": unplaced("bad")}})
    settle(w)
    assert sizes(w) == {"nginx:1": 8, "bad": 5}
    c.patch(WEB, {"spec": {"replicas": 15}})
    settle(w)
    assert sizes(w) == {"nginx:1": 11, "bad": 7}


def test_a_paused_deployment_scales_and_does_not_roll():
    w = settle(make(ALL, [deadlined(2)]))
    c = client(w)
    c.patch(WEB, {"spec": {"paused": True}})
    settle(w)
    assert condition(one(w, "Deployment"), "Progressing").reason == "DeploymentPaused"
    c.patch(WEB, {"spec": {"replicas": 3, "template": template("nginx:2", "node-1")}})
    settle(w)
    assert sizes(w) == {"nginx:1": 3}
    c.patch(WEB, {"spec": {"paused": None}})
    settle(w)
    assert sizes(w) == {"nginx:1": 0, "nginx:2": 3}
    assert condition(one(w, "Deployment"), "Progressing").reason == "NewReplicaSetAvailable"


def test_a_rollout_that_stands_still_passes_its_deadline_and_recovers():
    w = settle(make(ALL, [deadlined(2)]))
    client(w).patch(WEB, {"spec": {"template": unplaced("bad")}})
    settle(w)
    assert condition(one(w, "Deployment"), "Progressing").reason == "ReplicaSetUpdated"
    settle(w, timers=True)
    progressing = condition(one(w, "Deployment"), "Progressing")
    assert (progressing.status, progressing.reason) == ("False", "ProgressDeadlineExceeded")
    rollout(w, "nginx:3", timers=True)
    d = one(w, "Deployment")
    assert condition(d, "Progressing").reason == "NewReplicaSetAvailable" and is_rolled_out(d)


def test_old_revisions_beyond_the_limit_are_deleted():
    w = settle(make(ALL, [deployment(1, revisionHistoryLimit=1)]))
    for image in ("nginx:2", "nginx:3", "nginx:4"):
        rollout(w, image)
    assert set(sizes(w)) == {"nginx:3", "nginx:4"}


def test_a_template_whose_name_is_taken_gets_another_hash():
    w = settle(make([Deployment], [deployment(1)]))
    name = objects(w, "ReplicaSet")[0].metadata.name
    squatter = replicaset(1, name, selector={"matchLabels": {"app": "other"}})
    squatter["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    w = make(ALL, [squatter])
    put(w, deployment(1))
    settle(w)
    d = one(w, "Deployment")
    assert d.status.collisionCount == 1 and is_rolled_out(d)
    assert len(objects(w, "ReplicaSet")) == 2


def test_an_orphaned_replicaset_is_adopted_with_its_revision():
    old = replicaset(1, "old")
    old["metadata"]["labels"] = LABELS
    w = make([Deployment, ReplicaSet, VirtualKubelet], [old])
    settle(w)
    put(w, deployment(1, node="node-1"))
    settle(w)
    sets = objects(w, "ReplicaSet")
    assert [rs.metadata.name for rs in sets] == ["old"], "the templates are equal: it is the newest"
    assert sets[0].metadata.ownerReferences[0].kind == "Deployment"


def test_its_annotations_are_handed_down_but_for_its_own():
    obj = deployment(1)
    obj["metadata"]["annotations"] = {"team": "blue", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    w = settle(make(ALL, [obj]))
    client(w).patch(WEB, {"metadata": {"annotations": {"team": "red"}}})
    settle(w)
    annotations = objects(w, "ReplicaSet")[0].metadata.annotations
    assert annotations["team"] == "red" and "kubectl.kubernetes.io/last-applied-configuration" not in annotations


def test_min_ready_seconds_reach_the_replicaset_and_the_rollout_waits_for_them():
    w = settle(make(ALL, [deployment(1, minReadySeconds=10)]))
    assert objects(w, "ReplicaSet")[0].spec.minReadySeconds == 10
    assert not is_rolled_out(one(w, "Deployment"))
    settle(w, timers=True)
    assert is_rolled_out(one(w, "Deployment"))


def test_deleting_it_leaves_nothing():
    w = settle(make(ALL, [deployment(2)]))
    client(w).delete(WEB)
    settle(w)
    assert [obj.key.kind for obj in w.store.objects()] == ["Namespace"] and not w.memory
