"""A search says where it is, and ends before it takes all memory."""

import sys

import pytest

import steersman as sm
from steersman.check import Session, explore, memory, sessions
from steersman.check.report.progress import Progress
from tests.check import kamera

ENOUGH = 64 * memory.MEGA


def test_what_is_measured():
    before = memory.resident()
    assert 8 * memory.MEGA < before < memory.machine()
    held = bytearray(b"x" * ENOUGH)
    assert memory.resident() - before > ENOUGH // 2 and held
    assert memory.limit(100) == 100 * memory.MEGA
    assert memory.limit(None) == int(memory.machine() * 0.75)


def test_without_proc_the_peak_counts(monkeypatch):
    def refuse(*_arguments):
        raise OSError

    monkeypatch.setattr("builtins.open", refuse)
    assert memory.resident() > 8 * memory.MEGA


def test_a_container_has_less_than_its_machine(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "GROUP_LIMIT", limit)
    whole = memory.machine()
    limit.write_text("max\n")
    assert memory.machine() == whole
    limit.write_text("1048576\n")
    assert memory.machine() == memory.MEGA


@pytest.mark.parametrize("options", [{}, {"walks": 500}])
def test_a_search_ends_bounded_at_its_limit(options):
    verdict = sm.check(kamera.foo_bar()[0], max_memory=1, **options)
    assert "MB of memory; see max_memory" in verdict.incomplete and not verdict.complete
    assert verdict.bounds["max-memory"] == 1 and verdict.cut


def test_progress_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(explore, "PROGRESS_SECONDS", 0.0)
    told = []
    session = Session()
    line = Progress(sys.stderr.write, lambda: 200)
    session.progress = lambda verdict: told.append((verdict.states, verdict.depth)) or line(verdict)
    sessions.append(session)
    try:
        verdict = sm.check(kamera.foo_bar()[0])
        sm.check(kamera.foo_bar()[0], walks=3)
    finally:
        sessions.remove(session)
    err = capsys.readouterr().err
    assert len(told) > 3 and told[0][0] < verdict.states and any(depth > 0 for _, depth in told)
    assert " states (" in err and " depth " in err and " MB " in err
    monkeypatch.setattr(explore, "PROGRESS_SECONDS", 1e9)
    quiet = len(told)
    sm.check(kamera.foo_bar()[0])
    assert len(told) == quiet
