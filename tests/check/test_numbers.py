"""The scenarios whose numbers are known: states, transitions and ends, exactly.

The numbers come from a measured port of Kamera's scenarios, with sound merging of states (whole reconciles).
"""

import pytest

from steersman.check.explore import Bounds, Explorer
from steersman.check.options import OPTIONS, REDUCTION
from tests.check import kamera
from tests.check.models import writers

MEMOS = ("read_memo", "write_memo", "canonical")

WHOLE = {option.name: False for option in OPTIONS if option.part == REDUCTION and option.name not in MEMOS}
"""Every state, as the port of Kamera's loop counts them."""


def searched(scenario, reduced=False, **bounds):
    explorer = Explorer(scenario, Bounds(**bounds), **({} if reduced else WHOLE))
    verdict = explorer.run()
    assert verdict.complete
    return explorer, verdict


def size(verdict):
    return verdict.states, verdict.transitions


def test_trivial():
    w, key = kamera.trivial()
    explorer, verdict = searched(w, atomic=True)
    assert size(verdict) == (6, 8)
    assert verdict.holds and verdict.converged == 1
    assert [state[key].status.state for state in explorer.ends()] == ["A-Final"]


def test_foo_bar_ends_in_two_ways():
    w, key = kamera.foo_bar()
    explorer, verdict = searched(w, atomic=True)
    assert size(verdict) == (17, 23)
    ends = {(s[key].status.state, bool(s[key].metadata.annotations)) for s in explorer.ends()}
    assert verdict.converged == 2 and ends == {("A-Final", False), ("B-Final", True)}
    (violation,) = verdict.violations
    assert violation.kind == "confluence" and violation.actions and violation.other
    assert violation.actions != violation.other


def test_foo_bar_has_a_third_end_between_two_calls():
    """With calls interleaved bar flips the mode after foo has read it: what whole reconciles cannot show."""
    w, key = kamera.foo_bar()
    explorer, verdict = searched(w)
    ends = {(s[key].status.state, s[key].spec.mode) for s in explorer.ends()}
    assert verdict.converged == 3 and {state for state, _ in ends} == {"A-Final", "B-Final"}


@pytest.mark.parametrize("reduced", [False, True])
def test_simclock_has_one_path_and_its_hours(reduced):
    w, key = kamera.simclock()
    explorer, verdict = searched(w, reduced, atomic=True)
    assert verdict.holds and verdict.converged == 1
    graph = explorer.graph
    assert all(len(list(graph.edges(state))) <= 1 for state in range(len(graph))), "one path"
    (end,) = explorer.ends()
    times = [condition.lastTransitionTime for condition in end[key].status.conditions]
    assert times == ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"]


def test_racecondition_is_none():
    w, key = kamera.toggle(kamera.Claim)
    explorer, verdict = searched(w, atomic=True)
    assert size(verdict) == (7, 9)
    assert verdict.holds and [state[key].status.owner for state in explorer.ends()] == ["alpha"]


@pytest.mark.parametrize(
    ("count", "again", "states", "transitions"),
    [(4, False, 16, 32), (6, False, 64, 192), (7, False, 128, 448), (4, True, 81, 216), (5, True, 243, 810)],
)
def test_independent_writers(count, again, states, transitions):
    _, verdict = searched(writers(count, again), atomic=True)
    assert size(verdict) == (states, transitions)
    assert verdict.holds and verdict.converged == 1


@pytest.mark.parametrize("atomic", [True, False])
def test_duel_is_a_livelock_and_its_cycle_is_shown(atomic):
    w, key = kamera.toggle(kamera.Duel)
    explorer, verdict = searched(w, atomic=atomic)
    assert verdict.converged == 0
    (violation,) = verdict.violations
    assert violation.kind == "livelock"
    assert {action.who for action in violation.cycle} == {"alpha", "beta"}
    before = explorer.world_at(violation.actions)
    after = explorer.world_at([*violation.actions, *violation.cycle])
    assert before.store.sum_canonical == after.store.sum_canonical, "the cycle closes"
    owners = set()
    for end in range(len(violation.cycle) + 1):
        owners.add(explorer.world_at([*violation.actions, *violation.cycle[:end]]).store.get(key).value.status.owner)
    assert owners == {"alpha", "beta"}, "and it writes on its way"
    if atomic:
        assert len(violation.cycle) == 2


def test_a_livelock_breaks_confluence_alone_too():
    w, _ = kamera.toggle(kamera.Duel)
    w.properties = [prop for prop in w.properties if prop.kind == "confluence"]
    _, verdict = searched(w, atomic=True)
    assert [violation.kind for violation in verdict.violations] == ["livelock"]


def test_depth_is_a_bound_and_no_livelock():
    w, _ = kamera.toggle(kamera.Duel)
    verdict = Explorer(w, Bounds(atomic=True, max_depth=2)).run()
    assert verdict.word == "BOUNDED" and verdict.holds and "deeper than 2" in verdict.incomplete


def test_states_cost_few_bytes():
    _, verdict = searched(writers(4, True))
    states, transitions = verdict.memory
    assert verdict.states == 6**4
    assert states / verdict.states <= 110
    assert transitions == 8 * verdict.transitions


@pytest.mark.parametrize(
    ("made", "bounds", "made_too", "ends"),
    [
        (kamera.lock, {"lag": 1}, "Won", [(["alpha"], {}), (["beta"], {})]),
        (kamera.census, {}, "Item", [(["other", "web"], {"count": "1"})]),
        (kamera.poll, {}, "Poll", [(["x"], {"seen": "III"})]),
        (lambda: kamera.order(kamera.StartFirst), {"crashes": 1}, "Work", [(["x"], {"started": "yes"})]),
    ],
)
def test_what_an_api_server_refuses_filters_or_does_later_is_no_alarm(made, bounds, made_too, ends):
    """Kamera ends the first with two who won, the second with 2 and the third with one look."""
    w, key = made()
    explorer, verdict = searched(w, reduced=True, **bounds)
    assert verdict.holds
    kind = f"{key.group}/v1/{made_too}"
    found = [([x.metadata.name for x in s.list(kind)], dict(s[key].status or {})) for s in explorer.ends()]
    assert sorted(found, key=str) == ends


@pytest.mark.parametrize(
    ("made", "bounds", "violated"),
    [(kamera.order, {"crashes": 1}, "converges"), (kamera.held, {}, "no leaked finalizer")],
)
def test_a_crash_between_two_writes_and_a_finalizer_are_found(made, bounds, violated):
    """Kamera has no crash between two writes, and gives up at every deletion."""
    _, verdict = searched(made()[0], reduced=True, **bounds)
    assert [violation.name for violation in verdict.violations] == [violated]
