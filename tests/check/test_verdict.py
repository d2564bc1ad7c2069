"""Verdicts say what they mean: what claimed nothing, was cut short, or was bounded on purpose."""

import pytest

import steersman as sm
from steersman.check.verdict import Verdict, Violation, plural
from tests.check.command import one_line, scenario

COMPLETE = "\ndef test_it():\n    sm.check(scenario_one()).assert_holds(complete=True)\n"
OWN_BOUND = "\ndef test_it():\n    sm.check(scenario_one(), max_states=2).assert_holds(complete=True)\n"
CLAIM = "w.always('there', lambda s: s.count('v1/ConfigMap'))"


# -- passes that say nothing -----------------------------------------------------------------------------------------


def test_what_checks_nothing_is_no_pass(run):
    one_line(
        run("\ndef test_nothing():\n    pass\n"), "test_nothing checked nothing: call sm.check in it, or return a S"
    )
    text = scenario(CLAIM) + "\ndef test_nothing():\n    scenario_one()\n"
    code, out, err = run(text)
    assert code == 2 and "one: holds" in out and "test_nothing checked nothing" in err


def test_a_class_is_no_function(run):
    one_line(run(scenario(CLAIM), name="::Writer"), "Writer is a class, not a function", "scenario_one")
    one_line(run("\nclass test_it(Noop):\n    pass\n"), "no functions called test_… or scenario_…")


def test_a_scenario_without_properties_says_so(run):
    code, out, _ = run(scenario())
    said = "one: holds (nothing was claimed: only what is out of the box was judged)\n"
    assert code == 0 and out.startswith(said)
    assert run(scenario(CLAIM))[1].startswith("one: holds\n")


def test_a_folder_is_no_file(run):
    one_line(run(None, "."), ".: is a directory; name files")


# -- bounded ones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        ("--walks", "3"),
        ("--max-states", "2"),
        ("--max-depth", "1"),
        ("--max-seconds", "0"),
        ("--max-memory", "1", "--max-depth", "1"),
    ],
)
def test_options_that_bound_excuse_a_test_that_wants_everything(run, option):
    code, out, err = run(scenario(CLAIM) + COMPLETE, *option, name="::test_it")
    assert code == 0 and not err and "one: nothing found so far\n  BOUNDED (" in out and "holds" not in out
    assert run(scenario(CLAIM) + COMPLETE, *option, "--require-complete", name="::test_it")[0] == 3


def test_a_replay_excuses_it_too(run):
    failing = scenario("w.always('never done', lambda s: not s.list('v1/ConfigMap')[0].data.done)") + COMPLETE
    _, out, _ = run(failing, name="::test_it")
    file = next(line.split("--replay ")[1] for line in out.splitlines() if "--replay" in line)
    code, out, err = run(scenario(CLAIM) + COMPLETE, "--replay", file, name="::test_it")
    assert code == 0 and not err and "one: replayed 3 steps; nothing is violated on the way" in out


def test_otherwise_bounded_is_said_and_3(run):
    code, _, err = run(scenario(CLAIM) + OWN_BOUND, name="::test_it")
    assert code == 3
    assert err == "steersman check: one: BOUNDED (stopped at 2 states), but complete=True was asked\n"
    drawing = "\nclass Draw(Noop):\n    def reconcile(self, c, key):\n        c.random()\n"
    text = drawing + scenario(CLAIM, controllers="Draw") + COMPLETE
    code, out, err = run(text, "--max-states", "99", name="::test_it")
    assert code == 3 and "draw draws random numbers: one outcome was explored), but complete=True was asked" in err
    assert "one: holds\n  BOUNDED (" in out, "nothing cut that search short"


def test_an_assertion_says_bounded_first():
    verdict = Verdict("one", incomplete="stopped at 2 states", cut=True)
    with pytest.raises(
        AssertionError, match=r"^one: BOUNDED \(stopped at 2 states\), but complete=True was asked\n  BOU"
    ):
        verdict.assert_holds(complete=True)
    assert verdict.assert_holds() is verdict


# -- words -----------------------------------------------------------------------------------------------------------


def test_words():
    assert (plural(1, "state"), plural(0, "state"), plural(2_000, "state")) == ("1 state", "0 states", "2,000 states")
    assert Violation("converges", "converges", "").title == "converges"
    assert Violation("converges", "all done", "").title == "converges: all done"
    one = Verdict("", states=1, transitions=1, executions=1)
    assert "scenario: holds\n  COMPLETE: 1 state, 1 transition, 0 at rest, 1 real execution in" in str(one)
    one.violations.append(Violation("always", "never", "it was"))
    assert str(one).startswith("scenario: VIOLATED  always: never\n  it was\n  search: COMPLETE: 1 state, ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("owns = 'v1/Pod'", "controller 'bad': owns is 'v1/Pod', but must be a tuple of kinds: owns = ('v1/Pod',)"),
        ("reads = 'v1/Pod:spec'", "reads is 'v1/Pod:spec', but must be a tuple of kinds: reads = ('v1/Pod:spec',)"),
        ("owns = None", "owns is None, but must be a tuple of kinds: owns = ('v1/Pod',)"),
        ("watches = ('v1/Pod',)", "watches is ('v1/Pod',), but must map kinds to functions"),
        ("watches = 'v1/Pod'", "watches is 'v1/Pod', but must map kinds to functions"),
    ],
)
def test_declarations_of_the_wrong_type(run, line, said):
    text = f"\nclass Bad(sm.Controller):\n    kind = 'v1/ConfigMap'\n    {line}\n"
    one_line(run(text + scenario(controllers="Bad")), said)


def test_declarations_of_the_right_type_are_taken():
    class Good(sm.Controller):
        kind = "v1/ConfigMap"
        owns = ["v1/Pod"]  # noqa: RUF012
        watches = {"v1/Secret": lambda _obj: ()}  # noqa: RUF012

        def reconcile(self, c, key):
            c.get(key)

    assert sm.check(sm.Scenario().run(Good)).complete
