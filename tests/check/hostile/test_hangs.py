"""Whatever of a scenario does not return is stopped and named, and what was found until then is told."""

import inspect
import time
from pathlib import Path

import pytest

import steersman as sm
from steersman.check import Session, sessions, watchdog
from steersman.check.load import load
from steersman.check.load import run as run_target
from steersman.check.scenario import ScenarioError
from tests.check.models import config, controller

A = sm.Key("", "ConfigMap", "default", "a")


def for_ever(*_):
    while True:
        pass


def asleep(*_):
    time.sleep(600)


def copying(c, key):
    if key == A and not c.get(sm.Key("", "ConfigMap", "default", "b")):
        c.create(config("b"))


def asking(c, key):
    c.external("dns", "where?")


def scenario(reconcile=copying, **attributes):
    w = sm.Scenario("hanging")
    w.apply(config("a"))
    w.run(controller("copy", reconcile, **attributes))
    return w


def with_property(hang):
    return scenario().always("quick", lambda s: s.count("v1/ConfigMap") < 2 or hang())


def at_rest(hang):
    return scenario().converges(hang)


def by_a_user(hang):
    return scenario().user("late", hang)


def by_a_model(hang):
    return scenario(asking).external("dns", hang)


def by_a_model_with_a_state(hang):
    return scenario(asking).external("dns", lambda request, state: hang(), state={})


def by_a_mapping(hang):
    return scenario(map_event=lambda self, event, find: hang() if event.old is None else [event.key])


def by_a_watch(hang):
    w = scenario(watches={"v1/Secret": lambda obj: hang()})
    w.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    return w.user("late", lambda c: c.delete(sm.Key("", "Secret", "default", "s")))


WHERE = {
    with_property: "property 'quick'",
    at_rest: "property 'converges'",
    by_a_user: "user 'late'",
    by_a_model: "the model of 'dns'",
    by_a_model_with_a_state: "the model of 'dns'",
    by_a_mapping: "controller 'copy': what maps events to keys",
    by_a_watch: "controller 'copy': what maps events to keys",
}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(watchdog, "LIMIT", 0.2)
    monkeypatch.setattr(watchdog, "LOADING", 0.4)


@pytest.mark.parametrize("hang", [for_ever, asleep])
@pytest.mark.parametrize("make", WHERE)
def test_what_does_not_return_is_stopped_and_named(make, hang):
    session = Session()
    sessions.append(session)
    try:
        with pytest.raises(ValueError) as told:
            sm.check(make(hang))
    finally:
        sessions.remove(session)
    assert WHERE[make] in str(told.value) and "ran for 0.2 s (" in str(told.value)
    assert f"{Path(inspect.getsourcefile(hang))}, line " in str(told.value)
    (verdict,) = session.verdicts
    assert not verdict.complete and verdict.incomplete == "a function of the scenario failed"


def test_what_was_found_before_is_told():
    """A violation that showed before a property hangs is in the verdict of whoever listens."""
    w = scenario().always("never two", lambda s: s.count("v1/ConfigMap") < 2)
    w.always("quick", lambda s: s.count("v1/ConfigMap") < 2 or for_ever())
    session = Session()
    sessions.append(session)
    try:
        with pytest.raises(ScenarioError):
            sm.check(w)
    finally:
        sessions.remove(session)
    (violation,) = session.verdicts[0].violations
    assert violation.name == "never two" and "create ConfigMap default/b" in violation.explanation


def test_walks_are_stopped_too():
    with pytest.raises(ScenarioError, match="property 'quick' ran for"):
        sm.check(with_property(for_ever), walks=3)


def test_the_analysis_before_any_run_is_watched():
    session = Session()
    session.static = True
    sessions.append(session)
    try:
        with pytest.raises(ScenarioError, match="the model of 'dns' ran for"):
            sm.check(by_a_model(for_ever))
    finally:
        sessions.remove(session)


@pytest.mark.parametrize("what", ["while True: pass", "import time; time.sleep(600)"])
def test_a_file_that_is_never_imported(tmp_path, what):
    path = tmp_path / "slow.py"
    path.write_text(f"{what}\n")
    with pytest.raises(ScenarioError, match=r"slow\.py ran for 0\.4 s"):
        load(str(path))


def test_a_function_that_never_gives_its_scenario(tmp_path):
    path = tmp_path / "never.py"
    path.write_text("def scenario_it():\n    while True:\n        pass\n")
    (target,) = load(str(path))
    with pytest.raises(ScenarioError, match=r"scenario_it ran for 0\.4 s \(.*never\.py, line"):
        run_target(target, sm.check)


def test_a_long_check_is_not_taken_for_a_function_that_hangs(tmp_path, monkeypatch):
    """What a test function asks us to do may take as long as it likes."""
    monkeypatch.setattr(watchdog, "LIMIT", 5.0)
    monkeypatch.setattr(watchdog, "LOADING", 0.1)
    path = tmp_path / "long.py"
    path.write_text(
        "import time\nimport steersman as sm\nfrom tests.check.models import writers\n"
        "def test_it():\n    sm.check(writers(2, True).always('slow', lambda s: not time.sleep(0.1)))\n"
    )
    (target,) = load(str(path))
    start = time.monotonic()
    assert run_target(target, sm.check) == ""
    assert time.monotonic() - start > 0.1


@pytest.mark.parametrize("gives", ["['default/a']", "'a'", "[None]"])
def test_a_mapping_that_gives_no_keys_is_told(gives):
    w = scenario(map_event=lambda self, event, find: eval(gives))
    with pytest.raises(ValueError, match=r"controller copy: .*map_event.* which is no key"):
        sm.check(w)
