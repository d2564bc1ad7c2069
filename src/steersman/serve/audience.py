"""Watches that wait for the same news, and are told together.

Whoever asked for the same objects in the same form waits in one audience. It is the audience that waits for events,
once for all: the news is made once, and handed to every connection in one go. A watch goes on by itself when that is
not possible: its client reads too slowly, there is more than one chunk to send, its time is over, or its kind changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, Protocol

from steersman.kernel.changelog import Gone

GAP_EACH: Final = 0.000_2
"""Seconds, for each watch, between two chunks for all: ten times as long as it takes to send one to everybody. An event
that comes alone is sent at once; in a burst they go together, which costs a tenth."""
MAX_GAP: Final = 0.01
TURN: Final = 250
"""Watches that are told in one go, some 5 ms; then others get their turn."""
Send = Callable[[bytes], bool]
"""Sends an item of a stream that waits; False where its client has not read what was sent before."""


class Listener(Protocol):
    """What an audience needs of a watch."""

    rev: int
    """How far it has been told."""
    send: Send | None

    async def changed(self, rev: int) -> None:
        """Returns when there may be news after `rev`. Raises `Gone` when there will be none."""

    def chunk(self, head: int) -> bytes | None:
        """The news up to `head`; None where the watch has to see to it itself. Raises `Gone`."""


class Audiences:
    """The audiences of one server, by what was asked for."""

    def __init__(self, head: Callable[[], int]) -> None:
        """`head` is the revision that there is news up to."""
        self.head = head
        self._by_asked: dict[Hashable, Audience] = {}

    async def wait(self, asked: Hashable, listener: Listener, until: float) -> None:
        """Returns when the listener, who has been told all there is, has to go on by itself: at the latest at `until`,
        on the loop's clock. Meanwhile its `rev` grows by what it was sent. Raises `Gone`."""
        audience = self._by_asked.get(asked)
        if audience is None:
            audience = self._by_asked[asked] = Audience(self, asked, listener.rev)
        await audience.wait(listener, until)

    def forget(self, asked: Hashable) -> None:
        """Drops an audience in which nobody is left."""
        del self._by_asked[asked]

    @property
    def waiting(self) -> int:
        """How many watches wait."""
        return sum(len(audience) for audience in self._by_asked.values())


class Audience:
    """Those who asked for the same; one task while there are any."""

    __slots__ = ("_asked", "_audiences", "_members", "_rev", "_task", "_told")

    def __init__(self, audiences: Audiences, asked: Hashable, rev: int) -> None:
        self._audiences = audiences
        self._asked = asked
        self._rev = rev
        """Nobody has been told less."""
        self._told = 0.0
        self._members: dict[asyncio.Future[None], Listener] = {}
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._members)

    async def wait(self, listener: Listener, until: float) -> None:
        """See `Audiences.wait`."""
        if listener.rev < self._rev:
            return  # there was news while it was busy
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        timer = loop.call_at(until, _wake, future)
        self._members[future] = listener
        if self._task is None:
            self._task = loop.create_task(self._run(loop))
        try:
            await future
        finally:
            timer.cancel()
            del self._members[future]
            if not self._members:
                if self._task is not None:
                    self._task.cancel()
                self._audiences.forget(self._asked)

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tells the news until nobody is left. What goes wrong is everybody's to hear."""
        try:
            while True:
                await next(iter(self._members.values())).changed(self._rev)
                rest = self._told + min(MAX_GAP, GAP_EACH * len(self._members)) - loop.time()
                if rest > 0:
                    await asyncio.sleep(rest)
                await self._tell()
                self._told = loop.time()
        except Exception as error:
            self._task = None
            for future in self._members:
                if not future.done():
                    future.set_exception(error)

    async def _tell(self) -> None:
        """Sends everybody what they have not been told."""
        self._rev = head = self._audiences.head()
        before, chunk = -1, None
        for number, (future, listener) in enumerate(list(self._members.items()), 1):
            if number % TURN == 0:
                await asyncio.sleep(0)
                before, head = -1, self._audiences.head()
            if future.done():
                continue
            if listener.rev != before:
                before = listener.rev
                try:
                    chunk = listener.chunk(head)
                except Gone:
                    chunk = None
            if chunk is None or (chunk and (listener.send is None or not listener.send(chunk))):
                _wake(future)
            else:
                listener.rev = head


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
