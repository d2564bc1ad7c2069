"""Reports of a check: why something is as it is, tests made of counterexamples, JUnit and SARIF."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

import steersman as sm
from examples.check import over_creation
from steersman.check.report.cause import CauseError, place, slice_of
from steersman.check.report.reports import why

NAMES = """
class Copier(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if key.name != "source":
            return
        source = c.get(key)
        copy = c.get(sm.Key("", "ConfigMap", "default", "copy"))
        if copy.data.value != source.data.value:
            c.patch(copy, {"data": {"value": source.data.value}})

class Bystander(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if key.name == "apart" and not c.get(key).data.seen:
            c.patch(key, {"data": {"seen": "yes"}})

def named(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}

def scenario_copies():
    w = sm.Scenario("copies")
    source = w.apply(named("source", value="old"))
    copy = w.apply(named("copy", value="old"))
    w.apply(named("apart"))
    w.run(Copier, Bystander)
    w.user("change", lambda c: c.patch(source, {"data": {"value": "new"}}))
    apart = sm.Key("", "ConfigMap", "default", "apart")
    w.always("the copy is old", lambda s: s[copy].data.value == "old" or not s[apart].data.seen)
    return w
"""


def over_created():
    return sm.check(over_creation.scenario(over_creation.NaiveReplicaSet), lag=1)


# -- why -------------------------------------------------------------------------------------------------------------


def test_why_shows_the_steps_that_led_there_and_no_others(run):
    code, out, _ = run(NAMES, "--cause", "ConfigMap/copy.data.value")
    assert code == 1
    said = out.partition("  why ConfigMap/default/copy.data.value is as it is: ")[2].partition("  replay:")[0]
    assert "user: change" in said
    assert 'data.value: "old" → "new"' in said
    assert "bystander" not in said
    assert "bystander" in out  # who is in the counterexample


def test_a_stale_read_is_caused_by_what_it_missed():
    story = over_created().violations[0].story
    steps = slice_of(story, place(story, "ReplicaSet/web"))
    stale = [step for step in steps if step.stale]
    assert not stale  # the status was written before any stale read
    pod = next(step for step in story.steps if step.stale)
    created = story.steps[-1].changes[0].key
    steps = slice_of(story, place(story, f"Pod/{created.name}"))
    assert pod in steps
    missed = [step for step in story.steps if {change.rev for change in step.changes} & set(pod.missed)]
    assert missed and all(step in steps for step in missed)


def test_names_fields_and_what_is_not_there():
    story = over_created().violations[0].story
    assert place(story, "ReplicaSet.apps/default/web.status.replicas").field == "status.replicas"
    with pytest.raises(CauseError, match=r"no such object in this run; give KIND/NAME .*ReplicaSet/default/web"):
        place(story, "Pod/nobody")
    with pytest.raises(CauseError, match="nobody changes it"):
        slice_of(story, place(story, "ReplicaSet/web.spec.replicas"))
    assert next(iter(why(over_created().violations[0], "Pod/nobody"))).startswith("  why: Pod/nobody: no such object")


# -- tests -----------------------------------------------------------------------------------------------------------


BUGGY = """
class Once(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        seen = c.get(key)
        if seen.data.count != "2":
            c.patch(key, {"data": {"count": str(int(seen.data.count or 0) + 1)}})

def scenario_counts():
    w = sm.Scenario('it\\'s \\"\\"\\" odd \\\\')
    a = w.apply(OBJECT)
    w.run(Once)
    w.always('never "two" \\\\n', lambda s: s[a].data.count != "2")
    return w
"""


def exported(run) -> list[Path]:
    code, out, _ = run(BUGGY, "--export-test", "regressions")
    assert code == 1
    files = sorted(Path("regressions").glob("test_*.py"))
    assert [f"  test: {file}" in out for file in files] == [True] * len(files)
    assert files
    return files


def passes(file: Path) -> bool:
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file], capture_output=True)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return run.returncode == 0


def test_an_exported_test_fails_until_the_controller_is_mended(run):
    always = [file for file in exported(run) if "two" in file.name]
    assert [passes(file) for file in always] == [False]
    mended = Path("scenarios.py").read_text().replace('if seen.data.count != "2"', "if not seen.data.count")
    Path("scenarios.py").write_text(mended)
    assert [passes(file) for file in always] == [True]


# -- what other tools read -------------------------------------------------------------------------------------------


def test_junit_has_a_case_for_each_verdict(run):
    code, _, err = run(NAMES, "--junit", "out/report.xml", "--max-states", "9999")
    assert code == 1 and "wrote out/report.xml" in err
    suite = Xml.parse("out/report.xml").getroot().find("testsuite")
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("scenarios.py", "1", "1")
    case = suite.find("testcase")
    assert case.get("name") == "scenario_copies[copies]" and int(case.get("line")) > 20
    assert case.find("failure").get("type") == "always: the copy is old"
    facts = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert facts["verdict"] == "COMPLETE" and facts["lag"] == "0"


def test_sarif_has_a_rule_a_result_and_the_steps(run):
    run(NAMES, "--sarif", "report.sarif")
    report = json.loads(Path("report.sarif").read_text())
    (made,) = report["runs"]
    assert [rule["id"] for rule in made["tool"]["driver"]["rules"]] == ["always/the-copy-is-old"]
    (result,) = made["results"]
    assert result["ruleIndex"] == 0 and result["level"] == "error"
    lines = Path("scenarios.py").read_text().splitlines()
    region = result["locations"][0]["physicalLocation"]["region"]
    assert "def reconcile" in lines[region["startLine"] - 1]
    flow = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [each["executionOrder"] for each in flow] == list(range(1, len(flow) + 1))
    assert any("user: change" in each["location"].get("message", {}).get("text", "") for each in flow)


def test_an_exported_test_is_a_test_whatever_things_are_called(run):
    odd = '\\0\\x1b\\ud800\\r\\\\x\\"\\"\\"</script>'
    run(NAMES.replace("the copy is old", odd), "--export-test", "made")
    assert [passes(file) for file in Path("made").glob("*.py")] == [False]


def test_a_device_is_written_to_and_stays_one(run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        _, _, err = run(NAMES, "--save", str(pipe))
        assert "wrote" in err and pipe.is_fifo() and os.read(reader, 1) == b"{"
    finally:
        os.close(reader)


def test_a_report_that_cannot_be_written_is_told(run):
    for option in ("--save", "--html", "--junit", "--sarif"):
        _, _, err = run(NAMES, option, ".")
        assert "Is a directory; the report was not written" in err and "Traceback" not in err
    Path("file").write_text("")
    code, _, err = run(NAMES, "--junit", "file/report.xml")
    assert code == 1
    assert "the report was not written" in err and "Traceback" not in err
    holds = NAMES.replace("or not s[apart].data.seen", "or s[copy].data.value")
    assert run(holds)[0] == 0
    code, _, err = run(holds, "--junit", "file/report.xml")
    assert code == 2, "who asked for a report and did not get it is not told that all is well"


def test_ends_tell_what_is_there(run):
    _, out, _ = run(NAMES, "--ends")
    assert "; the last: " in out
    assert "    there: ConfigMap default/apart, ConfigMap default/copy, ConfigMap default/source" in out
