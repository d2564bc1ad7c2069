"""Events of controllers, written beside their work: nobody waits for them, and their failure fails nobody."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.api.events import Note, Recorder, Said
from steersman.kernel.effect import Request

if TYPE_CHECKING:
    from steersman.run.head import Heads

log = logging.getLogger("steersman.run")

MAX_WAITING: Final = 1_000
"""Events on their way at a time (client-go's channel); what is told beyond that is dropped."""


class Teller:
    """Writes what controllers tell. `tell` from any thread."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._recorder = Recorder()
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, said: Said, actor: str) -> None:
        """Tells something in the name of a controller."""
        loop = self._heads.loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self._begin, said.note(), actor)
        except RuntimeError:  # the loop is closed
            log.debug("%s could not tell %s any more", actor, said.reason)

    def _begin(self, note: Note, actor: str) -> None:
        if len(self._tasks) >= MAX_WAITING:
            return
        request = self._recorder.request(note, self._heads.now())
        if request is not None:
            task = asyncio.get_running_loop().create_task(self._write(request._replace(actor=actor), note))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _write(self, request: Request, note: Note) -> None:
        try:
            try:
                await self._heads.do(request, "component")
            except (AlreadyExists, NotFound):
                again = self._recorder.again(request, note, self._heads.now())
                await self._heads.do(again._replace(actor=request.actor), "component")
        except ApiError as error:  # a namespace that goes away takes no more events
            log.debug("%s of %s refused: %s", request.verb, request.key, error.message)
