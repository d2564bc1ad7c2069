"""Check: find what real controllers do wrong, or show that within stated bounds they do not.

The names are loaded when they are first used: the command line reads the table of options and shows its help without
loading the checker.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.check.checking import Analysed, Session, check, sessions
    from steersman.check.explore import Bounds, Explorer
    from steersman.check.scenario import Scenario, ScenarioError, State
    from steersman.check.verdict import Verdict, Violation

__all__ = [
    "Analysed",
    "Bounds",
    "Explorer",
    "Scenario",
    "ScenarioError",
    "Session",
    "State",
    "Verdict",
    "Violation",
    "check",
    "sessions",
]

_HOME = {
    "Analysed": "checking",
    "Bounds": "explore",
    "Explorer": "explore",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
    "Session": "checking",
    "State": "scenario",
    "Verdict": "verdict",
    "Violation": "verdict",
    "check": "checking",
    "sessions": "checking",
}


class _CallableModule(ModuleType):
    """`steersman.check` is this package and, called, its function: `sm.check(scenario)`."""

    def __call__(self, scenario: Scenario, **options: Any) -> Verdict:
        from steersman.check import checking

        return checking.check(scenario, **options)

    def __getattr__(self, name: str) -> Any:
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{self.__name__}.{home}"), name)
        setattr(self, name, value)
        return value


sys.modules[__name__].__class__ = _CallableModule
