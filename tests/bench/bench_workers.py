"""Several processes: the model of `bench_explore` at lag 1, without reductions, to one bound with 1 and 2 of them.

`python tests/bench/bench_workers.py [TRANSITIONS] [WORKERS]` prints wall time, CPU time and transitions a second
of each, and how much faster as many busy processes are here than one after the other: what a machine can give at most.
Exits 1 when the graphs differ in a number, or the speed-up is less than MIN_SHARE of that.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import sys
import time
from typing import Final

from bench_explore import scenario

from steersman.check import Bounds, Explorer
from steersman.check.graph import Graph

MIN_SHARE: Final = 0.75
COUNT: Final = 10_000_000
"""What a busy process counts to: half a second."""
MINE, THEIRS = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
WHOLE: Final = dict.fromkeys(("settle", "clusters", "sleep", "symmetry", "lazy"), False)


def measure(transitions: int, workers: int) -> tuple[Graph, float]:
    """One search; its graph and seconds."""
    explorer = Explorer(scenario(), Bounds(lag=1, max_transitions=transitions), workers=workers, **WHOLE)
    start, used = time.perf_counter(), cpu()
    verdict = explorer.run()
    seconds, used = time.perf_counter() - start, cpu() - used
    rate = verdict.transitions / seconds
    print(f"workers {workers}: {seconds:.1f} s, {used:.1f} s of CPU time, {rate:,.0f} transitions/s")
    print(verdict.summary())
    return explorer.graph, seconds


def cpu() -> float:
    """Seconds of CPU time of this process and those that it has ended."""
    return sum(part.ru_utime + part.ru_stime for part in map(resource.getrusage, (MINE, THEIRS)))


def busy() -> None:
    """Counts."""
    for _ in range(COUNT):
        pass


def possible(workers: int) -> float:
    """How much faster busy processes are together than one after the other."""
    context = multiprocessing.get_context("fork")
    seconds = []
    for count in (1, workers):
        start = time.perf_counter()
        processes = [context.Process(target=busy) for _ in range(count)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        seconds.append(time.perf_counter() - start)
    return workers * seconds[0] / seconds[1]


def main() -> int:
    """One process, then several."""
    transitions = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    gc.disable()
    one, alone = measure(transitions, 1)
    several, together = measure(transitions, workers)
    parts = ("parent", "stores", "edge_target")
    same = all(getattr(one, part) == getattr(several, part) for part in parts)
    most, gained = possible(workers), alone / together
    print(f"speed-up {gained:.2f}; busy processes: {most:.2f}; the graphs are {'equal' if same else 'DIFFERENT'}")
    return 0 if same and gained >= MIN_SHARE * most else 1


if __name__ == "__main__":
    sys.exit(main())
