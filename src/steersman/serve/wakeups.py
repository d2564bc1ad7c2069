"""Wakes up whoever waits for the next event of a kind."""

from __future__ import annotations

import asyncio

from steersman.kernel.effect import GK


class Wakeups:
    """Waiters by kind. Used from one event loop; every Backend needs one."""

    __slots__ = ("_last", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[GK, set[asyncio.Future[None]]] = {}
        self._last: dict[GK, int] = {}

    async def wait(self, gk: GK, rev: int) -> None:
        """Returns when `notify` has told of an event of the kind after `rev`. Safe to cancel."""
        if self._last.get(gk, 0) > rev:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(gk, set())
        waiting.add(future)
        try:
            await future
        finally:
            waiting.discard(future)

    def notify(self, gk: GK, rev: int) -> None:
        """There is an event of the kind at `rev`. Waiters run at the next turn of the loop, so that several
        events of one turn become one wake-up."""
        self._last[gk] = rev
        waiting = self._waiting.get(gk)
        if waiting:
            for future in waiting:
                if not future.done():
                    future.set_result(None)
            waiting.clear()

    def wake_all(self) -> None:
        """Whoever waits finds out by itself what happened: the end of the backend."""
        for waiting in self._waiting.values():
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def __len__(self) -> int:
        """How many are waiting."""
        return sum(len(waiting) for waiting in self._waiting.values())
