"""From a simulation that ended to its Report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steersman.kernel.store import Store
from steersman.nodes.component import NodesState
from steersman.sched.component import SchedulerState
from steersman.sim.drive import NODES, REPLAY, SCHEDULER, Simulation
from steersman.sim.metrics import ALWAYS_SHOWN
from steersman.sim.replay import ReplayState
from steersman.sim.report import Left, Report, Share
from steersman.sim.script import Script
from steersman.trace.gvk import GVK, TEMPLATE_PATHS
from steersman.trace.recording import Trace

GK = tuple[str, str]


def report_of(simulation: Simulation, trace: Trace, name: str, seed: int, reconciled: Iterable[GK]) -> Report:
    """What it found. `reconciled`: the kinds that a controller here looks after."""
    world, metrics = simulation.world, simulation.metrics
    replay: ReplayState = world.components[REPLAY]
    scheduler: SchedulerState = world.components[SCHEDULER]
    kubelets: NodesState = world.components[NODES]
    pending = metrics.pending(world.store)
    still_waiting = metrics.waits_until_now()
    full, head_only = world.store.digest
    return Report(
        trace=name,
        seed=seed,
        nodes=world.store.count(("", "Node")),
        start=simulation.start,
        trace_end=simulation.trace_end,
        end=metrics.now,
        events=len(trace.events),
        pods={
            "created": metrics.created,
            "scheduled": metrics.scheduled,
            "completed": metrics.succeeded,
            "failed": metrics.failed,
            "deleted": metrics.deleted,
            "running": _running(world.store),
            "pending": sum(group.pods for group in pending),
        },
        waits=tuple(sorted([*metrics.waits, *still_waiting])),
        still_waiting=tuple(still_waiting),
        most_waiting=metrics.peak_waiting,
        pending=tuple(pending),
        shares=tuple(_shares(simulation)),
        not_simulated=tuple(_not_simulated(simulation.script, trace, set(reconciled))),
        refused=tuple(_refused(replay.refused)),
        notes=tuple(_notes(replay, scheduler, kubelets)),
        faults=tuple(Left(who, count, first) for who, (count, first) in sorted(simulation.faults.items())),
        steps=simulation.steps,
        writes=simulation.writes,
        store_digest=f"{(full + head_only) % (1 << 128):032x}",
        schedule_digest=simulation.schedule_digest,
        stopped=simulation.stop,
        wall_seconds=simulation.wall_seconds,
    )


def _running(store: Store) -> int:
    return sum(1 for pod in store.list(("", "Pod")) if pod.status and pod.status.peek().get("phase") == "Running")


def _shares(simulation: Simulation) -> Iterable[Share]:
    """CPU, memory and pods always; what else somebody asked for or offers, behind them."""
    usage = simulation.metrics.usage
    for name in (*ALWAYS_SHOWN, *sorted(set(usage) - set(ALWAYS_SHOWN))):
        found = usage[name]
        if name in ALWAYS_SHOWN or found.taken_time or found.peak[0]:
            yield Share(name, found.mean, found.top)


def _not_simulated(script: Script, trace: Trace, reconciled: set[GK]) -> Iterable[Left]:
    for unknown in script.unknown:
        yield Left(unknown.kind, unknown.objects, f"left out: {unknown.why}")
    for gvk, count in script.applied.items():
        if (gvk.group, gvk.kind) not in reconciled and _makes_pods(gvk, trace):
            yield Left(str(gvk), count, "applied, but no controller here makes its pods yet")


def _makes_pods(gvk: GVK, trace: Trace) -> bool:
    """Whether objects of the kind have pods of their own, as far as the trace and Kubernetes say."""
    if (gvk.group, gvk.kind) == ("", "Pod"):
        return False
    tracked = trace.config.get(str(gvk))
    return bool(TEMPLATE_PATHS.get(gvk)) or (tracked is not None and (bool(tracked.paths) or tracked.lifecycle))


def _refused(refused: Mapping[tuple[str, str], tuple[int, str]]) -> Iterable[Left]:
    for (what, reason), (count, first) in sorted(refused.items()):
        yield Left(what, count, f"{reason}, first {first}")


def _notes(replay: ReplayState, scheduler: SchedulerState, kubelets: NodesState) -> Iterable[Left]:
    if replay.endless:
        why = "they have restartPolicy Always and end only when somebody deletes them"
        yield Left("pods with a recorded end", replay.endless, why)
    for note, count in sorted(scheduler.notes.items()):
        yield Left("pods", count, note)
    for key, fault in sorted(scheduler.faults.items()):
        yield Left(str(key), 1, f"the scheduler cannot read it: {fault}")
    for key, fault in sorted(kubelets.faults.items()):
        yield Left(str(key), 1, f"its kubelet was refused: {fault}")
