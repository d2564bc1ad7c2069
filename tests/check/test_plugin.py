"""The pytest plugin: what checks found is in the summary of a test run."""

import subprocess
import sys

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


def run(folder, *arguments):
    (folder / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_verdicts_in_the_summary(tmp_path):
    out = run(tmp_path)
    assert "2 failed, 2 passed" in out
    section = out[out.index(" steersman ") :]
    assert section.count("BOUNDED (stopped at 3 states)") == 2 and "COMPLETE" not in section.split("short test")[0]
    assert "foo/bar: VIOLATED  confluence: confluence" in out and "but also:" in out
    everything = run(tmp_path, "--steersman-verdicts")
    section = everything[everything.index(" steersman ") :]
    assert "trivial: holds" in section and "foo/bar: VIOLATED" in section and "COMPLETE" in section


def test_whoever_listens_hears_of_every_verdict():
    import steersman as sm

    session = Session({"atomic": True})
    sessions.append(session)
    try:
        verdict = sm.check(kamera.trivial()[0])
    finally:
        sessions.remove(session)
    assert session.verdicts == [verdict] and verdict.states == 6, "the innermost session's bounds win"
