"""One HTTP/1.1 connection: requests answered in order, responses and streams sent with backpressure.

The reading half is Reader's. The protocol knows nothing of listening sockets: the Hub it belongs to (see
`http`) accepts, sweeps deadlines and shuts down.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf

from steersman.serve.hub import Hub
from steersman.serve.message import Request, Response, response_head, status_response
from steersman.serve.reader import BODY, FRESH, HEAD, IDLE, Reader
from steersman.serve.streams.pipe import Pipe

log = logging.getLogger("steersman.serve.http")

# Input is parsed in slices, and no slice while a request waits its turn: what a pipelining client can make us
# hold is the requests of one slice (18 bytes each at the least) and the unparsed rest below.
SLICE_BYTES = 16 * 1024
# Unparsed input kept before reading pauses. Reading goes on until then, since a paused transport does not
# notice that its peer has gone.
PENDING_BYTES = 64 * 1024
# Head and body in one write up to this size: a copy costs less than a second system call.
JOIN_BYTES = 128 * 1024
# Output held for a client that does not read, before whoever writes has to wait: with TLS uvloop would hold four times
# as much, and thousands of watches may be slow at the same time.
HELD_BYTES = 128 * 1024
# A stream whose items are all there already lets other connections have a turn after so much.
TURN_BYTES = 256 * 1024
# Statuses that have no body (RFC 9110 §15.3.5, §15.4.5).
BODILESS = (204, 304)
# Input thrown away after an error response. Closing with unread input makes the kernel send a reset, which
# destroys the response on its way; a client in the middle of a large upload deserves to read its 413.
LINGER_BYTES = 64 * 1024 * 1024
# Time for such a client to read the response and close.
LINGER_SECONDS = 1.0
# A client that shut down its sending half still gets the answer of a request in flight, if it comes soon.
# Most often the client has gone (Ctrl-C), so the handler is not kept longer.
HALF_CLOSED_SECONDS = 1.0
# From the close of a connection to its abort: time to flush what is written, and for TLS to say goodbye.
CLOSE_SECONDS = 5.0
CLOSE_SECONDS_AT_SHUTDOWN = 0.5


class Connection(asyncio.Protocol):
    """Reading and answering go on side by side, so that the client's going away is noticed at once.

    At most one task a connection (`_task`), and only while there is an answer to give: it runs the handler
    and is cancelled when the client goes away. What must not be interrupted belongs in `asyncio.shield`.
    """

    def __init__(self, hub: Hub, refusal: Response | None = None) -> None:
        self._hub = hub
        self._refusal = refusal
        self._transport: asyncio.Transport | None = None
        self.handshake: asyncio.Task[None] | None = None
        """What makes the transport."""
        self._reader: Reader | None = None
        self._tls = False
        self._peer: tuple[str, int] | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Request | Response] = deque()  # a Response here is an error, and the last
        self._pending = bytearray()  # input not parsed yet
        self._pipe: Pipe | None = None  # once the connection is handed over, where its bytes go
        self._half_closed = False  # the client sends nothing more
        self._lost = False
        self._lingered = 0
        self._streaming = self._endless = self._cut = False
        self._owes_continue = False
        self._writable: asyncio.Future[None] | None = None  # exists while the transport is full
        self._read_by = self._stall_by = self._close_by = inf

    # -- transport events

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # uvloop's are no subclass of asyncio's
        self._transport.set_write_buffer_limits(high=HELD_BYTES)  # type: ignore[union-attr]
        peer = transport.get_extra_info("peername")
        self._peer = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None
        certificate = None
        if (tls := transport.get_extra_info("ssl_object")) is not None:
            self._tls = True
            certificate = tls.getpeercert(binary_form=True)
        self._reader = Reader(self._hub.limits, self, self._peer, certificate, self._hub.screen)
        self._read_by = self._hub.loop.time() + self._hub.limits.header_seconds
        if self._hub.draining:
            self.abort()
        elif self._refusal is not None:
            self._reader.refuse(self._refusal)

    def data_received(self, data: bytes) -> None:
        if self._pipe is not None:
            self._pipe.fed(data)
        elif self._reader is None or self._reader.closed:
            self._lingered += len(data)
            if self._lingered > LINGER_BYTES:
                self.abort()
        elif self._waiting or self._pending or len(data) > SLICE_BYTES:
            self._pending += data
            self._pump()
            if len(self._pending) > PENDING_BYTES and self._transport is not None:
                self._transport.pause_reading()
        elif left := self._reader.feed(data):
            self._pending += left
            self._pump()

    def eof_received(self) -> bool:
        if self._task is None or self._streaming or self._tls:
            return False  # closes the transport
        self._half_closed = True
        self._close_by = self._hub.loop.time() + HALF_CLOSED_SECONDS
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._reader is not None:
            self._reader.release()
            self._reader = None
        self._transport = None
        self._waiting.clear()
        self._pending.clear()
        if self._task is not None:
            self._task.cancel()
        else:
            self._hub.forget(self)

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self._hub.loop.create_future()
            self._stall_by = self._hub.loop.time() + self._hub.limits.stall_seconds

    def resume_writing(self) -> None:
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
            self._writable = None
            self._stall_by = inf

    # -- the hub's side

    def sweep(self, now: float) -> None:
        """Act on a deadline that has passed. Called a few times a second."""
        if now >= self._close_by or now >= self._stall_by:
            self.abort()
        elif self._pipe is not None:
            if now >= self._pipe.active + self._hub.limits.upgraded_idle_seconds or self._pipe.peer_gone():
                self.abort()
        elif now >= self._read_by and self._task is None and (reader := self._open_reader()):
            if reader.phase in (FRESH, IDLE):
                self._close()
            else:
                part = "headers" if reader.phase == HEAD else "body"
                reader.refuse(status_response(408, f"the request {part} did not arrive in time"))

    def drain(self) -> None:
        """Begin to shut down: an idle connection closes, an endless stream ends, a request may finish."""
        reader = self._open_reader()
        if self._task is None and reader is not None and reader.phase in (FRESH, IDLE):
            self._close()
        elif self._streaming and self._endless and self._task is not None and not self._cut:
            self._cut = True
            self._task.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self._task is not None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    # -- reading

    def _open_reader(self) -> Reader | None:
        return None if self._reader is None or self._reader.closed else self._reader

    def _pump(self) -> None:
        """Feed pending input until a request waits."""
        while self._pending and not self._waiting and (reader := self._open_reader()) and not reader.held:
            data = bytes(self._pending[:SLICE_BYTES])
            del self._pending[:SLICE_BYTES]
            self._pending[:0] = reader.feed(data)
        if len(self._pending) <= PENDING_BYTES and self._transport is not None:
            self._transport.resume_reading()

    def take(self, item: Request | Response) -> None:
        self._owes_continue = False
        self._waiting.append(item)
        if self._task is None and not self._lost:
            self._task = self._hub.loop.create_task(self._run())

    def reading(self, phase: str) -> None:
        limits = self._hub.limits
        seconds = limits.header_seconds if phase == HEAD else limits.body_seconds
        self._read_by = self._hub.loop.time() + seconds

    def expects_continue(self) -> None:
        if self._task is None:
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        else:  # not among the bytes of the response in progress
            self._owes_continue = True

    # -- answering

    async def _run(self) -> None:
        """Answer what waits, in order, until nothing does."""
        try:
            while self._waiting:
                item = self._waiting.popleft()
                if isinstance(item, Response):
                    self._send(item, keep=False)
                    await self._flushed()
                    self._linger()
                    return
                if not await self._answer(item):
                    if not self._cut:
                        await self._flushed()
                    self._close()
                    return
                if self._pending:
                    self._pump()
            if self._half_closed:
                self._close()
        except asyncio.CancelledError:
            if not self._lost:
                self.abort()
        except Exception:
            log.exception("connection of %s failed", self._peer)
            self.abort()
        finally:
            self._task = None
            if self._lost:
                self._hub.forget(self)
            else:
                self._rearm()

    def _rearm(self) -> None:
        """Back to reading: its time begins anew, since answering has held it up."""
        if (reader := self._open_reader()) is None:
            return
        if reader.phase in (HEAD, BODY):
            self.reading(reader.phase)
        else:
            self._read_by = self._hub.loop.time() + self._hub.limits.idle_seconds
        if self._owes_continue:
            self._owes_continue = False
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _answer(self, request: Request) -> bool:
        """Run the handler and send what it gives. True when the connection may be used again."""
        started = self._hub.loop.time()
        response = await self._ask(request)
        keep = request.keep_alive and not self._hub.draining and not request.upgrade
        if response.takeover is not None:
            await self._hand_over(request, response, response.takeover)
            keep = False
        elif isinstance(response.body, bytes):
            self._send(response, keep, request)
            if self._writable is not None:
                await self._writable
        else:
            keep = await self._stream(request, response, response.body, keep)
        if log.isEnabledFor(logging.DEBUG):
            elapsed = (self._hub.loop.time() - started) * 1000
            log.debug("%s %s %d %.1f ms", request.method, request.raw_path, response.status, elapsed)
        return keep

    async def _ask(self, request: Request) -> Response:
        """The handler's response, or a 500 that tells the client nothing and the log everything."""
        response: Response | None = None
        try:
            response = await self._hub.handler(request)
            if not isinstance(response.body, bytes) and not hasattr(response.body, "__aiter__"):
                raise TypeError(f"a response body is bytes or an async iterator, not {type(response.body)}")
            if (response.status == 101) != (response.takeover is not None and bool(request.upgrade)):
                raise ValueError("a 101 hands over a connection whose client asked for it, and nothing else does")
            if request.known:
                self._hub.strangers.pop(self, None)
            response_head(response)  # which says what is wrong with it while it can still be another one
            return response
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Something the handler awaited was cancelled; the client still waits for an answer.
            log.exception("%s %s: the handler was cancelled from within", request.method, request.raw_path)
        except Exception:
            log.exception("%s %s: the handler failed", request.method, request.raw_path)
        if isinstance(response, Response):
            await self._close_iterator(request, response.body)
        return status_response(500, "Internal Server Error")

    def _send(self, response: Response, keep: bool, request: Request | None = None) -> None:
        body = response.body
        assert isinstance(body, bytes)
        bodiless = response.status in BODILESS
        framing = b"" if bodiless else b"content-length: %d\r\n" % len(body)
        head = b"%b%b%b%b\r\n" % (response_head(response), framing, self._hub.date(), _persistence(keep, request))
        if bodiless or (request is not None and request.method == "HEAD"):
            self._write(head)
        elif len(body) <= JOIN_BYTES:
            self._write(head + body)
        else:
            self._write(head)
            self._write(body)

    async def _stream(self, request: Request, response: Response, body: AsyncIterator[bytes], keep: bool) -> bool:
        """Send an iterator's items; close it whatever happens. True when the connection may be used again.

        An HTTP/1.0 client gets the bare bytes, ended by the close of the connection if nobody knew how many they are.
        """
        bodiless = request.method == "HEAD" or response.status in BODILESS
        left = response.length
        chunked = request.http11 and response.status not in BODILESS and left is None
        keep = keep and (chunked or bodiless or left is not None)
        framing = b"transfer-encoding: chunked\r\n" if chunked else b""
        if left is not None and response.status not in BODILESS:
            framing = b"content-length: %d\r\n" % left
        self._endless = response.endless
        self._streaming = True
        try:
            if self._half_closed or self._lost:
                return False
            persistence = _persistence(keep, request)
            self._write(b"%b%b%b%b\r\n" % (response_head(response), framing, self._hub.date(), persistence))
            if not bodiless and not (self._hub.draining and self._endless):
                unbroken = 0
                if chunked and response.offer is not None:
                    response.offer(self._push)
                async for item in body:
                    if left is not None and (left := left - len(item)) < 0:
                        raise ValueError("the body is longer than was said")
                    if self._writable is not None:  # what was pushed meanwhile has not been read
                        await self._writable
                    if item:  # an empty chunk would end the body
                        self._write(b"%x\r\n%b\r\n" % (len(item), item) if chunked else item)
                    unbroken += len(item)
                    if self._writable is not None:
                        await self._writable
                    elif unbroken > TURN_BYTES:
                        unbroken = 0
                        await asyncio.sleep(0)
                if left:
                    raise ValueError(f"the body is {left} bytes shorter than was said")
        except asyncio.CancelledError:
            if not self._cut or self._lost:
                raise
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
            keep = False
        except Exception:
            log.exception("%s %s: the response body failed", request.method, request.raw_path)
            if not chunked:
                self.abort()
            return False  # without its last chunk the client sees that the body is broken off
        finally:
            self._streaming = False
            await self._close_iterator(request, body)
        if chunked and not bodiless:
            self._write(b"0\r\n\r\n")
        return keep and not self._hub.draining

    def _push(self, item: bytes) -> bool:
        """Sends an item while the iterator waits; whether it could be sent."""
        if self._writable is not None or self._cut or not self._streaming:
            return False
        self._write(self._hub.chunk(item))
        return True

    async def _hand_over(
        self, request: Request, response: Response, takeover: Callable[[Pipe], Awaitable[None]]
    ) -> None:
        """Change protocols: from here on the bytes are the session's, and the connection ends with it."""
        if self._half_closed or self._lost or self._transport is None or self._hub.draining:
            return
        self._write(b"%bconnection: Upgrade\r\n%b\r\n" % (response_head(response), self._hub.date()))
        pipe = self._pipe = Pipe(self._transport, self._hub.loop, lambda: self._writable)
        pipe.fed(self._pending)
        self._pending.clear()
        self._transport.resume_reading()
        self._streaming = self._endless = True
        try:
            await takeover(pipe)
        except asyncio.CancelledError:
            if not self._cut or self._lost:
                raise
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        except ConnectionError:
            self.abort()  # the client has gone, and the loop has not told us yet
        except Exception:
            log.exception("%s %s: the session failed", request.method, request.raw_path)
            self.abort()
        finally:
            self._streaming = False

    async def _close_iterator(self, request: Request, body: object) -> None:
        aclose = getattr(body, "aclose", None)
        if aclose is None:
            return
        try:
            await aclose()
        except Exception:
            log.exception("%s %s: closing the response body failed", request.method, request.raw_path)

    # -- writing and closing

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def _flushed(self) -> None:
        """Wait until the transport holds nothing more; the stall limit bounds it."""
        if self._transport is not None:
            # asyncio's TLS transport pauses at `high`, its TCP transport above it: at 0 TLS would never resume.
            self._transport.set_write_buffer_limits(high=1 if self._tls else 0)
            if self._writable is not None:
                await self._writable

    def _linger(self) -> None:
        """Let the client read its error response, throwing away what it still sends; then close."""
        if self._transport is None:
            return
        self._close_by = self._hub.loop.time() + LINGER_SECONDS
        try:
            if self._transport.can_write_eof():
                self._transport.write_eof()
        except OSError:  # the client has reset the connection, and the loop has not told us yet
            self.abort()
            return
        self._transport.resume_reading()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.closed = True
        if self._transport is not None:
            seconds = CLOSE_SECONDS_AT_SHUTDOWN if self._hub.draining else CLOSE_SECONDS
            self._close_by = self._hub.loop.time() + seconds
            self._transport.close()


def _persistence(keep: bool, request: Request | None) -> bytes:
    """The Connection header line, where the protocol's version does not say the same already."""
    if not keep:
        return b"connection: close\r\n"
    return b"" if request is None or request.http11 else b"connection: keep-alive\r\n"
