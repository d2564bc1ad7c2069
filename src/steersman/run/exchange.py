"""What stands behind a controller's client in run: an immutable view, the writer, the clock, and a record of it all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import urandom
from typing import Any, Final

import orjson

from steersman.api import errors
from steersman.api.errors import ApiError
from steersman.journal import External, Read, Reconcile, Write
from steersman.kernel.effect import Effect, Reply
from steersman.kernel.object import Key, Object
from steersman.kernel.reexec import MAX_CALLS, Suspend
from steersman.kernel.store import Store
from steersman.kernel.value import Frozen, freeze
from steersman.run.head import Heads

MEMORY: Final = "c.memory"
"""The name under which a record holds what the controller remembered when the reconcile began."""
Driver = Callable[[Any], Any]
"""Asks an external system: JSON in, JSON out; an `ApiError` is a refusal the controller may handle."""


class Endless(Exception):
    """A reconcile made more calls than any real one does."""


def check_calls(number: int) -> None:
    """Ends a reconcile at its call of that number, in run as in its execution again. Raises `Endless`."""
    if number > MAX_CALLS:
        raise Endless(f"made {MAX_CALLS:,} calls in one reconcile; it was ended there")


class Exchange:
    """The effects of one reconcile, and what it saw and did, for its journal record (law J2). One worker's."""

    def __init__(
        self,
        heads: Heads,
        actor: str,
        drivers: Mapping[str, Driver],
        memory: Frozen | None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._heads = heads
        self._view: Store = heads.view()
        self._actor = actor
        self._drivers = drivers
        self._stopping = stopping
        self._calls = 0
        self._reads: list[Read] = []
        self._times: list[int] = []
        self._randoms: list[bytes] = []
        self._externals: list[External] = []
        self._writes: list[Write] = []
        if memory:
            self._externals.append(External(MEMORY, b"", _json(memory)))

    def __call__(self, effect: Effect) -> Any:
        """Performs one effect. Raises `ApiError` where it is refused, `Suspend` when the process is stopping."""
        if effect.op == "event":
            return self._heads.tell(effect.what, self._actor)
        self._calls += 1
        check_calls(self._calls)
        if self._stopping():
            raise Suspend
        op = effect.op
        if op == "get":
            return self._reader(effect).get(effect.what)
        if op == "list":
            return tuple(self._reader(effect).query(effect.what))
        if op == "write":
            return self._write(effect)
        if op == "random":
            self._randoms.append(urandom(effect.what[1]))
            return self._randoms[-1].hex()
        if op == "external":
            return self._external(*effect.what)
        now = self._heads.now()
        self._times.append(now)
        return now >= effect.what[0] + effect.what[1] if op == "after" else now

    @property
    def wrote(self) -> bool:
        """Whether it asked for any write."""
        return bool(self._writes)

    def _reader(self, effect: Effect) -> Store:
        store = self._heads.view() if effect.fresh else self._view
        self._reads.append(Read(str(effect), store.rev))
        return store

    def _write(self, effect: Effect) -> Any:
        request = effect.what._replace(actor=self._actor)
        try:
            reply, revision = self._heads.do_here(request, "reconcile")
        except ApiError as error:
            self._writes.append(Write(str(effect), 0, _json(error.status())))
            raise
        self._writes.append(Write(str(effect), revision, b"" if revision else _unchanged(reply)))
        return reply.obj if reply.items is None else reply.items

    def _external(self, system: str, request: Any) -> Any:
        driver = self._drivers.get(system)
        if driver is None:
            raise LookupError(f"no driver answers for the external system {system!r}; register one with the server")
        try:
            answer = freeze(driver(request))
        except ApiError as error:
            self._externals.append(External(system, _json(request), _json({"refused": error.status()})))
            raise
        self._externals.append(External(system, _json(request), _json({"answer": answer})))
        return answer

    def record(self, controller: str, code: str, key: Key, end: str) -> Reconcile:
        """The journal's record of this reconcile."""
        return Reconcile(
            controller,
            bytes.fromhex(code),
            key,
            tuple(self._reads),
            tuple(self._times),
            tuple(self._randoms),
            tuple(self._externals),
            tuple(self._writes),
            end,
        )


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _unchanged(reply: Reply) -> bytes:
    """What a write that changed nothing was answered: the version there was, or the whole answer of a dry run."""
    obj: Object | None = reply.obj
    return b"" if obj is None else _json({"unchanged": obj.rv})


def refusal_of(reply: bytes) -> ApiError | None:
    """The refusal in a record's reply, or None."""
    value = orjson.loads(reply) if reply else {}
    return errors.from_status(value) if value.get("kind") == "Status" else None
