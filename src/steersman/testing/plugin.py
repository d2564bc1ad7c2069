"""The pytest plugin: control planes as fixtures, verdicts of checks in pytest's summary, how to replay what failed.

Installed with Steersman and loaded by pytest itself (through the package, which works without pytest). A test calls
`sm.check(...).assert_holds()`; what it explored, and whether that was everything, is shown at the end of the run. A
test that failed says how to replay what it found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steersman.check.options import OPTIONS, overrides
from steersman.testing import control_plane

if TYPE_CHECKING:
    from steersman.check import Session
    from steersman.check.report.reports import Reports
    from steersman.check.verdict import Verdict
    from steersman.run.embed import Plane

PREFIX, DEST = "--steersman-", "steersman_"
"""Before the names of a check's options: pytest has many plugins."""
REPORTS = {"html": "a page", "save": "a file for steersman inspect"}
FOLDER = ".steersman"
"""Where schedules go, below the folder pytest was started in; the command's default too."""


@pytest.fixture(scope="session")
def steersman_server() -> Iterator[Plane]:
    """One control plane for the whole run of tests; `control_plane` gives each test a workspace of it."""
    with control_plane() as plane:
        yield plane


@pytest.fixture(name="control_plane")
def _workspace(steersman_server: Plane) -> Iterator[Plane]:
    """A control plane of the test's own: a fresh workspace, gone after it. See `steersman.testing.control_plane`."""
    workspace = steersman_server.workspace()
    yield workspace
    workspace.forget()


def pytest_addoption(parser: Any) -> None:
    """Options of the plugin."""
    group = parser.getgroup("steersman")
    group.addoption(
        "--steersman-verdicts",
        action="store_true",
        help="show the verdict of every check (BOUNDED ones are always shown, and what failing tests found)",
    )
    group.addoption(
        "--steersman-replay",
        metavar="FILE",
        default=None,
        help="follow a schedule instead of searching, in the test it was recorded in",
    )
    for report, what in REPORTS.items():
        group.addoption(f"{PREFIX}{report}", metavar="FILE", default=None, help=f"write {what} of all checks")
    for option in OPTIONS:
        text = f"of every check: {option.help}"
        if option.kind is bool:
            group.addoption(PREFIX + option.flag[2:], dest=DEST + option.name, action="store_true", help=text)
        elif option.kind is tuple:
            group.addoption(PREFIX + option.flag[2:], dest=DEST + option.name, action="append", help=text)
        else:
            group.addoption(PREFIX + option.flag[2:], dest=DEST + option.name, type=option.kind, help=text)


class Plugin:
    """Collects the verdicts of one test run."""

    def __init__(
        self, session: Session, everything: bool, folder: Path, replay: Path | None, reports: Reports | None = None
    ) -> None:
        self.reports = reports
        self.session = session
        self.everything = everything
        self.folder = folder
        self.replay = replay
        self._before = 0
        self._taken: set[Path] = set()

    def pytest_runtest_setup(self, item: Any) -> None:
        """Hands the schedule to the test it was recorded in, and to no other."""
        from steersman.check import saved

        self._before = len(self.session.verdicts)
        self.session.replay = None
        if self.replay is not None and saved.read(self.replay).belongs_to(item.path, _function(item)):
            self.session.replay = saved.read(self.replay)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        """Saves the schedules of a test that failed, and says below it how to replay them."""
        outcome: Any = yield
        report = outcome.get_result()
        if report.when == "call" and self.reports is not None:
            self._collect(item, self.reports)
        if report.when == "call" and report.failed:
            lines = [line for v in self.session.verdicts[self._before :] for line in self._replays(v, item)]
            if lines:
                report.sections.append(("steersman", "\n".join(lines)))

    def _collect(self, item: Any, reports: Reports) -> None:
        """Takes a test's verdicts in, for the reports."""
        from steersman.check.report.checked import Checked, line_of, sources_of

        for verdict in self.session.verdicts[self._before :]:
            sources = sources_of(verdict.controllers)
            one = Checked(
                str(_below(item.path, self.folder)), _function(item), line_of(item.function), verdict, sources
            )
            list(reports.add(one))

    def _replays(self, verdict: Verdict, item: Any) -> Iterator[str]:
        from steersman.check.saved import save

        if verdict.replayed is not None:
            return
        for violation in verdict.violations:
            try:
                path = save(violation, verdict, self.folder / FOLDER, item.path, _function(item), self._taken)
            except OSError as error:
                yield f"the schedule was not saved: {error.filename}: {error.strerror}"
                continue
            yield f"{violation.title}: replay: {self._command(item)} {_below(path, self.folder)}"

    def _command(self, item: Any) -> str:
        """What runs only this test: `steersman check` where it needs nothing of pytest."""
        file, function = _below(item.path, self.folder), _function(item)
        if item.cls is None and not item.fixturenames and function.isidentifier():
            return f"steersman check {file}::{function} --replay"
        return f"pytest '{file}::{function}' --steersman-replay"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Prints the verdicts."""
        if self.reports is not None:
            try:
                for line in self.reports.write():
                    terminalreporter.write_line(line)
            except OSError as error:
                terminalreporter.write_line(f"{error.filename}: {error.strerror}; the report was not written")
        shown = [v for v in self.session.verdicts if self.everything or not v.complete]
        if shown:
            terminalreporter.section("steersman")
            for verdict in shown:
                violated = "".join(f"  {violation.title}" for violation in verdict.violations)
                terminalreporter.write_line(f"{verdict.title}: {verdict.outcome}{violated}\n{verdict.summary()}")


def _function(item: Any) -> str:
    """The test within its file: `TestLabels::test_fixed[1]`."""
    return str(item.nodeid).partition("::")[2]


def _below(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def pytest_configure(config: Any) -> None:
    """Listens to checks. Under pytest-xdist the replays come from the helper processes, the summary does not."""
    from steersman.check import Session, saved, sessions
    from steersman.kernel.schedule import ScheduleError

    replay = config.getoption("--steersman-replay")
    if replay is not None:
        try:
            saved.read(Path(replay))
        except ScheduleError as error:
            raise pytest.UsageError(str(error)) from None
    session = Session(overrides({option.name: config.getoption(DEST + option.name) for option in OPTIONS}))
    sessions.append(session)
    folder = Path(config.invocation_params.dir)
    reports = _reports(config)
    session.picturing = reports is not None
    plugin = Plugin(session, config.getoption("--steersman-verdicts"), folder, replay and Path(replay), reports)
    config.pluginmanager.register(plugin, "steersman-verdicts")


def _reports(config: Any) -> Reports | None:
    """The reports that were asked for. Raises `UsageError` where the checks are in other processes."""
    from steersman.check.report.reports import Reports, Wanted

    paths = {report: config.getoption(f"{PREFIX}{report}") for report in REPORTS}
    named = [report for report, path in paths.items() if path is not None]
    if not named:
        return None
    if getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(f"{PREFIX}{named[0]} needs all checks in one process: leave -n out")
    html, save = [None if path is None else Path(path) for path in (paths["html"], paths["save"])]
    return Reports(Wanted(html=html, save=save))


def pytest_unconfigure(config: Any) -> None:
    """Stops listening."""
    from steersman.check import sessions

    plugin = config.pluginmanager.get_plugin("steersman-verdicts")
    if plugin is not None and plugin.session in sessions:
        sessions.remove(plugin.session)
