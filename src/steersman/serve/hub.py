"""What the connections of one server share: their limits, who they are, and texts that are made once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from itertools import islice
from typing import TYPE_CHECKING

from steersman.serve.limits import Limits
from steersman.serve.message import Request, Response
from steersman.serve.reader import Screen

if TYPE_CHECKING:
    from steersman.serve.connection import Connection

Handler = Callable[[Request], Awaitable[Response]]
# Strangers that are looked at when one of them has to go.
LOOKED_AT = 32


@dataclass(slots=True, eq=False)
class Hub:
    """What the connections of one server share."""

    handler: Handler
    limits: Limits
    loop: asyncio.AbstractEventLoop
    connections: set[Connection] = field(default_factory=set)
    strangers: dict[Connection, None] = field(default_factory=dict)
    """Those over which nobody has been recognised yet, oldest first."""
    draining: bool = False
    empty: asyncio.Event = field(default_factory=asyncio.Event)
    screen: Screen | None = None
    """Refuses a large request by its head: what nobody sends is not kept."""
    _second: int = 0
    _date: bytes = b""
    _item: bytes = b""
    _chunk: bytes = b""

    def add(self, connection: Connection) -> None:
        self.connections.add(connection)
        self.strangers[connection] = None
        self.empty.clear()

    def forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.strangers.pop(connection, None)
        if not self.connections:
            self.empty.set()

    def make_room(self) -> None:
        """Cuts the oldest connection of a stranger, sooner one that waits for a request than one that is answered."""
        first = list(islice(self.strangers, LOOKED_AT))
        if first:
            oldest = next((each for each in first if not each.is_busy), first[0])
            del self.strangers[oldest]
            oldest.abort()

    def date(self) -> bytes:
        """The Date header line, made once a second."""
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._date = f"date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._date

    def chunk(self, item: bytes) -> bytes:
        """An item as a chunk of a body; of one that goes to many connections in turn, it is the same bytes."""
        if item is not self._item:
            self._item, self._chunk = item, b"%x\r\n%b\r\n" % (len(item), item)
        return self._chunk
