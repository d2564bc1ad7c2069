"""The watchdog: a reconcile that neither calls nor ends is stopped, and so is any other function of theirs that does
not return (see `guard`); it is said where it was.

Works from a thread of its own, so a check may run in any thread. It can stop what runs Python code; one long call that
waits in C (`time.sleep`, a socket) is cut short by a signal in the main thread, and elsewhere stopped when it returns.

Neither may a controller end the process (`os._exit` tells nobody anything, and would look like success) or fork it:
both are exceptions while a check runs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from steersman.api.controller import is_theirs
from steersman.check import guard
from steersman.kernel.reexec import Hung

if TYPE_CHECKING:
    from steersman.check.explore import Explorer

LIMIT = 10.0
"""Seconds a controller may compute between two calls, and a property or a model in all. Real ones take milliseconds."""
LOADING: Final = 120.0
"""Seconds for a file to be imported, and for a function to make a scenario: imports of large libraries take many."""
NUDGE: Final = signal.SIGURG
"""Interrupts a call that waits; it means nothing where nobody handles it."""


Doing = tuple[str, int]


class Watchdog:
    """Watches the controllers that an explorer executes, and all that is guarded, while it is entered."""

    def __init__(self, explorer: Explorer | None, limit: float | None = None) -> None:
        self.explorer = explorer
        self.limit = LIMIT if limit is None else limit
        self._stopped = threading.Event()
        self._checked = threading.get_ident()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._watch, name="steersman-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._exit, self._fork = os._exit, os.fork
        os._exit, os.fork = self._exited, self._forked
        self._nudges = threading.current_thread() is threading.main_thread()
        self._nudged: Any = signal.signal(NUDGE, _woken) if self._nudges else None
        self._breaks: Any = signal.getsignal(signal.SIGINT) if self._nudges else None
        if self._breaks is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._broken)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os._exit, os.fork = self._exit, self._fork
        self._stopped.set()
        self._thread.join()
        if self._nudges:
            signal.signal(NUDGE, signal.SIG_DFL if self._nudged is None else self._nudged)
        if self._breaks is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._breaks)

    def _checking(self) -> bool:
        """Whether this is the thread of the check, in its process, while it goes on (checks in several threads may
        leave these functions in place)."""
        return not self._stopped.is_set() and os.getpid() == self._process and threading.get_ident() == self._checked

    def _broken(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C: at once in code of theirs, else where the search takes it."""
        if os.getpid() != self._process or self._doing() is not None or not guard.hold(self._checked):
            raise KeyboardInterrupt

    def _exited(self, status: int) -> NoReturn:
        if self._checking():
            raise SystemExit(f"os._exit({status}) is not done in a check")
        self._exit(status)

    def _forked(self) -> int:
        if self._checking() and self._doing() is not None and self.explorer is not None:
            raise RuntimeError("os.fork() is not done in a check: what is checked is executed again and again")
        return self._fork()

    def _watch(self) -> None:
        last: Doing | None = None
        since = 0.0
        while not self._stopped.wait(self.limit / 8):
            doing = self._doing()
            if doing is None or doing != last:
                last, since = doing, monotonic()
            elif monotonic() - since >= self.limit:
                self._interrupt(doing)

    def _doing(self) -> Doing | None:
        """What is running of theirs, if anything is: what it is called ("" for a reconcile), and which time it is."""
        reexec = None if self.explorer is None else self.explorer.system.reexec
        if reexec is not None and reexec.running is not None:
            return "", reexec.executions
        return guard.running.get(self._checked)

    def _interrupt(self, doing: Doing) -> None:
        """Raises `Hung` or `Stuck` in the thread that runs it, if it is still the same."""
        frame = sys._current_frames().get(self._checked)
        if self._doing() != doing:
            return
        place = _place(frame)
        if doing[0]:
            text = f"ran for {self.limit:g} s ({place}); it was stopped there: it must return"
        else:
            text = (
                f"ran for {self.limit:g} s without a call ({place}); it was stopped there: "
                "a reconcile must do its step and return"
            )
        kind = guard.Stuck if doing[0] else Hung
        hung = type(kind.__name__, (kind,), {"__str__": lambda _self: text})
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._checked), ctypes.py_object(hung))
        if self._nudges:
            signal.pthread_kill(self._checked, NUDGE)


def _woken(number: int, frame: FrameType | None) -> None:
    """In the main thread: what `_interrupt` raises comes up in here."""


def _place(frame: FrameType | None) -> str:
    """The innermost line of the person's own code."""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_theirs(file):
            return f"{file}, line {frame.f_lineno}, in {frame.f_code.co_name}"
        frame = frame.f_back
    return "somewhere"
