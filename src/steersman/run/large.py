"""Large writes: begun beside the loop, one at a time.

Whoever writes waits for a large write that is being looked at: it is judged by the tentative head, which must not move
meanwhile. Whoever reads does not. Small writes that came in the meantime go before the next large one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from steersman.api.begin import Api
from steersman.api.crd.definition import CRD, declared_kinds
from steersman.api.stored import dump
from steersman.kernel.effect import Commit, Request
from steersman.kernel.ports import Signer
from steersman.kernel.store import Store
from steersman.run.group import Draws, perform
from steersman.serve.aside import aside
from steersman.serve.asking import Trail

if TYPE_CHECKING:
    from steersman.run.head import Heads


class Waiting(NamedTuple):
    """A request, as `Heads` is given it."""

    request: Request
    origin: str
    future: Any
    trail: Trail
    large: bool


class Large:
    """The large writes of one pair of heads, which it knows only while it works: a deleted workspace is gone at once.
    All methods are called from the event loop's thread."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._small: deque[Waiting] = deque()
        self._next: deque[Waiting] = deque()

    @property
    def busy(self) -> bool:
        """Whether one is being looked at, so that nobody may write."""
        return self._task is not None

    def put(self, heads: Heads, waiting: Waiting) -> None:
        """Takes a request: a large one, or any while one is looked at."""
        (self._next if waiting.large else self._small).append(waiting)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(heads))

    async def close(self) -> None:
        """Waits for what is looked at; the heads refuse all of it."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self, heads: Heads) -> None:
        """One large request after the other, with the small ones between them."""
        try:
            while self._next:
                each = self._next.popleft()
                request, origin, future, trail, _ = each
                if future.done():  # its client has gone
                    continue
                store = heads.tentative
                try:
                    draws = await aside(_prepared, heads.api, store, request, heads.signer, trail)
                    outcome = partial(_given, draws)
                except Exception as error:
                    outcome = partial(_raise, error)
                if heads.tentative is store:
                    heads.conclude(request, origin, future, trail, outcome, True)
                else:  # a failed append has thrown away what it was judged by
                    self._next.append(each)
                self._let_small_go(heads)
        finally:
            self._task = None
            self._let_small_go(heads)
            if self._next:
                self.put(heads, self._next.popleft())

    def _let_small_go(self, heads: Heads) -> None:
        for _ in range(len(self._small)):
            request, origin, future, trail, _ = self._small.popleft()
            heads.begin_now(request, origin, future, trail)


def _given(draws: Draws) -> Draws:
    return draws


def _raise(error: Exception) -> Draws:
    raise error


def _prepared(api: Api, store: Store, request: Request, signer: Signer | None, trail: Trail) -> Draws:
    """What comes of a request, with all that its commit will compute computed already. Raises what `perform` does."""
    draws = perform(api, store, request, signer, trail)
    new = draws.outcome.new if isinstance(draws.outcome, Commit) else None
    if new is not None:
        dump(new)
        for section in (new.meta, new.spec, new.rest, new.status):
            if section is not None:
                _ = section.digest
        if new.key.gk == CRD:
            declared_kinds([new])
    return draws
