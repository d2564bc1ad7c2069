"""Requests, their outcomes, and Effects: everything that passes between a controller and the world.

The request machine is sans-IO. `begin(store, request)` answers one of three things: a `Reply` (nothing to write), a
`Commit` (one object's next version, to be committed by the face if the slot still is as it was), or a `Call` (the
face must ask somebody: a webhook, a signer, randomness; and go on with `resume(answer)`).

An `Effect` is one exchange of a controller with the world. Controllers interact in no other way, so a reconcile is the
list of its effects and their outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from .object import Key, Object
from .value import EMPTY

GK = tuple[str, str]
MICRO: Final = 1_000_000
"""Times are integer microseconds since the Unix epoch, everywhere."""


class Refused(Exception):
    """A request was refused. `api.errors.ApiError` is the one kind there is; the kernel needs only these two."""

    code: int
    reason: str

    @property
    def told(self) -> str:
        """Reason and message; a webhook need not give a reason."""
        return f"{self.reason}: {self}" if self.reason else str(self)


class Request(NamedTuple):
    """One API request by an authenticated actor."""

    verb: str
    """create | get | list | update | patch | apply | delete"""
    key: Key
    """The slot; the name is "" for a list and for a create with generateName."""
    body: Any = None
    subresource: str = ""
    actor: str = ""
    """Authenticated. `manager` is only what the client claims."""
    manager: str = ""
    now: int = 0
    """Microseconds."""
    options: Mapping[str, Any] = EMPTY
    """patch ("merge" | "json"), force, dry_run, validation, uid, rv (preconditions), grace (seconds), propagation,
    part (a subresource that managedFields are to tell), labels, fields (selectors), limit, continue; of clients beside
    the control plane's own parts, user (who the actor is, for checks of what is written) and no_create (the refusal if
    an apply or an update would create) and audit (a dict in which admission leaves what an audit log is to tell; it is
    no part of the outcome)."""


class Reply(NamedTuple):
    """What the client is told."""

    code: int
    obj: Object | None = None
    items: tuple[Object, ...] | None = None
    rev: int = 0
    token: str = ""
    """Where the next page of a list starts; "" at the end."""
    remaining: int = 0
    warnings: tuple[str, ...] = ()
    status: Mapping[str, Any] | None = None
    """A Kubernetes Status to send instead of an object."""


class Commit(NamedTuple):
    """The next version of one slot. `new` is None when the object goes away."""

    key: Key
    old: Object | None
    new: Object | None
    code: int = 200
    warnings: tuple[str, ...] = ()
    last: Callable[[Object], Object] | None = None
    """Makes what the client is shown of an object that goes away, where that is not the old version."""

    @property
    def expected_rv(self) -> int:
        """The revision the slot must still have; 0: it must be empty."""
        return 0 if self.old is None else self.old.rv


class Call(NamedTuple):
    """Something only the face can ask: `kind` is "random" | "webhook" | "convert" | "sign"."""

    kind: str
    question: Any
    resume: Callable[[Any], Reply | Commit | Call]


Outcome = Reply | Commit | Call


class Event(NamedTuple):
    """One committed change. `old` is None for a create, `new` for a removal; never both."""

    rev: int
    key: Key
    old: Object | None
    new: Object | None

    @property
    def type(self) -> str:
        """ADDED | MODIFIED | DELETED, as a watch says it."""
        return "ADDED" if self.old is None else "DELETED" if self.new is None else "MODIFIED"

    @property
    def obj(self) -> Object:
        """The newest version there is."""
        return self.old if self.new is None else self.new  # type: ignore[return-value]


class ListQuery(NamedTuple):
    """What a list asks for. `by` and `value` narrow it by a declared index; `matches` does the rest."""

    gk: GK
    namespace: str | None
    by: str = ""
    value: str = ""
    text: str = ""
    """The selectors as text: with the other fields it identifies the query."""
    matches: Callable[[Object], bool] | None = None


class Footprint(NamedTuple):
    """What an effect read and wrote: keys, (gk, namespace, selector) lists, time comparisons, external systems."""

    reads: tuple[Any, ...] = ()
    writes: tuple[Any, ...] = ()


class Effect(NamedTuple):
    """One exchange: op is get | list | write | now | stamp | after | random | external | event."""

    op: str
    what: Any
    """get: Key; list: ListQuery; write: Request; now: None; after: (time, delay) in microseconds; random: number of
    bytes; external: (system, request); event: what people are told, which is no part of the state."""
    fresh: bool = False
    """get, list: read the head rather than this controller's own view."""

    @property
    def footprint(self) -> Footprint:
        """What it touches."""
        if self.op == "get":
            return Footprint(reads=(self.what,))
        if self.op == "list":
            query = self.what
            return Footprint(reads=((query.gk, query.namespace, query.by, query.value, query.text),))
        if self.op == "write":
            return Footprint(writes=(self.what.key,))
        return Footprint(reads=((self.op, str(self.what)),))

    def __str__(self) -> str:
        if self.op == "write":
            request = self.what
            verb = f"{request.verb} {request.subresource}" if request.subresource else request.verb
            return f"{verb} {request.key}"
        if self.op == "list":
            query = self.what
            where = query.namespace if query.namespace is not None else "all namespaces"
            narrowed = f" {query.by}={query.value}" if query.by else ""
            return f"list {query.gk[1]} in {where}{narrowed}{' ' + query.text if query.text else ''}"
        return self.op if self.what is None else f"{self.op} {self.what}"


def reply_of(commit: Commit, event: Event) -> Reply:
    """What the client is told of a commit that became `event`. What is gone is shown at the revision of its end, but
    for a `last` that has a revision of its own."""
    obj = event.new
    if obj is None:
        old = commit.old
        obj = commit.last(old) if commit.last is not None and old is not None else old
        if obj is not None and (obj is old or not obj.rv):
            obj = obj.at(event.rev)
    return Reply(commit.code, obj, None, event.rev, warnings=commit.warnings)
