"""Links of what is behind a /proxy path: they lead back through the proxy.

A page behind it says `/style.css` and means itself. So URLs with an absolute path, of the same host or of none, get the
proxy's path in front: in the Location of a redirect, and in the attributes of an HTML page that hold URLs. Everything
else of a page stays as it is, byte for byte. Source of the rules and of the table of attributes: apimachinery
pkg/util/proxy/transport.go, release 1.36.
"""

from __future__ import annotations

import html
import posixpath
import re
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit, urlunsplit

from steersman.serve.outgoing import Failed

MAX_TAG: Final = 16 << 10
"""Bytes of a tag whose links are looked at; a longer one is passed on as it is."""
MAX_PIECE: Final = 64 << 10
"""Bytes that are unpacked and looked at in one go."""
URLS: Final[dict[bytes, frozenset[bytes]]] = {
    tag: frozenset(names.split())
    for tag, names in {
        b"a": b"href", b"applet": b"codebase", b"area": b"href", b"audio": b"src", b"base": b"href",
        b"blockquote": b"cite", b"body": b"background", b"button": b"formaction", b"command": b"icon", b"del": b"cite",
        b"embed": b"src", b"form": b"action", b"frame": b"longdesc src", b"head": b"profile", b"html": b"manifest",
        b"iframe": b"longdesc src", b"img": b"longdesc src usemap", b"input": b"src usemap formaction",
        b"ins": b"cite", b"link": b"href", b"object": b"classid codebase data usemap", b"q": b"cite",
        b"script": b"src", b"source": b"src", b"video": b"poster src",
    }.items()
}  # fmt: skip
"""Tags, and those of their attributes that hold URLs."""
RAW: Final = frozenset({b"iframe", b"noembed", b"noframes", b"script", b"style", b"textarea", b"title", b"xmp"})
"""Elements in which a tag is text."""
_TAG: Final = re.compile(rb"""<([A-Za-z][^\s/<>"']*)((?:[^<>"']|"[^"]*"|'[^']*')*+)""")
"""A tag up to its end: looked for once in every place, whatever comes (`*+` never goes back)."""
_ATTRIBUTE: Final = re.compile(rb"""([^\s=/>"']+)(\s*=\s*)("[^"]*"|'[^']*'|[^\s>"']+)""")
_OPEN: Final = re.compile(rb"<(?:[A-Za-z]|!--)")
_ENDS: Final = {name: re.compile(b"</" + name, re.IGNORECASE) for name in sorted(RAW)}
MAX_END: Final = max(map(len, RAW)) + 2
"""Bytes of the longest of these."""
_COMMENT: Final = re.compile(rb"-->")
_UNSURE: Final = (b"<", b"<!", b"<!-")
"""What a piece may end with that is nothing yet."""


class Through(NamedTuple):
    """The way back: the path of the proxy, the host that was asked, and that of whoever answers."""

    prefix: str
    host: str
    answering: str

    def url(self, text: str) -> str:
        """A URL of the page, as it leads through the proxy."""
        try:
            parts = urlsplit(text)
        except ValueError:
            return text
        if parts.netloc not in ("", self.host, self.answering) or not parts.path.startswith("/"):
            return text
        path = parts.path
        if not path.startswith(self.prefix):
            path = posixpath.normpath(f"{self.prefix}/{path.lstrip('/')}") + ("/" if path.endswith("/") else "")
        kept = parts[:2] if parts.netloc == self.host else ("", "")
        return urlunsplit(SplitResult(*kept, path, parts.query, parts.fragment))


class Rewriter:
    """Rewrites a page as it comes in. What it holds back is never longer than a tag may be."""

    def __init__(self, url: Callable[[str], str]) -> None:
        self._url = url
        self._held = b""
        self._until: re.Pattern[bytes] | None = None
        """What ends the text in which no tags are looked for: of a script, a comment."""

    def take(self, data: bytes, last: bool = False) -> bytes:
        """A piece of the page, as far as it can be told what is in it."""
        data, out, at = self._held + data, [], 0
        while True:
            if self._until is not None:
                end = self._until.search(data, at)
                if end is None:
                    keep = len(data) if last else max(at, len(data) - MAX_END)
                    break
                out.append(data[at : end.start()])
                at, self._until = end.start(), None
            found = _OPEN.search(data, at)
            if found is None:
                keep = len(data) - (0 if last else max(len(end) for end in (b"", *_UNSURE) if data.endswith(end)))
                break
            out.append(data[at : found.start()])
            at = found.start()
            if found[0] == b"<!--":
                self._until = _COMMENT
                continue
            tag = _TAG.match(data, at, at + MAX_TAG)
            assert tag is not None
            if data[tag.end() : tag.end() + 1] == b">":
                out.append(self._tag(tag))
            elif not last and len(data) - at < MAX_TAG and data[tag.end() : tag.end() + 1] != b"<":
                keep = at
                break
            else:
                out.append(tag[0])
            at = tag.end()
        out.append(data[at:keep])
        self._held = data[keep:]
        return b"".join(out)

    def _tag(self, tag: re.Match[bytes]) -> bytes:
        name = tag[1].lower()
        if name in RAW:
            self._until = _ENDS[name]
        names = URLS.get(name)
        if names is None:
            return tag[0]

        def attribute(found: re.Match[bytes]) -> bytes:
            if found[1].lower() not in names:
                return found[0]
            text = found[3][1:-1] if found[3][:1] in b"\"'" else found[3]
            given = html.unescape(text.decode("utf-8", "surrogateescape"))
            made = self._url(given)
            if made == given:
                return found[0]
            return found[1] + found[2] + b'"' + html.escape(made).encode("utf-8", "surrogateescape") + b'"'

        return b"<" + tag[1] + _ATTRIBUTE.sub(attribute, tag[2])


ENCODINGS: Final = {"": 0, "gzip": 16 + zlib.MAX_WBITS, "deflate": -zlib.MAX_WBITS}
"""Content-Encodings that are understood, with zlib's number for them; a page in another one is passed on as it is."""


async def rewritten(body: AsyncIterator[bytes], encoding: str, url: Callable[[str], str]) -> AsyncIterator[bytes]:
    """The page with its links led through the proxy, encoded as it was. Raises `Failed` for what is not so encoded."""
    window = ENCODINGS[encoding]
    unpack, pack = (zlib.decompressobj(window), zlib.compressobj(wbits=window)) if encoding else (None, None)
    rewriter = Rewriter(url)
    try:
        async for data in body:
            while data:
                made = rewriter.take(data if unpack is None else unpack.decompress(data, MAX_PIECE))
                data = b"" if unpack is None or unpack.eof else unpack.unconsumed_tail
                if pack is not None:
                    made = pack.compress(made)
                if made:
                    yield made
        rest = rewriter.take(b"" if unpack is None else unpack.flush(), last=True)
        if pack is not None:
            rest = pack.compress(rest) + pack.flush()
        if rest:
            yield rest
    except zlib.error as error:
        raise Failed(f"the answer is no {encoding}: {error}") from None
    finally:
        await body.aclose()  # type: ignore[attr-defined]
