"""The change log: order, its two bounds, and what falls off for whom."""

import pytest

from steersman.kernel.changelog import ChangeLog, Gone
from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.value import Frozen

POD, NODE = ("", "Pod"), ("", "Node")


def an_event(rev, gk=POD, status=None):
    key = Key(*gk, "", f"o{rev}")
    section = None if status is None else Section(Frozen({"message": status}))
    if section is not None:
        _ = section.raw
    return Event(rev, key, None, Object(key, "v1", rev, Section(Frozen({})), None, None, section))


def test_events_of_a_kind_in_order():
    log = ChangeLog()
    for rev, gk in ((1, POD), (2, NODE), (3, POD)):
        log.append(an_event(rev, gk))
    assert [event.rev for event in log.since(0, POD)] == [1, 3]
    assert [event.rev for event in log.since(1, POD)] == [3]
    assert log.since(3, POD) == []
    assert log.since(3, ("", "Secret")) == []


def test_a_log_that_begins_later_knows_nothing_before():
    log = ChangeLog(oldest=7)
    with pytest.raises(Gone, match="revision 6 is older than 7"):
        log.since(6, POD)
    assert log.since(7, POD) == []


def test_only_the_kind_that_lost_events_is_gone():
    log = ChangeLog(max_events=3)
    log.append(an_event(1, NODE))
    for rev in range(2, 7):
        log.append(an_event(rev, POD))
    assert len(log) == 3
    with pytest.raises(Gone, match="older than 3"):
        log.since(2, POD)
    assert [event.rev for event in log.since(3, POD)] == [4, 5, 6]
    with pytest.raises(Gone, match="older than 1"):
        log.since(0, NODE)
    assert log.since(1, NODE) == [], "no event of a node was lost after revision 1"


def test_large_objects_fall_off_by_their_bytes():
    log = ChangeLog(max_bytes=20_000)
    for rev in range(1, 6):
        log.append(an_event(rev, POD, "x" * 8_000))
    assert [event.rev for event in log.since(3, POD)] == [4, 5]
    with pytest.raises(Gone):
        log.since(2, POD)


def test_the_moving_start_keeps_its_place():
    log = ChangeLog(max_events=100)
    for rev in range(1, 5000):
        log.append(an_event(rev))
    assert [event.rev for event in log.since(4899, POD)] == list(range(4900, 5000))
