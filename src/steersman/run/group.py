"""A group: the writes that become durable with one append, and whoever waits for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from os import urandom
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import errors, names
from steersman.api.begin import Api
from steersman.api.errors import AlreadyExists, ApiError
from steersman.api.stored import dump
from steersman.journal import (
    BadRecord,
    Fenced,
    Head,
    HeadMoved,
    Input,
    Journal,
    JournalError,
    JournalFull,
    Reconcile,
    Record,
    Sums,
)
from steersman.journal import Commit as CommitRecord
from steersman.journal.record import Verb
from steersman.kernel.effect import Call, Commit, Event, Outcome, Reply, Request, reply_of
from steersman.kernel.object import Object
from steersman.kernel.ports import Signer
from steersman.kernel.store import Store
from steersman.run.load import retention, sums_of
from steersman.serve.asking import ASKED, Asked, Trail
from steersman.serve.random_uuid import random_uuid

log = logging.getLogger("steersman.run")

NAME_ATTEMPTS: Final = 8
"""Names drawn for one generateName before the client is asked to try again, as kube-apiserver does it."""
UNRECORDED: Final = ("audit", "no_create", "user")
"""Options of a request that are no part of what it asks for."""
MAX_OBJECT_BYTES: Final = 3 << 20
"""Spec, status and all else of one object: as much as one request can carry. The journal's own limit is beyond it."""


class Done(NamedTuple):
    """What came of a request: the reply, and the revision it made (0: none)."""

    reply: Reply
    revision: int


class Draws(NamedTuple):
    """An outcome, and what was drawn at random, or said by webhooks, on the way to it."""

    outcome: Reply | Commit
    drawn: list[Any]


class Group:
    """Records of one append, the events they are, and the replies that wait for them."""

    __slots__ = ("events", "notes", "records", "sums", "waiting")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.notes: list[Reconcile] = []
        """Records that tell of what is durable already: they outlive a failed append."""
        self.events: list[Event] = []
        self.sums: Sums | None = None
        """The store's digest sums after the last event."""
        self.waiting: list[tuple[Any, Done | ApiError]] = []
        """Futures (asyncio's or concurrent's) and what they will be told."""

    def __bool__(self) -> bool:
        return bool(self.records or self.notes)

    def release(self, failure: ApiError | None = None) -> None:
        """Tells everybody who waits: what came of it, or that it failed."""
        for future, result in self.waiting:
            settle(future, result if failure is None else failure)
        self.waiting.clear()


def settle(future: Any, result: Done | ApiError) -> None:
    """Ends one wait; a client that went away is none."""
    if future.done():
        return
    if isinstance(result, ApiError):
        future.set_exception(result)
    else:
        future.set_result(result)


def perform(api: Api, store: Store, request: Request, signer: Signer | None = None, trail: Trail = ()) -> Draws:
    """Begins a request and answers the Calls that are random draws or signatures, and those its trail answers. Raises
    `ApiError`, and `Asked` for a question to somebody else.

    Signatures are not among what was drawn: the log must not hold tokens.
    """
    drawn: list[Any] = []
    asked: list[Any] = []
    outcome = api.begin(store, request)
    while isinstance(outcome, Call):
        place = len(drawn)
        if place < len(trail) and trail[place][0] == outcome.question:
            asked.append(outcome.question)
            drawn.append(trail[place][1])
            outcome = outcome.resume(drawn[-1])
        elif outcome.kind == "random":
            asked.append(outcome.question)
            outcome = _draw(outcome, drawn)
        elif outcome.kind == "sign" and signer is not None:
            outcome = outcome.resume(signer.sign(*outcome.question))
        elif outcome.kind in ASKED:
            raise Asked(outcome.kind, outcome.question, list(zip(asked, drawn, strict=True)))
        else:
            raise errors.internal(f"nobody answers calls of kind {outcome.kind!r} in this version")
    return Draws(outcome, drawn)


def _draw(call: Call, drawn: list[Any]) -> Outcome:
    if call.question[0] == "uid":
        drawn.append(random_uuid())
        return call.resume(drawn[-1])
    for _ in range(NAME_ATTEMPTS):
        suffix = names.name_suffix(urandom(8))
        try:
            outcome = call.resume(suffix)
        except AlreadyExists:
            continue
        drawn.append(suffix)
        return outcome
    _, key, base = call.question
    raise errors.generate_name_conflict(key.kind.lower(), base, key.group)


def stage(group: Group, tentative: Store, commit: Commit, request: Request, origin: str, drawn: list[Any]) -> Event:
    """Commits to the tentative head and puts the records into the open group. Raises `ApiError` 413."""
    if commit.new is not None:
        _check_size(commit.new)
    event = tentative.commit(commit)
    if event is None:
        raise errors.internal(f"{commit.key} changed between begin and commit")
    obj = event.obj
    verb: Verb = "create" if event.old is None else "delete" if event.new is None else "update"
    group.sums = sums_of(tentative)
    group.records.append(
        CommitRecord(
            event.rev,
            event.key,
            verb,
            request.actor,
            obj.uid,
            b"",
            request.now,
            group.sums,
            retention(event.key.gk),
            partial(dump, obj),  # digested already, so that it cannot fail
        )
    )
    taken = _input(event.rev, request, origin, drawn)
    if taken is not None:
        group.records.append(taken)
    group.events.append(event)
    return event


def result_of(
    group: Group, tentative: Store, request: Request, origin: str, outcome: Callable[[], Draws]
) -> Done | ApiError:
    """What is to be told of a request, whose commit goes to the tentative head and into a group. Raises `Asked`."""
    try:
        made, drawn = outcome()
        if not isinstance(made, Commit):
            return Done(made, 0)
        event = stage(group, tentative, made, request, origin, drawn)
        return Done(reply_of(made, event), event.rev)
    except Asked:
        raise
    except ApiError as error:
        return error
    except Exception:
        log.exception("%s of %s by %s failed in the request machine", request.verb, request.key, request.actor)
        return errors.internal(f"the server failed on {request.verb} of {request.key}; its log has the cause")


def append(journal: Journal, epoch: int, before: Head, records: list[Record]) -> Head | JournalError:
    """One append: the new head when the records are durable, else why they are not."""
    try:
        return journal.append(epoch, before, records)
    except (Fenced, HeadMoved, JournalFull, BadRecord) as error:
        return error
    except JournalError as error:  # unknown outcome: the head tells
        try:
            head = journal.head()
        except JournalError as second:
            return Fenced(f"{error.problem}, and then {second.problem}", second.remedy)
        if head == before:
            return error
        if head.epoch == epoch and head.position == before.position + len(records):
            return head
        return HeadMoved(f"{error.problem}, and its head is now {tuple(head)}", "start the server again")
    except Exception as error:
        log.exception("appending %d records failed", len(records))
        return JournalError(f"appending failed: {type(error).__name__}: {error}", "report this fault")


def refused(error: JournalError) -> ApiError:
    """What the clients of a failed group are told."""
    if isinstance(error, JournalFull):
        text = f"the store has no room, nothing was written: {error.problem}; {error.remedy}. Reads go on"
        return ApiError(507, "InsufficientStorage", text, errors.Details(retry_after_seconds=10))
    if isinstance(error, BadRecord):
        return errors.internal(f"nothing was written: {error}")
    return errors.timeout(f"the store failed, the write may yet turn up after a restart: {error}", 1)


def carry_out(store: Store, events: Iterable[Event]) -> None:
    """Brings a store to where these events, its next ones, have led another."""
    for event in events:
        if event.new is None:
            store.remove(event.key, event.rev)
        else:
            store.put(event.new)
        store.rev = event.rev


def _check_size(obj: Object) -> None:
    size = 0
    for section in (obj.meta, obj.spec, obj.rest, obj.status):
        if section is not None:
            size += section.kept or len(section.raw)
    if size > MAX_OBJECT_BYTES:
        raise errors.request_entity_too_large(
            f"{obj.key} would have {size} bytes, more than the {MAX_OBJECT_BYTES} of one object; split it"
        )


def _input(revision: int, request: Request, origin: str, drawn: list[Any]) -> Input | None:
    """What law J2 is given and cannot compute: who asked for a write that no reconcile made, and what was drawn.

    `source` is "user" or "component" for such a write, or "random" for the draws of a reconcile's; `at` is the clock
    as the request was begun with. The commit beside it has the bytes.
    """
    if origin == "reconcile" and not drawn:
        return None
    verb = f"{request.verb} {request.subresource}" if request.subresource else request.verb
    data: dict[str, Any] = {"revision": revision}
    if drawn:
        data["drawn"] = drawn
    if request.manager and request.manager != request.actor:
        data["manager"] = request.manager
    options = {name: value for name, value in request.options.items() if name not in UNRECORDED}
    if options:  # the subject names the actor; groups and the like decided before it was written
        data["options"] = options
    source = "random" if origin == "reconcile" else origin
    subject = f"{request.actor} {verb} {request.key}"
    text = orjson.dumps(data, option=orjson.OPT_SORT_KEYS, default=str)
    return Input(source, subject, memoryview(text).tobytes(), request.now)  # right-sized, for a journal that keeps it
