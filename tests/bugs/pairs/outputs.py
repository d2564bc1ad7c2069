"""Who writes an object must look at it again when others have changed it."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

import steersman as sm
from tests.bugs.objects import TEXT, config_key, config_map, custom, custom_key, made
from tests.bugs.row import Row

APP = custom("App", {"image": TEXT}, {})
APP_KEY = custom_key("App")


class NoWatchOnItsOutput(sm.Controller):
    """Writes a copy when the source changes, and never looks at the copy again."""

    kind = "example.com/v1/App"

    def reconcile(self, c, key):
        wanted, copy = c.get(key).spec.image, c.get(config_key("copy"))
        if copy is None:
            c.create(config_map("copy", image=wanted))
        elif copy.data.image != wanted:
            c.patch(copy, {"data": {"image": wanted}})


class WatchesItsOutput(NoWatchOnItsOutput):
    watches = {"v1/ConfigMap": lambda obj: [APP_KEY]}


def copying(controller):
    w = sm.Scenario(controller.__name__)
    w.kind(APP)
    w.apply(made("App", image="one"))
    w.run(controller)
    w.user("spoil", lambda c: c.patch(config_key("copy"), {"data": {"image": "spoilt"}}))
    w.user("delete", lambda c: c.delete(config_key("copy")))
    w.converges(lambda s: s[config_key("copy")].data.image == "one", name="the copy is right")
    return w


ROWS = (
    Row(
        70,
        "kubernetes/kubernetes#85353",
        "an EndpointSlice edited or deleted by hand is never repaired: its controller does not watch its own output",
        copying,
        NoWatchOnItsOutput,
        WatchesItsOutput,
        ("the copy is right",),
        harder={"lag": 1},
    ),
)
