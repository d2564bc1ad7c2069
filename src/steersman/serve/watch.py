"""Watches: what a client has, then every change to it, one JSON line each.

A watch is a revision and a cursor into the change log: nothing is queued for a slow client. What matched before and
no longer does is told as DELETED, what begins to match as ADDED. Several events that are there at once go out as one
chunk.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from steersman.api import errors, versions
from steersman.api.crd.definition import CRD
from steersman.api.kinds import Kind, UnknownKind
from steersman.kernel.changelog import Gone
from steersman.kernel.effect import Event, ListQuery
from steersman.kernel.object import Object
from steersman.kernel.store import Store
from steersman.kernel.value import freeze
from steersman.serve.accept import PARTIAL, TABLE
from steersman.serve.answer import Shown
from steersman.serve.aside import aside
from steersman.serve.audience import Audiences, Send
from steersman.serve.backend import Backend
from steersman.serve.converting import Converter
from steersman.serve.frames import Frames, frame
from steersman.serve.listing import check_not_ahead, query_of, searches_many
from steersman.serve.options import ListOptions
from steersman.serve.render import in_form

BOOKMARK_SECONDS: Final = 60.0
"""Between two bookmarks of a quiet watch, as kube-apiserver has it."""
DEFAULT_SECONDS: Final = (1800.0, 3600.0)
"""A watch without timeoutSeconds ends somewhere in this range (kube-apiserver's --min-request-timeout): the
reconnections of many clients spread."""
MAX_SECONDS: Final = 86_400.0
CHUNK_BYTES: Final = 128 * 1024
"""Frames joined into one chunk: large enough for bursts, small enough that others get their turn."""
SHARED_EVENTS: Final = 200
"""Longest batch that watchers share: a group of the journal. Whoever is further behind is alone there."""
BATCH_BYTES: Final = 500
"""What keeping a batch costs beside its bytes, for those that are empty."""
INITIAL_END: Final = "k8s.io/initial-events-end"
NOBODY: Final = freeze({"metadata": {"name": ""}})
"""What the cells of a bookmark are of."""


@dataclass(slots=True)
class Watch:
    """One watch, from its request to its end. Making it checks the request (ApiError 400, 410, 504)."""

    backend: Backend
    frames: Frames
    audiences: Audiences
    kind: Kind
    namespace: str
    options: ListOptions
    shown: Shown
    matches: Callable[[Object], bool] | None = None
    text: str = ""
    """The selectors, in canonical form."""
    rev: int = 0
    converter: Converter | None = None
    """Who has objects converted, for a kind that needs it."""
    initial: list[Object] | None = None
    """Objects to begin with; None: only changes are told."""
    send: Send | None = None
    """How to send a chunk while the stream waits, if there is a connection that can do that."""
    search: tuple[Store, ListQuery] | None = None
    """Where what it begins with is still to be found: among many, which is done beside the loop."""

    def __post_init__(self) -> None:
        options, store = self.options, self.backend.store
        query = query_of(self.backend, self.kind, self.namespace, options)
        self.matches, self.text = query.matches, query.text
        wanted = options.rev or 0
        check_not_ahead(wanted, store.rev)
        fresh = not wanted if options.initial_events is None else options.initial_events
        if fresh:
            if searches_many(self.backend, query):
                self.initial, self.search = [], (store.fork(), query)
            else:
                self.initial = list(store.query(query))
            self.rev = store.rev
        else:  # one that fell off the log is told in the stream, as kube-apiserver does once a watch is granted
            self.rev = wanted or store.rev

    def offered(self, send: Send) -> None:
        """Takes a way to send chunks that nobody has asked the stream for."""
        self.send = send

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The chunks of the answer, until the time is over or the client goes away."""
        loop = asyncio.get_running_loop()
        seconds = min(self.options.timeout or random.uniform(*DEFAULT_SECONDS), MAX_SECONDS)
        ends = loop.time() + seconds
        due = loop.time() + BOOKMARK_SECONDS
        listed = self.initial is not None and not self.options.initial_events  # else it ends with a bookmark
        marked = -1 if listed else self.rev
        if self.search is not None:
            self.initial = await aside(_found, *self.search)
            self.search = None
        try:
            await self._convert(self.initial or ())
        except errors.ApiError as error:
            yield _failed(error)
            return
        for chunk in self._begin():
            yield chunk
        while True:
            sent = False
            try:
                await self._convert_news()
                head = self.backend.store.rev
                news = self._news(head)
            except Gone as gone:
                yield _expired(gone)
                return
            except errors.ApiError as error:
                yield _failed(error)
                return
            for chunk in news:
                sent = True
                yield chunk
            self.rev = max(self.rev, head)
            now = loop.time()
            if sent and now < ends:  # more may have come while the client was reading
                continue
            if now >= min(due, ends):
                due = now + BOOKMARK_SECONDS
                if self.options.bookmarks and self.rev > marked:
                    marked = self.rev
                    yield self._bookmark()
            if now >= ends or not self._lasts():
                return
            try:
                await self.audiences.wait(self._asked, self, min(due, ends))
            except Gone as gone:
                yield _expired(gone)
                return

    async def _convert(self, objs: Iterable[Object]) -> bool:
        """Has objects converted, if the kind needs that; whether time has passed. Raises `ApiError` 500."""
        return self.converter is not None and await self.converter.ahead(self.kind, objs)

    async def _convert_news(self) -> None:
        """Has the events converted that `_news` is about to tell. Raises `Gone`, and `ApiError` 500."""
        if self.converter is None:
            return
        self.kind.converted.clear()
        while True:
            events = self.backend.since(self.kind.gk, self.rev)
            mine = [event for event in events if self.namespace in ("", event.key.namespace)]
            if not await self._convert(obj for event in mine for obj in (event.old, event.new) if obj is not None):
                return

    def _lasts(self) -> bool:
        """Whether the kind is still what it was when the watch began: one of another schema is another kind, whose
        clients have to list again, as in Kubernetes."""
        if not self.kind.custom:
            return True
        try:
            found = self.backend.api.at(self.backend.store).get(*self.kind.gk).in_version(self.kind.version)
        except UnknownKind:
            return False
        if found is None or found.origin is None or self.kind.origin is None:
            return False
        return found.schema is self.kind.schema and found.origin.webhook == self.kind.origin.webhook

    async def changed(self, rev: int) -> None:
        """Returns when there may be news of the kind, or of its definition, after `rev`."""
        if not self.kind.custom:
            await self.backend.changed(self.kind.gk, rev)
            return
        waits = [asyncio.create_task(self.backend.changed(gk, rev)) for gk in (self.kind.gk, CRD)]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in waits:
                task.cancel()

    def _begin(self) -> Iterator[bytes]:
        """The objects there are, and the bookmark that ends them if it was asked for."""
        if self.initial is None:
            return
        initial, self.initial = self.initial, None
        now = self.backend.now()
        form = self.shown._replace(now=now)
        yield from _chunks(frame("ADDED", in_form(self._seen(obj), *form)) for obj in initial)
        if self.options.initial_events and self.options.bookmarks:
            yield self._bookmark({INITIAL_END: "true"})

    @property
    def _asked(self) -> tuple[Hashable, ...]:
        """What those who asked for the same have in common."""
        return self.kind, self.namespace, self.text, self.shown.form, self.shown.include

    def chunk(self, head: int) -> bytes | None:
        """The news up to `head`, if it is one chunk, or none, and nobody has to be asked. Raises `Gone`."""
        if self.converter is not None or not self._lasts():
            return None
        news = self._news(head)
        if isinstance(news, tuple) and len(news) <= 1:
            return news[0] if news else b""
        return None

    def _news(self, head: int) -> Iterable[bytes]:
        """The chunks of the events up to `head`; the same ones for all who asked for the same. Raises `Gone`."""
        if head == self.rev:
            return ()
        key = (*self._asked, self.rev, head)
        found = self.frames.batches.get(key)
        if found is not None:
            return found
        events = self.backend.since(self.kind.gk, self.rev)
        if len(events) > SHARED_EVENTS:
            return _chunks(self._frames(events))
        made = tuple(_chunks(self._frames(events)))
        self.frames.batches.keep(key, made, BATCH_BYTES + sum(map(len, made)))
        return made

    def _frames(self, events: list[Event]) -> Iterator[bytes]:
        shown = self.shown._replace(now=self.backend.now())
        for event in events:
            told = self._told(event)
            if told is not None:
                yield self.frames.event(told[0], self._seen(told[1]), shown)

    def _seen(self, obj: Object) -> Object:
        """An object in the version that is watched."""
        return versions.shown(self.kind, obj) if self.kind.custom or self.kind.alias is not None else obj

    def _told(self, event: Event) -> tuple[str, Object] | None:
        """What an event is to this watch: its type and object, or None."""
        if self.namespace and event.key.namespace != self.namespace:
            return None
        old, new, matches = event.old, event.new, self.matches
        before = old is not None and (matches is None or matches(old))
        after = new is not None and (matches is None or matches(new))
        if after:
            assert new is not None
            return ("MODIFIED" if before else "ADDED"), new
        if before:
            assert old is not None
            return "DELETED", old.at(event.rev)
        return None

    def _bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        meta: dict[str, Any] = {"resourceVersion": str(self.rev)}
        if annotations:
            meta["annotations"] = annotations
        body: dict[str, Any] = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": meta}
        columns, form = self.shown.columns, self.shown.form
        if columns is None and not form.kind:
            return frame("BOOKMARK", orjson.dumps(body))
        named = {**body, "kind": PARTIAL, "apiVersion": form.version}
        if columns is None:
            return frame("BOOKMARK", orjson.dumps(named))
        include = self.shown.include
        shown = None if include == "None" else body if include == "Object" else named
        table = {
            "kind": TABLE,
            "apiVersion": form.version,
            "metadata": {"resourceVersion": str(self.rev)},
            "columnDefinitions": columns.definitions(),
            "rows": [{"cells": columns.row(NOBODY, self.backend.now()), "object": shown}],
        }
        return frame("BOOKMARK", orjson.dumps(table))


def _found(store: Store, query: ListQuery) -> list[Object]:
    """The objects that match, in a store that nobody changes."""
    return list(store.query(query))


def _failed(error: errors.ApiError) -> bytes:
    """What ends a watch of objects that cannot be shown."""
    return frame("ERROR", orjson.dumps(error.status()))


def _expired(gone: Gone) -> bytes:
    """What ends a watch that cannot go on from where it is."""
    return frame("ERROR", orjson.dumps(errors.expired(f"too old resource version: {gone}").status()))


def _chunks(frames: Iterator[bytes]) -> Iterator[bytes]:
    """Frames joined into chunks."""
    held: list[bytes] = []
    size = 0
    for made in frames:
        held.append(made)
        size += len(made)
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
