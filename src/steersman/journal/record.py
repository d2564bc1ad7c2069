"""Journal records and their stored form.

Three kinds of record share one sequence of positions:

- `Commit`: one change of the store. Its bytes alone rebuild the store (law J1).
- `Input`: something the run was given and cannot compute again.
- `Reconcile`: what one reconcile of a native controller saw and did, enough to execute it again (law J2).

Every record is immutable. A stored `Row` carries a 64-bit xxHash over all its other columns, checked
on each read, so that a flipped bit is an error and never a different history.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import msgpack
import xxhash

from steersman.kernel.object import Key

from .errors import RESTORE, BadRecord, Corrupt

__all__ = [
    "NO_SUMS",
    "SUM_BYTES",
    "Commit",
    "Entry",
    "External",
    "Input",
    "Key",
    "Read",
    "Reconcile",
    "Record",
    "Row",
    "Sums",
    "Write",
    "decode",
    "encode",
    "encode_key",
]

# The store's two running digest sums after a commit: (full-history kinds, head-only kinds).
Sums: TypeAlias = tuple[bytes, bytes]
Verb: TypeAlias = Literal["create", "update", "delete"]
Retention: TypeAlias = Literal["full", "head-only"]

SUM_BYTES = 16  # summed terms are 128-bit, as fingerprints are: docs/ARCHITECTURE.md
NO_SUMS: Sums = (bytes(SUM_BYTES), bytes(SUM_BYTES))
# Kubernetes refuses request bodies over 3 MiB; whatever is five times that is not an API object.
MAX_RECORD_BYTES = 16 << 20

VERBS: tuple[Verb, ...] = ("create", "update", "delete")
FULL, HEAD_ONLY, INPUT, RECONCILE = 1, 2, 3, 4  # stored in files: never renumber


@dataclass(frozen=True, slots=True)
class Commit:
    """One committed write.

    `revision` is the previous commit's plus one. `object` is the whole object after the write as
    canonical JSON, `metadata.resourceVersion` and `managedFields` included, kept byte for byte; a
    delete holds the last version. `at` is the writer's clock in microseconds. `sums` are the store's
    two running sums *after* this commit, opaque here. A `head-only` commit is dropped from the
    journal as soon as a later commit of the same key supersedes it.
    """

    revision: int
    key: Key
    verb: Verb
    actor: str
    uid: str
    object: bytes
    at: int
    sums: Sums
    retention: Retention = "full"
    late: Callable[[], bytes] | None = field(default=None, compare=False)
    """What gives `object`, which is then empty, whenever somebody needs it: always the same bytes, without fail."""


@dataclass(frozen=True, slots=True)
class Input:
    """Something that came from outside the run: it is replayed, never recomputed.

    `source` says what it is: "random", "clock", "webhook", "node", "write", "user", …; `subject` says
    whose (the label of the action it answers). `data` is kept byte for byte. `at` is in microseconds.
    """

    source: str
    subject: str
    data: bytes
    at: int


class Read(NamedTuple):
    """`target` (an object, list or selector as the client spells it) was read in a view at `revision`."""

    target: str
    revision: int


class External(NamedTuple):
    """The named external system was sent `request` and gave `outcome`."""

    name: str
    request: bytes
    outcome: bytes


class Write(NamedTuple):
    """A write of `target` became commit `revision`; or 0, and `reply` holds the refusal (a Status)."""

    target: str
    revision: int
    reply: bytes = b""


@dataclass(frozen=True, slots=True)
class Reconcile:
    """One reconcile of a native controller: all that its re-execution is given, and what it wrote.

    Each tuple is in the order of the calls. `code` is a digest of the controller's code, `times` are
    clock readings in microseconds, `end` says how it ended ("done", "requeue", "raised", "crashed").
    """

    controller: str
    code: bytes
    key: Key
    reads: tuple[Read, ...] = ()
    times: tuple[int, ...] = ()
    randoms: tuple[bytes, ...] = ()
    externals: tuple[External, ...] = ()
    writes: tuple[Write, ...] = ()
    end: str = "done"


Record: TypeAlias = Commit | Input | Reconcile


class Entry(NamedTuple):
    """A record in its place: `revision` is the store's after it, `epoch` the writer's that appended it."""

    position: int
    epoch: int
    revision: int
    record: Record


class Row(NamedTuple):
    """An entry as it is stored. `ordinal` counts full-history commits (0 on other rows)."""

    position: int
    epoch: int
    code: int
    revision: int
    ordinal: int
    key: bytes | None
    fields: bytes
    body: bytes
    check: int


class Late(NamedTuple):
    """A row that is not encoded yet, as a journal in memory keeps it."""

    position: int
    epoch: int
    code: int
    revision: int
    ordinal: int
    key: bytes | None
    record: Commit | Input

    def row(self) -> Row:
        """The row."""
        return encode(self.position, self.epoch, self.revision, self.ordinal, self.record)


def encode_late(position: int, epoch: int, revision: int, ordinal: int, record: Record) -> Row | Late:
    """`encode`, later where that can wait and will not fail."""
    if isinstance(record, Commit) and record.late is not None and record.actor.isascii():
        code = FULL if record.retention == "full" else HEAD_ONLY
        return Late(position, epoch, code, revision, ordinal, encode_key(record.key), record)
    if isinstance(record, Input) and type(record.subject) is str and record.subject.isascii():
        _parts(record)  # which says what is wrong with it, and packs nothing
        return Late(position, epoch, INPUT, revision, ordinal, None, record)
    return encode(position, epoch, revision, ordinal, record)


_NUMBERS = struct.Struct("<qqqqqqq")


def checksum(row: Row) -> int:
    """xxHash-64 of all columns but the last, as a signed 64-bit integer (SQLite has no unsigned)."""
    key = b"" if row.key is None else row.key
    lengths = -1 if row.key is None else len(key), len(row.fields)
    digest = xxhash.xxh3_64(_NUMBERS.pack(*row[:5], *lengths))
    digest.update(key)
    digest.update(row.fields)
    digest.update(row.body)
    value = digest.intdigest()
    return value - (1 << 64) if value >= 1 << 63 else value


def encode_key(key: Key) -> bytes:
    """NUL-joined UTF-8: bytes sort as the tuples do. `BadRecord` for anything but four clean strings."""
    try:
        joined = "\0".join(key).encode()
    except (TypeError, UnicodeEncodeError) as error:
        raise BadRecord(f"key {key!r} is not four strings ({error})", "pass a Key") from None
    if len(key) != 4 or joined.count(b"\0") != 3:
        raise BadRecord(f"key {key!r} is not four strings without NUL", "pass a Key")
    return joined


def decode_key(key: bytes) -> Key:
    """The inverse of `encode_key`; `ValueError` for bytes that it cannot have made."""
    group, kind, namespace, name = key.decode().split("\0")
    return Key(group, kind, namespace, name)


def encode(position: int, epoch: int, revision: int, ordinal: int, record: Record) -> Row:
    """The row of `record`; `BadRecord` if one of its fields has the wrong type or size."""
    try:
        code, key, fields, body = _parts(record)
        packed = msgpack.packb(fields)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise BadRecord(
            f"a {type(record).__name__} record cannot be stored ({error})", "give every field its documented type"
        ) from None
    size = len(packed) + len(body)
    if size > MAX_RECORD_BYTES:
        raise BadRecord(
            f"a {type(record).__name__} record of {size} bytes is over the limit of {MAX_RECORD_BYTES}",
            "refuse such an object before it is committed",
        )
    row = Row(position, epoch, code, revision, ordinal, key, packed, body, 0)
    return row._replace(check=checksum(row))


def _parts(record: Record) -> tuple[int, bytes | None, tuple[object, ...], bytes]:
    if isinstance(record, Commit):
        full, head_only = record.sums
        _need(record.verb in VERBS, f"verb {record.verb!r}")
        _need(record.retention in ("full", "head-only"), f"retention {record.retention!r}")
        _need(len(full) == len(head_only) == SUM_BYTES, f"sums are not twice {SUM_BYTES} bytes")
        body = record.object if record.late is None else record.late()
        _need(type(body) is bytes and body != b"", "object is not bytes, or empty")
        _typed(record, str, "actor", "uid")
        _typed(record, int, "at")
        fields = (record.verb, record.actor, record.uid, record.at, full, head_only)
        code = FULL if record.retention == "full" else HEAD_ONLY
        return code, encode_key(record.key), fields, body
    if isinstance(record, Input):
        _typed(record, str, "source", "subject")
        _typed(record, int, "at")
        _typed(record, bytes, "data")
        return INPUT, None, (record.source, record.subject, record.at), record.data
    if isinstance(record, Reconcile):
        _typed(record, str, "controller", "end")
        _typed(record, bytes, "code")
        outcomes = (record.reads, record.times, record.randoms, record.externals, record.writes)
        body = msgpack.packb(outcomes)
        return RECONCILE, encode_key(record.key), (record.controller, record.code, record.end), body
    raise TypeError("not a Commit, Input or Reconcile")


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _typed(record: Record, wanted: type, *names: str) -> None:
    for name in names:
        value = getattr(record, name)
        if type(value) is not wanted:
            raise TypeError(f"{name} is {value!r}, not {wanted.__name__}")


def decode(row: Row, where: str) -> Entry:
    """The entry of a stored row; `Corrupt` naming `where` (the journal) and the row if it is damaged."""
    try:
        if checksum(row) != row.check:
            raise ValueError("checksum does not match")
        return Entry(row.position, row.epoch, row.revision, _record(row))
    except (ValueError, TypeError, AttributeError, struct.error, msgpack.UnpackException) as error:
        raise Corrupt(f"journal {where}: row {row.position} is damaged ({error})", RESTORE) from None


def _record(row: Row) -> Record:
    fields = msgpack.unpackb(row.fields)
    if row.code in (FULL, HEAD_ONLY):
        verb, actor, uid, at, full, head_only = fields
        retention: Retention = "full" if row.code == FULL else "head-only"
        key = decode_key(row.key or b"")
        return Commit(row.revision, key, verb, actor, uid, row.body, at, (full, head_only), retention)
    if row.code == INPUT:
        source, subject, at = fields
        return Input(source, subject, row.body, at)
    if row.code == RECONCILE:
        controller, code, end = fields
        reads, times, randoms, externals, writes = msgpack.unpackb(row.body)
        return Reconcile(
            controller,
            code,
            decode_key(row.key or b""),
            tuple(Read(*read) for read in reads),
            tuple(times),
            tuple(randoms),
            tuple(External(*external) for external in externals),
            tuple(Write(*write) for write in writes),
            end,
        )
    raise ValueError(f"record code {row.code} is unknown")
