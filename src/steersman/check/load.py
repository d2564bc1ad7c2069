"""Loading scenarios from Python files: `FILE[::NAME]`."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from steersman.check import watchdog
from steersman.check.guard import guarded
from steersman.check.scenario import Scenario, ScenarioError
from steersman.check.watchdog import Watchdog
from steersman.kernel.schedule import ScheduleError


class Target(NamedTuple):
    """One thing to check: a `test_…` function that calls `sm.check`, or a `scenario…` function that returns one."""

    name: str
    function: Callable[[], Any]


def load(text: str) -> list[Target]:
    """The targets of `FILE[::NAME]`, in the order of the file. Raises `ScenarioError`."""
    path_text, _, name = text.partition("::")
    path = Path(path_text)
    if path.is_dir():
        raise ScenarioError(f"{path_text}: is a directory; name files: FILE[::NAME]")
    if not path.is_file():
        raise ScenarioError(f"{path_text}: no such file; give a Python file with scenarios: FILE[::NAME]")
    module = _module(path)
    functions = {
        key: value
        for key, value in vars(module).items()
        if callable(value)
        and not inspect.isclass(value)
        and getattr(value, "__module__", "") == module.__name__
        and key.startswith(("test_", "scenario_"))
    }
    if name:
        chosen = getattr(module, name, None)
        if inspect.isclass(chosen):
            known = ", ".join(functions) or "none"
            raise ScenarioError(f"{path_text}: {name} is a class, not a function; functions to check: {known}")
        if not callable(chosen):
            known = ", ".join(functions) or "none"
            raise ScenarioError(f"{path_text}: no function {name!r}; it has: {known}")
        return [Target(name, chosen)]
    if not functions:
        raise ScenarioError(f"{path_text}: no functions called test_… or scenario_…; name one with FILE::NAME")
    return [Target(key, value) for key, value in functions.items()]


def _module(path: Path) -> ModuleType:
    name = f"steersman_scenarios_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ScenarioError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        with Watchdog(None, watchdog.LOADING):
            guarded(f"{path}", spec.loader.exec_module)(module)
    except SyntaxError as error:
        line = "" if error.lineno is None else f", line {error.lineno}"
        raise ScenarioError(f"{path}{line}: {error.msg}") from None
    except ScenarioError:
        raise
    except (Exception, SystemExit) as error:
        line = _line_in(error, path)
        raise ScenarioError(f"{path}{line}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(folder)
    return module


def _line_in(error: BaseException, path: Path) -> str:
    """The last line of `path` that an exception passed through."""
    line, trace = "", error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            line = f", line {trace.tb_lineno}"
        trace = trace.tb_next
    return line


def run(target: Target, check: Callable[..., Any]) -> str:
    """Runs a target: calls the function, and checks the Scenario it returns, if it does. Returns what the function
    asserted in vain, as one line; "" when nothing. Raises `ScenarioError`."""
    where = inspect.getsourcefile(target.function) or target.name
    needed = [p.name for p in _parameters(target.function) if p.default is p.empty and p.kind not in VARIADIC]
    if needed:
        raise ScenarioError(
            f"{where}: {target.name} wants arguments ({', '.join(needed)}); a scenario function takes none"
        )
    try:
        with Watchdog(None, watchdog.LOADING):
            made = guarded(f"{where}: {target.name}", target.function)()
        if isinstance(made, tuple) and made and isinstance(made[0], Scenario):
            made = made[0]
        if isinstance(made, Scenario):
            check(made)
    except AssertionError as error:
        first = (str(error).splitlines() or [""])[0]
        return f"{where}{_line_in(error, Path(where))}: {target.name}: assertion failed{first and f': {first}'}"
    except (ScenarioError, ScheduleError):
        raise
    except (Exception, SystemExit) as error:
        line = _line_in(error, Path(where))
        raise ScenarioError(f"{where}{line}: {type(error).__name__}: {error}") from None
    return ""


VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
