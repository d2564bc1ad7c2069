"""Controllers of workloads: each makes what it is asked for, while somebody changes his mind."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import steersman as sm
from steersman.controllers.builtin import builtin
from steersman.controllers.cronjob import SCHEDULED
from steersman.controllers.daemon_pods import target_of
from steersman.controllers.rollout import same_template
from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from steersman.nodes.node import node_object
from tests.check.targets.making import LONG_AGO, PODS, alive, gone, holds, named, web_pod
from tests.controllers.test_autoscaler import autoscaler
from tests.controllers.test_cronjob import cronjob as cron
from tests.controllers.test_disruption import budget
from tests.controllers.test_job import job as one_job
from tests.controllers.test_statefulset import stateful
from tests.controllers.worlds import LABELS, template
from tests.controllers.worlds import deployment as web
from tests.controllers.worlds import replicaset as web_set


def apps(kind: str) -> Key:
    return Key("apps", kind, "default", "web")


def _as_many(key: Key) -> Any:
    """An owner has so many pods as it asks for."""
    return lambda s: gone(s, key) or len(alive(s, key)) == s[key].spec.replicas


def deployment() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("deployment"))
    w.apply(web(1))
    change = {"spec": {"template": template("nginx:2")}}
    w.user("change", lambda c: c.patch(apps("Deployment"), change))
    newest = "deployment.kubernetes.io/revision"

    def sets(s: sm.State) -> list[Any]:
        uid = s[apps("Deployment")].metadata.uid
        owned = [each for each in s.list("apps/v1/ReplicaSet") if each.metadata.ownerReferences[0].uid == uid]
        return sorted(owned, key=lambda each: int((each.metadata.annotations or {}).get(newest, 0)))

    def one_each(s: sm.State) -> bool:
        templates = [each.spec.template for each in sets(s)]
        return not any(same_template(one, other) for one, other in combinations(templates, 2))

    def current(s: sm.State) -> bool:
        """The set of the image that is wanted is the newest, and asked for."""
        deployment = s[apps("Deployment")]
        if gone(s, apps("Deployment")):
            return True
        found, wanted = sets(s), deployment.spec.replicas
        if not found or not same_template(found[-1].spec.template, deployment.spec.template):
            return False
        return found[-1].spec.replicas == wanted if len(found) == 1 else bool(found[-1].spec.replicas) == bool(wanted)

    w.always("a set for each template", one_each)
    return w.converges(current)


def _image(each: Any) -> Any:
    """What the template of a workload says."""
    container = each.spec.template.spec.containers[0]
    return container.image, container.name


def replicaset() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("replicaset"))
    key = w.apply(web_set(2))
    w.user("scale", lambda c: c.patch(key, {"spec": {"replicas": 1}}))
    w.always("never too many", lambda s: len(alive(s, key)) <= 2)
    return w.converges(_as_many(key))


def replicationcontroller() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("replicationcontroller"))
    spec = {"replicas": 2, "selector": LABELS, "template": template()}
    key = w.apply(named("v1", "ReplicationController", spec=spec))
    w.user("scale", lambda c: c.patch(key, {"spec": {"replicas": 1}}))
    w.always("never too many", lambda s: len(alive(s, key)) <= 2)
    return w.converges(_as_many(key))


def statefulset() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("statefulset"), VirtualKubelet)
    return _changed(w, w.apply(stateful(2)))


def _changed(w: sm.Scenario, key: Key) -> sm.Scenario:
    """Somebody changes the image of a StatefulSet; every pod gets it, unless one that is not ready is waited for."""
    w.user("change", lambda c: c.patch(key, {"spec": {"template": template("nginx:2")}}))
    w.always("two names at most", lambda s: {each.metadata.name for each in s.list(PODS)} <= {"web-0", "web-1"})

    def rolled_out(s: sm.State) -> bool:
        if gone(s, key) or any(holds(pod, "Ready") != "True" for pod in alive(s, key)):
            return True
        return [_pod_image(pod) for pod in alive(s, key)] == [_image(s[key])] * s[key].spec.replicas

    return w.converges(rolled_out)


def _pod_image(each: Any) -> Any:
    return each.spec.containers[0].image, each.spec.containers[0].name


def daemonset() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("daemonset"), VirtualKubelet)
    w.apply(node_object("node-1"))
    spec = {"selector": {"matchLabels": LABELS}, "template": template(node="")}
    key = w.apply(named("apps/v1", "DaemonSet", spec=spec))
    w.user("change", lambda c: c.patch(key, {"spec": {"template": template("nginx:2", "")}}))

    def everywhere(s: sm.State) -> bool:
        """A pod of the newest template on every node; none waits for a node that is gone."""
        nodes = [each.metadata.name for each in s.list("v1/Node")]
        there = [(target_of(pod), _pod_image(pod)) for pod in alive(s, key) if not pod.spec.nodeName]
        return gone(s, key) or there == [(name, _image(s[key])) for name in nodes]

    return w.converges(everywhere)


def job() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("job"), VirtualKubelet)
    key = w.apply(one_job(completions=2, parallelism=1))
    w.user("hold", lambda c: [c.patch(key, {"spec": {"suspend": held}}) for held in (True, False)])
    w.always("counted once", lambda s: (s[key].status.succeeded or 0) <= 2)

    def done(s: sm.State) -> bool:
        """Unless somebody has asked for no pods."""
        asked = not gone(s, key) and s[key].spec.parallelism and not s[key].spec.suspend
        return not asked or (s[key].status.succeeded == 2 and holds(s[key], "Complete") == "True")

    return w.converges(done)


class Suspends(sm.Controller):
    """Suspends a CronJob once it has begun: years go by, and it would never come to rest."""

    kind = "batch/v1/CronJob"

    def reconcile(self, c: Any, key: Key) -> None:
        there = c.get(key)
        if there is not None and not there.spec.suspend and there.status.lastScheduleTime != LONG_AGO:
            c.patch(key, {"spec": {"suspend": True}})


def cronjob() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("cronjob"), Suspends)
    key = w.apply({**cron("0 0 1 1 *"), "status": {"lastScheduleTime": LONG_AGO}})
    w.user("annotate", lambda c: c.patch(key, {"metadata": {"annotations": {"a": "b"}}}))
    w.always("a Job for each time", lambda s: len(_times(s)) == s.count("batch/v1/Job"))
    return w.converges(lambda s: gone(s, key) or (s[key].status.lastScheduleTime != LONG_AGO and _times(s)))


def _times(s: sm.State) -> set[str]:
    return {each.metadata.annotations[SCHEDULED] for each in s.list("batch/v1/Job")}


def ttl() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("ttl-after-finished", "garbage-collector"))
    key = w.apply(one_job(ttlSecondsAfterFinished=0))
    said = {"status": "True", "lastTransitionTime": LONG_AGO}
    ended = [{"type": each, **said} for each in ("SuccessCriteriaMet", "Complete")]
    over = {"conditions": ended, "startTime": LONG_AGO, "completionTime": LONG_AGO}
    w.user("end", lambda c: c.patch_status(key, over))

    def stays(job: Any) -> bool:
        """It has not ended, or is to be kept."""
        return holds(job, "Complete") != "True" or "ttlSecondsAfterFinished" not in job.spec

    return w.converges(lambda s: gone(s, key) or stays(s[key]))


def disruption() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("disruption"), VirtualKubelet)
    w.apply(web_set(1))
    for name in ("a", "b"):
        w.apply(web_pod(name))
    key = w.apply(budget(minAvailable=1))
    w.user("delete", lambda c: c.delete(Key("", "Pod", "default", "a")))

    def counted(s: sm.State) -> bool:
        budget = s[key]
        if gone(s, key):
            return True
        labels = dict(budget.spec.selector.matchLabels or {})
        covered = [pod for pod in s.list(PODS, labels=labels) if holds(pod, "Ready") == "True"]
        healthy = len([pod for pod in covered if "deletionTimestamp" not in pod.metadata])
        allowed = max(0, healthy - budget.spec.minAvailable) if "minAvailable" in budget.spec else 0
        return (budget.status.currentHealthy, budget.status.disruptionsAllowed) == (healthy, allowed)

    return w.converges(counted)


def autoscaling() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("horizontal-pod-autoscaler-controller"))
    w.apply({**web(2), "status": {"replicas": 2}})
    key = w.apply(autoscaler(low=1, high=3))
    w.user("exaggerate", lambda c: c.patch(apps("Deployment"), {"spec": {"replicas": 9}}))
    w.always("within bounds or as somebody said", lambda s: s[apps("Deployment")].spec.replicas in (2, 3, 9))

    def within(s: sm.State) -> bool:
        target = s[apps("Deployment")]
        ref = s[key].spec.scaleTargetRef
        if not target or gone(s, key) or (ref.kind, ref.name) != ("Deployment", "web"):
            return True
        return (s[key].spec.minReplicas or 1) <= target.spec.replicas <= s[key].spec.maxReplicas

    return w.converges(within)


# -- several controllers together, and other sides of one ------------------------------------------------------------


def rollout() -> sm.Scenario:
    """Everybody who takes part in a Deployment's new image, with the pods that come of it."""
    w = sm.Scenario().run(*builtin("deployment", "replicaset", "garbage-collector"), VirtualKubelet)
    key = w.apply(web(1))
    w.user("change", lambda c: c.patch(key, {"spec": {"template": template("nginx:2")}}))

    def rolled_out(s: sm.State) -> bool:
        pods = [pod for pod in s.list(PODS, owner=key) if pod in alive(s)]
        if gone(s, key) or any(holds(pod, "Ready") != "True" for pod in pods):
            return True
        return [_pod_image(pod) for pod in pods] == [_image(s[key])] * s[key].spec.replicas

    return w.converges(rolled_out)


def adoption() -> sm.Scenario:
    """A pod that is there already is adopted, and released when its labels change."""
    w = sm.Scenario().run(*builtin("replicaset"))
    w.apply(web_pod("first"))
    key = w.apply(web_set(1))
    pod = Key("", "Pod", "default", "first")
    w.user("relabel", lambda c: c.patch(pod, {"metadata": {"labels": {"app": "other"}}}))
    w.always("never too many", lambda s: len(alive(s, key)) <= 1)
    return w.converges(_as_many(key))


def claims() -> sm.Scenario:
    """A pod that waits for its claim gets it again when somebody deletes it."""
    w = sm.Scenario().run(*builtin("statefulset"))
    disk = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    key = w.apply(stateful(1, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": disk}]))
    claim = Key("", "PersistentVolumeClaim", "default", "data-web-0")
    w.user("lose", lambda c: c.delete(claim))

    def claimed(s: sm.State) -> bool:
        """Unless a pod of that name is going, and nobody ends it here."""
        going = any("deletionTimestamp" in pod.metadata for pod in s.list(PODS))
        return gone(s, key) or going or not s[key].spec.replicas or bool(alive(s, key) and s[claim])

    return w.converges(claimed)


def nodes() -> sm.Scenario:
    """Nodes come and go, and pods wait for them."""
    w = sm.Scenario().run(*builtin("daemonset"))
    w.apply(node_object("node-1"))
    spec = {"selector": {"matchLabels": LABELS}, "template": template(node="")}
    key = w.apply(named("apps/v1", "DaemonSet", spec=spec))
    w.user("come", lambda c: c.create(node_object("node-2")))
    w.user("leave", lambda c: c.delete(Key("", "Node", "", "node-1")))

    def everywhere(s: sm.State) -> bool:
        there = sorted(target_of(pod) for pod in alive(s, key))
        return gone(s, key) or there == [each.metadata.name for each in s.list("v1/Node")]

    return w.converges(everywhere)


def failing_job() -> sm.Scenario:
    """A Job whose pods fail is tried again as often as it says, and then has failed."""
    w = sm.Scenario().run(*builtin("job"), VirtualKubelet)
    key = w.apply(one_job("1", backoffLimit=1))
    w.user("annotate", lambda c: c.patch(key, {"metadata": {"annotations": {"a": "b"}}}))

    def given_up(s: sm.State) -> bool:
        return gone(s, key) or not s[key].spec.get("parallelism", 1) or holds(s[key], "Failed") == "True"

    return w.converges(given_up)


TARGETS = {
    "deployment": deployment,
    "replicaset": replicaset,
    "replicationcontroller": replicationcontroller,
    "statefulset": statefulset,
    "daemonset": daemonset,
    "job": job,
    "cronjob": cronjob,
    "ttl-after-finished": ttl,
    "disruption": disruption,
    "horizontal-pod-autoscaler-controller": autoscaling,
    "deployment: rollout": rollout,
    "replicaset: adoption": adoption,
    "statefulset: claims": claims,
    "daemonset: nodes": nodes,
    "job: failing": failing_job,
}
