"""Simulate: a recorded cluster, replayed in virtual time against virtual nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from steersman.api.controller import EVERY_KIND, Controller
from steersman.api.kinds import Kinds
from steersman.controllers.builtin import builtin
from steersman.kernel.effect import MICRO
from steersman.sim.cluster import NodesError, given
from steersman.sim.drive import TAIL, Simulation, Stalled, system_of, tolerates_kwok, world_of
from steersman.sim.lives import Lives
from steersman.sim.outcome import report_of
from steersman.sim.report import Report
from steersman.sim.script import script_of
from steersman.trace import sktrace
from steersman.trace.recording import Trace, TraceError

__all__ = ["NodesError", "Report", "Simulation", "Stalled", "TraceError", "simulate"]


def simulate(
    trace: str | os.PathLike[str] | Trace,
    nodes: int | str | os.PathLike[str] | Iterable[Mapping[str, Any]],
    seed: int = 0,
    *,
    controllers: Iterable[type[Controller]] | None = None,
    tail: float = TAIL,
    ignore_unsupported: bool = False,
    labels: list[str] | None = None,
    watch: Callable[[Simulation], None] | None = None,
) -> Report:
    """Replays a trace and reports. Equal arguments give an equal report (but for `wall_seconds`).

    trace: a file, or a Trace. nodes: how many (16 CPU, 64 GiB, 110 pods each), a YAML file of Node objects, or these.
    seed: names, uids, ties between nodes, jitter. controllers: instead of all built-in ones. tail: at most how many
    seconds it goes on after the last event. ignore_unsupported: place pods in spite of constraints that the scheduler
    does not evaluate yet. labels: is given the Schedule. watch: see `Simulation`.

    Raises `TraceError`, `NodesError`, `ApiError` for a node that the API refuses, and `Stalled`.
    """
    recording = trace if isinstance(trace, Trace) else sktrace.read(trace)
    name = "trace" if isinstance(trace, Trace) else os.fspath(trace)
    chosen = builtin() if controllers is None else list(controllers)
    machines = given(nodes)
    kinds = Kinds.builtin()
    script = script_of(recording, kinds, tolerate_kwok=tolerates_kwok(machines))
    system = system_of(script, Lives(recording), chosen, seed, kinds=kinds, ignore_unsupported=ignore_unsupported)
    world = world_of(system, machines, (recording.start or 0) * MICRO)
    simulation = Simulation(world, script, tail=tail, labels=labels, watch=watch)
    simulation.run()
    reconciled = [kinds.find(cls.kind).gk for cls in chosen if cls.kind != EVERY_KIND]
    return report_of(simulation, recording, name, seed, reconciled)
