"""The graph of a search against brute force: visited states, shortest paths, recurrences under strong fairness."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.check.graph import NONE, Graph, Visited, item_of
from steersman.kernel.action import Action
from steersman.kernel.object import Key

BIG = st.integers(0, (1 << 128) - 1)
FEW = st.integers(0, 3).map(lambda n: n << 122) | st.integers(0, 40)


@given(st.lists(BIG | FEW, max_size=300))
def test_visited_is_a_dict(fingerprints):
    visited, known = Visited(), {}
    for fingerprint in fingerprints:
        new = fingerprint not in known
        number = known.setdefault(fingerprint, len(known))
        assert visited.number(fingerprint) == (number, new)
    assert visited.size == len(known)


def test_visited_grows_and_stays_small():
    visited = Visited()
    numbers = [(n * 0x9E3779B97F4A7C15F39CC0605CEDC835) % (1 << 128) for n in range(200_000)]
    assert [visited.number(n) for n in numbers] == [(at, True) for at in range(len(numbers))]
    assert [visited.number(n) for n in numbers[::1000]] == [(at, False) for at in range(0, len(numbers), 1000)]
    assert visited.memory / len(numbers) <= 62, "20 bytes a slot, at least a third of them used"


# -- recurrences -----------------------------------------------------------------------------------------------------

ACTORS = (
    Action("run", "a", Key("", "X", "", "x")),
    Action("cont", "a", Key("", "X", "", "x"), 1),
    Action("run", "b", Key("", "X", "", "x")),
    Action("user", "u"),
    Action("crash", "a"),
)


def graphs(most=6):
    def edges(count):
        edge = st.tuples(st.integers(0, count - 1), st.sampled_from(ACTORS), st.integers(0, count - 1))
        return st.tuples(
            st.just(count), st.lists(edge, max_size=18), st.lists(st.integers(0, 2), min_size=count, max_size=count)
        )

    return st.integers(1, most).flatmap(edges)


def build(count, edges, stores):
    graph = Graph()
    start = graph.action(Action("start", ""))
    for state in range(count):
        graph.add(state, NONE, start, stores[state])
    for state in range(count):
        graph.expand(state)
        for source, action, target in edges:
            if source == state:
                graph.edge(state, graph.action(action), target)
    return graph


def brute_force(count, edges, stores):
    """Every maximal set of states in which a fair run may stay, by trying all sets."""
    real = [(s, a, t) for s, a, t in edges if a.op != "crash"]
    found = []
    for size in range(count, 0, -1):
        for states in combinations(range(count), size):
            inside = set(states)
            within = [(s, a, t) for s, a, t in real if s in inside and t in inside]
            leaving = [(s, a, t) for s, a, t in real if s in inside and t not in inside]
            at_rest = size == 1 and not within and not leaving
            if not at_rest and not (within and strongly_connected(inside, within)):
                continue
            enabled = {item_of(a) for s, a, t in real if s in inside}
            moving = {item_of(a) for s, a, t in within}
            if enabled <= moving and not any(inside < set(bigger) for bigger, _, _ in found):
                found.append((states, not leaving, any(stores[s] != stores[t] for s, _, t in within)))
    return sorted(found)


def strongly_connected(states, edges):
    def reach(start, forward):
        seen, work = {start}, [start]
        while work:
            at = work.pop()
            for s, _, t in edges:
                a, b = (s, t) if forward else (t, s)
                if a == at and b not in seen:
                    seen.add(b)
                    work.append(b)
        return seen

    start = min(states)
    return reach(start, True) == reach(start, False) == states


@settings(max_examples=400, deadline=None)
@given(graphs())
def test_recurrences_are_those_of_brute_force(case):
    graph = build(*case)
    found = sorted((tuple(sorted(r.states)), r.terminal, r.writes) for r in graph.recurrences())
    assert found == brute_force(*case)


def test_a_loop_that_can_avoid_whoever_wants_to_leave():
    """The user can act in one state of the component only. A fair run need not come there: the loop beside it stays."""
    a, b, user = ACTORS[0], ACTORS[2], ACTORS[3]
    case = (4, [(0, a, 1), (1, a, 0), (1, a, 2), (2, a, 0), (2, user, 3), (2, b, 3)], [0, 1, 0, 2])
    expected = [((0, 1), False, True), ((3,), True, False)]
    assert brute_force(*case) == expected
    assert [(r.states, r.terminal, r.writes) for r in build(*case).recurrences()] == expected


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_a_cycle_is_one_and_writes(case):
    graph = build(*case)
    for recurrence in graph.recurrences():
        start, cycle = graph.cycle(recurrence.states)
        assert start == recurrence.states[0]
        assert bool(cycle) == recurrence.writes
        here, stores = {recurrence.states[0]}, set()
        for action in cycle:
            number = graph.by_action[action]
            here = {t for s in here for a, t in graph.edges(s) if a == number and t in recurrence.states}
            stores |= {graph.stores[s] for s in here}
            assert here
        if cycle:
            assert recurrence.states[0] in here and len(stores) > 1


def test_many_polling_states_cost_little():
    """States that poll (a loop that writes nothing) and that somebody will leave: each is looked at once."""
    import time

    graph = Graph()
    start = graph.action(Action("start", ""))
    poll, leave = graph.action(ACTORS[0]), graph.action(ACTORS[3])
    count = 100_000
    for state in range(count):
        graph.add(state, NONE, start, 0)
    for state in range(count - 1):
        graph.expand(state)
        graph.edge(state, poll, state)
        graph.edge(state, leave, state + 1)
    before = time.process_time()
    (last,) = graph.recurrences()
    assert last.states == (count - 1,)
    assert time.process_time() - before < 10


def test_paths_are_the_first_ways_found():
    graph = Graph()
    start, a, b = (graph.action(action) for action in (Action("start", ""), ACTORS[0], ACTORS[2]))
    graph.add(7, NONE, start, 0)
    graph.add(8, 0, a, 0)
    graph.add(9, 1, b, 0)
    assert graph.add(9, 0, b, 0) == (2, False)
    assert graph.path(2) == [ACTORS[0], ACTORS[2]] and graph.path(0) == []
