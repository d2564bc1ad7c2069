"""Faults of a watch: updates seen as one, a deletion and a creation seen as an update, a lost watch, a restart on an
API server that is behind."""

import pytest

import steersman as sm
from steersman.kernel.effect import Event
from steersman.kernel.view import coalesced
from tests.check.faults.seeded import finds
from tests.check.models import config, key


class Edge(sm.Controller):
    """Is woken by the step from amber to green, and by a lamp that is green from the start."""

    kind = "v1/ConfigMap"
    edges = True

    def map_event(self, event, find):
        if event.key.name != "lamp" or event.new is None or event.new.value.data.light != "green":
            return []
        before = "" if event.old is None else event.old.value.data.light
        return [key("note")] if not self.edges or before in ("amber", "green", "") else []

    def reconcile(self, c, at):
        c.patch(at, {"data": {"seen": "yes"}})


class Level(Edge):
    edges = False


def lamp(controller):
    """Somebody switches a lamp to amber and then to green, and counts on a green light to be noted."""
    w = sm.Scenario(controller.__name__)
    w.apply(config("lamp", light="red"))
    w.apply(config("note"))
    w.run(controller)

    def switch(before, after):
        def do(c):
            if c.get(key("lamp")).data.light == before:
                c.patch(key("lamp"), {"data": {"light": after}})

        return do

    w.user("amber", switch("red", "amber"))
    w.user("green", switch("amber", "green"))
    w.converges(lambda s: s[key("lamp")].data.light != "green" or s[key("note")].data.seen)
    return w


def test_two_updates_seen_as_one():
    verdict = finds(lamp, Edge, Level, "coalesced", also=("unobserved", "relists", "rewinds"))
    assert "watch of ConfigMap catches up: 2 events seen as MODIFIED ConfigMap default/lamp" in str(verdict)


class Tombstones(sm.Controller):
    """Remembers who is there; forgets an incarnation only when it is told that it is gone."""

    kind = "v1/ConfigMap"
    by_uid = False

    def map_event(self, event, find):
        if event.key.name != "node":
            return []
        other = event.old is not None and event.new is not None and event.old.uid != event.new.uid
        return [key("pod")] if event.new is None or (self.by_uid and other) else []

    def reconcile(self, c, at):
        node, pod = c.get(key("node")), c.get(at)
        if pod is not None and (node is None or node.metadata.uid != pod.data.node):
            c.delete(at)


class ByUid(Tombstones):
    by_uid = True


def replaced_node(controller):
    """Bug 91: a node is deleted and made again with the same name; its old pod has to go."""
    w = sm.Scenario(controller.__name__)
    w.apply(config("node"))
    w.run(controller)

    def place(c):
        c.create(config("pod", node=c.get(key("node")).metadata.uid))

    def replace(c):
        if c.get(key("pod")) is not None:
            c.delete(key("node"))
            c.create(config("node"))

    w.user("place", place)
    w.user("replace", replace)

    def gone(s):
        return not s[key("pod")] or s[key("pod")].data.node == s[key("node")].metadata.uid

    w.converges(gone, name="no pod of an old node")
    return w


def test_a_deletion_and_a_creation_seen_as_an_update():
    also = ("relists", "rewinds", "crashes", "leaders")
    verdict = finds(replaced_node, Tombstones, ByUid, "unobserved", also=also)
    assert "MODIFIED ConfigMap default/node\n" in str(verdict)


class Presses(sm.Controller):
    """Counts how often a button is pressed: every update of it is a press."""

    kind = "v1/ConfigMap"
    looks = False

    def map_event(self, event, find):
        if event.key.name != "button" or event.old is None or event.new is None:
            return []
        return [key("count")] if not self.looks or event.old.value.data != event.new.value.data else []

    def reconcile(self, c, at):
        c.patch(at, {"data": {"presses": str(int(c.get(at).data.presses) + 1)}})


class Differences(Presses):
    looks = True


def pressed(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("button", pressed="no"))
    w.apply(config("count", presses="0"))
    w.run(controller)
    w.user("press", lambda c: c.patch(key("button"), {"data": {"pressed": "yes"}}))
    w.always("one press", lambda s: s[key("count")].data.presses != "2")
    return w


def test_a_list_that_is_told_anew():
    also = ("lost_replies", "rewinds", "leaders")
    lost = ("same end as without faults",)  # a press that nobody was told of is not counted
    verdict = finds(pressed, Presses, Differences, "relists", also=also, without=lost)
    assert "watch of ConfigMap is lost (410 Gone) and has to list anew" in str(verdict)


class Stale(sm.Controller):
    """Cleans up after what is being deleted, by its name (bug 1 and its like)."""

    kind = "v1/ConfigMap"
    by_uid = False

    def reconcile(self, c, at):
        owner, volume = c.get(key("db")), c.get(key("volume"))
        if owner is None or volume is None or owner.data.state != "ending":
            return
        if not self.by_uid or c.get(key("db"), fresh=True).metadata.uid == owner.metadata.uid:
            c.delete(volume)


class Fresh(Stale):
    by_uid = True


def recreated(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("db", state="live"))
    w.run(controller)

    def replace(c):
        c.patch(key("db"), {"data": {"state": "ending"}})
        c.delete(key("db"))
        c.create(config("db", state="live"))
        c.create(config("volume"))

    w.user("replace", replace)
    w.converges(lambda s: s[key("volume")], name="the new one keeps its volume")
    return w


def test_a_restart_on_an_older_api_server():
    verdict = finds(recreated, Stale, Fresh, "rewinds")
    assert "restarts on the API server that stalled" in str(verdict)


def event(name, old, new):
    return Event(0, key(name), old, new)


@pytest.mark.parametrize(
    ("events", "slow", "miss"),
    [
        ([("a", 1, 2), ("a", 2, 3)], [("a", 1, 3)], [("a", 1, 3)]),
        ([("a", None, 1), ("a", 1, None)], [("a", None, 1), ("a", 1, None)], []),
        ([("a", 1, None), ("a", None, 2)], [("a", 1, None), ("a", None, 2)], [("a", 1, 2)]),
        ([("a", 1, 2), ("b", 5, 6), ("a", 2, 3)], [("b", 5, 6), ("a", 1, 3)], [("b", 5, 6), ("a", 1, 3)]),
        ([("a", None, 1), ("a", 1, 2), ("a", 2, 3)], [("a", None, 1), ("a", 1, 3)], [("a", None, 3)]),
        ([("a", None, 1), ("a", 1, None), ("a", None, 2)], None, [("a", None, 2)]),
    ],
)
def test_what_a_watch_that_missed_events_shows(events, slow, miss):
    given = [event(*each) for each in events]
    assert coalesced(given, across=False) == (given if slow is None else [event(*each) for each in slow])
    assert coalesced(given, across=True) == [event(*each) for each in miss]
