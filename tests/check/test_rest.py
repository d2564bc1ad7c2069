"""Where nothing changes any more: who fails there every time is said, shown, and found again on a replay."""

from pathlib import Path

from tests.check.command import scenario

REFUSED = """
class Refused(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if not c.get(key).data.done:
            c.patch(key, {"data": {"a/b": "x", "done": "yes"}})

class Poll(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        c.get(key)
        return 5

class Sometimes(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if c.external("coin", 1):
            c.patch(key, {"data": {"a/b": "x"}})
        return 5
"""
DONE = "w.converges(lambda s: s.list('v1/ConfigMap')[0].data.done)"
FAILS = 'refused on ConfigMap default/a fails every time: Invalid: ConfigMap "a" is invalid: data[a/b]: Invalid value'


def replays(out):
    return [line.split("--replay ")[1] for line in out.splitlines() if "--replay" in line]


def test_a_write_that_is_always_refused_is_named_and_shown(run):
    code, out, _ = run(REFUSED + scenario(DONE, controllers="Refused"))
    lines = out.splitlines()
    assert code == 1 and lines[0] == "one: VIOLATED  converges"
    assert lines[1].startswith(f"  nothing changes any more, but {FAILS}: ")
    assert lines[2] == "  from the starting state on, for ever:"
    assert lines[3:5] == [
        "    1. refused starts to reconcile ConfigMap default/a",
        "    2. refused (ConfigMap default/a) reads ConfigMap default/a: there",
    ]
    assert lines[5].startswith("    3. refused (ConfigMap default/a) patch ConfigMap default/a: refused, Invalid: ")
    assert lines[6] == "       … and fails with that; ConfigMap default/a is on its queue again"
    assert lines[7].startswith("  search: COMPLETE: 3 states, 3 transitions, 1 at rest, ")


def test_whole_reconciles_that_fail_are_shown_too(run):
    _, out, _ = run(REFUSED + scenario(DONE, controllers="Refused"), "--atomic")
    assert f"nothing changes any more, but {FAILS}" in out
    assert "       … and fails: Invalid: " in out and "search: COMPLETE: 1 state, 1 transition, " in out


def test_after_steps_that_change_something(run):
    lines = ["w.user('spoil', lambda c: c.patch(sm.Key('', 'ConfigMap', 'default', 'a'), {'data': {'x': '1'}}))", DONE]
    _, out, _ = run(REFUSED + scenario(*lines, controllers="Refused"))
    assert FAILS in out


def test_who_only_reads_is_no_failure_but_the_cycle_is_shown(run):
    code, out, _ = run(REFUSED + scenario(DONE, controllers="Poll"))
    assert code == 1 and "  nothing changes any more, but 'converges' is false\n" in out
    assert "for ever:\n" in out and "time passes: poll looks at ConfigMap default/a again" in out
    code, again, _ = run(None, "scenarios.py", "--replay", replays(out)[0])
    assert code == 1 and "nothing changes any more, but 'converges' is false" in again


def test_the_starting_state_is_said_to_be_at_fault(run):
    _, out, _ = run(scenario("w.always('never', lambda s: False)"))
    assert "  'never' is false\n    (in the starting state, before anybody has done anything)\n  search: " in out
    stuck = "\nclass Stuck(sm.Controller):\n    kind = 'v1/Secret'\n"
    _, out, _ = run(stuck + scenario(DONE, controllers="Stuck"))
    assert "but 'converges' is false\n    (in the starting state, before anybody has done anything)\n" in out


def test_a_replay_judges_what_the_cycle_shows(run):
    _, out, _ = run(REFUSED + scenario(DONE, controllers="Refused"))
    code, again, _ = run(None, "scenarios.py", "--replay", replays(out)[0])
    assert code == 1 and f"nothing changes any more, but {FAILS}" in again
    assert "search: BOUNDED (one schedule replayed): 3 steps; bounds: lag 0" in again
    assert "memo hits" not in again and "states" not in again


def test_a_replay_that_does_not_end_at_rest_judges_no_convergence(run):
    _, out, _ = run(REFUSED + scenario(DONE, controllers="Refused, Poll"))
    file = Path(replays(out)[0])
    code, again, _ = run(None, "scenarios.py", "--replay", file)
    assert code == 0, "only one of two that can move moves in it"
    assert "one: replayed 5 steps; the run is not at rest at the end, so 'converges' is not judged\n" in again
    assert "holds" not in again and "memo hits" not in again
    file.write_text("\n".join(file.read_text().splitlines()[:-2]) + "\n")
    _, again, _ = run(None, "scenarios.py", "--replay", file)
    assert "one: replayed 3 steps; the run is not at rest" in again


def test_a_replay_without_a_claim_of_convergence(run):
    _, out, _ = run(scenario("w.always('never done', lambda s: not s.list('v1/ConfigMap')[0].data.done)"))
    file = Path(replays(out)[0])
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    code, again, _ = run(None, "scenarios.py", "--replay", file)
    assert code == 0 and "one: replayed 2 steps; nothing is violated on the way" in again
