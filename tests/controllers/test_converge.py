"""All controllers together, every interleaving of whole reconciles: they come to rest in one state, and the right one.

(Between single calls, two pods under a Deployment have some millions of states: that is what `steersman check` and its
reductions are for. ReplicaSet alone is explored between calls in test_replicaset.)
"""

from random import Random

import pytest

from steersman.controllers.builtin import builtin
from steersman.kernel.object import Key
from steersman.kernel.system import Learned
from steersman.kernel.transition import apply, enabled
from steersman.nodes.kubelet import VirtualKubelet
from tests.controllers.worlds import deployment, explore, make, objects, one, ready_pods, template, user

ALL = [*builtin("deployment", "replicaset", "garbage-collector", "namespace"), VirtualKubelet]
ROLL = [*builtin("deployment", "replicaset"), VirtualKubelet]
WEB = Key("apps", "Deployment", "default", "web")


def ends(found):
    assert not found.findings
    assert len({w.store.sum_canonical for w in found.terminal}) == 1, "confluent"
    w = found.terminal[0]
    return ready_pods(w), len(objects(w, "Pod")), [rs.spec.replicas for rs in objects(w, "ReplicaSet")]


def at_most(pods):
    return lambda w: len(objects(w, "Pod")) <= pods


@pytest.mark.parametrize(("replicas", "lag"), [(2, 0), (1, 1)])
def test_a_deployment_comes_up(replicas, lag):
    found = explore(lambda: make(ALL, [deployment(replicas)], lag=lag, atomic=True), at_most(replicas))
    assert ends(found) == (replicas, replicas, [replicas])


def test_its_deletion_at_any_moment_leaves_nothing():
    users = [user("delete", lambda c: c.delete(WEB))]
    found = explore(lambda: make(ALL, [deployment(1)], users, atomic=True), at_most(2))
    assert {tuple(obj.key.kind for obj in w.store.objects()) for w in found.terminal} == {("Namespace",)}


def test_scaling_down_at_any_moment():
    users = [user("scale", lambda c: c.patch(WEB, {"spec": {"replicas": 1}}))]
    found = explore(lambda: make(ALL, [deployment(2)], users, atomic=True), at_most(2))
    assert not found.findings  # which pod stays depends on how far each had come
    assert {(ready_pods(w), len(objects(w, "Pod"))) for w in found.terminal} == {(1, 1)}


def test_recreate_never_runs_two_templates_at_a_time():
    change = {"spec": {"template": template("nginx:2", "node-1")}}
    users = [user("change", lambda c: c.patch(WEB, change))]
    recreate = deployment(1, strategy={"type": "Recreate"})

    def one_template(w):
        return len({pod.spec.containers[0].image for pod in objects(w, "Pod")}) <= 1

    found = explore(lambda: make(ROLL, [recreate], users, atomic=True), one_template)
    assert not found.findings
    assert {(ready_pods(w), len(objects(w, "Pod"))) for w in found.terminal} == {(1, 1)}


def test_a_new_template_at_any_moment():
    change = {"spec": {"template": template("nginx:2", "node-1")}}
    users = [user("change", lambda c: c.patch(WEB, change))]
    found = explore(lambda: make(ROLL, [deployment(1)], users, atomic=True), at_most(3))
    assert not found.findings
    images = [{pod.spec.containers[0].image for pod in objects(w, "Pod")} for w in found.terminal]
    assert all(image == {"nginx:2"} for image in images)
    assert {(ready_pods(w), len(objects(w, "Pod"))) for w in found.terminal} == {(1, 1)}


@pytest.mark.parametrize("seed", range(6))
def test_random_walks_between_calls_with_stale_views_a_crash_and_conflicts(seed):
    """What is too large to be searched: two replicas, a new template, a scaling, every fault at once."""
    change = {"spec": {"template": template("nginx:2", "node-1")}}
    users = [
        user("change", lambda c: c.patch(WEB, change)),
        user("scale", lambda c: c.patch(WEB, {"spec": {"replicas": 3}})),
    ]
    dice = Random(seed)
    learned: list[Learned] = []
    while True:
        w = make(ALL, [deployment(2, progressDeadlineSeconds=600)], users, lag=1, budgets=(1, 1))
        for each in learned:
            w.system.learn(each)
        try:
            while actions := enabled(w):
                w = apply(w, dice.choice(actions))
            break
        except Learned as again:
            learned.append(again)
    d = one(w, "Deployment")
    assert ready_pods(w) == 3 == len(objects(w, "Pod")) == d.status.availableReplicas
    assert {pod.spec.containers[0].image for pod in objects(w, "Pod")} == {"nginx:2"}
    assert d.status.observedGeneration == d.metadata.generation
    assert next(c.reason for c in d.status.conditions if c.type == "Progressing") == "NewReplicaSetAvailable"
    assert not w.memory and not w.system.reexec.findings
