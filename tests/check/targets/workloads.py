"""Controllers of workloads: each makes what it is asked for, while somebody changes his mind."""

from __future__ import annotations

from typing import Any

import steersman as sm
from steersman.controllers.builtin import builtin
from steersman.controllers.cronjob import SCHEDULED
from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from steersman.nodes.node import node_object
from tests.check.targets.making import LONG_AGO, PODS, named, web_pod
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


def pods(count: int) -> Any:
    """So many pods, none of them going."""
    return lambda s: sum("deletionTimestamp" not in each["metadata"] for each in s.list(PODS)) == count


def deployment() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("deployment"))
    w.apply(web(1))
    change = {"spec": {"template": template("nginx:2")}}
    w.user("change", lambda c: c.patch(apps("Deployment"), change))
    w.always("no more than two sets", lambda s: s.count("apps/v1/ReplicaSet") <= 2)
    newest = "deployment.kubernetes.io/revision"

    def current(s: sm.State) -> bool:
        """The set of the image that is wanted is the newest, and asked for."""
        wanted = s[apps("Deployment")].spec.template.spec.containers[0].image
        sets = [each for each in s.list("apps/v1/ReplicaSet") if _image(each) == wanted]
        return len(sets) == 1 and sets[0].spec.replicas == 1 and bool(sets[0].metadata.annotations[newest])

    return w.converges(current)


def _image(each: Any) -> Any:
    return each.spec.template.spec.containers[0].image


def replicaset() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("replicaset"))
    w.apply(web_set(2))
    w.user("scale", lambda c: c.patch(apps("ReplicaSet"), {"spec": {"replicas": 1}}))
    w.always("never too many", lambda s: s.count(PODS) <= 2)
    return w.converges(pods(1))


def replicationcontroller() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("replicationcontroller"))
    spec = {"replicas": 2, "selector": LABELS, "template": template()}
    key = w.apply(named("v1", "ReplicationController", spec=spec))
    w.user("scale", lambda c: c.patch(key, {"spec": {"replicas": 1}}))
    w.always("never too many", lambda s: s.count(PODS) <= 2)
    return w.converges(pods(1))


def statefulset() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("statefulset"), VirtualKubelet)
    w.apply(stateful(2))
    w.user("change", lambda c: c.patch(apps("StatefulSet"), {"spec": {"template": template("nginx:2")}}))
    w.always("two names at most", lambda s: {each.metadata.name for each in s.list(PODS)} <= {"web-0", "web-1"})
    return w.converges(lambda s: [_pod_image(each) for each in s.list(PODS)] == ["nginx:2"] * 2)


def _pod_image(each: Any) -> Any:
    return each.spec.containers[0].image


def daemonset() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("daemonset"), VirtualKubelet)
    w.apply(node_object("node-1"))
    spec = {"selector": {"matchLabels": LABELS}, "template": template(node="")}
    w.apply(named("apps/v1", "DaemonSet", spec=spec))
    w.user("change", lambda c: c.patch(apps("DaemonSet"), {"spec": {"template": template("nginx:2", "")}}))
    return w.converges(lambda s: [_pod_image(each) for each in s.list(PODS)] == ["nginx:2"])


def job() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("job"), VirtualKubelet)
    key = w.apply(one_job(completions=2, parallelism=1))
    w.user("hold", lambda c: [c.patch(key, {"spec": {"suspend": held}}) for held in (True, False)])
    w.always("counted once", lambda s: (s[key].status.succeeded or 0) <= 2)
    return w.converges(lambda s: s[key].status.succeeded == 2)


def cronjob() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("cronjob"))
    key = w.apply({**cron("0 0 1 1 *"), "status": {"lastScheduleTime": LONG_AGO}})

    def stop(c: Any) -> None:
        """Once it has begun, that is: years go by, and it would never come to rest."""
        if c.get(key).status.lastScheduleTime != LONG_AGO:
            c.patch(key, {"spec": {"suspend": True}})

    w.user("stop", stop)
    w.always("a Job for each time", lambda s: len(_times(s)) == s.count("batch/v1/Job"))
    return w.converges(lambda s: s[key].status.lastScheduleTime != LONG_AGO and _times(s))


def _times(s: sm.State) -> set[str]:
    return {each.metadata.annotations[SCHEDULED] for each in s.list("batch/v1/Job")}


def ttl() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("ttl-after-finished", "garbage-collector"))
    key = w.apply(one_job(ttlSecondsAfterFinished=0))
    said = {"status": "True", "lastTransitionTime": LONG_AGO}
    ended = [{"type": each, **said} for each in ("SuccessCriteriaMet", "Complete")]
    over = {"conditions": ended, "startTime": LONG_AGO, "completionTime": LONG_AGO}
    w.user("end", lambda c: c.patch_status(key, over))
    return w.converges(lambda s: not s[key])


def disruption() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("disruption"), VirtualKubelet)
    w.apply(web_set(1))
    for name in ("a", "b"):
        w.apply(web_pod(name))
    key = w.apply(budget(minAvailable=1))
    w.user("delete", lambda c: c.delete(Key("", "Pod", "default", "a")))
    return w.converges(lambda s: s[key].status.currentHealthy == 1 and not s[key].status.disruptionsAllowed)


def autoscaling() -> sm.Scenario:
    w = sm.Scenario().run(*builtin("horizontal-pod-autoscaler-controller"))
    w.apply({**web(2), "status": {"replicas": 2}})
    w.apply(autoscaler(low=1, high=3))
    w.user("exaggerate", lambda c: c.patch(apps("Deployment"), {"spec": {"replicas": 9}}))
    w.always("within bounds or as somebody said", lambda s: s[apps("Deployment")].spec.replicas in (2, 3, 9))
    return w.converges(lambda s: s[apps("Deployment")].spec.replicas <= 3)


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
}
