"""`steersman check` as a person meets it: exit codes, replay, Ctrl-C, and one clear line for every mistake."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steersman.check.options import OPTIONS, REDUCTION
from tests.check.command import HEAD, one_line, scenario
from tests.source import ROOT

EXAMPLE = ROOT / "examples" / "check" / "false_ready.py"


# -- exit codes ------------------------------------------------------------------------------------------------------


def test_what_holds_is_0_and_says_complete(run):
    code, out, err = run(scenario("w.converges(lambda s: s.count('v1/ConfigMap') == 1)"))
    assert code == 0 and not err
    assert out.startswith("one: holds\n  COMPLETE: ") and "bounds: lag 0, crashes 0, conflicts 0" in out


def test_what_is_violated_is_1_and_is_explained(run):
    code, out, _ = run(scenario("w.always('never done', lambda s: not s.list('v1/ConfigMap')[0].data.done)"))
    assert code == 1
    assert "one: VIOLATED  always: never done" in out
    assert "1. writer starts to reconcile ConfigMap default/a" in out
    assert 'data: (none) → {"done":"yes"}' in out
    assert "replay: steersman check scenarios.py::scenario_one --replay .steersman/scenarios-scenario_one-ne" in out


def test_bounded_is_3_only_where_it_is_refused(run):
    text = scenario()
    assert run(text, "--max-states", "2")[0] == 0
    code, out, _ = run(text, "--max-states", "2", "--require-complete")
    assert code == 3 and "BOUNDED (stopped at 2 states)" in out


def test_options_win_over_the_files_own(run):
    text = scenario() + "\ndef test_it():\n    sm.check(scenario_one(), lag=0).assert_holds()\n"
    code, out, _ = run(text, "--lag", "2", "--crashes", "1", "--conflicts", "1", "--atomic", name="::test_it")
    assert code == 0 and "lag 2, crashes 1, conflicts 1, granularity whole reconciles" in out


def test_reductions_can_be_switched_off(run):
    switches = [option.flag for option in OPTIONS if option.part == REDUCTION]
    assert {"--no-read-memo", "--no-settle"} <= set(switches)
    _, out, _ = run(scenario(), *switches)
    assert "reductions: none" in out


def test_an_assertion_that_fails_although_everything_holds_is_1(run):
    text = (
        scenario() + "\ndef test_it():\n    v = sm.check(scenario_one())\n    assert v.violations, 'expected a bug'\n"
    )
    code, _, err = run(text, name="::test_it")
    assert code == 1 and "test_it: assertion failed: expected a bug" in err and "scenarios.py, line" in err


# -- replay ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "test", "kinds"),
    [
        ("false_ready", "test_existence_reports_ready_falsely", ["always"]),
        ("over_creation", "test_naive_over_creates", ["always", "converges"]),
        ("live_volumes", "test_by_name_deletes_live_volumes", ["always"]),
    ],
)
def test_a_schedule_shows_the_same_violation_again(run, tmp_path, example, test, kinds):
    target = f"{ROOT}/examples/check/{example}.py::{test}"
    code, out, _ = run(None, target)
    assert code == 1
    files = [line.split("--replay ")[1] for line in out.splitlines() if "--replay" in line]
    assert len(files) == len(kinds)
    for file, kind in zip(files, kinds, strict=True):
        code, again, _ = run(None, target, "--replay", file)
        assert code == 1 and f"VIOLATED  {kind}" in again
        first = out[out.index(f"VIOLATED  {kind}") :].splitlines()[:6]
        assert again[again.index(f"VIOLATED  {kind}") :].splitlines()[:2] == first[:2] or kind == "converges"
        assert "BOUNDED (one schedule replayed)" in again


def test_a_livelock_and_a_finding_replay_too(run):
    text = """
class Other(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        c.patch(key, {"data": {"by": c.manager}})
        if c.get(key).data.by != c.manager:
            raise KeyError("mine")

def scenario_fight():
    w = sm.Scenario("fight")
    w.apply(OBJECT)
    w.run(one=Other, two=Other)
    w.converges()
    return w
"""
    _, out, _ = run(text)
    assert "VIOLATED  livelock" in out and "VIOLATED  finding: raised" in out
    for line in out.splitlines():
        if "--replay" in line:
            file = line.split("--replay ")[1]
            _, again, _ = run(None, "scenarios.py", "--replay", file)
            wanted = "livelock: no fight over a field" if "no-fight" in file else "finding: raised"
            assert f"VIOLATED  {wanted}" in again, file


def test_replay_brings_its_bounds_along(run):
    text = scenario(
        "w.always('no crash', lambda s: not s.list('v1/ConfigMap')[0].data.twice)", controllers="Twice"
    ).replace(
        "def scenario_one",
        """
class Twice(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if c.get(key).data.done:
            c.patch(key, {"data": {"twice": "yes"}}) if not c.get(key).data.end else None
            return
        c.patch(key, {"data": {"done": "yes"}})
        c.patch(key, {"data": {"end": "yes"}})

def scenario_one""",
    )
    assert run(text)[0] == 0
    code, out, _ = run(text, "--crashes", "1")
    assert code == 1
    file = next(line.split("--replay ")[1] for line in out.splitlines() if "--replay" in line)
    assert run(None, "scenarios.py", "--replay", file)[0] == 1


def test_schedules_that_do_not_fit(run, tmp_path):
    target = f"{EXAMPLE}::test_existence_reports_ready_falsely"
    run(None, target)
    good = Path(
        ".steersman/false_ready-test_existence_reports_ready_falsely-ready-only-with-a-schema.schedule"
    ).read_text()
    Path("edited").write_text(good.replace("#3", "#9"))
    one_line(run(None, target, "--replay", "edited"), "step 4 of the schedule", "#9", "is not enabled here (enabled: ")
    Path("foreign").write_text("hello\n")
    one_line(run(None, target, "--replay", "foreign"), "foreign, line 1: expected '# steersman schedule 1'")
    Path("binary").write_bytes(b"\xff\xfe\x00")
    one_line(run(None, target, "--replay", "binary"), "binary: ")
    one_line(run(None, target, "--replay", "absent"), "absent: No such file")
    Path("other").write_text("# steersman schedule 1\nrun somebody/else\n")
    one_line(run(None, target, "--replay", "other"), "'run somebody/else', is not enabled here")


def test_a_folder_that_cannot_be_written_is_only_a_warning(run):
    Path("taken").write_text("")
    text = scenario("w.always('never', lambda s: False)")
    code, _, err = run(text, "--schedules", "taken")
    assert code == 1 and "the schedule was not saved" in err


# -- mistakes --------------------------------------------------------------------------------------------------------


def test_missing_and_broken_files(run):
    one_line(run(None, "absent.py"), "absent.py: no such file", "FILE[::NAME]")
    one_line(run("\ndef broken(:\n"), "scenarios.py, line ", "invalid syntax")
    one_line(run("\nraise SystemExit('stop')\n"), "scenarios.py, line ", "SystemExit: stop")
    one_line(run("\nimport no_such_module\n"), "scenarios.py, line ", "no_such_module")
    one_line(run("\n"), "no functions called test_… or scenario_…")
    one_line(run(scenario(), name="::absent"), "no function 'absent'; it has: scenario_one")


def test_functions_that_take_arguments_or_fail(run):
    one_line(run("\ndef scenario_x(count):\n    pass\n"), "scenario_x wants arguments (count)")
    one_line(run("\ndef scenario_x():\n    return 1 / 0\n"), "scenarios.py, line ", "ZeroDivisionError")
    one_line(run("\ndef scenario_x(count=1):\n    pass\n"), "scenario_x checked nothing")


def test_manifests(run):
    def applying(text):
        return f"\ndef scenario_x():\n    w = sm.Scenario()\n    w.apply({text!r})\n    w.run(Noop)\n    return w\n"

    one_line(run(applying("a: b\n  - c: [\n")), "the manifest, line 2: not YAML")
    one_line(run(applying("apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n")), "Nonsense")
    one_line(run(applying("no/such.yaml")), "no/such.yaml: No such file or directory")
    one_line(run(applying("apiVersion: v1\nkind: Pod\n")), "a Pod without metadata.name")
    one_line(run(applying("- 1\n- 2\n")), "document 1: an object is expected, not list")
    one_line(run(applying("---\n---\n")), "no object in it")
    one_line(run(applying("apiVersion: v1\nkind: Pod\nmetadata: {name: UPPER}\nspec: {}\n")), "Pod default/UPPER: ")
    Path("binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    one_line(run(applying("binary.yaml")), "binary.yaml: ")
    deep = "a: " + "[" * 5000
    one_line(run(applying(deep + "\n")), "the manifest")


def test_hostile_kinds(run):
    def kind(text):
        return f"\ndef scenario_x():\n    w = sm.Scenario()\n    w.kind({text!r})\n    w.run(Noop)\n    return w\n"

    good = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    assert run(kind(good))[0] == 0
    for change in (
        {"spec": None},
        {"spec": {**good["spec"], "versions": []}},
        {"spec": {**good["spec"], "versions": "v1"}},
        {"spec": {**good["spec"], "names": {}}},
        {"spec": {**good["spec"], "scope": "Everywhere"}},
        {"kind": "Pod"},
    ):
        one_line(run(kind({**good, **change})))
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    one_line(run(kind({**good, "spec": {**good["spec"], "versions": [version]}})))


def test_scenarios(run):
    one_line(run("\ndef scenario_x():\n    return sm.Scenario('empty')\n"), "empty has no controllers", "w.run(")
    one_line(run(scenario(controllers="Noop, Noop")), "two controllers are called 'noop'")
    one_line(run(scenario(controllers="int")), "w.run takes Controller classes")
    one_line(run(scenario("w.user('u', lambda c: 1).user('u', lambda c: 2)")), "two users are called 'u'")
    one_line(run(scenario("w.user('u', lambda c: {}['x'])")), "user 'u' failed: KeyError: 'x'", "scenarios.py, line ")
    one_line(
        run(scenario("w.always('p', lambda s: s.nothing)")),
        "property 'p' failed: AttributeError",
        "scenarios.py, line ",
    )
    one_line(run(scenario("w.converges(lambda s: 1 / 0, name='q')")), "property 'q' failed: ZeroDivisionError")
    one_line(run(scenario("w.always('p', lambda s: s.count('v1/Nonsense'))")), "property 'p' failed", "Nonsense")


def test_controllers(run):
    text = """
class {0}(sm.Controller):
    {1}

""" + scenario(controllers="{0}")
    one_line(run(text.format("Bad", "name = 'bad'")), "Bad does not say which kind it reconciles")
    one_line(run(text.format("Bad", "kind = 'v1/Nonsense'")), "Nonsense")
    one_line(run(text.format("Bad", "kind = 'v1/ConfigMap'; owns = ['v9/Nothing']")), "Nothing")
    watching = "watches = {'v1/Secret': lambda o: [o['spec']]}; reconcile = lambda self, c, k: None"
    secret = "{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 's', 'namespace': 'default'}}"
    late = f"    w.user('u', lambda c: c.create({secret}))\n    return w"
    body = text.format("Bad", f"kind = 'v1/ConfigMap'; {watching}").replace("    return w", late)
    one_line(
        run(body),
        "controller bad: what maps events to keys (watches, map_event) failed on Secret default/s: KeyError: 'spec'",
        "scenarios.py, line ",
    )
    code, out, _ = run(text.format("Bad", "kind = 'v1/ConfigMap'"))
    assert code == 1 and "finding: raised" in out and "has no reconcile(self, c, key)" in out
    asking = "kind = 'v1/ConfigMap'; reconcile = lambda self, c, k: c.external('dns', 1)"
    one_line(run(text.format("Bad", asking)), "'dns'; model it with w.external")
    model = "    w.external('dns', lambda request, state: 'ok', state={})\n    return w"
    there = "    w.apply({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'x'}})\n"
    body = text.format("Bad", asking).replace("    return w", there + model)
    one_line(run(body), "the model of 'dns' gave 'ok'; with a state it gives (answer, state)")


def test_ctrl_c_gives_the_partial_report(tmp_path):
    """A second into a search that has no end."""
    (tmp_path / "endless.py").write_text(
        HEAD
        + """
class Count(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        c.patch(key, {"data": {"n": str(int(c.get(key).data.n or 0) + 1)}})

def scenario_endless():
    open("started", "w").close()
    w = sm.Scenario("endless")
    w.apply(OBJECT)
    w.run(Count)
    return w

def scenario_after():
    raise RuntimeError("never reached")
"""
    )
    process = subprocess.Popen(
        [sys.executable, "-c", "from steersman.cli import main; main()", "check", "endless.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    end = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        "BOUNDED (interrupted): " in out
        and "endless: nothing found so far (nothing was claimed" in out
        and "holds" not in out
    )
    assert "Traceback" not in err and "never reached" not in err
