"""`steersman simulate`: replays a trace in virtual time and reports."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from steersman.sim import Report, Simulation

DONE, FAULTY, INTERRUPTED = 0, 2, 130
PROGRESS_SECONDS = 0.2
"""Between two progress lines: often enough to seem alive, seldom enough to cost nothing."""


def simulate(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A .sktrace file.")],
    nodes: Annotated[
        str,
        typer.Option(metavar="N|FILE", help="N nodes of 16 CPU, 64 GiB and 110 pods, or a YAML file of Node objects."),
    ],
    seed: Annotated[int, typer.Option(help="Of names, uids, ties between nodes and jitter.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON: equal runs, equal bytes.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="With --json: add the real time it took.")] = False,
    schedule: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every step taken to FILE.")] = None,
    tail: Annotated[float, typer.Option(help="Seconds it may go on after the last event.", min=0.0)] = 60.0,
    ignore_unsupported: Annotated[
        bool, typer.Option("--ignore-unsupported", help="Place pods in spite of constraints not evaluated yet.")
    ] = False,
) -> None:
    """Replays a recorded cluster in virtual time against virtual nodes.

    Exit codes: 0 done, 2 the command or its input is at fault, 130 after Ctrl-C and its partial report.
    """
    if timing and not json:
        raise typer.Exit(
            _fault("--timing adds the real time to the report of --json; give both (the text has it anyway)")
        )
    labels: list[str] | None = None if schedule is None else []
    options = {"tail": tail, "ignore_unsupported": ignore_unsupported, "labels": labels}
    raise typer.Exit(_run(trace, nodes, seed, json, timing, schedule, options))


def _run(
    trace: Path, nodes: str, seed: int, json: bool, timing: bool, schedule: Path | None, options: dict[str, Any]
) -> int:
    watcher = Watcher(sys.stderr.isatty())
    before = signal.signal(signal.SIGINT, watcher.interrupt)
    try:
        from steersman import sim
        from steersman.api.errors import ApiError

        try:
            report = sim.simulate(str(trace), nodes, seed, watch=watcher, **options)
        except (sim.TraceError, sim.NodesError, sim.Stalled, ApiError) as error:
            watcher.clear()
            return _fault(str(error))
        watcher.clear()
    except KeyboardInterrupt:
        watcher.clear()
        typer.echo("steersman simulate: interrupted", err=True)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)
    if schedule is not None:
        fault = _write_schedule(schedule, options["labels"], report)
        if fault:
            return _fault(fault)
    fault = _print(report.json(timing).decode() if json else report.text())
    if fault:
        return _fault(fault)
    return INTERRUPTED if report.partial else DONE


def _fault(text: str) -> int:
    typer.echo(f"steersman simulate: {text}", err=True)
    return FAULTY


def _print(text: str) -> str:
    """Writes the report; what went wrong, or ""."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # whoever reads has seen enough: typer ends quietly
    except OSError as error:
        # What could not be written must not be tried again, and complained about, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return f"cannot write the report: {error.strerror}"
    return ""


def _write_schedule(path: Path, labels: list[str], report: Report) -> str:
    """Writes every step; what went wrong, or ""."""
    from steersman.kernel.schedule import MAX_LABELS, Schedule

    if len(labels) > MAX_LABELS:
        return f"{path}: not written: {len(labels):,} steps, and a schedule has {MAX_LABELS:,} at most; cut the trace"
    notes = [f"steersman simulate {report.trace}, seed {report.seed}, {report.nodes} nodes", f"digest {report.digest}"]
    try:
        path.write_text(Schedule(labels).dumps(notes), encoding="utf-8")
    except OSError as error:
        return f"{path}: cannot write the schedule: {error.strerror}; name a file in a folder you may write to"
    return ""


class Watcher:
    """Shows progress on a terminal, and ends a simulation after Ctrl-C; a second one ends it at once."""

    def __init__(self, shows: bool) -> None:
        self._shows = shows
        self._next = 0.0
        self._width = 0
        self._running = False
        self._interrupted = False

    def interrupt(self, _signal: int, _frame: Any) -> None:
        """Ctrl-C."""
        if self._interrupted or not self._running:
            raise KeyboardInterrupt
        self._interrupted = True

    def __call__(self, simulation: Simulation) -> None:
        """Looks in on a running simulation."""
        self._running = True
        if self._interrupted:
            simulation.stop = "interrupted"
        if not self._shows or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PROGRESS_SECONDS
        span = max(simulation.trace_end - simulation.start, 1)
        share = min(100, 100 * (simulation.world.now - simulation.start) // span)
        line = f"{share:3} % of the trace, {simulation.steps:,} steps, {simulation.metrics.created:,} pods"
        sys.stderr.write(f"\r{line.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(line)

    def clear(self) -> None:
        """Takes the progress line away."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
