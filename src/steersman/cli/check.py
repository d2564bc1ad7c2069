"""`steersman check`: explores scenarios and reports what does not hold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from steersman.check import Session
    from steersman.check.verdict import Verdict, Violation

HOLDS, VIOLATED, FAULTY, BOUNDED, INTERRUPTED = 0, 1, 2, 3, 130


def check(
    targets: Annotated[list[str], typer.Argument(metavar="FILE[::NAME]...", help="Python files with scenarios.")],
    lag: Annotated[int | None, typer.Option(help="Events a controller's cache may be behind.", min=0)] = None,
    crashes: Annotated[int | None, typer.Option(help="Crashes that may happen on a path.", min=0)] = None,
    conflicts: Annotated[int | None, typer.Option(help="409s that may be injected on a path.", min=0)] = None,
    atomic: Annotated[bool | None, typer.Option("--atomic", help="Whole reconciles are single steps.")] = None,
    walks: Annotated[int | None, typer.Option(help="That many random walks instead of a search.", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the first walk.")] = None,
    max_states: Annotated[int | None, typer.Option(min=1)] = None,
    max_depth: Annotated[int | None, typer.Option(min=1)] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0.0)] = None,
    no_read_memo: Annotated[bool, typer.Option("--no-read-memo", help="Execute every step of a reconcile.")] = False,
    no_write_memo: Annotated[bool, typer.Option("--no-write-memo", help="Validate and merge every write.")] = False,
    no_canonical: Annotated[bool, typer.Option("--no-canonical", help="Compare states as they are.")] = False,
    require_complete: Annotated[bool, typer.Option(help="A BOUNDED verdict is a failure (exit 3).")] = False,
    schedules: Annotated[Path, typer.Option(help="Where the schedules of failures go.")] = Path(".steersman"),
    replay: Annotated[Path | None, typer.Option(help="Follow a schedule instead of searching.")] = None,
) -> None:
    """Explores every interleaving of the scenarios' controllers, within the bounds.

    Exit codes: 0 holds, 1 violated, 2 the command or the scenario is at fault, 3 BOUNDED under --require-complete,
    130 after Ctrl-C and its partial report.
    """
    chosen: dict[str, Any] = {
        "lag": lag,
        "crashes": crashes,
        "conflicts": conflicts,
        "atomic": atomic,
        "walks": walks,
        "seed": seed,
        "max_states": max_states,
        "max_depth": max_depth,
        "max_seconds": max_seconds,
        "read_memo": False if no_read_memo else None,
        "write_memo": False if no_write_memo else None,
        "canonical": False if no_canonical else None,
    }
    overrides = {name: value for name, value in chosen.items() if value is not None}
    raise typer.Exit(_run(targets, overrides, require_complete, schedules, replay))


def _run(targets: list[str], overrides: dict[str, Any], complete: bool, schedules: Path, replay: Path | None) -> int:
    from steersman.api.controller import ControllerError
    from steersman.check import Session, sessions
    from steersman.check import check as check_one
    from steersman.check.load import load, run
    from steersman.check.scenario import ScenarioError
    from steersman.kernel.schedule import ScheduleError

    session = Session(overrides)
    session.progress = _progress if sys.stderr.isatty() else None
    if replay is not None:
        session.replay = replay
    sessions.append(session)
    printed = 0
    failed: list[str] = []
    try:
        for text in targets:
            for target in load(text):
                asserted = ""
                try:
                    asserted = run(target, check_one)
                finally:
                    for verdict in session.verdicts[printed:]:
                        _show(verdict, text, target.name, schedules)
                found = session.verdicts[printed:]
                printed = len(session.verdicts)
                if asserted and all(verdict.holds and (verdict.complete or not complete) for verdict in found):
                    typer.echo(f"steersman check: {asserted}", err=True)
                    failed.append(asserted)
    except (ScenarioError, ScheduleError, ControllerError) as error:
        typer.echo(f"steersman check: {error}", err=True)
        return FAULTY
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        sessions.remove(session)
    return VIOLATED if failed else _code(session, complete)


def _code(session: Session, complete: bool) -> int:
    if any(not verdict.holds for verdict in session.verdicts):
        return VIOLATED
    if complete and any(not verdict.complete for verdict in session.verdicts):
        return BOUNDED
    return HOLDS


def _show(verdict: Verdict, text: str, name: str, schedules: Path) -> None:
    typer.echo(str(verdict))
    for violation in verdict.violations:
        path = save(violation, verdict, schedules)
        if path is not None:
            file = text.partition("::")[0]
            typer.echo(f"  replay: steersman check {file}::{name} --replay {path}")


def save(violation: Violation, verdict: Verdict, folder: Path) -> Path | None:
    """Writes the schedule of a violation; None (with a warning) when the folder cannot be written."""
    words = f"{verdict.scenario or 'scenario'}-{violation.name}".lower()
    path = folder / ("".join(char if char.isalnum() else "-" for char in words)[:80].strip("-") + ".schedule")
    notes = [f"{verdict.scenario}: {violation.kind}: {violation.name}", violation.message]
    notes += [f"{key}: {value}" for key, value in verdict.bounds.items()]
    notes += [f"reads: {text}" for text in verdict.reads]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(violation.schedule.dumps(notes))
    except OSError as error:
        typer.echo(f"  the schedule was not saved: {path}: {error.strerror}", err=True)
        return None
    return path


def _progress(verdict: Verdict) -> None:
    rate = verdict.transitions / verdict.seconds if verdict.seconds else 0
    seen = f"{verdict.states:,} states, {verdict.transitions:,} transitions, {rate:,.0f}/s"
    sys.stderr.write(f"\r{seen}, {verdict.frontier:,} waiting ")
    sys.stderr.flush()
