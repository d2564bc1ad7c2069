"""Driving a simulation: one world, virtual time, and the Policy "earliest deadline".

While anything is on a work queue it is reconciled, in the order of arrival and at no cost of virtual time; when
nothing is, time jumps to the next deadline of a component (trace, scheduler, virtual nodes) or timer. Every choice has
the label of the Action it is, so that a simulation is a path of the check system over the same parts (law S1).
"""

from __future__ import annotations

import gc
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import xxhash

from steersman.api.begin import Api
from steersman.api.controller import Controller, Loop
from steersman.api.kinds import Kinds
from steersman.kernel.action import Action
from steersman.kernel.component import Component
from steersman.kernel.draw import draw_seeded
from steersman.kernel.effect import MICRO, Call, Commit, Event, Request
from steersman.kernel.object import Key
from steersman.kernel.store import Store, StoreConfig
from steersman.kernel.straight import run_through
from steersman.kernel.system import System
from steersman.kernel.world import World
from steersman.nodes.component import VirtualNodes
from steersman.nodes.usage import ask
from steersman.sched.component import SchedulerComponent
from steersman.sim.lives import Lives
from steersman.sim.metrics import Metrics
from steersman.sim.replay import Replay
from steersman.sim.script import KWOK_TAINT, Script

TAIL: Final = 60
"""Seconds after the trace's last event in which what has begun may come to its end: pods start, are tried again within
the scheduler's back-off (10 s), and are gone after their grace (30 s)."""
MAX_STEPS_AT_ONCE: Final = 5_000_000
"""Steps without any passing of time: a trace's state at the start takes some ten a pod, so more is an endless loop."""
COLLECT_EVERY: Final = 500_000
"""Steps between two collections of garbage, which are made when time is about to pass: some seconds of work."""
FIRST_BACKOFF: Final = 5_000
LAST_BACKOFF: Final = 1000 * MICRO
"""Kubernetes' default for work queues (client-go, DefaultTypedControllerRateLimiter): 5 ms, doubling, to 1000 s."""
REPLAY, SCHEDULER, NODES = range(3)
"""The components of a simulation, in the order in which those that are due at one instant take their turns."""
CHECK_EVERY: Final = 64
"""Reconciles and the like between two looks at whether to stop or to show progress."""


class Stalled(Exception):
    """Time does not pass any more: controllers go on for ever at one instant."""


def backoff(failures: int) -> int:
    """Microseconds until an item that failed so often is tried again."""
    return min(FIRST_BACKOFF << min(failures - 1, 40), LAST_BACKOFF)


def system_of(
    script: Script,
    lives: Lives,
    controllers: Iterable[type[Controller]],
    seed: int,
    *,
    kinds: Kinds,
    ignore_unsupported: bool = False,
    persistent: bool = False,
) -> System:
    """What a simulation's world is made of. `persistent` gives the check system over the same parts (law S1)."""
    api = Api(kinds)
    components: Sequence[Component] = (
        Replay(script, lives, persistent=persistent),
        SchedulerComponent(seed, persistent=persistent, ignore_unsupported=ignore_unsupported),
        VirtualNodes(seed=seed, persistent=persistent),
    )
    return System(
        api.begin,
        [Loop(controller, api) for controller in controllers],
        components=components,
        persistent=persistent,
        backoff=backoff,
        draw=draw_seeded(seed),
        twice=False,
        external=ask,
    )


def world_of(system: System, nodes: Iterable[Mapping[str, Any]], start: int) -> World:
    """A world at `start` (microseconds) with these nodes, not started yet. Raises `ApiError` for an unfit node."""
    config = StoreConfig(compact=not system.persistent)
    world = World(system, Store(config), start)
    world.pending = OrderedDict()  # the first is taken at constant cost, which a dict does not give
    for node in nodes:
        key = Key("", "Node", "", node["metadata"]["name"])
        placed(world, Request("create", key, dict(node), actor="simulation", now=start))
        if node.get("status"):
            body = {**node, "status": node["status"]}
            placed(world, Request("update", key, body, "status", actor="simulation", now=start))
    world.events.clear()
    return world


def placed(world: World, request: Request) -> None:
    """Makes a request of the set-up. Raises what it is refused with."""
    answer = world.system.begin(world.store, request)
    while isinstance(answer, Call):
        answer = answer.resume(world.system.draw(world, answer.question))
    if isinstance(answer, Commit):
        world.commit_now(answer)


class Simulation:
    """One run. `run` may be called once; afterwards `world`, `metrics` and the counters tell the outcome.

    labels: if given, every choice's label is appended to it. watch: called now and then with this simulation, for
    progress; it may set `stop` to the reason why to end early.
    """

    def __init__(
        self,
        world: World,
        script: Script,
        *,
        tail: float = TAIL,
        labels: list[str] | None = None,
        watch: Callable[[Simulation], None] | None = None,
    ) -> None:
        self.world = world
        self.script = script
        self.metrics = Metrics(world.now)
        self.labels = labels
        self.stop = ""
        self.steps = 0
        self.writes = 0
        self.wall_seconds = 0.0
        self.faults: dict[str, tuple[int, str]] = {}
        """Controllers whose code failed: how often, and the first error."""
        self.start = world.now
        self.trace_end = script.steps[-1].at if script.steps else world.now
        self.limit = self.trace_end + round(tail * MICRO)
        self._watch = watch
        self._choices = xxhash.xxh3_128()
        self._collected = 0
        self._turns = 0

    @property
    def schedule_digest(self) -> str:
        """128 bits of all labels so far."""
        return self._choices.hexdigest()

    def run(self) -> None:
        """Runs to the end. Raises `Stalled`."""
        begun = time.perf_counter()
        collecting = gc.isenabled()
        gc.disable()
        try:
            gc.collect()
            gc.freeze()
            self._begin()
            while not self.stop and self._instant() and self._jump():
                pass
            self.metrics.settle()
        finally:
            gc.unfreeze()
            if collecting:
                gc.enable()
            self.wall_seconds = time.perf_counter() - begun

    def _begin(self) -> None:
        world = self.world
        if self.trace_end > self.start:
            self.metrics.until = self.trace_end
        self.metrics.observe([Event(obj.rv, obj.key, None, obj) for obj in world.store.objects()])
        world.start()

    def _instant(self) -> bool:
        """Does all that is to be done now; False when it was stopped."""
        world = self.world
        pending = world.pending
        components = world.system.components
        last = self.steps + MAX_STEPS_AT_ONCE
        while True:
            if pending:
                self._reconcile(next(iter(pending)))
            else:
                for index, component in enumerate(components):
                    due = component.next_deadline(world.components[index])
                    if due is not None and due <= world.now:
                        self._step(Action("advance", component.name).label)
                        world.advance(index)
                        self._done()
                        break
                else:
                    if not self._fire():
                        return True
            if self._watch is not None and self._turns % CHECK_EVERY == 0:
                self._watch(self)
            self._turns += 1
            if self.stop:
                return False
            if self.steps > last:
                raise Stalled(self._stalled())

    def _reconcile(self, item: tuple[int, Key]) -> None:
        labels: list[str] = []
        result = run_through(self.world, item, labels)
        for label in labels:
            self._step(label)
        if result.error is not None and not result.api_error:
            name = self.world.system.loops[item[0]].name
            count, first = self.faults.get(name, (0, f"{item[1]}: {result.error}"))
            self.faults[name] = (count + 1, first)
        self._done()

    def _fire(self) -> bool:
        """Rings a timer that is due."""
        world = self.world
        due = next(iter(world.timers.items()), None)
        if due is None or due[0][0] > world.now:
            return False
        _, loop, key = due[0]
        self._step(Action("fire", world.system.loops[loop].name, key).label)
        world.fire((loop, key))
        return True

    def _jump(self) -> bool:
        """Time passes to the next deadline; False when there is none before the end."""
        world = self.world
        deadlines = [
            component.next_deadline(state)
            for component, state in zip(world.system.components, world.components, strict=True)
        ]
        first = next(iter(world.timers.items()), None)
        if first is not None:
            deadlines.append(first[0][0])
        at = min([deadline for deadline in deadlines if deadline is not None], default=None)
        if at is None or at > self.limit:
            self.metrics.pass_to(max(world.now, self.trace_end))
            return False
        if self.steps - self._collected > COLLECT_EVERY:
            gc.collect()
            self._collected = self.steps
        self.metrics.pass_to(at)
        world.now = at
        return True

    def _step(self, label: str) -> None:
        self.steps += 1
        self._choices.update(label.encode())
        self._choices.update(b"\n")
        if self.labels is not None:
            self.labels.append(label)

    def _done(self) -> None:
        """Takes in what the last step committed."""
        events = self.world.events
        if events:
            self.writes += len(events)
            self.metrics.observe(events)
            events.clear()

    def _stalled(self) -> str:
        waiting = ", ".join(f"{self.world.system.loops[i].name}/{key}" for i, key in list(self.world.pending)[:5])
        seconds = (self.world.now - self.start) / MICRO
        return (
            f"after {MAX_STEPS_AT_ONCE:,} steps it is still {seconds:g} s after the start: controllers go round in "
            f"circles (next: {waiting or 'a component'}); `steersman check` finds such loops"
        )


def tolerates_kwok(nodes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether some node has the taint that SimKube's pods tolerate."""
    return any(
        taint.get("key") == KWOK_TAINT for node in nodes for taint in (node.get("spec") or {}).get("taints") or ()
    )
