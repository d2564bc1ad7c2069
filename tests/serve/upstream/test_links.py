"""Links of pages behind a proxy: which of them are led back through it, however the page comes in."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.serve.message import Headers, Request
from steersman.serve.outgoing import Failed
from steersman.serve.upstream.links import MAX_TAG, Rewriter, Through, rewritten
from steersman.serve.virtual import VirtualStreams
from tests.serve.harness import in_loop
from tests.serve.plane import PODS
from tests.serve.upstream.test_proxy import planned

WAY = Through("/api/v1/namespaces/ns/pods/p/proxy", "api.example", "10.0.0.9:8080")
P = WAY.prefix


@pytest.mark.parametrize(
    ("url", "made"),
    {
        "/": f"{P}/",
        "/a/b.css?x=1#y": f"{P}/a/b.css?x=1#y",
        "/a/": f"{P}/a/",
        "/a/../b": f"{P}/b",
        f"{P}/a": f"{P}/a",
        "a/b": "a/b",
        "?x": "?x",
        "#top": "#top",
        "": "",
        "http://10.0.0.9:8080/a": f"{P}/a",
        "http://api.example/a": f"http://api.example{P}/a",
        "//elsewhere/a": "//elsewhere/a",
        "https://elsewhere/a": "https://elsewhere/a",
        "mailto:a@b": "mailto:a@b",
        "http://[bad": "http://[bad",
    }.items(),
)
def test_urls_of_the_page_itself_lead_through_the_proxy(url, made):
    """As apimachinery's proxy transport makes them."""
    assert WAY.url(url) == made


PAGES = {
    '<a href="/x">y</a>': f'<a href="{P}/x">y</a>',
    "<A class=b HREF='/x'  >": f'<A class=b HREF="{P}/x"  >',
    "<a href=/x>": f'<a href="{P}/x">',
    '<img src="/i.png" usemap=#m longdesc="/d"/>': f'<img src="{P}/i.png" usemap=#m longdesc="{P}/d"/>',
    '<a href="/x?a=1&amp;b=2">': f'<a href="{P}/x?a=1&amp;b=2">',
    '<a title=">" href="/x">': f'<a title=">" href="{P}/x">',
    '<div href="/x"> <p title="/x">': '<div href="/x"> <p title="/x">',
    '<!-- <a href="/x"> --><a href="/x">': f'<!-- <a href="/x"> --><a href="{P}/x">',
    '<script src="/s">"<a href=/x>"</SCRIPT><a href=/x>': f'<script src="{P}/s">"<a href=/x>"</SCRIPT><a href="{P}/x">',
    '<style>a<b</style><link href="/c">': f'<style>a<b</style><link href="{P}/c">',
    "a < b <> <3 &lt; </a> <!doctype html><": "a < b <> <3 &lt; </a> <!doctype html><",
    '<a href="/x': '<a href="/x',
    "<a <b>": "<a <b>",
}


@pytest.mark.parametrize("page", PAGES)
def test_what_of_a_page_is_changed(page):
    data, wanted = page.encode(), PAGES[page].encode()
    for size in (1, 2, 3, 7, len(data)):
        rewriter = Rewriter(WAY.url)
        pieces = [rewriter.take(data[at : at + size]) for at in range(0, len(data), size)]
        assert b"".join([*pieces, rewriter.take(b"", last=True)]) == wanted


@given(
    st.lists(
        st.sampled_from([b"<", b">", b"a", b"!--", b"-->", b'"', b"'", b" ", b"=", b"/", b"script", b"</", b"\xff"])
    )
)
def test_what_has_no_links_is_passed_on_as_it_is_in_whatever_pieces(parts):
    rewriter = Rewriter(lambda url: url)
    out = b"".join([rewriter.take(part) for part in parts]) + rewriter.take(b"", last=True)
    assert out == b"".join(parts)


@pytest.mark.parametrize(
    "unit", [b"<a", b'<a "', b'<a "<a" ', b"<script></script>", b"<!--", b"<a ='", b"<", b"<a href='/x'>"]
)
def test_no_page_takes_long(unit):
    data = unit * ((1 << 18) // len(unit))
    rewriter, begun = Rewriter(WAY.url), time.process_time()
    for at in range(0, len(data), 1 << 16):
        rewriter.take(data[at : at + (1 << 16)])
        assert len(rewriter._held) <= MAX_TAG
    assert time.process_time() - begun < 2


def through(data: bytes, encoding: str, size: int = 10) -> bytes:
    async def body():
        for at in range(0, len(data), size):
            yield data[at : at + size]

    async def run() -> bytes:
        return b"".join([piece async for piece in rewritten(body(), encoding, WAY.url)])

    return asyncio.run(run())


def test_packed_pages_are_packed_again():
    page, wanted = b"<a href='/x'>" * 20_000, f'<a href="{P}/x">'.encode() * 20_000
    assert gzip.decompress(through(gzip.compress(page), "gzip")) == wanted
    raw = zlib.compress(page)[2:-4]
    assert zlib.decompressobj(-15).decompress(through(raw, "deflate")) == wanted
    with pytest.raises(Failed, match="no gzip"):
        through(b"this is none at all", "gzip")


async def page(duplex, obj):
    """A web server with a page."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await duplex.read()
    uri = next(line for line in data.decode().splitlines() if line.lower().startswith("x-forwarded-uri"))
    body = b"<a href='/x'>"
    if b"/moved" in data.split(b"\r\n")[0]:
        await duplex.write(b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.9:8080/there/\r\nContent-Length: 0\r\n\r\n")
        return
    kind = "text/plain" if b"/plain" in data.split(b"\r\n")[0] else "text/html; charset=utf-8"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nX-Seen: {uri}\r\nContent-Length: {len(body)}\r\n\r\n"
    await duplex.write(head.encode() + body)


@in_loop
async def test_through_the_server():
    plane = await planned()
    plane.app.streams = VirtualStreams(ports={8080: page})
    root = f"{PODS}/a:8080/proxy"
    answer = await plane.get(f"{root}/in%20dex/?q=1")
    assert answer.body == f'<a href="{root}/x">'.encode() and not answer.header("content-length")
    assert answer.header("x-seen").lower() == f"x-forwarded-uri: {root}/in%20dex/"
    assert (await plane.get(f"{root}/plain")).body == b"<a href='/x'>"
    assert (await plane.get(f"{root}/moved", code=302)).header("location") == f"{root}/there/"
    bearer = ("authorization", f"Bearer {plane.token}")
    response = await plane.app(Request("HEAD", f"{root}/x", f"{root}/x", "", Headers([bearer])))
    assert response.status == 200 and response.body == b""
