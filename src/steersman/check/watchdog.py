"""The watchdog: a reconcile that neither calls nor ends is stopped, and it is said where it was.

Works from a thread of its own, without signals, so a check may run in any thread. It can stop what runs Python code;
one long call into C (`time.sleep`) it cannot cut short: that is stopped when it returns.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING

from steersman.api.controller import is_theirs
from steersman.kernel.reexec import Hung, Reexec

if TYPE_CHECKING:
    from steersman.check.explore import Explorer

LIMIT = 10.0
"""Seconds a controller may compute between two calls. Real ones take milliseconds."""


class Watchdog:
    """Watches the controllers that an explorer executes, while it is entered."""

    def __init__(self, explorer: Explorer, limit: float = LIMIT) -> None:
        self.explorer = explorer
        self.limit = limit
        self._stopped = threading.Event()
        self._checked = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="steersman-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

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


def _place(frame: FrameType | None) -> str:
    """The innermost line of the person's own code."""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_theirs(file):
            return f"{file}, line {frame.f_lineno}, in {frame.f_code.co_name}"
        frame = frame.f_back
    return "somewhere"
