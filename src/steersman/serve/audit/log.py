"""The file of the audit log: a JSON object a line, in files that are bounded in size and number.

A line is written before its answer leaves. When the disk does not take it, the request goes on, as with
kube-apiserver's audit mode "blocking", and the loss is counted and told.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import time
from pathlib import Path
from typing import Any, Final

import orjson

from steersman.serve.files import FileError

log = logging.getLogger("steersman.audit")

MAX_BYTES: Final = 100 << 20
"""Of one file, then the next begins (kube-apiserver's audit-log-maxsize where it is not given)."""
KEPT: Final = 10
"""Older files that stay, PATH.1 being the newest: the log takes 1.1 GB of disk at most."""
MAX_LINE: Final = 1 << 20
"""Bytes of one event: a larger one goes without its objects, and says so."""
TOLD_SECONDS: Final = 60.0
"""How often a disk that takes nothing is told of."""
TRUNCATED: Final = "audit.k8s.io/truncated"


class AuditLog:
    """One file and its predecessors. Not for several threads."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        """Opens the file, mode 0600, and goes on at its end. Raises `FileError`."""
        self.path = path
        self.written = 0
        self.failed = 0
        self._max_bytes = max_bytes
        self._kept = kept
        self._told = -TOLD_SECONDS
        self._handle = -1
        self._size = 0
        self._torn = False
        """The file ends within a line: the disk was full, or the machine stopped."""
        try:
            self._open()
        except OSError as error:
            raise FileError(f"cannot write the audit log {path}: {error.strerror}; name another path") from None

    def write(self, event: dict[str, Any]) -> None:
        """Appends an event."""
        line = _line(event)
        try:
            if self._size and self._size + len(line) > self._max_bytes:
                self._rotate()
            if self._handle < 0:
                self._open()
            if self._torn:
                line = b"\n" + line
            taken = os.write(self._handle, line)
            self._size += taken
            self._torn = taken < len(line)
            if self._torn:
                raise OSError(errno.ENOSPC, "only a part of a line could be written")
            self.written += 1
        except OSError as error:
            self.failed += 1
            self._tell(error)

    def numbers(self) -> list[tuple[str, str, float]]:
        """For `/metrics`, in kube-apiserver's names."""
        return [
            ("apiserver_audit_event_total", "counter", float(self.written)),
            ("apiserver_audit_error_total", "counter", float(self.failed)),
        ]

    def close(self) -> None:
        """Ends it; closing again is harmless."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _open(self) -> None:
        flags = os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._handle = os.open(self.path, flags | os.O_RDWR, 0o600)
        self._size = os.fstat(self._handle).st_size
        self._torn = bool(self._size) and os.pread(self._handle, 1, self._size - 1) != b"\n"

    def _rotate(self) -> None:
        self.close()
        for number in range(self._kept, 0, -1):
            older = self.path if number == 1 else self._numbered(number - 1)
            if older.exists():
                os.replace(older, self._numbered(number))
        self._open()

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _tell(self, error: OSError) -> None:
        now = time.monotonic()
        if now - self._told >= TOLD_SECONDS:
            self._told = now
            log.error("the audit log %s lost %d events: %s", self.path, self.failed, error.strerror)


def _line(event: dict[str, Any]) -> bytes:
    """An event as a line; without its objects where these are too large, or are no JSON, as YAML's huge numbers."""
    line = b""
    with contextlib.suppress(orjson.JSONEncodeError):
        line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
    if line and len(line) <= MAX_LINE:
        return line
    kept = {name: part for name, part in event.items() if name not in ("requestObject", "responseObject")}
    kept["annotations"] = {**event.get("annotations", {}), TRUNCATED: "true"}
    return orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE)
