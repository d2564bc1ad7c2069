"""The work queue: each key once, never twice at a time, and later when it failed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.kernel.object import Key
from steersman.run.crew import Timer
from steersman.run.queue import LAST_RETRY, WorkQueue, backoff


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def keys(count):
    return [Key("", "Pod", "default", f"p-{number}") for number in range(count)]


def queue_at(time):
    return WorkQueue(clock=time)


def ready(queue):
    """Keys that `get` gives, in order."""
    queue.fire()
    return tuple(queue._queue)


def drain(queue):
    out = []
    while ready(queue):
        out.append(queue.get())
    return out


def test_a_key_is_queued_once_and_in_order():
    queue, (a, b) = WorkQueue(), keys(2)
    for key in (a, b, a, a, b):
        queue.add(key)
    assert drain(queue) == [a, b]


def test_a_key_added_while_processed_comes_back_when_done():
    queue, (a, _) = WorkQueue(), keys(2)
    queue.add(a)
    assert queue.get() == a
    queue.add(a)
    queue.add(a)
    assert drain(queue) == []
    queue.done(a)
    assert drain(queue) == [a]
    queue.done(a)
    assert drain(queue) == []


def test_backoff_is_client_gos():
    assert [backoff(n) for n in (1, 2, 3, 10)] == [0.005, 0.01, 0.02, 2.56]
    assert backoff(18) == 655.36 and backoff(19) == LAST_RETRY == backoff(10_000)


def test_failures_back_off_and_a_success_forgets_them():
    time = Time()
    queue, (a, _) = queue_at(time), keys(2)
    assert [queue.retry(a) for _ in range(3)] == [1, 2, 3]
    assert drain(queue) == []
    time.now = 0.006
    assert drain(queue) == [a], "of several timers the earliest counts"
    queue.done(a)
    queue.forget(a)
    assert queue.retry(a) == 1


def test_a_timer_does_not_hold_back_an_event():
    time = Time()
    queue, (a, _) = queue_at(time), keys(2)
    queue.add_after(a, 100)
    queue.add(a)
    assert drain(queue) == [a]
    queue.done(a)
    time.now = 100
    assert drain(queue) == [a]


def test_workers_begin_as_there_is_something_for_them_and_end_without():
    begun, timers = [], []
    queue = WorkQueue(lambda: begun.append(1), lambda seconds, task: timers.append(Timer(seconds, task)), 2)
    a, b, c = keys(3)
    for key in (a, b, c):
        queue.add(key)
    assert len(begun) == 2
    assert [queue.get() for _ in range(4)] == [a, b, c, None]
    queue.done(a)
    queue.add(a)
    assert len(begun) == 3, "one of two had ended"
    assert queue.get() == a and queue.get() is None and len(begun) == 3


def test_one_timer_at_a_time_and_none_after_closing():
    time, timers = Time(), []

    def at(seconds, task):
        timers.append(Timer(seconds, task))
        return timers[-1]

    queue, (a, b) = WorkQueue(at=at, clock=time), keys(2)
    queue.add_after(a, 5)
    queue.add_after(b, 9)
    queue.add_after(b, 2)
    assert [(timer.due, timer.task is not None) for timer in timers] == [(5, False), (2, True)]
    time.now = 2
    timers[-1].task()
    assert queue.get() == b and timers[-1].due == 3
    queue.close()
    assert timers[-1].task is None
    queue.add(a)
    queue.add_after(a, 1)
    assert queue.get() is None and len(timers) == 3


@pytest.mark.parametrize("seconds", [0, -1])
def test_no_delay_is_at_once(seconds):
    queue, (a,) = queue_at(Time()), keys(1)
    queue.add_after(a, seconds)
    assert drain(queue) == [a]


STEPS = ["add", "get", "done", "after", "retry", "tick"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=60))
def test_against_a_plain_model(steps):
    """A key is never processed twice at a time, never lost, and queued at most once."""
    time = Time()
    queue, names = queue_at(time), keys(4)
    wanted: set[Key] = set()
    processing: set[Key] = set()
    later: dict[Key, float] = {}
    for step, number in steps:
        key = names[number]
        if step == "add":
            queue.add(key)
            wanted.add(key)
        elif step == "after":
            queue.add_after(key, number + 1)
            later[key] = min(later.get(key, 1e9), time.now + number + 1)
        elif step == "retry":
            due = time.now + backoff(queue.retry(key))
            later[key] = min(later.get(key, 1e9), due)
        elif step == "tick":
            time.now += number
        for due in [k for k, at in later.items() if at <= time.now]:
            del later[due]
            wanted.add(due)
        found = ready(queue)
        assert set(found) == wanted - processing and len(found) == len(set(found))
        if step == "get" and wanted - processing:
            got = queue.get()
            assert got in wanted and got not in processing
            wanted.discard(got)
            processing.add(got)
        elif step == "done" and key in processing:
            queue.done(key)
            processing.discard(key)
