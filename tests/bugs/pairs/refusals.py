"""An answer that is an error, and is not taken for one."""

import steersman as sm
from tests.bugs.objects import config_key, config_map
from tests.bugs.row import Row


class GivesUp(sm.Controller):
    """Updates an object; a refusal is swallowed, and nothing wakes it again."""

    kind = "v1/ConfigMap"
    swallows = True

    def reconcile(self, c, key):
        found = c.get(key)
        if found.data.state == "done":
            return
        try:
            c.update({**found, "data": {"state": "done"}})
        except sm.ApiError:
            if not self.swallows:
                raise


class TriesAgain(GivesUp):
    """A refusal goes up: the key comes back with back-off."""

    swallows = False


def updating(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config_map("db"))
    w.run(controller)
    w.converges(lambda s: s[config_key("db")].data.state == "done")
    return w


ROWS = (
    Row(
        92,
        "kubernetes/kubernetes#67662",
        "a request fails, the controller ignores the error, and nothing wakes it again",
        updating,
        GivesUp,
        TriesAgain,
        ("converges",),
        {"conflicts": 1},
        {"conflicts": 2, "crashes": 1},
    ),
)
