"""What people's own functions are doing (properties, user steps, models, mappings of events, whole files), so that one
that never returns can be stopped and named. Reconciles have their own: `Reexec.running`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from itertools import count
from typing import Any, Final, TypeVar

from steersman.api.controller import ControllerError, place_of
from steersman.check.mistake import ScenarioError

T = TypeVar("T")
FAILED: Final = "a function of the scenario failed"
"""`Verdict.incomplete` after one of these; what was found until then is told all the same."""
FAILURES: Final = (ScenarioError, ControllerError)
"""What they raise that cannot go on."""
_calls: Final = count()
running: Final[dict[int, tuple[str, int] | None]] = {}
"""By thread: the innermost of them that is running, and which call of one it is."""


class Stuck(BaseException):
    """Raised in a function that never returns. Not an Exception: it must not be caught there."""


@contextmanager
def _being(table: dict[int, T], what: T) -> Iterator[None]:
    """Says of this thread what it is doing, and then again what it did before."""
    thread = threading.get_ident()
    outer = table.get(thread)
    table[thread] = what
    try:
        yield
    finally:
        if outer is None:
            table.pop(thread, None)
        else:
            table[thread] = outer


def guarded(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; whoever watches this thread sees that it runs. Raises `ScenarioError` when it was stopped."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        with _being(running, (what, next(_calls))):
            try:
                return function(*args, **named)
            except Stuck as stuck:
                raise ScenarioError(f"{what} {stuck}") from None
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                if type(error).__module__.startswith("steersman."):
                    raise  # ours: what was asked for, not what failed
                raise ScenarioError(f"{what} raised {type(error).__name__}: {error} ({place_of(error)})") from None

    return call


def unguarded() -> AbstractContextManager[None]:
    """For what a function of theirs asks us to do: it may take long."""
    return _being(running, None)


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------

_held: Final[dict[int, bool]] = {}
"""Threads that take Ctrl-C where it suits them, and whether it came."""


@contextmanager
def held() -> Iterator[None]:
    """Ctrl-C waits for `take`: in the midst of a step a graph is not one. A second one does not wait."""
    with _being(_held, False):
        yield
        take()


def take() -> None:
    """Raises the `KeyboardInterrupt` that has come."""
    thread = threading.get_ident()
    if _held.get(thread):
        _held[thread] = False
        raise KeyboardInterrupt


def hold(thread: int) -> bool:
    """A thread is to be interrupted: whether that waits for it."""
    if _held.get(thread, True):
        return False
    _held[thread] = True
    return True
