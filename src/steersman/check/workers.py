"""Walks in several processes: their seeds are dealt out, and what they found is taken in in the order of the seeds, so
that it is what one process would have found.

The processes are forks: they have the scenario and all that was learned so far. What they send back is read from
their own pipes. Ctrl-C ends them with their parent; one that dies ends the walks, and the verdict says so.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final, NamedTuple

from steersman.check.verdict import Violation
from steersman.check.watchdog import Watchdog
from steersman.kernel.action import Action
from steersman.kernel.effect import GK
from steersman.kernel.system import Learned, System

if TYPE_CHECKING:
    from steersman.check.search import Walker

LOOK_SECONDS: Final = 0.25
"""Between two looks at the clock while nothing arrives."""
MAX_WORKERS: Final = 256
"""Processes: more than any machine for this has cores."""


class Lesson(NamedTuple):
    """`Learned`, to be sent."""

    loop: int
    gk: GK | None
    applies: bool
    ranks: bool
    delay: int

    @staticmethod
    def of(learned: Learned) -> Lesson:
        """What is to be sent of it."""
        return Lesson(learned.loop, learned.gk, learned.applies, learned.ranks, learned.delay)

    def learned(self) -> Learned:
        """It again."""
        return Learned(self.loop, self.gk, applies=self.applies, ranks=self.ranks, delay=self.delay)


class Walk(NamedTuple):
    """What came of one walk."""

    states: int = 0
    transitions: int = 0
    executions: int = 0
    violations: tuple[tuple[str, Violation], ...] = ()
    """With what tells one from another."""
    end: tuple[int, int, tuple[Action, ...]] | None = None
    """Contents and likeness of the state it came to rest in, and the way there."""
    lesson: Lesson | None = None
    raw: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    """Who has read the raw time, and who has drawn random numbers."""
    reads: tuple[str, ...] = ()
    full: str = ""
    """Why the process could not go on."""

    def told(self, system: System) -> None:
        """Takes in what the other process knows of its controllers."""
        system.raw_time |= self.raw[0]
        system.raw_random |= self.raw[1]


def walked(walker: Walker, first: int, workers: int, late: Callable[[], bool]) -> Generator[Walk | None, None, None]:
    """The walks from `first` on, in order; None where the process that had it has died. Ends when it is `late`."""
    context = multiprocessing.get_context("fork")
    pipes: list[Connection] = []
    processes = []
    try:
        for number in range(workers):
            reader, writer = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(walker, first + number, workers, writer), daemon=True)
            process.start()
            writer.close()
            pipes.append(reader)
            processes.append(process)
        for number in range(first, walker.walks):
            pipe = pipes[(number - first) % workers]
            while not pipe.poll(LOOK_SECONDS):
                if late():
                    return
            try:
                yield pipe.recv()
            except EOFError:
                yield None
                return
    finally:
        for process in processes:
            process.kill()
            process.join()
        for pipe in pipes:
            pipe.close()


def _work(walker: Walker, first: int, workers: int, writer: Connection) -> None:
    """A process: every `workers`-th walk."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the parent, which ends this process
    walker.share(workers)
    with Watchdog(walker.explorer):
        for number in range(first, walker.walks, workers):
            walk = walker.one(number)
            writer.send(walk)
            if walk.lesson is not None or walk.full:
                return
