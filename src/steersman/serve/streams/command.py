"""A command on the streams of a client, whatever they are carried over: exec and attach.

Source of statuses and texts: k8s.io/cri-streaming pkg/streaming/remotecommand, release 1.36.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Final, NamedTuple, Protocol

import orjson

from steersman.api import errors
from steersman.api.errors import ApiError
from steersman.kernel.streams import Duplex, Session
from steersman.serve.streams.options import Wanted

log = logging.getLogger("steersman.serve.streams")

SIZE_BYTES: Final = 4 * 1024
"""Longest unreadable text on the stream of terminal sizes before it is thrown away."""
MAX_SIDE: Final = 0xFFFF
"""A terminal's columns and rows are numbers of 16 bits."""
FIRST_STATUS_VERSION: Final = 4
"""From this version of the protocol on, the error stream carries a Status and with it the exit code."""


class Asked(NamedTuple):
    """Which streams a client wants of a command."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


def streams_of(wanted: Wanted) -> Asked:
    """What an exec or attach asks for. A terminal has one output. Raises ApiError 400."""
    stdin, stdout, stderr, tty = (wanted.flag(name) for name in ("stdin", "stdout", "stderr", "tty"))
    if not (stdin or stdout or (stderr and not tty)):
        raise errors.bad_request("you must specify at least 1 of stdin, stdout, stderr")
    return Asked(stdin, stdout, stderr and not tty, tty)


class Sizes:
    """The sizes of a terminal, as a client tells them: JSON objects one behind the other. Only the last one counts."""

    def __init__(self) -> None:
        self._text = ""
        self._size: tuple[int, int] | None = None
        self._changed = asyncio.Event()

    async def put(self, data: bytes) -> None:
        """Takes in a piece of the stream."""
        self._text += data.decode("latin-1")
        decoder = json.JSONDecoder()
        while text := self._text.lstrip():
            try:
                value, end = decoder.raw_decode(text)
            except (ValueError, RecursionError):
                self._text = text if len(text) < SIZE_BYTES else ""
                return
            self._text = text[end:]
            self._take(value)
        self._text = ""

    def _take(self, value: Any) -> None:
        parts = {str(name).lower(): side for name, side in value.items()} if isinstance(value, dict) else {}
        width, height = parts.get("width"), parts.get("height")
        if isinstance(width, int) and isinstance(height, int) and 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE:
            self._size = (width, height)
            self._changed.set()

    def end(self) -> None:
        """No more sizes come."""

    async def next(self) -> tuple[int, int]:
        """The next size."""
        await self._changed.wait()
        self._changed.clear()
        assert self._size is not None
        return self._size


class Outlet(Protocol):
    """A direction towards the client."""

    async def write(self, data: bytes) -> None:
        """Sends bytes."""

    async def close(self) -> None:
        """Nothing more comes."""


class CommandStreams:
    """The `kernel.streams.Streams` of one command. What the client did not ask for is None."""

    def __init__(
        self,
        stdin: Duplex | None,
        stdout: Outlet | None,
        stderr: Outlet | None,
        failure: Outlet,
        sizes: Sizes,
        tty: bool,
    ) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stdout if tty else stderr
        self.failure = failure
        self._sizes = sizes

    async def read(self) -> bytes:
        """See Streams."""
        return b"" if self._stdin is None else await self._stdin.read()

    async def write(self, data: bytes) -> None:
        """See Streams."""
        if self._stdout is not None and data:
            await self._stdout.write(data)

    async def error(self, data: bytes) -> None:
        """See Streams."""
        if self._stderr is not None and data:
            await self._stderr.write(data)

    async def resized(self) -> tuple[int, int]:
        """See Streams."""
        return await self._sizes.next()

    async def close(self) -> None:
        """Ends every direction towards the client."""
        for outlet in (self._stdout, self._stderr, self.failure):
            if outlet is not None:
                await outlet.close()


async def run_command(session: Session, streams: CommandStreams, version: int) -> None:
    """Runs a command and tells the client how it ended, in the way of protocol `version` (1 to 5)."""
    try:
        status = exit_status(await session(streams))
    except ApiError as error:
        status = error.status()
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as error:
        log.exception("a command failed")
        status = errors.internal(f"error executing command in container: {type(error).__name__}").status()
    if version >= FIRST_STATUS_VERSION:
        await streams.failure.write(orjson.dumps(status))
    elif status["status"] != "Success":
        await streams.failure.write(status["message"].encode())
    await streams.close()


def exit_status(code: int) -> dict[str, Any]:
    """How a command ended, as a Status."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
