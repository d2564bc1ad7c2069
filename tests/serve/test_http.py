"""The HTTP server over real sockets on 127.0.0.1: requests, failing handlers, listening."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from steersman.serve.http import Limits, ListenError, Request, Response, serve
from steersman.serve.streams.pipe import Pipe

from .harness import Ticker, ask, connect, echo, in_loop, is_status, read_response, until

# -- requests


@in_loop
async def test_a_plain_client_sees_what_it_sent() -> None:
    async with await serve(echo) as server:

        def client() -> None:
            link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            for number in range(3):  # on one connection
                link.request(
                    "POST", f"/api/v1/x%2Fy?a=1&a=2&b=&n={number}", body=b"\x00\xffhello", headers={"X-A": "1"}
                )
                response = link.getresponse()
                seen = json.loads(response.read())
                assert response.status == 200
                assert seen["path"] == "/api/v1/x/y" and seen["raw_path"] == "/api/v1/x%2Fy"
                assert seen["query"] == [["a", "1"], ["a", "2"], ["b", ""], ["n", str(number)]]
                assert seen["body"] == "\x00\xffhello"
                assert ["x-a", "1"] in seen["headers"]
            link.close()

        await asyncio.to_thread(client)


@in_loop
async def test_query_flags_are_those_of_kubernetes() -> None:
    request = Request("GET", "/", raw_query="watch=True&a=1&b=0&c=FALSE&d=&limit=5&limit=6&e=a+b%20c")
    assert [request.query.flag(name) for name in ("watch", "a", "b", "c", "d", "missing")] == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert request.query.get("limit") == "5" and request.query.all("limit") == ["5", "6"]
    assert request.query.get("e") == "a b c" and request.query.get("zz", "none") == "none"
    assert "d" in request.query and "zz" not in request.query


@in_loop
async def test_chunked_body_and_its_trailer() -> None:
    async with await serve(echo) as server:
        reader, writer = await connect(server)
        writer.write(
            b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nAuthorization: Bearer evil\r\n\r\n"
            b"GET /b HTTP/1.1\r\nHost: h\r\n\r\n"
        )
        first = json.loads((await read_response(reader))[2])
        second = json.loads((await read_response(reader))[2])
        assert first["body"] == "abcde" and second["path"] == "/b"
        for seen in (first, second):  # a trailer is a header of no request
            assert not any(name == "authorization" for name, _ in seen["headers"])
        writer.close()


@in_loop
async def test_pipelined_requests_are_answered_in_order_and_one_at_a_time() -> None:
    running = most = 0

    async def slow_first(request: Request) -> Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05 if request.path == "/0" else 0)
        running -= 1
        return Response(200, (), request.path.encode())

    async with await serve(slow_first) as server:
        reader, writer = await connect(server)
        count = 3000  # more than one slice of input
        writer.write(b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(count)))
        for number in range(count):
            assert (await read_response(reader))[2] == b"/%d" % number
        assert most == 1
        writer.close()


@in_loop
async def test_a_request_in_single_bytes() -> None:
    async with await serve(echo) as server:
        reader, writer = await connect(server)
        for byte in b"PUT /slow?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody":
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        seen = json.loads((await read_response(reader))[2])
        assert (seen["method"], seen["path"], seen["body"]) == ("PUT", "/slow", "body")
        writer.close()


@in_loop
async def test_expect_100_continue() -> None:
    async with await serve(echo, limits=Limits(body_bytes=1000)) as server:
        head = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        reader, writer = await connect(server)
        writer.write(head % 5)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"12345")
        assert json.loads((await read_response(reader))[2])["body"] == "12345"
        writer.close()
        assert is_status(await ask(server, head % 1001), 413)  # and no 100 before
        assert is_status(await ask(server, b"GET / HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n"), 417)


@in_loop
async def test_100_continue_waits_for_the_response_in_progress() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(0.05 if request.path == "/1" else 0)
        return Response(200, (), request.body or b"first")

    async with await serve(slow) as server:
        reader, writer = await connect(server)
        writer.write(
            b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"
            b"POST /2 HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        )
        assert (await read_response(reader))[2] == b"first"
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"abc")
        assert (await read_response(reader))[2] == b"abc"
        writer.close()


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 3\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"]
)
@in_loop
async def test_an_upgrade_is_an_ordinary_request_with_its_body(framing: bytes) -> None:
    async with await serve(echo) as server:
        reader, writer = await connect(server)
        for _ in range(2):
            writer.write(b"POST /u HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" + framing)
            writer.write(b"GET /w HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n")
            writer.write(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
            first, second, third = [json.loads((await read_response(reader))[2]) for _ in range(3)]
            assert (first["path"], first["body"]) == ("/u", "abc")
            assert second["path"] == "/w" and ["upgrade", "TLS/1.0"] in second["headers"]
            assert (third["path"], third["body"]) == ("/next", "")
        writer.close()


@pytest.mark.parametrize("protocol", [b"websocket", b"WebSocket", b"SPDY/3.1"])
@in_loop
async def test_nothing_behind_an_upgrade_that_was_not_granted_is_a_request(protocol: bytes) -> None:
    async with await serve(echo) as server:
        reader, writer = await connect(server)
        writer.write(b"GET /w HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n")
        writer.write(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
        _, headers, body = await read_response(reader)
        assert json.loads(body)["path"] == "/w" and headers["connection"] == "close"
        assert await reader.read() == b""
        writer.close()


@in_loop
async def test_a_connection_is_handed_over_only_to_who_asked_for_it() -> None:
    async def session(pipe: Pipe) -> None:
        while True:
            await pipe.write((await pipe.read()).upper())

    async def handler(request: Request) -> Response:
        status = 200 if request.path == "/wrong" else 101
        return Response(status, (("upgrade", "websocket"),), takeover=session)

    async with await serve(handler) as server:
        upgrade = b"Host: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        for raw in (
            b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            b"GET /wrong HTTP/1.1\r\n" + upgrade + b"\r\n",
            b"POST / HTTP/1.1\r\n" + upgrade + b"Content-Length: 1\r\n\r\nx",
            b"GET / HTTP/1.1\r\n" + upgrade + b"Upgrade: SPDY/3.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n",
            b"GET / HTTP/1.0\r\n" + upgrade + b"\r\n",
        ):
            assert is_status(await ask(server, raw), 500)
        reader, writer = await connect(server)
        writer.write(b"GET / HTTP/1.1\r\n" + upgrade + b"\r\nab")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n")
        assert await reader.readexactly(2) == b"AB"
        writer.write(b"cd")
        assert await reader.readexactly(2) == b"CD"
        writer.close()
        await until(lambda: server.connections == 0)


@in_loop
async def test_head_and_bodiless_statuses() -> None:
    ticker = Ticker()

    async def handler(request: Request) -> Response:
        if request.path == "/204":
            return Response(204)
        return await ticker(request) if request.path == "/watch" else Response(200, (), b"x" * 100)

    async with await serve(handler) as server:
        reader, writer = await connect(server)
        writer.write(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
        status, headers, _ = await read_response(reader, "HEAD")
        assert (status, headers["content-length"]) == (200, "100") and "date" in headers
        writer.write(b"HEAD /watch HTTP/1.1\r\nHost: h\r\n\r\n")
        assert (await read_response(reader, "HEAD"))[1]["transfer-encoding"] == "chunked"
        writer.write(b"DELETE /204 HTTP/1.1\r\nHost: h\r\n\r\n")
        status, headers, _ = await read_response(reader)
        assert status == 204 and "content-length" not in headers
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert (await read_response(reader))[2] == b"x" * 100
        assert ticker.open == 0
        writer.close()


@in_loop
async def test_http_1_0_closes_unless_asked_and_gets_no_chunks() -> None:
    async def handler(request: Request) -> Response:
        async def three() -> AsyncIterator[bytes]:
            for item in (b"a", b"", b"b"):
                yield item

        return Response(200, (), three() if request.path == "/s" else b"plain")

    async with await serve(handler) as server:
        for target, keep, body in (("/", False, b"plain"), ("/s", False, b"ab"), ("/s", True, b"ab")):
            reader, writer = await connect(server)
            wish = "Connection: keep-alive\r\n" if keep else ""
            writer.write(f"GET {target} HTTP/1.0\r\n{wish}\r\n".encode())
            everything = await reader.read()
            assert everything.endswith(b"\r\n\r\n" + body) and b"chunked" not in everything
            writer.close()
        reader, writer = await connect(server)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert (await read_response(reader))[1]["connection"] == "keep-alive"
        writer.close()


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@in_loop
async def test_a_stream_of_known_length_is_sent_as_it_is(version: str) -> None:
    async def handler(request: Request) -> Response:
        async def three() -> AsyncIterator[bytes]:
            for item in (b"ab", b"", memoryview(b"xcdx")[1:3]):
                yield item  # type: ignore[misc]  # a buffer will do

        return Response(200, (), three(), endless=False, length=int(request.path[1:]))

    async with await serve(handler) as server:
        reader, writer = await connect(server)
        for method, body in (("GET", b"abcd"), ("HEAD", b""), ("GET", b"abcd")):
            writer.write(f"{method} /4 HTTP/{version}\r\nHost: h\r\nConnection: keep-alive\r\n\r\n".encode())
            _, headers, found = await read_response(reader, method)
            assert (headers["content-length"], found) == ("4", body) and "transfer-encoding" not in headers
        writer.close()
        for wrong in ("3", "5"):  # the connection is broken off: nobody may take what comes for what was said
            reader, writer = await connect(server)
            writer.write(f"GET /{wrong} HTTP/{version}\r\nHost: h\r\n\r\n".encode())
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await read_response(reader)
                await reader.readexactly(1)
            writer.close()


@in_loop
async def test_a_client_that_half_closes_still_gets_its_answer() -> None:
    async def handler(request: Request) -> Response:
        await asyncio.sleep(0.05)
        return Response(200, (), request.path.encode())

    async with await serve(handler) as server:
        reader, writer = await connect(server)
        writer.write(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
        writer.write_eof()
        assert (await read_response(reader))[2] == b"/a"
        assert (await read_response(reader))[2] == b"/b"
        assert await reader.read() == b""
        writer.close()


# -- handlers that fail


@in_loop
async def test_a_failing_handler_gives_500_and_a_traceback_in_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Any:
        match request.path:
            case "/raise":
                raise RuntimeError("secret detail")
            case "/none":
                return None
            case "/text":
                return Response(200, (), "text")  # type: ignore[arg-type]
            case "/split":
                return Response(200, {"x": "a\r\nset-cookie: b"})
            case "/status":
                return Response(101)
            case "/cancelled":
                raise asyncio.CancelledError
        return Response(200, (), b"fine")

    async with await serve(handler) as server:
        reader, writer = await connect(server)
        for path in ("/raise", "/none", "/text", "/split", "/status", "/cancelled"):
            caplog.clear()
            writer.write(f"GET {path}?token=hush HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer hush\r\n\r\n".encode())
            answer = await read_response(reader)
            assert is_status(answer, 500) and b"secret" not in answer[2]
            assert "Traceback" in caplog.text and "hush" not in caplog.text
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert (await read_response(reader))[2] == b"fine"  # on the same connection
        writer.close()


@in_loop
async def test_the_access_log_has_no_query_header_or_body(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "steersman")
    async with await serve(echo) as server:
        await ask(server, b"POST /p?q=hush HTTP/1.1\r\nHost: h\r\nX: hush\r\nContent-Length: 4\r\n\r\nhush")
    assert "POST /p 200" in caplog.text and "hush" not in caplog.text


# -- listening


@in_loop
async def test_several_hosts_share_a_port() -> None:
    async with await serve(echo, ["127.0.0.1", "127.0.0.2", "localhost"]) as server:
        ports = {port for _, port in server.addresses}
        assert len(ports) == 1 and ("127.0.0.2", server.port) in server.addresses
        assert server.url == f"http://127.0.0.1:{server.port}"


@in_loop
async def test_an_address_that_cannot_be_had_is_told_with_a_remedy() -> None:
    async with await serve(echo) as server:
        with pytest.raises(ListenError, match=f"127.0.0.1 port {server.port}: .*; stop the other program"):
            await serve(echo, "127.0.0.1", server.port)
    with pytest.raises(ListenError, match=r"192\.0\.2\.1 .*; use an address of this host"):
        await serve(echo, "192.0.2.1", 0)
    with pytest.raises(ListenError, match=r"no-such-host\.invalid"):
        await serve(echo, "no-such-host.invalid", 0)
