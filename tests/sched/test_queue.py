"""The queue: order, back-off, events; and, for any history, a model that keeps a plain list."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from steersman.sched.queue import Queue

S = 1_000_000


def key(name):
    return ("d", name)


def drain(queue, now):
    names = []
    while (entry := queue.pop(now)) is not None:
        names.append(entry.key[1])
    return names


def test_priority_then_time_then_key():
    queue = Queue()
    for name, priority, time in (("d", 0, 1), ("c", 0, 1), ("b", 0, 0), ("a", -1, 0), ("e", 9, 7)):
        queue.add(key(name), priority, time)
    assert drain(queue, 0) == ["e", "b", "c", "d", "a"]


def test_backoff_doubles_to_its_limit_and_needs_an_event():
    queue = Queue()
    queue.add(key("a"), 0, 0)
    now, waits = 0, []
    for _ in range(6):
        queue.fail(queue.pop(now), now, ("NodeResourcesFit",))
        assert queue.next_deadline() is None
        assert queue.pop(now + 100 * S) is None  # no event: it waits however long
        queue.move(lambda entry: True)
        ready = queue.next_deadline()
        assert queue.pop(ready - 1) is None
        waits.append(ready - now)
        now = ready
    assert waits == [1 * S, 2 * S, 4 * S, 8 * S, 10 * S, 10 * S]


def test_an_event_moves_those_it_may_help():
    queue = Queue()
    for name, plugin in (("a", "NodeResourcesFit"), ("b", "NodeAffinity")):
        queue.add(key(name), 0, 0)
        queue.fail(queue.pop(0), 0, (plugin,))
    queue.move(lambda entry: "NodeAffinity" in entry.plugins)
    assert drain(queue, 5 * S) == ["b"]
    assert key("a") in queue and len(queue) == 1


def test_a_failed_binding_is_tried_again_without_an_event():
    queue = Queue()
    queue.add(key("a"), 0, 0)
    queue.retry(queue.pop(0), 0)
    assert queue.next_deadline() == S
    assert drain(queue, S) == ["a"]


def test_a_removed_pod_does_not_come_back_and_a_new_one_of_its_name_is_fresh():
    queue = Queue()
    queue.add(key("a"), 0, 0)
    queue.fail(queue.pop(0), 0, ())
    queue.move(lambda entry: True)
    queue.remove(key("a"))
    assert queue.next_deadline() is None and queue.pop(9 * S) is None
    queue.add(key("a"), 0, 3)
    assert queue.pop(0).attempts == 0


class Model(RuleBasedStateMachine):
    """Against plain dicts searched in full, with a copy taken now and then to see that it is independent."""

    names = st.sampled_from("abcd")

    def __init__(self):
        super().__init__()
        self.queue, self.now = Queue(), 0
        self.active, self.backing, self.waiting = {}, {}, {}

    @rule(name=names, priority=st.integers(0, 1))
    def add(self, name, priority):
        for place in (self.active, self.backing, self.waiting):
            place.pop(key(name), None)
        self.queue.add(key(name), priority, self.now)
        self.active[key(name)] = (-priority, self.now, key(name))

    @rule(name=names)
    def remove(self, name):
        for place in (self.active, self.backing, self.waiting):
            place.pop(key(name), None)
        self.queue.remove(key(name))

    @rule(seconds=st.sampled_from((0, S // 2, S, 3 * S)), outcome=st.sampled_from(("fail", "retry", "placed")))
    def pop(self, seconds, outcome):
        self.now += seconds
        for each in [k for k, (ready, _) in self.backing.items() if ready <= self.now]:
            self.active[each] = self.backing.pop(each)[1]
        entry = self.queue.pop(self.now)
        best = min(self.active.values(), default=None)
        assert (entry.order if entry else None) == best
        if entry is None:
            return
        del self.active[entry.key]
        if outcome == "fail":
            self.queue.fail(entry, self.now, ("x",))
            self.waiting[entry.key] = entry.attempts
        elif outcome == "retry":
            self.queue.retry(entry, self.now)
            self.back_off(entry.key, entry.attempts, self.now, -entry.priority)

    def back_off(self, each, attempts, failed, priority):
        self.backing[each] = (failed + min(S * 2**attempts, 10 * S), (priority, failed, each))

    @rule(name=names)
    def move(self, name):
        each = key(name)
        entry = {e.key: e for e in self.queue.state()[2]}.get(each)
        self.queue.move(lambda e: e.key == each)
        if each in self.waiting:
            self.back_off(each, self.waiting.pop(each), entry.time, -entry.priority)

    @rule()
    def copy(self):
        old, state = self.queue, self.queue.state()
        self.queue = old.copy()
        drain(old, 10**12)
        assert self.queue.state() == state

    @invariant()
    def same(self):
        active, backing, waiting = self.queue.state()
        assert [e.key for e in active] == [k for *_, k in sorted(self.active.values())]
        assert {e.key: e.ready for e in backing} == {k: ready for k, (ready, _) in self.backing.items()}
        assert {e.key for e in waiting} == set(self.waiting)
        expected = 0 if self.active else min((ready for ready, _ in self.backing.values()), default=None)
        assert self.queue.next_deadline() == expected


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
