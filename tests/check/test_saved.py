"""Schedule files: each test has its own, and belongs to the check it was recorded in."""

from pathlib import Path

import pytest

from steersman.check import saved
from steersman.check.verdict import Verdict, Violation
from steersman.kernel.schedule import ScheduleError
from tests.check.command import one_line

TWO = """
def scenario_of(name):
    w = sm.Scenario("labels")
    w.apply(OBJECT)
    w.run(Writer)
    w.always(name, lambda s: not s.list('v1/ConfigMap')[0].data.done)
    return w

def test_first():
    sm.check(scenario_of("never")).assert_holds()

def test_second():
    sm.check(scenario_of("never"))
    sm.check(scenario_of("never"), lag=1)
"""


def test_two_tests_do_not_overwrite_each_others(run):
    run(TWO.replace("scenario_of", "make"))
    assert sorted(path.name for path in Path(".steersman").iterdir()) == [
        "scenarios-test_first-never.schedule",
        "scenarios-test_second-never-2.schedule",
        "scenarios-test_second-never.schedule",
    ]


def test_a_schedule_of_another_test_is_refused(run):
    run(TWO.replace("scenario_of", "make"))
    file = ".steersman/scenarios-test_first-never.schedule"
    assert Path(file).read_text().splitlines()[1] == "# target: scenarios.py::test_first"
    refused = run(None, "scenarios.py::test_second", "--replay", file)
    one_line(refused, f"{file}: was recorded in scenarios.py::test_first, not in scenarios.py::test_second")
    Path("others.py").write_text(Path("scenarios.py").read_text())
    one_line(run(None, "others.py", "--replay", file), "was recorded in scenarios.py::test_first, not in others.py")
    assert run(None, "scenarios.py::test_first", "--replay", file)[0] == 1
    code, out, _ = run(None, "scenarios.py", "--replay", file)
    assert code == 1 and out.count("VIOLATED") == 1, "of a whole file it finds its test by itself"


def test_a_schedule_that_does_not_say_may_be_tried_anywhere(tmp_path):
    path = tmp_path / "a.schedule"
    path.write_text("# steersman schedule 1\nrun a/b\n")
    assert saved.read(path).belongs_to("any.py", "test_any")


def test_what_is_saved_is_read_back(tmp_path):
    verdict = Verdict("one\n# lag: 9", bounds={"lag": 2, "crashes": 1, "granularity": "whole reconciles"})
    verdict.reads = ("a Pod",)
    violation = Violation("always", "Ünïcode / and\nlines " + "x" * 300, "no\n# lag: 7\nrun this")
    path = saved.save(violation, verdict, tmp_path, "dir/f.py", "TestX::test_y[a-b]", set())
    assert path.name.startswith("f-TestX--test_y-a-b--ünïcode---and-lines-x") and len(path.name) < 255
    again = saved.read(path)
    assert again.bounds == {"lag": 2, "crashes": 1, "atomic": True} and again.reads == ("a Pod",)
    assert again.target == "f.py::TestX::test_y[a-b]" and len(again.schedule) == 0
    assert again.belongs_to("elsewhere/f.py", "TestX::test_y[a-b]") and not again.belongs_to("f.py", "test_y")
    with pytest.raises(ScheduleError, match="No such file"):
        saved.read(tmp_path / "absent")
