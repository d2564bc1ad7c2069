"""Walks on a Ray cluster that is there: their seeds are dealt out in batches, and what they found is taken in in the
order of the seeds, so that it is what one process would have found.

The scenario travels with its code: whatever it is made of that is neither installed nor Python's own. The nodes of the
cluster need the same Python and the same Steersman, which a batch looks at before it begins. Nothing is started here,
and nothing that belongs to others is ended.

Facts: Ray's documentation of `ray.init` (address, `RAY_ADDRESS`, ConnectionError when there is no cluster), of tasks
(max_retries), of `ray.get` (timeout, exceptions) and of Ray Client (`ray://HOST:10001`); cloudpickle's of
`register_pickle_by_value`.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Generator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from steersman.check.bounds import Bounds
from steersman.check.mistake import ScenarioError
from steersman.check.strategies import Strategy
from steersman.check.watchdog import Watchdog
from steersman.check.workers import LOOK_SECONDS, Lesson, Walk

if TYPE_CHECKING:
    from steersman.check.scenario import Scenario
    from steersman.check.search import Walker

NAME: Final = "ray"
BATCH: Final = 16
"""Walks of a task: tens of milliseconds, so that what a task costs (some one) does not show."""
AHEAD: Final = 2
"""Tasks for each processor of the cluster that are under way or wait."""

KNOCK_SECONDS: Final = 5.0
"""Within which a cluster answers at all."""


class Recipe(NamedTuple):
    """How a walker is made, there as here."""

    scenario: Scenario
    bounds: Bounds
    switches: dict[str, Any]
    walks: int
    seed: int
    strategy: Strategy

    def walker(self, lessons: tuple[Lesson, ...], reads: tuple[str, ...]) -> Walker:
        """It, with what was learned so far."""
        from steersman.check.explore import Explorer
        from steersman.check.search import Walker

        explorer = Explorer(self.scenario, self.bounds, **self.switches)
        for lesson in lessons:
            explorer.system.learn(lesson.learned())
        explorer.assume_reads(reads)
        explorer.share(os.cpu_count() or 1)
        return Walker(explorer, self.walks, self.seed, self.strategy)


class Cluster:
    """An existing Ray cluster. `address`: `ray`, for the one that RAY_ADDRESS or this machine names, or
    `ray://HOST:PORT`. Raises `ScenarioError` where there is none."""

    def __init__(self, address: str, recipe: Recipe) -> None:
        self.recipe = recipe
        self._address = address if "://" in address else os.environ.get("RAY_ADDRESS", "auto")
        self._ray: Any = None

    def walked(self, walker: Walker, first: int, late: Callable[[], bool]) -> Generator[Walk | None, None, None]:
        """The walks from `first` on, in order; None where the process that had it has died. Ends when it is `late`."""
        ray = self._ray = _joined(self._address)
        waiting: deque[Any] = deque()
        try:
            packed = ray.put(_packed(ray, self.recipe, tuple(walker.lessons), walker.explorer.reads()))
            task = ray.remote(_batch).options(max_retries=0, num_cpus=1)
            starts = iter(range(first, walker.walks, BATCH))
            ahead = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
            while True:
                while len(waiting) < ahead and (start := next(starts, None)) is not None:
                    waiting.append(task.remote(packed, start, min(start + BATCH, walker.walks), _versions()))
                if not waiting:
                    return
                walks = self._result(waiting[0], late)
                if walks is None:
                    return
                waiting.popleft()
                yield from walks
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)
            ray.shutdown()

    def _result(self, reference: Any, late: Callable[[], bool]) -> list[Walk | None] | None:
        """What a task found; None when it is late."""
        ray = self._ray
        while True:
            try:
                found: list[Walk | None] | str = ray.get(reference, timeout=LOOK_SECONDS)
            except ray.exceptions.GetTimeoutError:
                if late():
                    return None
                continue
            except ray.exceptions.RayTaskError as error:
                cause = str(error.cause if error.cause is not None else error).strip().splitlines()[-1]
                raise ScenarioError(f"engine ray: a task failed on the cluster: {cause}") from None
            except ray.exceptions.RayError:
                return [None]
            if isinstance(found, str):
                raise ScenarioError(f"engine ray: {found}")
            return found


def _joined(address: str) -> Any:
    """Ray, connected to a cluster."""
    try:
        import ray
    except ModuleNotFoundError:
        raise ScenarioError("engine ray: needs Ray; pip install 'steersman[ray]'") from None
    try:
        _knock(address)
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise ScenarioError(
            f"engine ray: no cluster at {address!r} ({why}); start one (`ray start --head`), or name it: RAY_ADDRESS, "
            "or engine ray://HOST:10001"
        ) from None
    return ray


def _knock(address: str) -> None:
    """Raises `OSError` where nobody listens at HOST:PORT: Ray would try again for minutes."""
    host, _, port = address.rpartition("://")[2].partition("/")[0].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()


def _packed(ray: Any, recipe: Recipe, lessons: tuple[Lesson, ...], reads: tuple[str, ...]) -> bytes:
    """What makes the walker again, with the code of the scenario."""
    pickle = ray.cloudpickle
    mine = [module for module in list(sys.modules.values()) if _is_mine(module)]
    for module in mine:
        pickle.register_pickle_by_value(module)
    try:
        packed: bytes = pickle.dumps((recipe, lessons, reads))
    except Exception as error:  # whatever holds what cannot travel says so in its own way
        raise ScenarioError(
            f"engine ray: the scenario cannot be sent to other machines: {type(error).__name__}: {error}; make what it "
            "holds (files, sockets, locks) where it is used"
        ) from None
    finally:
        for module in mine:
            pickle.unregister_pickle_by_value(module)
    return packed


def _is_mine(module: ModuleType) -> bool:
    """Whether a module is part of somebody's project: neither installed, nor Python's, nor ours."""
    name, file = getattr(module, "__name__", ""), getattr(module, "__file__", None)
    if not file or name == "__main__" or name.partition(".")[0] == __name__.partition(".")[0]:
        return False
    if sys.modules.get(name) is not module:
        return False
    places = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return not any(Path(file).is_relative_to(place) for place in places)


def _versions() -> str:
    return f"Python {'.'.join(map(str, sys.version_info[:2]))}, steersman {metadata.version('steersman')}"


def _batch(packed: bytes, first: int, end: int, versions: str) -> list[Walk] | str:
    """A task: some walks; or why there are none."""
    import ray

    if versions != _versions():
        return f"the cluster has {_versions()}, and this is {versions}: they must be the same"
    recipe, lessons, reads = ray.cloudpickle.loads(packed)
    walker = recipe.walker(lessons, reads)
    out: list[Walk] = []
    with Watchdog(walker.explorer):
        for number in range(first, end):
            out.append(walker.one(number))
            if out[-1].lesson is not None or out[-1].full:
                break
    return out
