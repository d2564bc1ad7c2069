"""Re-execution: stopped between any two calls and run again, a reconcile does what it does in one go."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.check.explore import Bounds, Explorer
from steersman.kernel.draw import draw_seeded
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.reexec import Learned
from steersman.kernel.straight import run_through
from steersman.kernel.transition import apply, enabled
from tests.check.models import REMEMBERING, TIMED, program_scenario, programs

LAW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
TABLES = st.lists(programs(REMEMBERING, 8), min_size=1, max_size=2) | st.lists(
    programs(TIMED, 8), min_size=1, max_size=2
)


def both_ways(table, users, choices):
    """Two worlds that take the same items in the same order: one call by call, one with each reconcile in one go; and
    the labels that the latter says it amounts to. Names and uids are drawn as simulate draws them."""
    scenario = program_scenario(table, users)
    one, other = (scenario.system(draw=draw_seeded(7)) for _ in range(2))
    while True:
        try:
            stepped, straight = scenario.world(one), scenario.world(other)
            one.draw, other.draw = draw_seeded(7), draw_seeded(7)
            labels, taken = [], []
            for choice in choices:
                actions = enabled(stepped)
                if not actions:
                    break
                action = actions[choice % len(actions)]
                stepped = apply(stepped, action)
                taken.append(action.label)
                item = (one.loop_index(action.who), action.key) if action.op == "run" else None
                while item is not None and item in stepped.flights:
                    (following,) = [a for a in enabled(stepped) if a.op == "cont"]
                    stepped = apply(stepped, following)
                    taken.append(following.label)
                if item is None:
                    straight = apply(straight, action)
                    labels.append(action.label)
                else:
                    straight = straight.fork()
                    run_through(straight, item, labels)
            return stepped, straight, taken, labels
        except Learned as learned:
            one.learn(learned)
            other.learn(learned)


@LAW
@given(TABLES, st.integers(0, 2), st.lists(st.integers(0, 5), max_size=20))
def test_call_by_call_is_in_one_go(table, users, choices):
    stepped, straight, taken, labels = both_ways(table, users, choices)
    assert fingerprint(stepped) == fingerprint(straight)
    assert [o.content for o in stepped.store.objects()] == [o.content for o in straight.store.objects()]
    assert taken == labels, "the labels of a straight run are those that check takes"


@LAW
@given(TABLES, st.integers(0, 1), st.integers(0, 1 << 30))
def test_the_trie_answers_what_an_execution_would(table, users, seed):
    """Every node of the trie: executing its journal from the start again gives its call or its end."""
    import random

    explorer = Explorer(program_scenario(table, users), Bounds(max_states=150))
    explorer.run()
    reexec = explorer.system.reexec
    work = list(reexec._roots.values())
    chance = random.Random(seed)
    checked = 0
    while work and checked < 60:
        node = work.pop(chance.randrange(len(work)))
        work.extend(node.children.values())
        effect, result = reexec._execute(node, node.journal())
        assert (effect is None) == (node.effect is None)
        if effect is not None:
            assert effect.op == node.effect.op and effect.footprint == node.effect.footprint
        else:
            assert result[1:] == node.result[1:]
        checked += 1
    assert not reexec.findings
