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
    from steersman.check.verdict import Verdict
    from steersman.run.embed import Plane

PREFIX, DEST = "--steersman-", "steersman_"
"""Before the names of a check's options: pytest has many plugins."""
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

    def __init__(self, session: Session, everything: bool, folder: Path, replay: Path | None) -> None:
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
        if report.when == "call" and report.failed:
            lines = [line for v in self.session.verdicts[self._before :] for line in self._replays(v, item)]
            if lines:
                report.sections.append(("steersman", "\n".join(lines)))

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
    plugin = Plugin(session, config.getoption("--steersman-verdicts"), folder, replay and Path(replay))
    config.pluginmanager.register(plugin, "steersman-verdicts")


def pytest_unconfigure(config: Any) -> None:
    """Stops listening."""
    from steersman.check import sessions

    plugin = config.pluginmanager.get_plugin("steersman-verdicts")
    if plugin is not None and plugin.session in sessions:
        sessions.remove(plugin.session)
