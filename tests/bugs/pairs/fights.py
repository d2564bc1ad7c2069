"""Two writers who want different things, or one who wants what cannot be: it goes on for ever."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

import steersman as sm
from tests.bugs.objects import INTEGER, TEXT, config_key, config_map, custom, custom_key, made, set_key, stateful_set
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
)
