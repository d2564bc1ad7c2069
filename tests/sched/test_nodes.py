"""The node table's own promises: change logs that forget, bookings on nodes that are not there, errors of no effect."""

import numpy as np
import pytest

from steersman.sched.core import Scheduler
from steersman.sched.nodes import LOG_SLACK, ChangeLog, Load, NodeTable
from steersman.sched.plain import plain_best, read_nodes
from steersman.sched.resources import Resources
from tests.sched.clusters import container, node, pod

LOAD = Load(Resources.of_pod(pod("p", container("c", {"cpu": "1", "example.com/x": "2"}))), (("0.0.0.0", "TCP", 80),))


def test_a_change_log_says_when_it_no_longer_knows():
    log, size = ChangeLog(), 3
    for row in range(5):
        log.add(row, size)
    assert log.since(2) == [2, 3, 4]
    for row in range(LOG_SLACK + size):
        log.add(row % size, size)
    assert log.since(2) is None
    assert log.since(log.position) == []
    position = log.position
    log.add(1, size)
    assert log.since(position) == [1]


def test_columns_of_a_class_survive_a_log_that_was_cut():
    nodes = [node(f"n{index}") for index in range(3)]
    wants = pod("p", container("c", {"cpu": "1"}))
    scheduler = Scheduler()
    scheduler.rebuild(nodes, [])
    assert scheduler.best_nodes(wants) == ("n0", "n1", "n2")
    booked = [pod(f"b{index}", container("c", {"cpu": "1m"}), nodeName="n0") for index in range(LOG_SLACK + 10)]
    for each in booked:
        scheduler.pod_upsert(each)
    best, _ = plain_best(wants, read_nodes(nodes, booked))
    assert list(scheduler.best_nodes(wants)) == best == ["n1", "n2"]


def test_pods_are_counted_on_a_node_that_comes_later_or_again():
    table = NodeTable()
    table.confirm(("d", "p"), "n", LOAD)
    assert list(table.port_users("TCP", 80)) == []
    for _ in range(2):
        table.upsert(node("n"))
        assert table.pods[0] == 1 and table.requested[0, 0] == 1000
        assert list(table.port_users("TCP", 80)) == [(0, {"0.0.0.0": 1})]
        table.delete("n")
    assert table.pod_keys("n") == (("d", "p"),)
    assert table.forget(("d", "p")) and not table.forget(("d", "p"))
    table.upsert(node("n"))
    assert table.pods[0] == 0 and not table.requested[:, 0].any()


def test_rank_is_the_order_of_names_whatever_the_rows():
    table = NodeTable()
    for name in ("c", "a", "d", "b"):
        table.upsert(node(name))
    table.delete("c")
    assert [table.names[row] for row in np.argsort(table.rank)] == ["a", "b", "d"]


def test_a_node_that_cannot_be_read_changes_nothing():
    table = NodeTable()
    table.upsert(node("n"))
    state = table.state()
    with pytest.raises(ValueError, match="node n"):
        table.upsert(node("n", "much"))
    with pytest.raises(ValueError, match="node m"):
        table.upsert(node("m", "much"))
    assert table.state() == state


def test_an_update_that_matters_to_nobody_is_told_apart():
    table = NodeTable()
    assert table.upsert(node("n"))
    heartbeat = node("n")
    heartbeat["status"]["conditions"] = [{"type": "Ready", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
    assert not table.upsert(heartbeat)
    assert table.upsert(node("n", labels={"zone": "a"}))
