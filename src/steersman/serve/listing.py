"""Lists: pages of one snapshot, whatever is written between them.

A continue token names the revision of the first page. A later page is the present with the events since then undone,
so a client that pages through a list sees one state, as with kube-apiserver; once the change log no longer reaches
back, the token is expired (410) and the answer carries one that goes on with the present.
"""

from __future__ import annotations

import base64
import binascii
import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import errors, versions
from steersman.api.begin import Api
from steersman.api.field_select import required_name
from steersman.api.kinds import Kind
from steersman.kernel.changelog import Gone
from steersman.kernel.effect import ListQuery
from steersman.kernel.object import Object
from steersman.kernel.store import NAMED, Store
from steersman.serve.aside import aside
from steersman.serve.backend import Backend
from steersman.serve.options import ListOptions

MAX_PAGE: Final = 100_000
"""Objects in one page when the client names no limit: what one request can make the server hold on to."""
MAX_COUNTED: Final = 10_000
"""Objects counted one by one for remainingItemCount, which is only a hint; beyond, it is left out."""
HELD_AGAINST: Final = 10_000
"""Objects that a selector is held against in one turn of the loop, which takes some 25 ms."""
Place = tuple[str, str]


class Page(NamedTuple):
    """One page of a list."""

    items: list[Object]
    rev: int
    token: str = ""
    remaining: int | None = None


class _Token(NamedTuple):
    """Where the next page starts: behind (namespace, name), at a revision (0: the present)."""

    rev: int
    after: Place


def query_of(backend: Backend | _Moment, kind: Kind, namespace: str, options: ListOptions) -> ListQuery:
    """What a list or watch asks the store for; of one name, no more than that. Raises ApiError 400."""
    query = backend.api.query(kind, namespace or None, options.labels, options.fields)
    if options.fields and not query.by:
        name = required_name(options.fields)
        return query._replace(by=NAMED, value=name) if name else query
    return query


class _Moment(NamedTuple):
    """What a list is made of, as it was when it was asked for."""

    api: Api
    store: Store


async def selected_page(backend: Backend, kind: Kind, namespace: str, options: ListOptions) -> Page:
    """A page of the present; where a selector is held against many objects, that is done beside the loop. Raises as
    `list_page` does."""
    if (options.labels or options.fields) and searches_many(backend, query_of(backend, kind, namespace, options)):
        return await aside(list_page, _Moment(backend.api, backend.store.fork()), kind, namespace, options)
    return list_page(backend, kind, namespace, options)


def searches_many(backend: Backend, query: ListQuery) -> bool:
    """Whether a selector is held against more objects than one turn of the loop should take."""
    return query.matches is not None and not query.by and backend.store.count(query.gk) > HELD_AGAINST


def list_page(backend: Backend | _Moment, kind: Kind, namespace: str, options: ListOptions) -> Page:
    """A page of a list; of a moment, only the present is known. Raises ApiError 400 (selectors, token), 410 and 504
    (revisions)."""
    query = query_of(backend, kind, namespace, options)
    token = _read(options.token) if options.token else None
    head = backend.store.rev
    rev = head
    if token is not None:
        rev = token.rev or head
        if rev > head:
            raise errors.bad_request("the continue token is not one of this server; start the list again without it")
    elif options.rev:
        check_not_ahead(options.rev, head)
        rev = options.rev if options.match == "Exact" else head
    found = _at(backend, query, rev, token.after if token else None)
    if kind.custom or kind.alias is not None:
        found = (versions.shown(kind, obj) for obj in found)
    limit = options.limit or MAX_PAGE
    items = list(islice(found, limit + 1))
    if len(items) <= limit:
        return Page(items, rev)
    last = items[limit - 1].key
    remaining = None
    if query.matches is None:
        remaining = 1 + sum(1 for _ in islice(found, MAX_COUNTED))
    exact = remaining is not None and remaining <= MAX_COUNTED
    return Page(items[:limit], rev, next_page(rev, (last.namespace, last.name)), remaining if exact else None)


def check_not_ahead(rev: int, head: int) -> None:
    """Refuses a revision that this server has not reached: it is another server's, or from before a loss."""
    if rev > head:
        error = errors.timeout(f"Too large resource version: {rev}, current: {head}", 1)
        cause = errors.Cause("ResourceVersionTooLarge", "Too large resource version")
        error.details = errors.Details(causes=(cause,), retry_after_seconds=1)
        raise error


def _at(backend: Backend | _Moment, query: ListQuery, rev: int, after: Place | None) -> Iterator[Object]:
    """The objects of a query in (namespace, name) order as they were at `rev`, behind `after`."""
    now = backend.store.query(query, after)
    if rev == backend.store.rev or isinstance(backend, _Moment):
        return now
    try:
        events = backend.since(query.gk, rev)
    except Gone:
        raise _expired(after) from None
    before: dict[Place, Object | None] = {}
    for event in events:
        before.setdefault((event.key.namespace, event.key.name), event.old)
    if not before:
        return now
    restored = [
        obj
        for place, obj in sorted(before.items())
        if obj is not None
        and (query.namespace is None or place[0] == query.namespace)
        and (after is None or place > after)
        and (query.matches is None or query.matches(obj))
    ]
    kept = (obj for obj in now if _place(obj) not in before)
    return heapq.merge(kept, restored, key=_place)


def _place(obj: Object) -> Place:
    return obj.key.namespace, obj.key.name


class InconsistentContinue(errors.Expired):
    """410 with a continue token that goes on with the present, for clients that can live with it."""

    token = ""

    def status(self) -> dict[str, Any]:
        """The Status, with the token in its metadata as Kubernetes has it."""
        return {**super().status(), "metadata": {"continue": self.token}}


def _expired(after: Place | None) -> errors.ApiError:
    if after is None:
        return errors.expired("the resource version is too old; list again without it")
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
        "the results. Continuing with the provided token results in an inconsistent list - objects that were "
        "created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error = InconsistentContinue(410, "Expired", message)
    error.token = _write(_Token(0, after))
    return error


def next_page(rev: int, after: Place) -> str:
    """The token of the page behind `after`, of the list as it is at `rev`."""
    return _write(_Token(rev, after))


def _write(token: _Token) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([2, token.rev, *token.after])).decode().rstrip("=")


def _read(text: str) -> _Token:
    try:
        version, rev, namespace, name = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if version == 2 and type(rev) is int and rev >= 0 and isinstance(namespace, str) and isinstance(name, str):
            return _Token(rev, (namespace, name))
    except (ValueError, TypeError, binascii.Error):
        pass
    where = _no_base64(text)
    problem = "it is not one of this server" if where is None else f"illegal base64 data at input byte {where}"
    raise errors.bad_request(f"invalid continue token: continue key is not valid: {problem}")


def _no_base64(text: str) -> int | None:
    """Where a text stops being base64 for URLs without padding, as Go counts; None when it does not."""
    for index, char in enumerate(text):
        if not (char.isascii() and (char.isalnum() or char in "-_")):
            return index
    return len(text) - 1 if len(text) % 4 == 1 else None
