"""`steersman check`: explores scenarios and reports what does not hold."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from steersman.check.options import overrides, parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import IO

    from steersman.check import Session
    from steersman.check.load import Target
    from steersman.check.report.reports import Reports
    from steersman.check.verdict import Verdict

HOLDS, VIOLATED, FAULTY, BOUNDED, INTERRUPTED = 0, 1, 2, 3, 130


def check(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="FILE[::NAME]...", help="Python files with scenarios.")
    ] = None,
    require_complete: Annotated[bool, typer.Option(help="A BOUNDED verdict is a failure (exit 3).")] = False,
    schedules: Annotated[Path, typer.Option(help="Where the schedules of failures go.")] = Path(".steersman"),
    replay: Annotated[Path | None, typer.Option(help="Follow a schedule instead of searching.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explains properties out of the box (of these names, or lists them).")
    ] = False,
    cause: Annotated[
        str, typer.Option(metavar="KIND/NAME[.FIELD]", help="Why that is as it is: only those steps.")
    ] = "",
    export_test: Annotated[Path | None, typer.Option(help="A folder for a pytest file of each violation.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML there.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write SARIF there.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page there: timelines, diffs, the graph of states.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Save the run there, for steersman inspect.")] = None,
    ends: Annotated[bool, typer.Option("--ends", help="List where runs come to rest.")] = False,
    diff_ends: Annotated[
        str, typer.Option(metavar="N,M", help="Two of those: what differs, and the first step where their ways part.")
    ] = "",
    static: Annotated[
        bool, typer.Option("--static", help="Says what follows from who reads and writes what, without a search.")
    ] = False,
    **options: Any,
) -> None:
    """Explores every interleaving of the scenarios' controllers, within the bounds.

    Exit codes: 0 holds, 1 violated, 2 the command or the scenario is at fault, 3 BOUNDED under --require-complete
    or where a test asks for complete=True, 130 after Ctrl-C and its partial report.
    """
    from steersman.check.report.reports import Reports, Wanted

    if explain:
        raise typer.Exit(_explain(targets or []))
    if not targets:
        raise typer.BadParameter("name Python files with scenarios: FILE[::NAME]...")
    if static:
        raise typer.Exit(_static(targets))
    wanted = Wanted(junit, sarif, export_test, html, save, ends=ends, diff_ends=_pair(diff_ends), cause=cause)
    reports = Reports(wanted)
    leave(_run(targets, overrides(options), require_complete, schedules, replay, reports))


def _pair(text: str) -> tuple[int, int] | None:
    """`1,2` as two numbers."""
    if not text:
        return None
    one, _, other = text.partition(",")
    if not (one.strip().isdecimal() and other.strip().isdecimal()):
        raise typer.BadParameter(f"--diff-ends {text}: give two numbers of --ends, such as 1,2")
    return int(one), int(other)


_signature = inspect.signature(check, eval_str=True)
_own = [parameter for parameter in _signature.parameters.values() if parameter.kind != parameter.VAR_KEYWORD]
check.__signature__ = _signature.replace(parameters=[*_own, *parameters()])  # type: ignore[attr-defined]
"""typer reads it: the options stand in one table."""


def _run(
    targets: list[str],
    chosen: dict[str, Any],
    complete: bool,
    schedules: Path,
    replay: Path | None,
    reports: Reports,
) -> int:
    from steersman.api.controller import ControllerError
    from steersman.check import Session, saved, sessions
    from steersman.check.report.progress import Progress
    from steersman.check.scenario import ScenarioError
    from steersman.kernel.schedule import ScheduleError

    session = Session(chosen)
    session.progress = Progress(_flushed, _columns) if sys.stderr.isatty() else None
    session.picturing = reports.wanted.pictures
    sessions.append(session)
    try:
        session.replay = None if replay is None else saved.read(replay)
        code = _Run(session, complete, schedules, reports).all(targets)
    except (ScenarioError, ScheduleError, ControllerError) as error:
        _tell(str(error))
        code = FAULTY
    except BrokenPipeError:
        raise  # nobody reads it any more
    except OSError as error:
        _tell(
            f"the output could not be written: {error.strerror}; what was found is in the reports that were asked for"
        )
        code = FAULTY
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        sessions.remove(session)
        written = _say(reports.write, sys.stderr)
    return code if written or code != HOLDS else FAULTY


def leave(code: int) -> NoReturn:
    """Ends the command. Threads that controllers have started and that go on do not keep it."""
    theirs = [thread for thread in threading.enumerate() if not thread.daemon and thread.ident not in _threads]
    if not theirs:
        raise typer.Exit(code)
    _tell(f"what was checked has left {len(theirs)} threads running; a reconcile must do its step and return")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


_threads = frozenset([thread.ident for thread in threading.enumerate()])
"""Those that were there before."""


def _say(lines: Callable[[], Iterable[str]], where: IO[str]) -> bool:
    """What a report says; where it could not be written, that, and False."""
    try:
        for line in lines():
            print(line, file=where)
    except OSError as error:
        _tell(f"{error.filename or 'a report'}: {error.strerror}; the report was not written")
        return False
    return True


def _explain(names: list[str]) -> int:
    from steersman.check.properties.names import UnknownProperty, explained

    try:
        typer.echo(explained(names))
    except UnknownProperty as error:
        _tell(str(error))
        return FAULTY
    return HOLDS


def _static(texts: list[str]) -> int:
    """Says of every target what is known before any run."""
    from steersman.check import Analysed, Session, sessions
    from steersman.check import check as check_one
    from steersman.check.load import load, run
    from steersman.check.scenario import ScenarioError

    session = Session()
    session.static = True
    sessions.append(session)
    code = HOLDS
    said: dict[str, None] = {}
    try:
        for text in texts:
            for target in load(text):
                try:
                    run(target, check_one)
                except Analysed as analysed:
                    said[f"{analysed.scenario}: {analysed.analysis.line}\n{analysed.analysis.text()}"] = None
                    code = VIOLATED if analysed.analysis.clashes else code
    except ScenarioError as error:
        _tell(str(error))
        return FAULTY
    finally:
        sessions.remove(session)
    typer.echo("\n\n".join(said))
    return code


def _tell(text: str) -> None:
    typer.echo(f"steersman check: {text}", err=True)


class _Run:
    """Every target of one command, one after the other."""

    def __init__(self, session: Session, complete: bool, schedules: Path, reports: Reports) -> None:
        self.session = session
        self.reports = reports
        self.complete = complete
        self.schedules = schedules
        self.codes: set[int] = set()
        self._taken: set[Path] = set()

    def all(self, texts: list[str]) -> int:
        """Runs them; the exit code."""
        from steersman.check.load import load

        for text in texts:
            file, _, named = text.partition("::")
            for target in self._chosen(load(text), file, named):
                self._one(target, file)
        for verdict in self.session.verdicts:
            if not verdict.holds:
                self.codes.add(VIOLATED)
            elif self.complete and not verdict.complete:
                self.codes.add(BOUNDED)
        return next((code for code in (VIOLATED, FAULTY, BOUNDED) if code in self.codes), HOLDS)

    def _chosen(self, targets: list[Target], file: str, named: str) -> list[Target]:
        """Those that the schedule to replay was recorded in, or all."""
        if self.session.replay is None:
            return targets
        schedule = self.session.replay
        chosen = [target for target in targets if schedule.belongs_to(file, target.name)]
        if not chosen:
            raise schedule.refuse(file, named or "…")
        return chosen

    def _one(self, target: Target, file: str) -> None:
        from steersman.check import check as check_one
        from steersman.check.load import run

        before = len(self.session.verdicts)
        here, out = Path.cwd(), sys.stdout
        spare = os.dup(out.fileno()) if out is sys.__stdout__ and out is not None else None
        try:
            asserted = run(target, check_one)
        finally:
            os.chdir(here)  # whatever a controller did
            if spare is not None and out.closed:
                sys.stdout = open(spare, "w", encoding="utf-8", errors="replace")  # noqa: SIM115 - for good
            elif spare is not None:
                os.close(spare)
            for verdict in self.session.verdicts[before:]:
                self._show(verdict, file, target)
        found = self.session.verdicts[before:]
        refused = [verdict for verdict in found if verdict.refused]
        if asserted and refused:
            _tell(f"{refused[0].title}: {refused[0].refusal}")
            self.codes.add(BOUNDED)
        elif asserted and all(verdict.holds and (verdict.complete or not self.complete) for verdict in found):
            _tell(asserted)
            self.codes.add(VIOLATED)
        elif not found:
            _tell(f"{file}: {target.name} checked nothing: call sm.check in it, or return a Scenario")
            self.codes.add(FAULTY)

    def _show(self, verdict: Verdict, file: str, target: Target) -> None:
        from steersman.check.report.checked import Checked, line_of, sources_of
        from steersman.check.report.progress import CLEAR
        from steersman.check.saved import save

        name = target.name
        if self.session.progress is not None:
            _flushed(CLEAR)
        typer.echo(str(verdict))
        one = Checked(file, name, line_of(target.function), verdict, sources_of(verdict.controllers))
        if not _say(lambda: self.reports.add(one), sys.stdout):
            self.codes.add(FAULTY)
        if verdict.replayed is not None:
            return
        for violation in verdict.violations:
            try:
                path = save(violation, verdict, self.schedules, file, name, self._taken)
            except OSError as error:
                typer.echo(f"  the schedule was not saved: {error.filename}: {error.strerror}", err=True)
            else:
                typer.echo(f"  replay: steersman check {file}::{name} --replay {path}")


def _flushed(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _columns() -> int:
    return shutil.get_terminal_size().columns
