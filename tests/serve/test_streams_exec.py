"""exec, attach and port-forward over a real server: WebSockets with a client library, raw frames, and what clients do
wrong. Nothing may be left behind."""

import asyncio
import contextlib
import functools
import json
import socket
import struct
import urllib.parse

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from steersman.serve import http
from steersman.serve.app import App
from steersman.serve.limits import Limits
from steersman.serve.virtual import VirtualStreams
from tests.serve.plane import PODS, Plane, pod
from tests.serve.test_streams_log import edge, placed

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"


class Programs:
    """What runs in the pods of these tests; counts what is in flight."""

    def __init__(self) -> None:
        self.running = 0

    def counted(self, program):
        async def run(streams, *rest):
            self.running += 1
            try:
                return await program(streams, *rest)
            finally:
                self.running -= 1

        return run

    def streams(self) -> VirtualStreams:
        programs = {"cat": cat, "fail": fail, "size": size, "yes": yes, "sleep": sleep, "bug": bug, "both": both}
        ports = {80: shout, 81: greet}
        return VirtualStreams(
            {name: self.counted(program) for name, program in programs.items()},
            {port: self.counted(serve) for port, serve in ports.items()},
            self.counted(cat),
        )


async def cat(streams, words, pod):
    while data := await streams.read():
        await streams.write(data)
    return 0


async def fail(streams, words, pod):
    await streams.error(b"bad")
    return 7


async def both(streams, words, pod):
    await streams.write(b"out")
    await streams.error(b"err")
    return 0


async def size(streams, words, pod):
    for _ in range(2):
        columns, rows = await streams.resized()
        await streams.write(f"{columns}x{rows} ".encode())
    return 0


async def yes(streams, words, pod):
    while True:
        await streams.write(b"y\n" * 10_000)


async def sleep(streams, words, pod):
    await asyncio.sleep(3600)
    return 0


async def bug(streams, words, pod):
    raise ZeroDivisionError("of a program")


async def shout(duplex, pod):
    while data := await duplex.read():
        await duplex.write(data.upper())


async def greet(duplex, pod):
    await duplex.write(f"I am {pod.key.name}".encode())


class Stage:
    """A server with a running pod `a` of one container, and one `two` with two."""

    def __init__(self, plane: Plane, server: http.Server, programs: Programs) -> None:
        self.plane = plane
        self.server = server
        self.programs = programs
        self.bearer = {"Authorization": f"Bearer {plane.token}"}

    def url(self, part: str = "exec", name: str = "a", **query: object) -> str:
        text = urllib.parse.urlencode(query, doseq=True)
        return f"ws://127.0.0.1:{self.server.port}{PODS}/{name}/{part}?{text}"

    def open(self, *command: str, part: str = "exec", name: str = "a", protocol: str = V5, **query: object):
        query = {"stdin": 1, "stdout": 1, "stderr": 1} | query
        url = self.url(part, name, command=command, **query) if command else self.url(part, name, **query)
        return connect(url, subprotocols=[protocol] if protocol else None, additional_headers=self.bearer)

    async def run(self, *command: str, stdin: bytes | None = None, **how: object):
        """(stdout, stderr, status) of a command."""
        async with self.open(*command, **how) as ws:
            with contextlib.suppress(ConnectionClosed):  # a command may end before its input
                if stdin is not None:
                    await ws.send(b"\0" + stdin)
                await ws.send(b"\xff\0")
            return await rest(ws)

    async def refused(self, *command: str, **how: object) -> dict:
        """The Status that an upgrade was refused with."""
        with pytest.raises(InvalidStatus) as found:
            async with self.open(*command, **how):
                pass
        status = json.loads(found.value.response.body)
        assert status["kind"] == "Status" and status["code"] == found.value.response.status_code
        return status


async def rest(ws):
    """What comes until the server closes: stdout, stderr, status."""
    out = {1: b"", 2: b"", 3: b""}
    with contextlib.suppress(ConnectionClosed):
        while True:
            message = await ws.recv()
            out[message[0]] += message[1:]
    assert ws.close_code == 1000
    return out[1], out[2], json.loads(out[3] or b"{}")


def staged(test=None, *, limits: Limits | None = None):
    """Runs a test on a Stage, and sees to it that no task, program, watcher or connection is left."""
    if test is None:
        return functools.partial(staged, limits=limits)

    async def run():
        plane, programs = Plane(), Programs()
        plane.app = App(plane.backend, plane.tokens, streams=programs.streams())
        await placed(plane)
        await placed(plane, "two", containers=2)
        before = len(asyncio.all_tasks())
        async with await http.serve(plane.app, limits=limits or Limits()) as server:
            await test(Stage(plane, server, programs))
            for _ in range(100):
                if not programs.running and not server.connections:
                    break
                await asyncio.sleep(0.02)
            assert (programs.running, server.connections, plane.backend.watchers) == (0, 0, 0)
        await asyncio.sleep(0.05)
        assert len(asyncio.all_tasks()) == before

    @functools.wraps(test)
    def wrapper():
        asyncio.run(asyncio.wait_for(run(), 30))

    del wrapper.__wrapped__  # pytest would take its parameter for a fixture
    return wrapper


# -- commands --------------------------------------------------------------------------------------------------


@staged
async def test_streams_and_exit_codes(stage):
    success = {"metadata": {}, "status": "Success"}
    assert await stage.run("cat", stdin=b"hello") == (b"hello", b"", success)
    big = bytes(range(256)) * 4000
    assert (await stage.run("cat", stdin=big))[0] == big
    assert await stage.run("both") == (b"out", b"err", success)
    out, err, status = await stage.run("fail")
    assert (out, err, status["reason"]) == (b"", b"bad", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]
    assert (await stage.run("both", stderr=0))[:2] == (b"out", b"")
    assert (await stage.run("both", stdout=0))[:2] == (b"", b"err")
    assert (await stage.run("cat", stdin=b"x", name="a", container="c"))[0] == b"x"


@staged
async def test_a_failing_program_is_an_internal_error(stage):
    status = (await stage.run("bug"))[2]
    assert status["reason"] == "InternalError" and "ZeroDivisionError" in status["message"]


@staged
async def test_terminals_have_one_output_and_a_size(stage):
    assert (await stage.run("both", tty=1))[:2] == (b"outerr", b"")
    async with stage.open("size", tty=1) as ws:
        await ws.send(b'\4{"Width":80,')
        await ws.send(b'\4"Height":24}')
        assert await ws.recv() == b"\1"
        assert await ws.recv() == b"\x0180x24 "
        await ws.send(b'\4nonsense{"Width":1,"Height":1}')
        await ws.send(b"\4" + b"x" * 5000)
        await ws.send(b'\4{"Width":100,"Height":99999999}{"Width":132,"Height":50}')
        assert (await rest(ws))[0] == b"132x50 "


@staged
async def test_older_protocols(stage):
    async with stage.open("cat", protocol=V4) as ws:
        assert ws.subprotocol == V4 and await ws.recv() == b"\1"
        await ws.send(b"\0x")
        assert await ws.recv() == b"\1x"
        await ws.send("\0text")
        assert await ws.recv() == b"\1text"
    async with stage.open("fail", protocol="") as ws:
        assert ws.subprotocol is None
        told = [await ws.recv() for _ in range(3)]
        assert told[1:] == [
            b"\2bad",
            b"\3command terminated with non-zero exit code: command terminated with exit code 7",
        ]
    async with stage.open("both", protocol="channel.k8s.io") as ws:
        assert await rest(ws) == (b"out", b"err", {})  # success says nothing


@staged
async def test_attach(stage):
    async with stage.open(part="attach") as ws:
        await ws.send(b"\0typed")
        assert [await ws.recv(), await ws.recv()] == [b"\1", b"\1typed"]


@staged
async def test_what_is_refused_before_the_upgrade(stage):
    edge(stage.plane, "a", "complete")
    assert "container not found" in (await stage.refused("cat"))["message"]
    cases = [
        (("cat",), {"name": "none"}, 404, 'pods "none" not found'),
        (("cat",), {"name": "two"}, 400, "a container name must be specified for pod two, choose one of: [c c1]"),
        (("cat",), {"name": "two", "container": "x"}, 400, "container x is not valid for pod two"),
        (("nope",), {"name": "two", "container": "c"}, 400, 'no program answers the command "nope" there'),
        ((), {"name": "two", "container": "c"}, 400, "at least one command"),
        (("cat",), {"name": "two", "container": "c", "stdin": 0, "stdout": 0, "stderr": 0}, 400, "at least 1 of"),
        (("cat",), {"name": "two", "container": "c", "protocol": "v9.channel.k8s.io"}, 403, "are not supported"),
    ]
    for command, how, code, message in cases:
        status = await stage.refused(*command, **how)
        assert status["code"] == code and message in status["message"], (command, how, status)
    await stage.plane.post(PODS, pod("unbound"))
    assert "does not have a host assigned" in (await stage.refused("cat", name="unbound"))["message"]
    plain = await stage.plane.get(f"{PODS}/two/exec?container=c&command=cat&stdout=1", 400)
    assert plain.json["message"] == "Upgrade request required"
    stage.bearer = {"Authorization": "Bearer nobody"}
    assert (await stage.refused("cat"))["code"] == 401


@staged
async def test_streams_need_the_verb_create(stage):
    def granted(*verbs):
        rules = [{"verbs": list(verbs), "apiGroups": [""], "resources": ["pods/exec", "pods/portforward"]}]
        return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": rules}

    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    await stage.plane.post(roles, granted("get"))
    subject = {"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {**granted(), "kind": "RoleBinding", "subjects": [subject], "roleRef": ref}
    del binding["rules"]
    await stage.plane.post(roles.replace("roles", "rolebindings"), binding)
    stage.bearer = {"Authorization": f"Bearer {stage.plane.tokens.issue('eve')}"}
    for part in ("exec", "portforward"):
        status = await stage.refused(*(["cat"] if part == "exec" else []), part=part, ports=80)
        assert status["code"] == 403 and f'cannot create resource "pods/{part}"' in status["message"]
    await stage.plane.put(f"{roles}/r", granted("get", "create"))
    assert (await stage.run("cat", stdin=b"x"))[0] == b"x"
    assert (await stage.refused(part="attach"))["code"] == 403


# -- port-forward over a WebSocket -------------------------------------------------------------------------------


@staged
async def test_ports_in_channels(stage):
    async with connect(
        stage.url("portforward", ports=[80, 81, 9]), subprotocols=[V4], additional_headers=stage.bearer
    ) as ws:
        first = [await ws.recv() for _ in range(6)]
        numbers = [80, 80, 81, 81, 9, 9]
        assert first == [bytes([at]) + struct.pack("<H", port) for at, port in enumerate(numbers)]
        await ws.send(b"\0abc")
        told = sorted([await ws.recv() for _ in range(3)])
        assert told[:2] == [b"\0ABC", b"\2I am a"]
        assert told[2].startswith(b"\5error forwarding port 9 to pod a, uid ")
    for ports in ("", "0", "70000", "x", ",".join(["80"] * 128)):
        with pytest.raises(InvalidStatus) as found:
            async with connect(
                stage.url("portforward", ports=ports), subprotocols=[V4], additional_headers=stage.bearer
            ):
                pass
        assert found.value.response.status_code == 400


# -- clients that go wrong ----------------------------------------------------------------------------------------


async def raw(stage: Stage, *command: str, path: str = "", protocol: str = V5, extra: bytes = b"", **query: object):
    """A WebSocket opened by hand: reader and writer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.server.port)
    url = stage.url(command=command, **({"stdin": 1, "stdout": 1} | query)).partition(PODS)[2]
    url = path or url
    head = [f"GET {PODS}{url} HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: websocket"]
    head += [f"Authorization: {stage.bearer['Authorization']}", f"Sec-WebSocket-Protocol: {protocol}"]
    head += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""]
    writer.write("\r\n".join(head).encode() + extra)
    return reader, writer


def frame(payload: bytes, opcode: int = 2, *, fin: bool = True, mask: bool = True, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    short = size if size < 126 else 126 if size < 65536 else 127
    head = bytes([fin << 7 | opcode, mask << 7 | short])
    head += struct.pack(">H", size) if short == 126 else struct.pack(">Q", size) if short == 127 else b""
    return head + (b"\0\0\0\0" if mask else b"") + payload


async def established(reader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head  # RFC 6455 §1.3
    assert await reader.readexactly(3) == b"\x82\x01\x01"


@staged
async def test_bytes_behind_the_request_are_the_new_protocols(stage):
    reader, writer = await raw(stage, "cat", extra=frame(b"\0early") + frame(b"\xff\0"))
    await established(reader)
    assert await reader.readexactly(8) == b"\x82\x06\x01early"
    assert b"Success" in await reader.read()
    writer.close()


@staged
async def test_nothing_behind_a_refused_upgrade_is_a_request(stage):
    smuggled = f"GET /version HTTP/1.1\r\nHost: h\r\nAuthorization: {stage.bearer['Authorization']}\r\n\r\n".encode()
    reader, writer = await raw(stage, "cat", name="none", extra=smuggled)
    answer = await reader.read()
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 404") and b"connection: close" in answer
    writer.close()


@staged
async def test_frames_byte_by_byte(stage):
    reader, writer = await raw(stage, "cat")
    await established(reader)
    for byte in frame(b"\0ab", fin=False) + frame(b"", 0, fin=False) + frame(b"c", 0) + frame(b"\xff", fin=False):
        writer.write(bytes([byte]))
        await asyncio.sleep(0)
    got = b""
    while not got.endswith(b"c"):
        got += await reader.readexactly(1)
    writer.write(frame(b"\0", 0))  # the second half of the close message
    assert b"Success" in await reader.read()
    writer.close()


@staged
async def test_giant_frames_are_passed_on_as_they_come(stage):
    reader, writer = await raw(stage, "cat")
    await established(reader)
    writer.write(frame(b"\0", length=1 << 62))
    total = 0
    for _ in range(50):
        writer.write(b"x" * 50_000)
        await writer.drain()
    while total < 50 * 50_000:
        total += len(await reader.read(1 << 16))
    writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        frame(b"\0x", mask=False),
        frame(b"x", 0),
        frame(b"\0x", 3),
        frame(b"x" * 126, 9),
        frame(b"\xff\x09"),
        frame(b"\xff\0\0"),
        frame(b"\xff"),
        b"\xf2\x81\0\0\0\0x",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_websocket_ends_the_session(sent):
    @staged
    async def test(stage):
        reader, writer = await raw(stage, "sleep")
        await established(reader)
        writer.write(sent)
        closing = await reader.read()
        assert closing[0] == 0x88 and struct.unpack(">H", closing[2:4])[0] in (1002, 1007)
        writer.close()

    test()


@staged
async def test_pings_are_answered(stage):
    reader, writer = await raw(stage, "sleep")
    await established(reader)
    writer.write(frame(b"?", 9))
    assert await reader.readexactly(3) == b"\x8a\x01?"
    writer.write(frame(struct.pack(">H", 1000), 8))
    assert await reader.read() == b"\x88\x02\x03\xe8"
    writer.close()


@staged(limits=Limits(stall_seconds=0.4))
async def test_a_client_that_never_reads_is_cut_off(stage):
    reader, writer = await raw(stage, "yes")
    await established(reader)
    writer.transport.pause_reading()
    for _ in range(100):
        if not stage.server.connections:
            break
        await asyncio.sleep(0.05)
    assert not stage.server.connections and not stage.programs.running
    writer.transport.abort()


@staged
async def test_a_program_that_never_reads_holds_its_client_up(stage):
    reader, writer = await raw(stage, "sleep")
    await established(reader)
    sent = 0
    with pytest.raises(asyncio.TimeoutError):
        while sent < 100_000_000:
            writer.write(frame(b"\0" + b"x" * 100_000))
            sent += 100_000
            await asyncio.wait_for(writer.drain(), 0.3)
    assert sent < 20_000_000  # what the buffers of kernel and server hold
    reset = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    writer.transport.abort()  # noticed, although its bytes are not being read


@staged(limits=Limits(upgraded_idle_seconds=0.3))
async def test_idle_sessions_end(stage):
    reader, writer = await raw(stage, "sleep")
    await established(reader)
    assert await reader.read() == b""
    writer.close()


@staged
async def test_many_sessions_at_once(stage):
    answers = await asyncio.gather(*[stage.run("cat", stdin=str(n).encode()) for n in range(200)])
    assert [answer[0] for answer in answers] == [str(n).encode() for n in range(200)]


@staged
async def test_clients_that_go_away(stage):
    sessions = [await stage.open("sleep").__aenter__() for _ in range(30)]
    assert stage.programs.running == 30
    for ws in sessions[::2]:
        ws.transport.abort()
    for ws in sessions[1::2]:
        await ws.close()


def test_shutdown_ends_sessions():
    @staged
    async def test(stage):
        async with stage.open("sleep") as ws:
            closing = asyncio.ensure_future(stage.server.close(5))
            with pytest.raises(ConnectionClosed):
                while True:
                    await asyncio.wait_for(ws.recv(), 3)
            await closing

    test()
