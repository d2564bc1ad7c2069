"""How the built-in controllers are looked through: which faults, which strategies, how far. By states and walks, never
by seconds, so that a verdict is the same on every machine.

    python -m tests.check.sift [--walks N] [--states N] [--seed N] [TARGET ...]

looks far (minutes for each target) and prints what was broken; `make check-targets` runs it for all. A violation is
found again by the line it prints.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import steersman as sm
from steersman.check.strategies import STRATEGIES
from steersman.check.verdict import Verdict
from steersman.kernel.faults import CATALOGUE
from tests.check.targets import TARGETS, target

TWICE: Final = {"lag": 2, "crashes": 2, "conflicts": 2}
"""What every built-in controller is to pass (BOUNDED is enough)."""
DEPTH: Final = 300
"""Steps of a walk: what rests at all rests within them."""
SINGLE: Final = tuple([{fault.name: 1} for fault in CATALOGUE])
"""Each fault of the catalogue by itself."""
OUTSIDE: Final = frozenset(["webhook_errors", "external_errors", "external_losses", "external_lags"])
"""Faults that need a webhook or an external system: no built-in controller has one."""


def walked(name: str, walks: int, faults: Mapping[str, int], **options: Any) -> Verdict:
    """A target on random walks."""
    return sm.check(target(name, faults), walks=walks, **{"max_depth": DEPTH, **faults, **options})


def searched(name: str, states: int, faults: Mapping[str, int]) -> Verdict:
    """A target in every order near its start."""
    return sm.check(target(name, faults), max_states=states, **faults)


def far(name: str, walks: int, states: int, seed: int) -> Iterator[tuple[str, Verdict]]:
    """(what was done, its verdict) of everything that is done with one target."""
    for strategy in STRATEGIES:
        yield f"{strategy} {TWICE}", walked(name, walks, TWICE, strategy=strategy, seed=seed)
    yield f"search {TWICE}", searched(name, states, TWICE)
    for faults in SINGLE:
        if OUTSIDE.isdisjoint(faults):
            yield f"walks {faults}", walked(name, walks, faults, seed=seed)


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 when anything is broken."""
    parser = argparse.ArgumentParser(description="Looks far into what every built-in controller does.")
    parser.add_argument("targets", nargs="*", help="names of controllers; all of them where none is given")
    parser.add_argument("--walks", type=int, default=1_000)
    parser.add_argument("--states", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no target is called {unknown[0]!r}; there are: {', '.join(TARGETS)}")
    broken = 0
    for name in given.targets or TARGETS:
        start, steps, rests, failed = time.perf_counter(), 0, 0, []
        for what, verdict in far(name, given.walks, given.states, given.seed):
            steps, rests = steps + verdict.transitions, max(rests, verdict.converged)
            if not verdict.holds:
                failed.append((what, verdict))
        seconds = time.perf_counter() - start
        print(f"{name}: {steps:,} steps, {rests} ends, {seconds:.0f} s: {len(failed) or 'nothing'} broken", flush=True)
        for what, verdict in failed:
            print(f"  {name} by {what}, seed {given.seed}:\n{verdict}", flush=True)
        broken += len(failed)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
