"""A client inside the process of a running control plane: no socket, no bytes, the same objects."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from os import urandom
from threading import Condition, Event, get_ident
from time import monotonic
from typing import Any, Final, TypeVar

from steersman.api.client import Client
from steersman.api.errors import timeout
from steersman.kernel.effect import Effect
from steersman.kernel.object import Key
from steersman.run.head import Heads

WRITE_SECONDS: Final = 30.0
"""A write that takes longer is refused: its outcome is then unknown, as with any server that does not answer."""
LISTEN_SECONDS: Final = 5.0
"""How long a thread waits for the loop to take its listener; the loop turns many times a second."""
T = TypeVar("T")


class LocalExchange:
    """What stands behind the client: reads of the durable head, writes through the one writer. Any thread."""

    def __init__(self, heads: Heads, actor: str) -> None:
        self._heads = heads
        self._actor = actor

    def __call__(self, effect: Effect) -> Any:
        """Performs one effect. Raises `ApiError` where it is refused."""
        op, what = effect.op, effect.what
        if op == "get":
            return self._heads.view().get(what)
        if op == "list":
            return tuple(self._heads.view().query(what))
        if op == "write":
            return self._write(what)
        if op == "event":
            return self._heads.tell(what, self._actor)
        if op == "random":
            return urandom(what[1]).hex()
        if op == "external":
            raise LookupError("a client of a running control plane asks external systems by itself, not through it")
        now = self._heads.now()
        return now >= what[0] + what[1] if op == "after" else now

    def _write(self, request: Any) -> Any:
        if get_ident() == self._heads.thread:
            raise RuntimeError(
                "this client waits, and so must not be used in the thread of the control plane's own loop, "
                "which it would wait for; use `await asyncio.to_thread(client.…)` there"
            )
        try:
            reply = self._heads.do_here(request._replace(actor=self._actor), "user", WRITE_SECONDS).reply
        except Late:
            raise timeout(f"{request.verb} of {request.key} is not durable after {WRITE_SECONDS:.0f} s", 1) from None
        if reply.items is not None:
            return reply.items
        return reply.status if reply.obj is None else reply.obj


class LocalClient(Client):
    """The client that controllers are given, for a person or a test; it can also wait for what is to come."""

    __slots__ = ("_heads",)

    def __init__(self, heads: Heads, actor: str, manager: str) -> None:
        super().__init__(LocalExchange(heads, actor), heads.api, manager)
        self._heads = heads

    def key(self, kind: str, name: str, namespace: str = "") -> Key:
        """The key of an object of a kind. Raises `ValueError` where a namespace is missing: nothing would ever be
        there, and a test would wait for it in vain."""
        key = super().key(kind, name, namespace)
        if not key.namespace and self.kind(kind).namespaced:
            raise ValueError(f"{key.kind} is a namespaced kind: c.key({kind!r}, {name!r}, NAMESPACE)")
        return key

    def wait(self, condition: Callable[[], T], seconds: float = 10.0, what: str = "") -> T:
        """What `condition()` gives as soon as it is true; it is asked again whenever anything changed.

        Raises `TimeoutError`, which says `what` was waited for, and at which revision. Not from the loop's thread."""
        changed = Condition()
        seen = [0]

        def heard(events: Any) -> None:
            with changed:
                seen[0] += 1
                changed.notify()

        end = monotonic() + seconds
        self._in_loop(lambda: self._heads.listen(heard))
        try:
            while True:
                before = seen[0]
                found = condition()
                if found:
                    return found
                with changed:
                    if not changed.wait_for(lambda: seen[0] != before, end - monotonic()):  # noqa: B023
                        break
        finally:
            self._in_loop(lambda: self._heads.unlisten(heard))
        late = f"{what or 'the condition'} did not come true in {seconds:g} s (revision {self._heads.view().rev})"
        raise TimeoutError(late)

    def _in_loop(self, act: Callable[[], None]) -> None:
        """Has the loop do something, and returns when it is done; a closed one does nothing any more."""
        done = Event()

        def run() -> None:
            act()
            done.set()

        if self._heads.call(run):
            done.wait(LISTEN_SECONDS)
