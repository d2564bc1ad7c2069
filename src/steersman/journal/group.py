"""A group: the records of one append, checked and turned into the changes a backend makes in one transaction.

Pure: what the backends have in common, so that they cannot differ in what they accept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from .errors import BadRecord, Fenced, HeadMoved
from .record import FULL, HEAD_ONLY, Commit, Late, Record, Row, Verb

__all__ = ["EMPTY", "Group", "Head", "Slot", "State", "bad_transition", "plan"]


R = TypeVar("R", Row, Row | Late)


class Head(NamedTuple):
    """The end of the journal: current epoch, last revision, last position (all 0 when new)."""

    epoch: int
    revision: int
    position: int


class State(NamedTuple):
    """The journal's one mutable row: the lease (holder, epoch) and the running totals at the head.

    `ordinal` is the number of full-history commits ever written, `pruned` of head-only rows dropped.
    """

    holder: str
    epoch: int
    revision: int
    position: int
    ordinal: int
    pruned: int

    @property
    def head(self) -> Head:
        return Head(self.epoch, self.revision, self.position)


EMPTY = State("", 0, 0, 0, 0, 0)


@dataclass(slots=True)
class Slot:
    """What a group does to one key: was it live before, is it live after, where is its newest row."""

    was_live: bool
    first: Verb
    live: bool
    position: int
    head_only: int | None  # index in `Group.rows` of a head-only row that a later commit would drop


@dataclass(slots=True)
class Group(Generic[R]):
    """`rows` to insert in order, `slots` to change; `pruned` counts the rows dropped within the group."""

    state: State
    rows: list[R]
    slots: dict[bytes, Slot] = field(default_factory=dict)
    pruned: int = 0


def plan(
    state: State,
    epoch: int,
    expected: Head,
    records: Sequence[Record],
    where: str,
    encode: Callable[[int, int, int, int, Record], R],
) -> Group[R]:
    """The group of `records` appended at `state`, each as `encode` gives it.

    Raises `Fenced`, `HeadMoved` or `BadRecord`; whether a created key was free and an updated or
    deleted one was live before the group is left to the backend, which knows (`Slot.was_live`).
    """
    if epoch != state.epoch:
        holder = state.holder or "nobody"
        raise Fenced(
            f"journal {where}: epoch {epoch} is not current, {holder} holds epoch {state.epoch}",
            "stop writing, acquire the journal again and reload from its head",
        )
    if (expected.revision, expected.position) != (state.revision, state.position):
        raise HeadMoved(
            f"journal {where}: expected its head at revision {expected.revision}, position {expected.position}, "
            f"but it is at revision {state.revision}, position {state.position}",
            "discard the tentative writes, read the journal up to its head and try again",
        )
    rows: list[R | None] = []
    slots: dict[bytes, Slot] = {}
    _, _, revision, position, ordinal, pruned = state
    dropped = 0
    for index, record in enumerate(records):
        position += 1
        full = 0
        if isinstance(record, Commit):
            if record.revision != revision + 1:
                raise BadRecord(
                    f"journal {where}: record {index} of the group has revision {record.revision}, not {revision + 1}",
                    "number commits without gaps from the head",
                )
            revision += 1
            if record.retention == "full":
                ordinal += 1
                full = ordinal
        row = encode(position, epoch, revision, full, record)
        if row.code in (FULL, HEAD_ONLY):
            assert isinstance(record, Commit) and row.key is not None
            drop = _touch(slots, row, record, len(rows), where)
            if drop is not None:
                rows[drop] = None
                dropped += 1
        rows.append(row)
    after = State(state.holder, epoch, revision, position, ordinal, pruned + dropped)
    return Group(after, [row for row in rows if row is not None], slots, dropped)


def _touch(slots: dict[bytes, Slot], row: Row | Late, record: Commit, index: int, where: str) -> int | None:
    """Folds one commit into its slot; gives the index of the row it supersedes for good, if any."""
    assert row.key is not None
    verb = record.verb
    slot = slots.get(row.key)
    live = verb != "delete"
    head_only = index if row.code == HEAD_ONLY else None
    if slot is None:
        slots[row.key] = Slot(verb != "create", verb, live, row.position, head_only)
        return None
    if slot.live != (verb != "create"):
        raise bad_transition(where, row.key, verb)
    drop = slot.head_only
    slot.live, slot.position, slot.head_only = live, row.position, head_only
    return drop


def bad_transition(where: str, key: bytes, verb: Verb) -> BadRecord:
    """The error for a `verb` that the state of `key` does not allow."""
    name = key.decode().replace("\0", "/")
    why = "exists already" if verb == "create" else "does not exist"
    return BadRecord(f"journal {where}: {verb} of {name}, which {why}", "write only what the head allows")
