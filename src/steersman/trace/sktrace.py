"""The file format `.sktrace`, version 2, as SimKube 2.x reads and writes it.

msgpack of five named parts: version, config, events, index, pod_lifecycles (docs/traces.md has the
table). Source: acrlabs/simkube 4ff5124; reading and writing its three example files gives the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import Any

import msgpack

from steersman.trace.decode import decode
from steersman.trace.limits import MAX_FILE_BYTES
from steersman.trace.recording import Trace, TraceError, TraceEvent

__all__ = ["Trace", "TraceError", "TraceEvent", "dumps", "loads", "read", "write"]


def read(path: str | os.PathLike[str]) -> Trace:
    """The trace in the file at `path`; TraceError if there is none or it cannot be read."""
    where = os.fspath(path)
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(where, "", f"cannot read it: {reason}", "Check the path and its permissions") from None
    return loads(raw, where)


def loads(raw: bytes, where: str = "the trace") -> Trace:
    """The trace in `raw`. Raises TraceError, and nothing else, whatever the bytes are.

    `where` names the bytes in errors: the path of a file.
    """
    if len(raw) > MAX_FILE_BYTES:
        limit = f"the file has more than {MAX_FILE_BYTES >> 20} MiB"
        raise TraceError(where, "", limit, "Export a shorter time or fewer kinds; the limits are in docs/traces.md")
    return decode(raw, where)


def dumps(trace: Trace, where: str = "the trace") -> bytes:
    """The bytes of `trace`. TraceError if `loads` would refuse them: nothing unreadable is written."""
    document = {
        "version": trace.version,
        "config": {"trackedObjects": {kind: tracked.options() for kind, tracked in trace.config.items()}},
        "events": [_event(event) for event in trace.events],
        "index": trace.index,
        "pod_lifecycles": {
            owner: {pod: [life.encode() for life in lives] for pod, lives in by_hash.items()}
            for owner, by_hash in trace.lifecycles.items()
        },
    }
    try:
        raw: bytes = msgpack.packb(document)
    except (TypeError, ValueError, OverflowError) as error:
        remedy = "Objects may hold JSON values only: maps, arrays, strings, numbers of 64 bits, booleans, null"
        raise TraceError(where, "", f"cannot be written: {error}", remedy) from None
    loads(raw, where)
    return raw


def write(path: str | os.PathLike[str], trace: Trace) -> None:
    """Write `trace` to `path`, whole or not at all: the file at `path` changes in one step.

    TraceError if it cannot be written (a full disk, no permission); no partial file is left then.
    A `path` that is no regular file, such as a pipe, is written to directly.
    """
    raw = dumps(trace, os.fspath(path))
    try:
        target = Path(os.path.realpath(path))  # a link stays a link
        if target.exists() and not target.is_file():
            target.write_bytes(raw)
        else:
            _replace(target, raw)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "Nothing was changed. Check the path, its permissions and the free space, and try again"
        raise TraceError(os.fspath(path), "", f"cannot write it: {reason}", remedy) from None


def _event(event: TraceEvent) -> dict[str, Any]:
    return {"ts": event.ts, "applied_objs": list(event.applied), "deleted_objs": list(event.deleted)}


def _replace(target: Path, raw: bytes) -> None:
    draft = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # O_EXCL: never write through somebody's link.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # without it a power cut may bring the old name back
    finally:
        os.close(directory)
