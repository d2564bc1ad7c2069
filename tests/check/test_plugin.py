"""The pytest plugin: what checks found is in the summary of a test run."""

import shlex
import subprocess
import sys

import pytest

from steersman.check import Session, sessions
from tests.check import kamera
from tests.source import ROOT

TEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import steersman as sm
from tests.check import kamera

def test_complete():
    sm.check(kamera.trivial()[0]).assert_holds(complete=True)

def test_bounded():
    sm.check(kamera.trivial()[0], max_states=3).assert_holds()

def test_refused():
    sm.check(kamera.trivial()[0], max_states=3).assert_holds(complete=True)

def test_violated():
    sm.check(kamera.foo_bar()[0], atomic=True).assert_holds()
"""


def run(folder, *arguments, text=TEST, both=False):
    (folder / "test_it.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + (done.stderr if both else "")


def test_verdicts_in_the_summary(tmp_path):
    out = run(tmp_path)
    assert "2 failed, 2 passed" in out
    assert "trivial: BOUNDED (stopped at 3 states), but complete=True was asked" in out
    section = out[out.index(" steersman ") :].split("short test summary")[0]
    assert section.count("BOUNDED (stopped at 3 states)") == 2 and "COMPLETE" not in section
    assert "foo/bar: VIOLATED  confluence\n" in out and "but also:" in out
    everything = run(tmp_path, "--steersman-verdicts")
    section = everything[everything.index(" steersman ") :]
    assert "trivial: holds" in section and "foo/bar: VIOLATED" in section and "COMPLETE" in section


MORE = """
import pytest

class TestClass:
    @pytest.mark.parametrize("bound", [1, 2])
    def test_inside(self, bound):
        sm.check(kamera.foo_bar()[0], atomic=True).assert_holds()

def test_fixture(tmp_path):
    sm.check(kamera.foo_bar()[0], atomic=True).assert_holds()

def test_expected():
    assert not sm.check(kamera.foo_bar()[0], atomic=True).holds
"""


def steersman(folder, line):
    command = (
        line.split("replay: ")[1].replace("steersman check", "-m steersman check").replace("pytest '", "-m pytest '")
    )
    words = [sys.executable, *shlex.split(command)]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_what_failed_can_be_replayed(tmp_path, workers):
    out = run(tmp_path, *workers, text=TEST + MORE)
    lines = [line for line in out.splitlines() if "replay: " in line]
    assert lines == [
        "confluence: replay: steersman check test_it.py::test_violated --replay "
        ".steersman/test_it-test_violated-confluence.schedule",
        "confluence: replay: pytest 'test_it.py::TestClass::test_inside[1]' --steersman-replay "
        ".steersman/test_it-TestClass--test_inside-1--confluence.schedule",
        "confluence: replay: pytest 'test_it.py::TestClass::test_inside[2]' --steersman-replay "
        ".steersman/test_it-TestClass--test_inside-2--confluence.schedule",
        "confluence: replay: pytest 'test_it.py::test_fixture' --steersman-replay "
        ".steersman/test_it-test_fixture-confluence.schedule",
    ]
    if not workers:
        for line in (lines[0], lines[1]):
            again = steersman(tmp_path, line)
            assert "BOUNDED (one schedule replayed)" in again.stdout, again.stdout + again.stderr
            assert "steps; confluence is not judged on one run" in again.stdout


def test_a_replay_is_for_its_own_test(tmp_path):
    run(tmp_path)
    file = ".steersman/test_it-test_violated-confluence.schedule"
    out = run(tmp_path, "--steersman-replay", file, "--steersman-verdicts")
    assert out.count("one schedule replayed") == 1 and "COMPLETE: " in out
    assert "absent: No such file" in run(tmp_path, "--steersman-replay", "absent", both=True)


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / ".steersman").write_text("")
    assert "the schedule was not saved: " in run(tmp_path)


def test_whoever_listens_hears_of_every_verdict():
    import steersman as sm

    session = Session({"atomic": True})
    sessions.append(session)
    try:
        verdict = sm.check(kamera.trivial()[0], settle=False)
    finally:
        sessions.remove(session)
    assert session.verdicts == [verdict] and verdict.states == 6, "the innermost session's bounds win"


def test_reports_of_a_test_run(tmp_path):
    out = run(tmp_path, "--steersman-html", "page.html", "--steersman-save", "all.run")
    assert "wrote page.html" in out and "steersman inspect all.run" in out
    assert "test_it.py::test_violated" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "all.run").stat().st_size > 1000
    assert "needs all checks in one process" in run(tmp_path, "-n", "2", "--steersman-html", "p.html", both=True)
