"""Garbage collection: what is to go with its owner, and what is not."""

import steersman as sm
from tests.bugs.objects import config_key, config_map
from tests.bugs.row import Row


class CollectOnNews(sm.Controller):
    """Deletes the children of a parent when it hears that the parent is gone."""

    kind = "v1/ConfigMap"
    looks_at_start = False

    def reconcile(self, c, key):
        if key.name == "parent" and c.get(key) is None:
            c.delete(config_key("child"))
        elif self.looks_at_start and key.name == "child" and c.get(config_key("parent"), fresh=True) is None:
            c.delete(key)


class CollectAtStartToo(CollectOnNews):
    """Looks at every child after a start: what was missed while it was down."""

    looks_at_start = True


def collecting(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config_map("parent"))
    w.apply(config_map("child"))
    w.run(controller)
    w.user("delete", lambda c: c.delete(config_key("parent")))
    w.converges(lambda s: not s[config_key("child")], name="children are collected")
    return w


ROWS = (
    Row(
        74,
        "kubernetes/kubernetes#109748",
        "an owner is deleted while the garbage collector is down: its dependents are never collected",
        collecting,
        CollectOnNews,
        CollectAtStartToo,
        ("children are collected",),
        {"crashes": 1},
        {"lag": 1},
    ),
)
