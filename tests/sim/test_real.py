"""Real recordings: what the simulation makes of them, told from the files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.sim import simulate
from steersman.trace import sktrace

ROOT = Path(__file__).parents[2]


def wanted(trace):
    """Replicas of every Deployment at the end."""
    last = {}
    for event in trace.events:
        for obj in event.applied:
            last[obj["metadata"]["name"]] = obj["spec"]["replicas"]
        for obj in event.deleted:
            last.pop(obj["metadata"]["name"], None)
    return sum(last.values())


@pytest.fixture
def dsb(real_inputs):
    return sktrace.read(real_inputs / "dsb-scaling.sktrace")


def test_dsb_scaling_ends_with_the_replicas_that_were_asked_for(dsb):
    report = simulate(dsb, 20)
    assert not (report.refused or report.faults or report.notes or report.not_simulated or report.pending)
    assert report.pods["running"] == wanted(dsb)
    assert report.pods["created"] == report.pods["scheduled"] == report.pods["running"] + report.pods["deleted"]
    assert report.percentile(100) == 0.0


def test_dsb_scaling_waits_on_two_nodes(dsb):
    report = simulate(dsb, 2)
    # Every pod asks for one CPU, so two nodes of 16 run 32; the others wait until some are scaled away.
    assert report.pods["running"] == 32 and report.pods["pending"] == wanted(dsb) - 32
    assert [share.peak for share in report.shares if share.resource == "cpu"] == [1.0]
    assert report.percentile(99) > 100
    assert [group.message for group in report.pending] == ["0/2 nodes are available: 2 Insufficient cpu."]


def test_bare_pods_end_after_their_recorded_lives(real_inputs):
    report = simulate(real_inputs / "bare-pods.sktrace", 1)
    # Of four pods three have a recorded end; the last still ran.
    assert (report.pods["created"], report.pods["completed"], report.pods["running"]) == (4, 3, 1)
    assert not (report.refused or report.faults or report.notes)


def test_a_cronjob_makes_a_job_every_minute(real_inputs):
    report = simulate(real_inputs / "cronjob.sktrace", 1)
    # 3m25s of a schedule of every minute.
    assert (report.pods["created"], report.pods["completed"]) == (3, 3)
    assert not (report.refused or report.not_simulated or report.faults)


def test_the_example_is_what_the_documentation_says():
    path = ROOT / "examples" / "rollout.sktrace"
    roomy, tight = simulate(path, 3, 7), simulate(path, 1, 7)
    assert not (roomy.refused or roomy.faults or roomy.notes or roomy.not_simulated)
    assert roomy.pods["created"] == roomy.pods["scheduled"] == 56 and roomy.pods["running"] == 4
    assert roomy.percentile(100) == 0.0
    assert tight.most_waiting == tight.pods["created"] - tight.pods["scheduled"] == 22
    assert tight.percentile(90) > 20
