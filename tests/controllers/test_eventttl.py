"""Events end an hour after they were told last."""

from steersman.controllers.eventttl import EventTtl
from tests.controllers.worlds import client, make, objects, settle


def event(name, **times):
    meta = {"name": name, "namespace": "default"}
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about, "reason": "X", **times}


def names(w):
    return [each.metadata.name for each in objects(w, "v1/Event")]


def test_an_event_ends_an_hour_after_it_was_told_last():
    w = make([EventTtl], [event("old"), event("again", lastTimestamp="2026-01-01T00:30:00Z")])
    settle(w)
    assert names(w) == ["again", "old"]
    w.fire(min(w.wakes, key=lambda item: w.wakes[item]))
    settle(w)
    assert names(w) == ["again"]
    seen = client(w).get(client(w).key("v1/Event", "again", "default"))
    client(w).patch(seen, {"count": 2, "lastTimestamp": "2026-01-01T01:20:00Z"})
    w.fire(min(w.wakes, key=lambda item: w.wakes[item]))
    settle(w)
    assert names(w) == ["again"]
    settle(w, timers=True)
    assert names(w) == []
