"""The threads that all workspaces share: as few as the work needs, and nobody is held up by who hangs."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from contextlib import contextmanager

from steersman.run.crew import SLOW_SECONDS, Crew


class Worker:
    name = "worker"

    def __init__(self) -> None:
        self.reports = 0

    def report(self) -> None:
        self.reports += 1


@contextmanager
def crew_of(threads: int, most: int = 50):
    crew = Crew(threads, most)
    try:
        yield crew
    finally:
        crew.close(5)
        assert not crew.threads


def until(condition, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_report_that_fails_stops_no_timer(caplog):
    """The keeper, which fires timers, outlives whoever it asks."""

    class Broken(Worker):
        def report(self) -> None:
            self.reports += 1
            raise ValueError("no frame")

    with crew_of(2) as crew:
        broken, done = Broken(), threading.Event()
        crew.submit(broken, lambda: done.wait(20))
        until(lambda: broken.reports)
        crew.at(0, done.set)
        assert done.wait(10)
    assert "could not tell what of it hangs" in caplog.text


def test_many_tasks_share_few_threads():
    with crew_of(3) as crew:
        worker, seen = Worker(), []
        for _ in range(500):
            crew.submit(worker, lambda: seen.append(threading.get_ident()))
        assert crew.join(worker, 10) and len(seen) == 500
        assert len(set(seen)) <= 3 and crew.threads <= 3


def test_a_task_that_hangs_holds_up_nobody_and_is_reported():
    release = threading.Event()
    with crew_of(2) as crew:
        stuck, other, done = Worker(), Worker(), []
        for _ in range(6):
            crew.submit(stuck, lambda: release.wait(20))
        crew.submit(other, lambda: done.append(1))
        until(lambda: done)
        until(lambda: stuck.reports)
        assert not crew.join(stuck, 0.05) and crew.join(other, 5)
        release.set()
        assert crew.join(stuck, 5)


def test_there_is_an_end_to_the_threads_of_who_hangs():
    release = threading.Event()
    with crew_of(1, most=3) as crew:
        for _ in range(8):
            crew.submit(Worker(), lambda: release.wait(20))
        until(lambda: crew.threads == 3)
        time.sleep(2 * SLOW_SECONDS)
        assert crew.threads == 3 and crew.pressed
        release.set()
        until(lambda: not crew.pressed)


def test_a_failing_task_and_a_failing_timer_end_nobody(caplog):
    with crew_of(1) as crew:
        worker, done = Worker(), []
        crew.submit(worker, lambda: 1 / 0)
        crew.at(0, lambda: 1 / 0)
        crew.submit(worker, lambda: done.append(1))
        crew.at(0.02, lambda: done.append(2))
        until(lambda: len(done) == 2)
    assert "worker failed in the server" in caplog.text and "a timer failed" in caplog.text


def test_timers_come_in_order_and_a_cancelled_one_keeps_nobody():
    with crew_of(1) as crew:
        came = []
        for number in (3, 1, 2):
            crew.at(number / 50, lambda number=number: came.append(number))
        owner = Worker()
        gone = weakref.ref(owner)
        far = [crew.at(3600, owner.report) for _ in range(1_000)]
        for timer in far:
            timer.cancel()
        del owner
        gc.collect()
        assert gone() is None
        for _ in range(5_000):
            crew.at(3600, lambda: None).cancel()
        assert len(crew._timers) < 2_200, "void ones are thrown out"
        until(lambda: came == [1, 2, 3])
