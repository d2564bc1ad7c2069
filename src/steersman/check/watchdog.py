"""The watchdog: a reconcile that neither calls nor ends is stopped, and it is said where it was.

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
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from steersman.api.controller import is_theirs
from steersman.kernel.reexec import Hung, Reexec

if TYPE_CHECKING:
    from steersman.check.explore import Explorer

LIMIT = 10.0
"""Seconds a controller may compute between two calls. Real ones take milliseconds."""
NUDGE: Final = signal.SIGURG
"""Interrupts a call that waits; it means nothing where nobody handles it."""


class Watchdog:
    """Watches the controllers that an explorer executes, while it is entered."""

    def __init__(self, explorer: Explorer, limit: float = LIMIT) -> None:
        self.explorer = explorer
        self.limit = limit
        self._stopped = threading.Event()
        self._checked = threading.get_ident()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._watch, name="steersman-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._exit, self._fork = os._exit, os.fork
        os._exit, os.fork = self._exited, self._forked
        self._nudges = threading.current_thread() is threading.main_thread()
        self._nudged: Any = signal.signal(NUDGE, _woken) if self._nudges else None
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os._exit, os.fork = self._exit, self._fork
        self._stopped.set()
        self._thread.join()
        if self._nudges:
            signal.signal(NUDGE, signal.SIG_DFL if self._nudged is None else self._nudged)

    def _checking(self) -> bool:
        """Whether this is the thread of the check, in its process, while it goes on (checks in several threads may
        leave these functions in place)."""
        return not self._stopped.is_set() and os.getpid() == self._process and threading.get_ident() == self._checked

    def _exited(self, status: int) -> NoReturn:
        if self._checking():
            raise SystemExit(f"os._exit({status}) is not done in a check")
        self._exit(status)

    def _forked(self) -> int:
        if self._checking() and self.explorer.system.reexec.running is not None:
            raise RuntimeError("os.fork() is not done in a check: a reconcile is executed again and again")
        return self._fork()

    def _watch(self) -> None:
        last, since = -1, 0.0
        while not self._stopped.wait(self.limit / 8):
            reexec = self.explorer.system.reexec
            if reexec.running is None:
                last = -1
            elif reexec.executions != last:
                last, since = reexec.executions, time.monotonic()
            elif time.monotonic() - since >= self.limit:
                self._interrupt(reexec, last)

    def _interrupt(self, reexec: Reexec, execution: int) -> None:
        """Raises `Hung` in the thread that runs the controller, if it is still the same execution."""
        frame = sys._current_frames().get(self._checked)
        node = reexec.running
        if node is None or reexec.executions != execution:
            return
        text = (
            f"ran for {self.limit:g} s without a call ({_place(frame)}); it was stopped there: "
            "a reconcile must do its step and return"
        )
        hung = type("Hung", (Hung,), {"__str__": lambda _self: text})
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
