"""The limits of the HTTP server, and what hostile input does to it: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import json
import logging
import random
import time
from typing import Any

import pytest

from steersman.serve import http as http_server
from steersman.serve.http import Limits, Request, Response, serve

from .harness import ask, connect, echo, in_loop, is_status, read_response, until
from .plane import Plane, configmap


@pytest.mark.parametrize(
    ("code", "raw"),
    [
        (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        (400, b"GET / HTTP/1.1\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        (400, b"CONNECT a:80 HTTP/1.1\r\nHost: h\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        (400, b"GET /?" + b"a&" * 1001 + b" HTTP/1.1\r\nHost: h\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x5\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5 5\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \xb2\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n"),
        (413, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3145729\r\n\r\n"),
        (413, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        (414, b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: h\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 15000 + b"\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X:\r\n" * 600 + b"\r\n"),
        (413, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + b"0" * 5000 + b"3145729\r\n\r\n"),
        (501, b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"y" * 70000 + b"\r\n\r\n"),
        (400, b"GET / HTTP/1.1\nHost: h\n\n"),
        (400, b"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 5\r\n\r\nhello"),
        (501, b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;\nhello\r\n0\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: h\r\nX\x00: a\r\n\r\n"),
        (400, b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"),
        (505, b"GET / HTTP/2.0\r\nHost: h\r\n\r\n"),
    ],
)
@in_loop
async def test_a_breach_gets_its_status_and_a_close(code: int, raw: bytes) -> None:
    async def handler(request: Request) -> Response:
        raise AssertionError("not to be called")

    async with await serve(handler) as server:
        reader, writer = await connect(server)
        writer.write(raw)
        answer = await read_response(reader)
        if code == 413 and b"9999999999" in raw:
            assert answer[0] in (400, 413)  # llhttp sees the overflow itself
        else:
            assert is_status(answer, code)
        assert answer[1]["connection"] == "close"
        assert await reader.read() == b""
        writer.close()


@in_loop
async def test_an_endless_header_line_and_an_endless_chunked_body() -> None:
    async with await serve(echo) as server:
        for start, piece, code in (
            (b"GET / HTTP/1.1\r\nHost: h\r\nX: ", b"y" * 8000, 431),
            (
                b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
                b"4000\r\n" + b"z" * 0x4000 + b"\r\n",
                413,
            ),
        ):
            reader, writer = await connect(server)
            writer.write(start)
            answer = asyncio.create_task(read_response(reader))
            for _ in range(400):
                writer.write(piece)
                await asyncio.sleep(0)
            assert is_status(await answer, code)
            writer.close()


@in_loop
async def test_many_headers_in_many_pieces_stay_within_the_limit() -> None:
    async with await serve(echo) as server:
        reader, writer = await connect(server)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n")
        for number in range(60):
            writer.write(b"X-%d: " % number + b"y" * 1000 + b"\r\n")
            await asyncio.sleep(0)
        writer.write(b"\r\n")
        assert (await read_response(reader))[0] == 200
        writer.close()


@in_loop
async def test_a_client_still_uploading_can_read_its_413() -> None:
    async with await serve(echo) as server:

        def client() -> None:
            link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            link.request("POST", "/", body=b"x" * (20 * 1024 * 1024))
            response = link.getresponse()
            assert response.status == 413 and json.loads(response.read())["reason"] == "RequestEntityTooLarge"
            link.close()

        await asyncio.to_thread(client)


@in_loop
async def test_the_largest_body_is_taken() -> None:
    async def size(request: Request) -> Response:
        return Response(200, (), b"%d" % len(request.body))

    async with await serve(size) as server:
        body = b"x" * Limits().body_bytes
        head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body)
        assert (await ask(server, head + body))[2] == b"%d" % len(body)


@in_loop
async def test_slow_requests_get_408_and_idle_connections_a_close() -> None:
    limits = Limits(header_seconds=0.4, body_seconds=0.4, idle_seconds=0.4)
    async with await serve(echo, limits=limits) as server:

        async def drip(start: bytes, rest: bytes) -> tuple[int, dict[str, str], bytes]:
            reader, writer = await connect(server)
            answer = asyncio.create_task(read_response(reader))
            writer.write(start)
            for byte in rest:
                if answer.done():
                    break
                await asyncio.sleep(0.05)
                writer.write(bytes([byte]))
            writer.close()
            return await answer

        async def idle(start: bytes) -> None:
            reader, writer = await connect(server)
            writer.write(start)
            if start:
                await read_response(reader)
            assert await reader.read() == b""  # closed without a word
            writer.close()

        before = time.monotonic()
        head, body, *_ = await asyncio.gather(
            drip(b"GET / HTTP/1.1\r\n", b"X: slowloris" * 10),
            drip(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n", b"x" * 90),
            idle(b""),
            idle(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
        )
        assert is_status(head, 408) and b"headers" in head[2]
        assert is_status(body, 408) and b"body" in body[2]
        assert time.monotonic() - before < 3
        await until(lambda: server.connections == 0)


@in_loop
async def test_connections_over_the_limit_get_503() -> None:
    async with await serve(echo, limits=Limits(connections=2)) as server:
        held = [await connect(server) for _ in range(2)]
        await until(lambda: server.connections == 2)
        answer = await ask(server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert is_status(answer, 503) and answer[1]["retry-after"] == "1"
        held.pop()[1].close()
        await until(lambda: server.connections < 2)
        assert (await ask(server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"))[0] == 200
        held.pop()[1].close()


@in_loop
async def test_strangers_make_room_for_others() -> None:
    """A flood of connections over which nobody says who they are does not keep out somebody who does."""

    async def handler(request: Request) -> Response:
        request.known = request.headers.get("authorization") == "me"
        return Response(200, (), b"yes" if request.known else b"no")

    asking = b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: me\r\n\r\n"
    async with await serve(handler, limits=Limits(connections=8, strangers=4)) as server:
        admin = await connect(server)
        admin[1].write(asking)
        assert (await read_response(admin[0]))[2] == b"yes"
        flood = [await connect(server) for _ in range(40)]
        flood[-1][1].write(asking.replace(b"me", b"you"))  # who asks, and is not known, is a stranger as before
        assert (await read_response(flood[-1][0]))[2] == b"no"
        await until(lambda: server.connections == 5)
        assert await flood[0][0].read() == b""  # cut: the oldest had to go
        later = await connect(server)
        later[1].write(asking)
        assert (await read_response(later[0]))[2] == b"yes"
        admin[1].write(asking)
        assert (await read_response(admin[0]))[2] == b"yes"
        known = [later, admin]
        for _ in range(3):
            known.append(await connect(server))
            known[-1][1].write(asking)
            assert (await read_response(known[-1][0]))[2] == b"yes"
        more = [await connect(server) for _ in range(4)]
        for reader, writer in known:
            writer.write(asking)
            assert (await read_response(reader))[2] == b"yes"
        for _, writer in [*flood, *known, *more]:
            writer.close()
        await until(lambda: server.connections == 0)


@in_loop
async def test_whose_request_is_in_flight_goes_last() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        begun.set()
        await go.wait()
        return Response(200, (), b"done")

    async with await serve(handler, limits=Limits(strangers=3)) as server:
        first = await connect(server)
        first[1].write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await begun.wait()
        flood = [await connect(server) for _ in range(20)]
        go.set()
        assert (await read_response(first[0]))[2] == b"done"
        for _, writer in [first, *flood]:
            writer.close()


@in_loop
async def test_beyond_the_refusals_connections_are_just_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REFUSALS", 1)
    async with await serve(echo, limits=Limits(connections=1)) as server:
        links = [await connect(server) for _ in range(3)]
        await until(lambda: server.connections == 2)
        assert (await read_response(links[1][0]))[0] == 503
        assert await links[2][0].read() == b""
        for _, writer in links:
            writer.close()


@in_loop
async def test_random_bytes_do_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    source = random.Random(20)
    lines = (
        "GET ,POST ,/,/api?x=%zz&&=, HTTP/1.1|, HTTP/1.0|,Host: h|,|,\n,\r,Content-Length: 5|,Content-Length: -1|,"
        "Content-Length: \xb2|,Content-Length:|,Transfer-Encoding: chunked|,Transfer-Encoding: gzip|,5|abcde|,0||,"
        "Transfer-Encoding: chunked; x|,fffffffffffffffff|,Connection: close|,Connection: upgrade|Upgrade: h2c|,"
        "Expect: 100-continue|,\0,\xff\xfe,: |,X:\x01|, folded|,PRI * HTTP/2.0||SM||"
    )
    parts = [part.replace("|", "\r\n").encode("latin-1") for part in lines.split(",")]
    loop_errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: loop_errors.append(context))
    async with await serve(echo, limits=Limits(header_seconds=0.5, body_seconds=0.5)) as server:

        async def attack() -> None:
            reader, writer = await connect(server)
            data = (
                source.randbytes(200)
                if source.random() < 0.2
                else b"".join(source.choices(parts, k=source.randint(1, 20)))
            )
            cuts = sorted(source.sample(range(len(data) + 1), k=min(3, len(data))))
            for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                writer.write(data[start:end])
                await asyncio.sleep(0)
            if source.random() < 0.5:
                writer.write_eof()
            with contextlib.suppress(TimeoutError, ConnectionError):
                await asyncio.wait_for(reader.read(), 0.05)
            writer.close()

        for _ in range(12):
            await asyncio.gather(*(attack() for _ in range(50)))
        assert (await ask(server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"))[0] == 200
        await until(lambda: server.connections == 0)
    assert not loop_errors
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


@in_loop
async def test_a_large_body_of_nobody_is_refused_before_it_is_read() -> None:
    plane = Plane()
    small = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: h\r\n"
    known = b"Authorization: Bearer " + plane.token.encode() + b"\r\n"
    body = json.dumps(configmap("a", k="v" * 100_000)).encode()
    async with await serve(plane.app) as server:
        for framing in (b"Content-Length: 2000000\r\n", b"Transfer-Encoding: chunked\r\n"):
            for credential in (b"", b"Authorization: Bearer wrong\r\n"):
                reader, writer = await connect(server)
                writer.write(small + credential + framing + b"\r\n")  # and not one byte of the body
                answer = await read_response(reader)
                assert is_status(answer, 401) and answer[1]["connection"] == "close"
                writer.close()
        whole = small + known + b"Content-Length: %d\r\n\r\n" % len(body) + body
        assert (await ask(server, whole))[0] == 201
        nobody = small + b"Content-Length: %d\r\n\r\n" % 2 + b"{}"
        answer = await ask(server, nobody)
        assert is_status(answer, 401) and answer[1].get("connection") != "close"


@in_loop
async def test_compressed_bodies_are_not_unpacked() -> None:
    plane = Plane()
    bomb = gzip.compress(b"[" * 10_000_000)
    head = b"POST /api/v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nAuthorization: Bearer "
    async with await serve(plane.app) as server:
        raw = head + plane.token.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb
        assert is_status(await ask(server, raw), 400)
