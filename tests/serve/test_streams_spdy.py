"""SPDY: the framer by itself, and exec and port-forward over it, alone and in a WebSocket's messages."""

import asyncio
import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection

from steersman.serve.streams import spdy
from steersman.serve.streams.spdy import Control, Data, Framer, SpdyError
from steersman.serve.streams.spdy_command import CREATION_SECONDS, TUNNEL_PROTOCOL
from steersman.serve.streams.spdy_words import DICTIONARY
from tests.serve.plane import PODS
from tests.serve.test_streams_exec import Stage, raw, staged


class Client:
    """The client's half, written anew from the draft: what the server's cannot be tested with."""

    def __init__(self) -> None:
        self.pack = zlib.compressobj(zdict=DICTIONARY)
        self.last = -1

    def control(self, kind: int, body: bytes, flags: int = 0) -> bytes:
        return struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body

    def headers(self, headers: dict[str, str]) -> bytes:
        block = struct.pack(">I", len(headers))
        for pair in headers.items():
            block += b"".join(struct.pack(">I", len(text)) + text.encode() for text in pair)
        return self.pack.compress(block) + self.pack.flush(zlib.Z_SYNC_FLUSH)

    def open(self, fin: bool = False, **headers: str) -> bytes:
        self.last += 2
        body = struct.pack(">IIH", self.last, 0, 0) + self.headers(headers)
        return self.control(spdy.SYN_STREAM, body, int(fin))


def parsed(data: bytes, step: int) -> list[Data | Control]:
    framer = Framer()
    return [frame for at in range(0, len(data), step) for frame in framer.feed(data[at : at + step])]


def test_the_dictionary_is_the_drafts():
    assert len(DICTIONARY) == 1423 and zlib.adler32(DICTIONARY) == 0xE3C6A7C2


@given(st.integers(1, 40), st.binary(max_size=60), st.dictionaries(st.text("abc", min_size=1), st.text("xyz")))
def test_frames_do_not_depend_on_how_they_arrive(step, payload, headers):
    client = Client()
    sent = client.open(**headers) + Framer.data(1, payload) + client.control(spdy.PING, struct.pack(">I", 5))
    sent += client.control(spdy.SETTINGS, b"\0" * 4) + client.open(fin=True, **headers) + Framer.data(3, b"", fin=True)
    frames = parsed(sent, step)
    controls = [frame for frame in frames if isinstance(frame, Control)]
    assert [(c.type, c.stream, dict(c.headers), c.fin) for c in controls if c.type != spdy.PING] == [
        (spdy.SYN_STREAM, 1, headers, False),
        (spdy.SYN_STREAM, 3, headers, True),
    ]
    assert [c.number for c in controls if c.type == spdy.PING] == [5]
    data = [frame for frame in frames if isinstance(frame, Data)]
    assert b"".join(each.data for each in data if each.stream == 1) == payload
    assert [each.fin for each in data if each.stream == 3] == [True]


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_an_error(data):
    try:
        parsed(data, 7)
    except SpdyError as error:
        assert str(error)


@pytest.mark.parametrize(
    "bad",
    [
        struct.pack(">HHI", 0x8002, 1, 0),
        struct.pack(">HHI", 0x8003, 1, spdy.CONTROL_BYTES + 1),
        struct.pack(">HHI", 0x8003, 1, 4) + b"\0\0\0\1",
        Client().control(spdy.HEADERS, b"\0\0\0\1garbage"),
        Client().control(spdy.HEADERS, b"\0\0\0\1" + Client().headers({"a": "b" * spdy.HEADER_BYTES})),
    ],
)
def test_what_is_refused(bad):
    with pytest.raises(SpdyError):
        parsed(bad, len(bad))


def test_a_header_that_ends_too_early():
    client = Client()
    block = struct.pack(">II", 1, 1000) + b"short"
    packed = client.pack.compress(block) + client.pack.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(SpdyError):
        parsed(client.control(spdy.HEADERS, b"\0\0\0\1" + packed), 100)


# -- over a server -----------------------------------------------------------------------------------------------


class Session:
    """SPDY on a connection of its own."""

    def __init__(self, reader, writer) -> None:
        self.reader = reader
        self.writer = writer
        self.client = Client()
        self.framer = Framer()
        self.data: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.controls: list[Control] = []

    @classmethod
    async def begin(cls, stage: Stage, url: str, protocols: str, code: int = 101):
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.server.port)
        head = [f"POST {PODS}/a/{url} HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: SPDY/3.1"]
        head += [f"Authorization: {stage.bearer['Authorization']}", f"X-Stream-Protocol-Version: {protocols}"]
        writer.write("\r\n".join([*head, "", ""]).encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(f"HTTP/1.1 {code} ".encode()), answer
        session = cls(reader, writer)
        session.head = answer.decode()
        return session

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def until(self, condition) -> None:
        while not condition(self):
            data = await self.reader.read(1 << 16)
            if not data:
                assert condition(self), (self.data, self.controls)
                return
            for frame in self.framer.feed(data):
                if isinstance(frame, Data):
                    self.data[frame.stream] = self.data.get(frame.stream, b"") + frame.data
                    if frame.fin:
                        self.ended.add(frame.stream)
                else:
                    self.controls.append(frame)

    def replied(self) -> list[int]:
        return [control.stream for control in self.controls if control.type == spdy.SYN_REPLY]

    def reset(self) -> list[int]:
        return [control.stream for control in self.controls if control.type == spdy.RST_STREAM]


@staged
async def test_exec(stage):
    session = await Session.begin(
        stage, "exec?command=cat&stdin=1&stdout=1", "v9.channel.k8s.io, v5.channel.k8s.io,v4.channel.k8s.io"
    )
    assert "x-stream-protocol-version: v4.channel.k8s.io\r\n" in session.head
    for name in ("error", "stdin", "stdout"):
        session.send(session.client.open(streamtype=name))
    session.send(Framer.data(3, b"hel") + Framer.data(3, b"lo", fin=True))
    await session.until(lambda s: {1, 5} <= s.ended)
    assert session.replied() == [1, 3, 5] and session.data[5] == b"hello"
    assert json.loads(session.data[1])["status"] == "Success"
    session.writer.close()


@staged
async def test_a_terminal_and_an_exit_code(stage):
    session = await Session.begin(stage, "exec?command=size&stdout=1&tty=1&stderr=1", "v4.channel.k8s.io")
    for name in ("error", "stdout", "resize"):
        session.send(session.client.open(streamtype=name))
    session.send(Framer.data(5, b'{"Width":80,"Height":24}'))
    await session.until(lambda s: 3 in s.data)
    session.send(Framer.data(5, b'{"Width":81,"Height":25}'))
    await session.until(lambda s: {1, 3} <= s.ended)
    assert session.data[3] == b"80x24 81x25 "
    session.writer.close()
    failing = await Session.begin(stage, "exec?command=fail&stderr=1", "channel.k8s.io")
    for name in ("error", "stderr"):
        failing.send(failing.client.open(streamtype=name))
    await failing.until(lambda s: {1, 3} <= s.ended)
    assert failing.data[3] == b"bad" and b"exit code 7" in failing.data[1]  # version 1 has no Status
    failing.writer.close()


@staged
async def test_streams_that_are_not_asked_for(stage):
    session = await Session.begin(stage, "exec?command=sleep&stdout=1", "v4.channel.k8s.io")
    for name in ("error", "error", "stdin", "nonsense"):
        session.send(session.client.open(streamtype=name))
    session.send(session.client.open())
    session.send(session.client.control(spdy.PING, struct.pack(">I", 1)))
    session.send(session.client.control(spdy.PING, struct.pack(">I", 2)))
    session.send(Framer.data(99, b"to nobody"))
    session.send(session.client.control(spdy.PING, struct.pack(">I", 3)))
    await session.until(lambda s: [c.number for c in s.controls if c.type == spdy.PING] == [1, 3])
    assert session.replied() == [1] and session.reset() == [3, 5, 7, 9]
    session.send(session.client.control(spdy.GOAWAY, b"\0" * 8))
    assert await session.reader.read() == b""
    session.writer.close()


@staged
async def test_broken_sessions_are_told_so(stage):
    for bad in (b"\x80\x02\0\0\0\0\0\0", Client().control(spdy.SYN_STREAM, struct.pack(">IIH", 2, 0, 0) + b"")):
        session = await Session.begin(stage, "exec?command=sleep&stdout=1", "v4.channel.k8s.io")
        session.send(bad)
        await session.until(lambda s: any(c.type == spdy.GOAWAY for c in s.controls))
        assert await session.reader.read() == b""
        session.writer.close()


@staged
async def test_protocols_that_are_not_spoken(stage):
    for protocols, code in (("v9.channel.k8s.io", 403), ("", 400), ("portforward.k8s.io", 403)):
        session = await Session.begin(stage, "exec?command=cat&stdout=1", protocols, code)
        session.writer.close()
    assert CREATION_SECONDS == 30


async def forwarded(session: Session, port: int, text: bytes, request: str) -> tuple[int, int]:
    """Opens one forwarded connection and sends a text; the numbers of its streams."""
    session.send(session.client.open(streamtype="error", port=str(port), requestid=request))
    failure = session.client.last
    session.send(Framer.data(failure, b"", fin=True))
    session.send(session.client.open(streamtype="data", port=str(port), requestid=request))
    data = session.client.last
    session.send(Framer.data(data, text, fin=True))
    return data, failure


@staged
async def test_ports(stage):
    session = await Session.begin(stage, "portforward", "portforward.k8s.io")
    pairs = [await forwarded(session, 80, f"text {n}".encode(), str(n)) for n in range(50)]
    await session.until(lambda s: all({*pair} <= s.ended for pair in pairs))
    assert [session.data[data] for data, _ in pairs] == [f"TEXT {n}".encode() for n in range(50)]
    data, failure = await forwarded(session, 9, b"", "x")
    await session.until(lambda s: {data, failure} <= s.ended)
    assert session.data[failure].startswith(b"error forwarding port 9 to pod a, uid ")
    before = len(session.reset())
    session.send(session.client.open(streamtype="data", port="0") + session.client.open(streamtype="data"))
    session.send(session.client.open(streamtype="other", port="80"))
    await session.until(lambda s: len(s.reset()) == before + 3)
    session.writer.close()


@staged
async def test_ports_in_a_tunnel(stage):
    reader, writer = await raw(stage, path="/a/portforward", protocol=TUNNEL_PROTOCOL)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101") and b"sec-websocket-protocol: SPDY/3.1+portforward.k8s.io\r\n" in head
    socket, client, framer = Connection(ConnectionType.CLIENT), Client(), Framer()
    sent = client.open(streamtype="error", port="80", requestid="0")
    sent += client.open(streamtype="data", port="80", requestid="0") + Framer.data(3, b"abc", fin=True)
    for piece in (sent[:11], sent[11:]):
        writer.write(socket.send(BytesMessage(piece)))
    data, ended = b"", set()
    while ended != {1, 3}:
        socket.receive_data(await reader.read(1000))
        for event in socket.events():
            for frame in framer.feed(bytes(event.data)):
                data += frame.data if isinstance(frame, Data) and frame.stream == 3 else b""
                ended |= {frame.stream} if frame.fin else set()
    assert data == b"ABC"
    writer.write(socket.send(CloseConnection(1000)))
    assert await reader.read() == b"\x88\x02\x03\xe8"
    writer.close()


@staged
async def test_a_reset_ends_what_it_carries(stage):
    session = await Session.begin(stage, "portforward", "portforward.k8s.io")
    session.send(session.client.open(streamtype="error", port="80", requestid="0"))
    session.send(session.client.open(streamtype="data", port="80", requestid="0"))
    await session.until(lambda s: s.replied() == [1, 3])
    assert stage.programs.running == 1
    session.send(session.client.control(spdy.RST_STREAM, struct.pack(">II", 3, spdy.CANCEL)))
    await session.until(lambda s: 1 in s.ended)
    assert stage.programs.running == 0
    session.writer.close()


@staged
async def test_streams_are_limited(stage):
    session = await Session.begin(stage, "portforward", "portforward.k8s.io")
    for n in range(spdy.MAX_STREAMS + 5):
        session.send(session.client.open(streamtype="error", port="80", requestid=str(n)))
    await session.until(lambda s: len(s.reset()) == 5)
    assert len(session.replied()) == spdy.MAX_STREAMS
    session.writer.close()
