"""A controller that takes existence for success reports a database ready that was never set up.

It creates a StatefulSet and then loads the schema. A crash between the two leaves the StatefulSet; the restarted
controller finds it, concludes that the set-up is done, and reports Ready. It never heals. (The class of bug that Sieve
calls *intermediate state*: K8SSAND-1023, PSMDB-579 and others.)

    steersman check examples/check/false_ready.py
"""

import steersman as sm

DATABASE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: databases, singular: database, kind: Database}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, minimum: 1}}}
          status: {type: object, properties: {phase: {type: string}}}
---
apiVersion: example.com/v1
kind: Database
metadata: {name: db}
spec: {size: 1}
"""


class Existence(sm.Controller):
    """Sets up once: when the StatefulSet is there, it must have been set up."""

    kind = "example.com/v1/Database"

    def is_set_up(self, c, key):
        return c.get(sm.Key("apps", "StatefulSet", key.namespace, key.name)) is not None

    def reconcile(self, c, key):
        if c.get(key) is None:
            return
        if not self.is_set_up(c, key):
            create_if_missing(c, stateful_set(key))
            create_if_missing(c, schema(key))
        c.patch_status(key, {"phase": "Ready"})


class Success(Existence):
    """Asks whether the last step was done."""

    def is_set_up(self, c, key):
        return c.get(sm.Key("", "ConfigMap", key.namespace, f"{key.name}-schema")) is not None


def create_if_missing(c, obj):
    """Creates an object; one that is there already is as good."""
    try:
        c.create(obj)
    except sm.AlreadyExists:
        pass


def stateful_set(key):
    """The servers of the database."""
    labels = {"db": key.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "serviceName": key.name,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "db", "image": "db:1"}]},
            },
        },
    }


def schema(key):
    """What bootstrapping leaves behind: the record that the schema is loaded."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{key.name}-schema", "namespace": key.namespace},
        "data": {"version": "1"},
    }


def scenario(controller):
    """One database."""
    w = sm.Scenario(controller.__name__)
    db = w.apply(DATABASE)
    loaded = sm.Key("", "ConfigMap", db.namespace, "db-schema")
    w.run(controller)
    w.always("Ready only with a schema", lambda s: s[db].status.phase != "Ready" or s[loaded])
    w.converges(lambda s: s[db].status.phase == "Ready")
    return w


def test_existence_reports_ready_falsely():
    verdict = sm.check(scenario(Existence), crashes=1)
    assert [violation.name for violation in verdict.violations] == ["Ready only with a schema"]


def test_existence_is_right_without_crashes():
    sm.check(scenario(Existence)).assert_holds(complete=True)


def test_success_holds():
    sm.check(scenario(Success), crashes=1, conflicts=1).assert_holds(complete=True)
