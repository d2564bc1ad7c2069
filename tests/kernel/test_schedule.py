"""Schedules as text, and the Policy that follows one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.kernel import schedule as module
from steersman.kernel.action import Action
from steersman.kernel.object import Key
from steersman.kernel.schedule import HEADER, Replay, Schedule, ScheduleError

LABELS = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp", "Zs")), min_size=1).filter(
    lambda text: not text.startswith("#") and len(text.splitlines()) == 1
)


@given(st.lists(LABELS))
def test_text_and_back(labels):
    schedule = Schedule(labels)
    again = Schedule.loads(schedule.dumps(["a note"]))
    assert again == schedule and hash(again) == hash(schedule) and list(again) == labels


def test_slices_are_schedules():
    assert Schedule("abc")[1:] == Schedule("bc") and Schedule("abc")[0] == "a"
    assert repr(Schedule("ab")) == "Schedule(['a', 'b'])" and Schedule("a") != ["a"]


@pytest.mark.parametrize("text", ["", "\n", "run a/b\n", "# steersman schedule 2\n", "{}"])
def test_foreign_text_is_refused_in_a_line(text):
    with pytest.raises(ScheduleError, match=r"file\.schedule, line 1: expected .* written by steersman check\?"):
        Schedule.loads(text, "file.schedule")


def test_too_much_text_is_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_LABELS", 3)
    with pytest.raises(ScheduleError, match="more than 3 steps"):
        Schedule.loads(f"{HEADER}\n" + "a\n" * 4)


ACTIONS = [Action("run", "c", Key("", "Pod", "default", "a")), Action("user", "u")]


def test_strict_replay_names_the_step_and_what_is_possible():
    policy = Replay(Schedule([ACTIONS[1].label, "run gone/Pod default/a"]))
    assert policy.choose(None, ACTIONS) == ACTIONS[1]
    with pytest.raises(
        ScheduleError, match=r"step 2 .*'run gone/Pod default/a'.* \(enabled: run c/Pod default/a, user u\)"
    ):
        policy.choose(None, ACTIONS)


def test_lenient_replay_skips():
    policy = Replay(Schedule(["nothing", ACTIONS[1].label, "nothing"]), lenient=True)
    assert policy.choose(None, ACTIONS) == ACTIONS[1]
    assert policy.choose(None, ACTIONS) is None and policy.skipped == 2


@pytest.mark.parametrize(
    ("action", "label"),
    [
        (Action("run", "rs", Key("apps", "ReplicaSet", "default", "web")), "run rs/ReplicaSet.apps default/web"),
        (Action("cont", "rs", Key("", "Node", "", "n1"), 3), "cont rs/Node n1#3"),
        (Action("deliver", "rs", Key("apps", "ReplicaSet", "", "")), "deliver rs/ReplicaSet.apps"),
        (Action("deliver", "rs", Key("", "Pod", "", "")), "deliver rs/Pod"),
        (Action("crash", "rs"), "crash rs"),
        (Action("user", "scale up"), "user scale up"),
    ],
)
def test_labels_are_stable_text(action, label):
    assert action.label == str(action) == label
