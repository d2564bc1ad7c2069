"""Two writers who want different things, or one who wants what cannot be: it goes on for ever."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

from typing import Final

import steersman as sm
from steersman.controllers.replicaset import ReplicaSet
from tests.bugs.objects import (
    INTEGER,
    TEXT,
    config_key,
    config_map,
    custom,
    custom_key,
    key_of,
    made,
    set_key,
    stateful_set,
)
from tests.bugs.row import Row

APP = custom("App", {"image": TEXT, "replicas": INTEGER}, {})
APP_KEY = custom_key("App")


class Operator(sm.Controller):
    """Writes a StatefulSet from its own object, replicas included."""

    kind = "example.com/v1/App"
    watches = {"apps/v1/StatefulSet": lambda obj: [APP_KEY]}
    owns_replicas = True

    def reconcile(self, c, key):
        app, servers = c.get(key), c.get(set_key("db"))
        if servers is None:
            c.create(stateful_set("db", app.spec.replicas))
        elif self.owns_replicas and servers.spec.replicas != app.spec.replicas:
            c.patch(servers, {"spec": {"replicas": app.spec.replicas}})


class LeavesReplicas(Operator):
    """Sets replicas once; from then on they are the autoscaler's."""

    owns_replicas = False


class Autoscaler(sm.Controller):
    """Wants three."""

    kind = "apps/v1/StatefulSet"

    def reconcile(self, c, key):
        servers = c.get(key)
        if servers is not None and servers.spec.replicas != 3:
            c.patch(key, {"spec": {"replicas": 3}})


def scaling(operator):
    w = sm.Scenario(operator.__name__)
    w.kind(APP)
    w.apply(made("App", replicas=1))
    w.run(operator, Autoscaler)
    w.converges(lambda s: s[set_key("db")].spec.replicas == 3)
    return w


class Recreate(sm.Controller):
    """A field that cannot be changed differs: delete and make again, at each look."""

    kind = "example.com/v1/App"
    watches = {"v1/ConfigMap": lambda obj: [APP_KEY]}
    waits = False

    def reconcile(self, c, key):
        wanted, found = c.get(key).spec.image, c.get(config_key("db"))
        if found is None:
            c.create(config_map("db", image=wanted))
        elif found.data.image != wanted:
            if self.waits and found.metadata.deletionTimestamp:
                return
            c.patch(found, {"metadata": {"labels": {"attempt": self.attempt(found)}}})
            c.delete(found)

    def attempt(self, found):
        """Every attempt writes: a name, a checksum, an annotation."""
        return "a" if (found.metadata.labels or {}).get("attempt") == "b" else "b"


class WaitsForTheEnd(Recreate):
    """Does nothing while the old one is going."""

    waits = True


class Finalizer(sm.Controller):
    """Whoever holds the old one back lets it go when a person says so."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        found = c.get(key)
        held = found is not None and found.metadata.deletionTimestamp and found.metadata.finalizers
        if held and c.get(config_key("released")) is not None:
            c.patch(key, {"metadata": {"finalizers": None}})


def recreating(controller):
    old = config_map("db", image="old")
    old["metadata"]["finalizers"] = ["example.com/wait"]
    w = sm.Scenario(controller.__name__)
    w.kind(APP)
    w.apply(made("App", image="new"))
    w.apply(old)
    w.run(controller, Finalizer)
    w.converges(lambda s: not s[config_key("released")] or s[config_key("db")].data.image == "new")
    return w.without("no leaked finalizer")  # whoever holds the old one back may do so for ever


# -- 95: evicted, and put back ----------------------------------------------------------------------------------------

NODE: Final = "v1/Node"


class PutsWhereItCan(sm.Controller):
    """Puts pods on the first node that takes any."""

    kind = "v1/Pod"
    watches = {NODE: lambda obj: []}

    def reconcile(self, c, key):
        found = c.get(key)
        takes = [each for each in c.list(NODE) if not each.spec.unschedulable]
        if found is not None and not found.spec.nodeName and takes:
            c.bind(found, takes[0].metadata.name)


class EvictsTwins(sm.Controller):
    """Evicts all but one of the pods of a ReplicaSet that share a node: there are others."""

    kind = "apps/v1/ReplicaSet"
    owns = ("v1/Pod",)
    watches = {NODE: lambda obj: [WEB_KEY]}
    heeds = False

    def reconcile(self, c, key):
        pods = [each for each in c.list("v1/Pod", key.namespace) if each.spec.nodeName]
        others = [each for each in c.list(NODE) if not (self.heeds and each.spec.unschedulable)]
        used = [each.spec.nodeName for each in pods]
        if len(pods) > len(set(used)) and len(others) > len(set(used)):
            c.evict(pods[-1], grace=0)


class EvictsWhereTheyFit(EvictsTwins):
    """Only when another node takes them."""

    heeds = True


WEB: Final = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
    },
}
WEB_KEY: Final = key_of(WEB)


def descheduling(controller):
    """Two pods, a node that takes them, and one that is cordoned."""
    w = sm.Scenario(controller.__name__)
    for name, spec in (("n1", {}), ("n2", {"unschedulable": True})):
        w.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec})
    w.apply(WEB)
    w.run(controller, PutsWhereItCan, ReplicaSet)
    return w


# -- 98: a webhook that adds what an operator takes away ---------------------------------------------------------------

GATEWAY: Final = custom("Gateway", {"image": TEXT}, {"phase": TEXT})
GATEWAY_KEY: Final = custom_key("Gateway")
HOOK: Final = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: policy}
webhooks:
- name: policy.example.com
  clientConfig: {url: "https://policy.example.com"}
  failurePolicy: Fail
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [statefulsets]}]
  sideEffects: None
  admissionReviewVersions: [v1]
"""


class AsItWasMade(sm.Controller):
    """Has servers for a gateway; it is ready when they are as they were made."""

    kind = "example.com/v1/Gateway"
    watches = {"apps/v1/StatefulSet": lambda obj: [GATEWAY_KEY]}

    def reconcile(self, c, key):
        gateway, servers = c.get(key), c.get(set_key("db"))
        wanted = stateful_set("db", 1)
        if servers is None:
            c.create(wanted)
        elif self.differs(servers.spec.template.metadata, wanted["spec"]["template"]["metadata"]):
            c.patch(servers, [{"op": "remove", "path": "/spec/template/metadata/annotations"}])
        elif gateway.status.phase != "Ready":
            c.patch_status(key, {"phase": "Ready"})

    def differs(self, found, wanted):
        """Whether servers are not as they were made."""
        return bool(found.annotations)


class AsFarAsItMadeThem(AsItWasMade):
    """Looks only at what it has said itself."""

    def differs(self, found, wanted):
        return dict(found.labels) != wanted["labels"]


def adds(request):
    """Every server gets an annotation."""
    meta = request.object["spec"]["template"]["metadata"]
    if "annotations" not in meta:
        return {"patch": [{"op": "add", "path": "/spec/template/metadata/annotations", "value": {"policy": "on"}}]}
    return None


def admitted(controller):
    """A gateway in a cluster with a policy."""
    w = sm.Scenario(controller.__name__)
    w.kind(GATEWAY)
    w.apply(made("Gateway"))
    w.apply(HOOK)
    w.webhook("policy.example.com", adds)
    w.run(controller)
    w.converges(lambda s: s[GATEWAY_KEY].status.phase == "Ready", name="the gateway gets ready")
    return w


# -- 99: what git says, and what an operator adds ---------------------------------------------------------------------


def with_env(*names):
    """Servers with some variables."""
    body = stateful_set("db", 1)
    body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": name, "value": "1"} for name in names]
    return body


def env(servers):
    """The names of their variables."""
    return [each.name for each in servers.spec.template.spec.containers[0].env or ()]


class Replaces(sm.Controller):
    """Makes servers what git says, as a whole."""

    kind = "apps/v1/StatefulSet"

    def reconcile(self, c, key):
        found = c.get(key)
        if found is not None and env(found) != ["A"]:
            c.patch(key, {"spec": {"template": with_env("A")["spec"]["template"]}})


class Applies(Replaces):
    """Applies what git says; what others have added is theirs."""

    def reconcile(self, c, key):
        found = c.get(key)
        if found is not None and "A" not in env(found):
            c.apply(with_env("A"), force=True)


class Injects(sm.Controller):
    """Adds a variable of its own."""

    kind = "apps/v1/StatefulSet"

    def reconcile(self, c, key):
        found = c.get(key)
        if found is not None and "B" not in env(found):
            c.apply(with_env("B"), force=True)


def synchronized(controller):
    """Servers that git and an operator both have a say in."""
    w = sm.Scenario(controller.__name__)
    w.apply(stateful_set("db", 1))
    w.run(controller, Injects)
    w.converges(lambda s: "B" in env(s[set_key("db")]), name="the operator has its variable")
    return w


ROWS = (
    Row(
        94,
        "kubernetes/kubernetes#25238, apache/superset-kubernetes-operator#151, nginx/nginx-gateway-fabric#4214, "
        "kiali/kiali#7559",
        "an operator resets the number of replicas that an autoscaler has raised, which raises it again",
        scaling,
        Operator,
        LeavesReplicas,
        ("livelock",),
        harder={"lag": 1},
        shows=("from here on, for ever:", "spec.replicas: 3 → 1", "spec.replicas: 1 → 3"),
    ),
    Row(
        97,
        "prometheus-operator/prometheus-operator#4519",
        "a field that cannot be changed differs: the object is deleted and made again at each look, also while it is "
        "still going",
        recreating,
        Recreate,
        WaitsForTheEnd,
        ("livelock",),
        shows=("from here on, for ever:", "labels"),
    ),
    Row(
        95,
        "kubernetes-sigs/descheduler#566, kubernetes-sigs/descheduler#424",
        "a pod is evicted for the sake of another node, which takes none: it is put back where it was, and evicted "
        "again",
        descheduling,
        EvictsTwins,
        EvictsWhereTheyFit,
        ("livelock",),
        {"atomic": True},
        shows=("from here on, for ever:", "evict"),
    ),
    Row(
        98,
        "Kong/kong-operator#522",
        "a webhook adds to each Deployment what its operator takes away: it never gets as far as to report its "
        "gateway ready",
        admitted,
        AsItWasMade,
        AsFarAsItMadeThem,
        ("the gateway gets ready",),
        harder={"lag": 1},
        shows=("goes to the webhook policy.example.com",),
    ),
    Row(
        99,
        "argoproj/argo-cd#9678",
        "what is in git is written as a whole, which removes a variable that an operator adds again: endless restarts",
        synchronized,
        Replaces,
        Applies,
        ("livelock",),
        harder={"lag": 1},
        shows=("from here on, for ever:",),
    ),
)
