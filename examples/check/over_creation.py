"""A ReplicaSet-like controller that trusts its cache creates one pod too many.

It lists its pods, creates what is missing and reports the new number. The report wakes it again; the list comes from a
cache, and when that has not yet seen the pod just created, the controller creates another. Kubernetes had this bug
(kubernetes/kubernetes pull 8138) and cured it with *expectations*: remember what you created until you have seen it.

    steersman check examples/check/over_creation.py
"""

import steersman as sm

WEB = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""


class NaiveReplicaSet(sm.Controller):
    """Creates what its cache does not show."""

    kind = "apps/v1/ReplicaSet"
    owns = ("v1/Pod",)

    def expected(self, c, key, pods):
        return 0

    def created(self, c, key, pod):
        pass

    def reconcile(self, c, key):
        rs = c.get(key)
        if rs is None:
            return
        pods = c.list("v1/Pod", key.namespace, owner=rs)
        missing = rs.spec.replicas - len(pods) - self.expected(c, key, pods)
        for _ in range(missing):
            self.created(c, key, c.create(pod_of(rs)))
        c.patch_status(key, {"replicas": len(pods) + max(0, missing)})


class CarefulReplicaSet(NaiveReplicaSet):
    """Counts the pods it has created and not yet seen."""

    def expected(self, c, key, pods):
        seen = {pod.metadata.uid for pod in pods}
        waiting = [uid for uid in c.memory.get(key.name, ()) if uid not in seen]
        c.memory[key.name] = waiting
        return len(waiting)

    def created(self, c, key, pod):
        c.memory[key.name] = [*c.memory[key.name], pod.metadata.uid]


def pod_of(rs):
    """A pod from the template, owned by the ReplicaSet."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": rs.metadata.name,
        "uid": rs.metadata.uid,
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{rs.metadata.name}-",
            "namespace": rs.metadata.namespace,
            "labels": rs.spec.template.metadata.labels,
            "ownerReferences": [owner],
        },
        "spec": rs.spec.template.spec,
    }


def scenario(controller):
    """One ReplicaSet of one pod."""
    w = sm.Scenario(controller.__name__)
    web = w.apply(WEB)
    w.run(controller)
    w.always("never more pods than replicas", lambda s: s.count("v1/Pod", owner=web) <= s[web].spec.replicas)
    w.converges(lambda s: s.count("v1/Pod", owner=web) == s[web].spec.replicas)
    return w


def test_naive_over_creates():
    verdict = sm.check(scenario(NaiveReplicaSet), lag=1)
    assert "never more pods than replicas" in [violation.name for violation in verdict.violations]


def test_naive_is_right_without_lag():
    sm.check(scenario(NaiveReplicaSet), lag=0).assert_holds(complete=True)


def test_careful_holds():
    sm.check(scenario(CarefulReplicaSet), lag=1).assert_holds(complete=True)
