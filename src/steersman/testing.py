"""The pytest plugin: verdicts of checks in pytest's summary, and where the schedules of failures are.

Installed with Steersman and loaded by pytest itself. A test calls `sm.check(...).assert_holds()`; what it explored, and
whether that was everything, is shown at the end of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.check import Session


def pytest_addoption(parser: Any) -> None:
    """Options of the plugin."""
    group = parser.getgroup("steersman")
    group.addoption(
        "--steersman-verdicts",
        action="store_true",
        help="show the verdict of every check (BOUNDED ones and violations are always shown)",
    )


class Plugin:
    """Collects the verdicts of one test run."""

    def __init__(self, session: Session, everything: bool) -> None:
        self.session = session
        self.everything = everything

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Prints the verdicts."""
        shown = [v for v in self.session.verdicts if self.everything or not v.complete]
        if shown:
            terminalreporter.section("steersman")
            for verdict in shown:
                word = "holds" if verdict.holds else "VIOLATED"
                terminalreporter.write_line(f"{verdict.scenario or 'scenario'}: {word}\n{verdict.summary()}")


def pytest_configure(config: Any) -> None:
    """Listens to checks, unless this is only a helper process of pytest-xdist that prints nothing."""
    from steersman.check import Session, sessions

    session = Session()
    sessions.append(session)
    config.pluginmanager.register(Plugin(session, config.getoption("--steersman-verdicts")), "steersman-verdicts")


def pytest_unconfigure(config: Any) -> None:
    """Stops listening."""
    from steersman.check import sessions

    plugin = config.pluginmanager.get_plugin("steersman-verdicts")
    if plugin is not None and plugin.session in sessions:
        sessions.remove(plugin.session)
