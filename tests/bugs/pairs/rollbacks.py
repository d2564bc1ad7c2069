"""A person writes something that cannot work, and takes it back: what was broken meanwhile must not stay so."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

from functools import partial
from types import SimpleNamespace
from typing import Final

import steersman as sm
from tests.bugs.objects import TEXT, custom, custom_key, key_of, made, pod, service
from tests.bugs.row import Row

CLUSTER_KEY: Final = custom_key("Cluster")
CLUSTER: Final = custom("Cluster", {"image": TEXT, "zone": TEXT}, {})
BAD: Final = "none"
"""An image, or a zone, that there is none of."""


def the_cluster(_pod):
    """Whatever happens to a pod is news for its cluster."""
    return [CLUSTER_KEY]


def server(number, spec):
    """The pod of a server."""
    body = pod(f"db-{number}")
    body["spec"]["containers"][0]["image"] = spec.image
    body["spec"]["nodeSelector"] = {"zone": spec.zone}
    return body


def is_like(found, spec):
    """Whether a pod is as it is asked for."""
    return found.spec.containers[0].image == spec.image and found.spec.nodeSelector.zone == spec.zone


def is_ready(found):
    """Whether a pod runs."""
    return found.status.phase == "Running"


class Runs(sm.Controller):
    """Runs every pod that can run."""

    kind = "v1/Pod"

    def reconcile(self, c, key):
        found = c.get(key)
        if found is None or is_ready(found) or found.spec.nodeSelector.zone == BAD:
            return
        if found.spec.containers[0].image != BAD:
            c.patch_status(key, {"phase": "Running"})


# -- 48, 55: one after the other, each when all others are ready ------------------------------------------------------


class WaitsForReady(sm.Controller):
    """Makes pods in their order and replaces those that differ, but does nothing while one is not ready."""

    kind = "example.com/v1/Cluster"
    watches = {"v1/Pod": the_cluster}
    pods = 1
    replaces = False

    def reconcile(self, c, key):
        spec = c.get(key).spec
        for number in range(self.pods):
            body = server(number, spec)
            found = c.get(key_of(body))
            if found is None:
                c.create(body)
                return
            different = not is_like(found, spec)
            if different and (is_ready(found) or self.replaces):
                c.delete(found, grace=0)
            if different or not is_ready(found):
                return


class ReplacesTheBroken(WaitsForReady):
    """One that differs and was never ready has nothing to lose."""

    replaces = True


class Gate(WaitsForReady):
    """Two pods; one that differs is restarted when all are ready."""

    pods = 2

    def reconcile(self, c, key):
        spec, found = c.get(key).spec, c.list("v1/Pod", "default")
        names = [each.metadata.name for each in found]
        for body in (server(number, spec) for number in range(self.pods)):
            if body["metadata"]["name"] not in names:
                c.create(body)
                return
        different = [each for each in found if not is_like(each, spec)]
        broken = [each for each in different if not is_ready(each)]
        if different and all(map(is_ready, found)):
            c.delete(different[0], grace=0)
        elif broken and self.replaces:
            c.delete(broken[0], grace=0)


class GateForTheReady(Gate):
    """The broken are restarted at once."""

    replaces = True


# -- 50, 52: only what runs is looked at ------------------------------------------------------------------------------


class OnlyRunning(sm.Controller):
    """Replaces running pods that differ."""

    kind = "example.com/v1/Cluster"
    watches = {"v1/Pod": the_cluster}
    also_pending = False

    def reconcile(self, c, key):
        spec = c.get(key).spec
        found = c.get(key_of(server(0, spec)))
        if found is None:
            c.create(server(0, spec))
        elif (is_ready(found) or self.also_pending) and not is_like(found, spec):
            c.delete(found, grace=0)


class AlsoPending(OnlyRunning):
    """Pods that wait are replaced, too."""

    also_pending = True


def taken_back(field, pods, controller):
    """A person gives an image or a zone that there is none of, and takes it back."""
    w = sm.Scenario(controller.__name__)
    w.kind(CLUSTER)
    good = {"image": "db", "zone": "a"}
    w.apply(made("Cluster", **good))
    w.run(controller, Runs)
    for number in range(pods):
        w.apply(server(number, SimpleNamespace(**good)) | {"status": {"phase": "Running"}})
    w.user("break", lambda c: c.patch(CLUSTER_KEY, {"spec": {field: BAD}}))

    def take_back(c):
        if c.get(CLUSTER_KEY).spec[field] == BAD:
            c.patch(CLUSTER_KEY, {"spec": good})

    def fine(s):
        spec, found = s[CLUSTER_KEY].spec, s.list("v1/Pod")
        return spec[field] == BAD or (len(found) == pods and all(is_ready(p) and is_like(p, spec) for p in found))

    w.user("take it back", take_back)
    w.converges(fine, name="what can run runs")
    return w


# -- 53: what is no longer asked for ----------------------------------------------------------------------------------

LABELLED: Final = custom("Labelled", {"labels": {"type": "object", "additionalProperties": TEXT}}, {})
LABELLED_KEY: Final = custom_key("Labelled")


class AddsLabels(sm.Controller):
    """Gives a Service the labels that are asked for."""

    kind = "example.com/v1/Labelled"
    watches = {"v1/Service": lambda obj: [LABELLED_KEY]}

    def reconcile(self, c, key):
        wanted, found = c.get(key).spec.labels or {}, c.get(key_of(service("db")))
        have = found.metadata.labels or {}
        if any(have.get(name) != value for name, value in wanted.items()):
            c.patch(found, {"metadata": {"labels": wanted}})


class AppliesLabels(AddsLabels):
    """Applies them: what is not applied any more goes."""

    def reconcile(self, c, key):
        body = service("db")
        body["metadata"]["labels"] = dict(c.get(key).spec.labels or {})
        c.apply(body, force=True)


def labelled(controller):
    """A person who adds a label and removes it again."""
    w = sm.Scenario(controller.__name__)
    w.kind(LABELLED)
    w.apply(made("Labelled", labels={"tier": "gold"}))
    w.apply(service("db"))
    w.run(controller)
    w.user("remove", lambda c: c.patch(LABELLED_KEY, {"spec": {"labels": {"tier": None}}}))
    wanted = lambda s: dict(s[LABELLED_KEY].spec.labels or {})  # noqa: E731
    have = lambda s: dict(s[key_of(service("db"))].metadata.labels or {})  # noqa: E731
    w.converges(lambda s: wanted(s) == have(s), name="labels are those that are asked for")
    return w


BACK: Final = ("user: break", "user: take it back")
ROWS = (
    Row(
        48,
        "pravega/zookeeper-operator#547, kubernetes/kubernetes#67250",
        "an image that does not exist, taken back: pods come in their order, and the broken one is waited for for ever",
        partial(taken_back, "image", 1),
        WaitsForReady,
        ReplacesTheBroken,
        ("what can run runs",),
        harder={"crashes": 1},
        shows=BACK,
    ),
    Row(
        50,
        "OT-CONTAINER-KIT/redis-operator#480",
        "an affinity that no node satisfies, taken back: the cluster does not recover",
        partial(taken_back, "zone", 1),
        OnlyRunning,
        AlsoPending,
        ("what can run runs",),
        harder={"crashes": 1},
        shows=BACK,
    ),
    Row(
        52,
        "cloudnative-pg/cloudnative-pg#3541",
        "an affinity that no node satisfies, taken back: the pods are never updated to what can run",
        partial(taken_back, "zone", 1),
        OnlyRunning,
        AlsoPending,
        ("what can run runs",),
        harder={"crashes": 1},
        shows=BACK,
    ),
    Row(
        53,
        "pingcap/tidb-operator#4942",
        "a label that is removed from the cluster is never removed from its Service: labels are only merged into it",
        labelled,
        AddsLabels,
        AppliesLabels,
        ("labels are those that are asked for",),
        harder={"crashes": 1},
        shows=("user: remove",),
    ),
    Row(
        55,
        "opensearch-project/opensearch-k8s-operator#856",
        "pods are restarted only when all are ready: what mends the broken one is never applied",
        partial(taken_back, "image", 2),
        Gate,
        GateForTheReady,
        ("what can run runs",),
        shows=BACK,
    ),
)
