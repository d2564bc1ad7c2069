"""Reads of custom kinds whose versions a webhook converts.

Writes ask on their way through the request machine (`api.conversion`). Reads do not go through it: here the answer is
worked out, the webhook is asked for what was missing, and it is worked out again. What it said is remembered by what it
was asked, so that a list that is read again, and the watches of one kind, do not ask for the same objects twice.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

from steersman.api import errors, versions
from steersman.api.crd import conversion
from steersman.api.crd.conversion import Unconverted, place
from steersman.api.kinds import Kind
from steersman.kernel.effect import ListQuery
from steersman.kernel.object import Object
from steersman.serve.asking import Asking
from steersman.serve.backend import Backend

BATCH: Final = 200
"""Objects of one review: what a webhook converts well within its time."""
BATCH_BYTES: Final = 1 << 20
"""Bytes of the objects of one review, but for a single larger one; Kubernetes' request limit is three times that."""
REMEMBERED: Final = 4 << 20
"""Bytes of converted objects that are kept; the longest unused go first."""
Made = TypeVar("Made")


class Converter:
    """The conversions of one server. All methods are called from the event loop's thread."""

    def __init__(self, backend: Backend, asking: Asking) -> None:
        self._backend = backend
        self._asking = asking
        self._kept: OrderedDict[int, tuple[Object, int]] = OrderedDict()
        self._held = 0
        self._under_way: dict[int, asyncio.Future[None]] = {}

    async def read(self, kind: Kind, act: Callable[[Kind], Made]) -> Made:
        """What `act` makes of a kind, which has no effects and may be called several times; its kind may know what
        the webhook said. Raises what `act` raises, and `ApiError` 500 for a conversion that failed."""
        if kind.origin is None or kind.origin.webhook is None:
            return act(kind)
        answers: dict[int, Object | errors.ApiError] = {}
        knowing = replace(kind, converted=answers)
        while True:
            try:
                return act(knowing)
            except Unconverted as missing:
                await self._learn(knowing, [missing.obj, *self._following(knowing, missing.obj)])

    async def ahead(self, kind: Kind, objs: Iterable[Object]) -> bool:
        """Has stored objects converted that `kind`, of a `read`, has no answers for; whether there were any. Raises
        `ApiError` 500."""
        complete = []
        for obj in objs:
            try:
                versions.shown(kind, obj)
            except Unconverted as missing:
                complete.append(missing.obj)
        for start in range(0, len(complete), BATCH):
            await self._learn(kind, complete[start : start + BATCH])
        for found in kind.converted.values():
            if isinstance(found, errors.ApiError):
                raise found
        return bool(complete)

    def _following(self, kind: Kind, obj: Object) -> list[Object]:
        """What a list is likely to need next."""
        key = obj.key
        found: list[Object] = []
        stored = self._backend.store.query(ListQuery(kind.gk, key.namespace or None), (key.namespace, key.name))
        for other in islice(stored, BATCH - 1):
            try:
                versions.shown(kind, other)
            except Unconverted as missing:
                found.append(missing.obj)
        return found

    async def _learn(self, kind: Kind, objs: list[Object]) -> None:
        """Puts the conversions of objects (not more than `BATCH`), complete in their versions, among the answers."""
        answers = kind.converted
        ask: dict[int, Object] = {}
        wait: dict[int, tuple[Object, asyncio.Future[None]]] = {}
        for obj in objs:
            at = place(kind, obj)
            kept = self._kept.get(at)
            if kept is not None:
                self._kept.move_to_end(at)
                answers[at] = kept[0]
            elif at in self._under_way:
                wait[at] = obj, self._under_way[at]
            else:
                ask[at] = obj
        for batch in _batches(ask):
            await self._ask(kind, batch)
        for at, (obj, future) in wait.items():
            await asyncio.wait([future])
            if at in self._kept:
                answers[at] = self._kept[at][0]
            elif at not in answers:
                await self._ask(kind, {at: obj})

    async def _ask(self, kind: Kind, batch: dict[int, Object]) -> None:
        """One review. What failed is not remembered: the next who asks may be luckier."""
        done = asyncio.get_running_loop().create_future()
        for at in batch:
            self._under_way[at] = done
        try:
            objs = list(batch.values())
            hook = conversion.question_of(self._backend.store, kind, objs)
            answer = (await self._asking.call("convert", (hook,)))[0]
            for at, found in zip(batch, conversion.read(kind, objs, answer), strict=True):
                kind.converted[at] = found
                if isinstance(found, Object):
                    self._keep(at, found)
        finally:
            for at in batch:
                if self._under_way.get(at) is done:
                    del self._under_way[at]
            done.set_result(None)

    def _keep(self, at: int, obj: Object) -> None:
        if at in self._kept:
            return
        size = len(obj.to_json())
        self._kept[at] = obj, size
        self._held += size
        while self._held > REMEMBERED:
            _, (_, freed) = self._kept.popitem(last=False)
            self._held -= freed


def _batches(ask: dict[int, Object]) -> Iterable[dict[int, Object]]:
    batch: dict[int, Object] = {}
    size = 0
    for at, obj in ask.items():
        length = len(obj.to_json())
        if batch and size + length > BATCH_BYTES:
            yield batch
            batch, size = {}, 0
        batch[at] = obj
        size += length
    if batch:
        yield batch
