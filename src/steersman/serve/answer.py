"""Answers: objects, lists, statuses and warnings as HTTP responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, NamedTuple

import orjson

from steersman.api.errors import ApiError
from steersman.api.kinds import Kind
from steersman.kernel.object import Object
from steersman.serve.accept import JSON, PARTIAL_LIST, TABLE, Form
from steersman.serve.message import Response
from steersman.serve.render import object_json, partial, row
from steersman.serve.table.column import Columns

STREAMED: Final = 2000
"""Lists of more objects are written piece by piece, so that others get their turn meanwhile."""
SLICED: Final = 256 << 10
"""Bytes of kept items that are sent in one go."""
PIECE: Final = 250
"""Objects in one such piece; 250 pods take some 2 ms, 7 as rows of a table."""
MAX_WARNING: Final = 1000
"""Characters of one warning."""
MAX_WARNINGS: Final = 20
"""Warnings in one answer: clients limit the headers they read."""
END: Final = b"]}"
"""Of a list."""
NO_CACHE: Final = ("cache-control", "no-cache, private")
JSON_HEADERS: Final = (("content-type", "application/json"), NO_CACHE)


class Shown(NamedTuple):
    """How objects are to be shown: the form, includeObject for tables, the time for ages (microseconds), columns."""

    form: Form = JSON
    include: str = ""
    now: int = 0
    columns: Columns | None = None
    """Those of the kind, when the form is a Table."""


def list_answer(kind: Kind, items: list[Object], meta: dict[str, Any], shown: Shown) -> Response:
    """A list of one kind; `meta` is its ListMeta. The objects are those of one moment, however long it takes."""
    begin = _list_head(kind, meta, shown)
    if len(items) <= STREAMED:
        return json_answer(200, begin + written(kind, items, shown) + END)
    return Response(200, JSON_HEADERS, _pieces(begin, kind, items, shown), endless=False)


def list_of(kind: Kind, items: bytes, meta: dict[str, Any], shown: Shown) -> Response:
    """The same list with its items as `written` gives them; a large one in slices, for nobody wants a copy of it."""
    begin = _list_head(kind, meta, shown)
    if len(items) <= SLICED:
        return json_answer(200, b"".join((begin, items, END)))
    length = len(begin) + len(items) + len(END)
    return Response(200, JSON_HEADERS, _slices(begin, items), endless=False, length=length)


async def _slices(begin: bytes, items: bytes) -> AsyncIterator[bytes]:
    first = SLICED >> 3  # a small one, which the client reads while the next is encrypted
    view = memoryview(items)
    yield begin + items[:first]
    for start in range(first, len(items), SLICED):
        yield view[start : start + SLICED]  # type: ignore[misc]  # a buffer will do
    yield END


def _list_head(kind: Kind, meta: dict[str, Any], shown: Shown) -> bytes:
    form = shown.form
    head: dict[str, Any] = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta}
    if shown.columns is not None:
        head |= {"kind": TABLE, "apiVersion": form.version}
        head["columnDefinitions"] = shown.columns.definitions()
    elif form.kind:
        head |= {"kind": PARTIAL_LIST, "apiVersion": form.version}
    return orjson.dumps(head)[:-1] + (b',"rows":[' if form.kind == TABLE else b',"items":[')


def written(kind: Kind, items: list[Object], shown: Shown) -> bytes:
    """Items with commas between them."""
    if shown.columns is not None:
        cells = shown.columns.row
        return orjson.dumps([row(obj, cells, shown.include, shown.now, shown.form.version) for obj in items])[1:-1]
    if shown.form.kind:
        return orjson.dumps([partial(obj, shown.form.version) for obj in items])[1:-1]
    # Items of built-in kinds say neither kind nor apiVersion, as in Kubernetes: the list does.
    return b",".join(map(object_json, items) if kind.custom else [object_json(obj, typed=False) for obj in items])


async def _pieces(begin: bytes, kind: Kind, items: list[Object], shown: Shown) -> AsyncIterator[bytes]:
    for start in range(0, len(items), PIECE):
        yield (b"," if start else begin) + written(kind, items[start : start + PIECE], shown)
        await asyncio.sleep(0)
    yield END


def json_answer(code: int, body: bytes) -> Response:
    """A JSON answer."""
    return Response(code, JSON_HEADERS, body)


def text_answer(text: str, code: int = 200, content_type: str = "text/plain; charset=utf-8") -> Response:
    """A plain text answer."""
    headers = (("content-type", content_type), ("x-content-type-options", "nosniff"), NO_CACHE)
    return Response(code, headers, text.encode())


def status_answer(error: ApiError) -> Response:
    """An error as a Status."""
    headers = list(JSON_HEADERS)
    if error.retry_after_seconds:
        headers.append(("retry-after", str(error.retry_after_seconds)))
    if error.code == 401:
        headers.append(("www-authenticate", "Bearer"))
    return with_warnings(Response(error.code, headers, orjson.dumps(error.status(), default=str)), error.warnings)


def with_warnings(response: Response, warnings: Iterable[str]) -> Response:
    """The response with Warning headers (RFC 7234 §5.5, code 299), which kubectl prints."""
    told = [("warning", f"299 - {_quoted(text)}") for text in list(dict.fromkeys(warnings))[:MAX_WARNINGS]]
    if told:
        response.headers = (*response.headers, *told)
    return response


def _quoted(text: str) -> str:
    """A quoted string of printable ASCII, bounded."""
    plain = "".join(char if char.isascii() and char.isprintable() else "?" for char in text)[:MAX_WARNING]
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
