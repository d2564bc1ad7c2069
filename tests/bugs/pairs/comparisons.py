"""What is wanted is compared with a view of the own output that is behind, or shared: what should be written is not."""

from typing import Final

import steersman as sm
from tests.bugs.objects import config_key, config_map
from tests.bugs.row import Row

POD: Final = config_key("pod")
ENDPOINTS: Final = config_key("endpoints")


class ComparesWithItsCache(sm.Controller):
    """Writes down whether a pod is ready, where that is not what its cache shows."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        if key.name not in ("pod", "endpoints"):
            return
        ready, found = c.get(POD, fresh=True).data.ready, self.endpoints(c)
        if found.data.ready != ready:
            c.patch(ENDPOINTS, {"data": {"ready": ready}})

    def endpoints(self, c):
        """What was written, as it sees it."""
        return c.get(ENDPOINTS)


class PodsOnly(ComparesWithItsCache):
    """Looks when a pod has changed."""

    def map_event(self, event, find):
        return [POD] if event.key == POD else []


class ComparesWithWhatIsThere(PodsOnly):
    """Asks the API server what it has written."""

    def endpoints(self, c):
        return c.get(ENDPOINTS, fresh=True)


def flapping(controller):
    """A pod that is not ready for a moment."""
    w = sm.Scenario(controller.__name__)
    w.apply(config_map("pod", ready="yes"))
    w.apply(config_map("endpoints", ready="yes"))
    w.run(controller)
    w.user("not ready", lambda c: c.patch(POD, {"data": {"ready": "no"}}))

    def ready(c):
        if c.get(POD).data.ready == "no":
            c.patch(POD, {"data": {"ready": "yes"}})

    w.user("ready", ready)
    w.converges(lambda s: s[POD].data.ready == s[ENDPOINTS].data.ready, name="the endpoints are those that are ready")
    return w


# -- 68: whoever refuses what is stale may refuse for ever ------------------------------------------------------------


class RefusesStale(sm.Controller):
    """Remembers what it wrote: anything else in its cache is taken to be older, and waited for."""

    kind = "v1/ConfigMap"
    asks = False

    def map_event(self, event, find):
        return [POD] if event.key in (POD, ENDPOINTS) else []

    def reconcile(self, c, key):
        ready, found = c.get(POD).data.ready, c.get(ENDPOINTS)
        written = c.memory.get("written")
        if written is not None and found.data.ready != written:
            if not self.asks:
                c.requeue(1)
                return
            found = c.get(ENDPOINTS, fresh=True)
        if found.data.ready != ready:
            c.patch(ENDPOINTS, {"data": {"ready": ready}})
        if written != ready:
            c.memory["written"] = ready


class AsksWhenItIsStale(RefusesStale):
    """What looks stale is read from the API server."""

    asks = True


def edited(controller):
    """Somebody edits the endpoints by hand."""
    w = sm.Scenario(controller.__name__)
    w.apply(config_map("pod", ready="yes"))
    w.apply(config_map("endpoints", ready="no"))
    w.run(controller)
    w.user("edit", lambda c: c.patch(ENDPOINTS, {"data": {"ready": "edited"}}))
    w.converges(lambda s: s[ENDPOINTS].data.ready == "yes", name="the endpoints catch up")
    return w


# -- 71: two handlers, one cache --------------------------------------------------------------------------------------

SLICE: Final = config_key("slice")
BOTH: Final = config_key("both")


class WritesBlindly(sm.Controller):
    """Puts together what it reads of a pod and of a slice, and writes it down."""

    kind = "v1/ConfigMap"
    hears = POD
    guarded = False

    def map_event(self, event, find):
        return [self.hears] if event.key == self.hears else []

    def reconcile(self, c, key):
        both = c.get(BOTH)
        text = f"{c.get(POD).data.ip} {c.get(SLICE).data.port}"
        if both.data.text != text:
            c.patch(BOTH, {"data": {"text": text}}, rv=both.metadata.resourceVersion if self.guarded else "")


class Guarded(WritesBlindly):
    """Writes only what rests on the newest: what another handler wrote meanwhile makes it look again."""

    guarded = True


def handlers(controller):
    """A handler of pods and a handler of slices, both for one cache."""
    w = sm.Scenario(controller.__name__)
    w.apply(config_map("pod", ip="1"))
    w.apply(config_map("slice", port="1"))
    w.apply(config_map("both", text=""))
    w.run(pods=controller, slices=type(controller.__name__, (controller,), {"hears": SLICE}))
    w.user("another port", lambda c: c.patch(SLICE, {"data": {"port": "2"}}))
    w.converges(lambda s: s[BOTH].data.text == "1 2", name="endpoints are those that there are")
    return w


ROWS = (
    Row(
        67,
        "kubernetes/kubernetes#127429, kubernetes/kubernetes#125638, kubernetes/kubernetes#117193",
        "a pod is not ready for a moment: what is wanted equals what the cache still shows, nothing is "
        "written, and the ready pod stays out of them",
        flapping,
        PodsOnly,
        ComparesWithWhatIsThere,
        ("the endpoints are those that are ready",),
        {"lag": 1},
    ),
    Row(
        68,
        "kubernetes/kubernetes#126578",
        "endpoints in the cache that are not those last written are taken to be stale, and waited for without end",
        edited,
        RefusesStale,
        AsksWhenItIsStale,
        ("the endpoints catch up",),
        shows=("user: edit",),
    ),
    Row(
        71,
        "istio/istio#57802",
        "the handlers of pods and of slices write one cache, each from what it read: the older one wins",
        handlers,
        WritesBlindly,
        Guarded,
        ("endpoints are those that there are",),
        shows=("user: another port",),
    ),
)
