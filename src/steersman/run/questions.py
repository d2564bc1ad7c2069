"""Requests that wait for webhooks, beside the writer: it goes on with others meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from steersman.api import errors
from steersman.api.errors import ApiError
from steersman.kernel.effect import Request
from steersman.run.group import settle
from steersman.serve.asking import MAX_BEGINS, Asked, Asking, Trail, too_often

log = logging.getLogger("steersman.run")


class Questions:
    """The questions under way. All methods are called from the event loop's thread."""

    def __init__(self) -> None:
        self.asking: Asking | None = None
        """Who answers; without anybody a request that asks is refused."""
        self._under_way: dict[asyncio.Task[Any], Callable[[ApiError], None]] = {}

    def ask(self, asked: Asked, request: Request, future: Any, again: Callable[[Trail], None]) -> None:
        """Has a question answered, then begins the request again with its longer trail."""
        if self.asking is None:
            settle(future, errors.internal(f"nobody answers calls of kind {asked.kind!r} in this server"))
            return
        if len(asked.trail) > MAX_BEGINS:
            settle(future, too_often(request))
            return
        task = asyncio.get_running_loop().create_task(self._answer(self.asking, asked, future, again))
        self._under_way[task] = lambda error: settle(future, error)
        task.add_done_callback(lambda done: self._under_way.pop(done, None))

    async def _answer(self, asking: Asking, asked: Asked, future: Any, again: Callable[[Trail], None]) -> None:
        try:
            answer = await asking.call(asked.kind, asked.question)
        except Exception:
            log.exception("asking for %s failed", asked.kind)
            settle(future, errors.internal("the server failed while it asked a webhook; its log has the cause"))
            return
        again(asked.with_answer(answer))

    def close(self, refusal: ApiError) -> None:
        """Gives all up."""
        for task, refuse in list(self._under_way.items()):
            task.cancel()
            refuse(refusal)
