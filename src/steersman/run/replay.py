"""Executing recorded reconciles again (law J2): the same code, given what was recorded, makes the same writes.

Reads are answered from the store as the journal's commits rebuild it at the revision recorded; times, randoms,
external answers and refusals come from the record. A write is begun again on the store before it, with the clock and
the draws that are in the journal, and has to make the very bytes that were committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import errors
from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.api.stored import load
from steersman.journal import Commit as CommitRecord
from steersman.journal import Entry, Input, Journal, Reconcile
from steersman.kernel.effect import Call, Commit, Effect, Request
from steersman.kernel.object import Object
from steersman.kernel.reexec import Reconciler
from steersman.kernel.store import EVERY, Store
from steersman.kernel.value import Frozen, freeze
from steersman.run.exchange import MEMORY, check_calls, refusal_of
from steersman.run.load import HEAD_ONLY, config, replay


class Verdict(NamedTuple):
    """What came of executing a reconcile again."""

    record: Reconcile
    differences: tuple[str, ...] = ()
    """Empty: the same reads, the same writes, the same end."""
    skipped: str = ""
    """Why it could not be executed: its code is not there any more, or it read what is not kept."""


class Unrepeatable(Exception):
    """A reconcile cannot be executed again; the text says why."""


class Differs(Exception):
    """The execution went another way than the record."""


class History:
    """A journal's past: stores at the revisions that its reconciles read and wrote on, draws, and records."""

    def __init__(self, journal: Journal) -> None:
        self.where = journal.url
        entries: list[Entry] = list(journal.entries())
        self.reconciles = [e.record for e in entries if isinstance(e.record, Reconcile)]
        self.commits = {c.revision: c for e in entries if isinstance(c := e.record, CommitRecord)}
        self.drawn: dict[int, list[str]] = {}
        for entry in entries:
            if isinstance(entry.record, Input) and entry.record.source in ("random", "user", "component"):
                data = orjson.loads(entry.record.data)
                self.drawn[data["revision"]] = data.get("drawn", [])
        self._stores = self._rebuild({0, *self._revisions()})

    def _revisions(self) -> Iterator[int]:
        for record in self.reconciles:
            yield from (read.revision for read in record.reads)
            yield from (write.revision - 1 for write in record.writes if write.revision)

    def _rebuild(self, wanted: set[int]) -> dict[int, Store]:
        """Replays the commits once. A revision that was dropped since was one of a head-only kind, and left the rest
        of the store as it was."""
        store = Store(config())
        out: dict[int, Store] = {}
        left = deque(sorted(wanted))

        def kept() -> Iterator[CommitRecord]:
            for revision in sorted(self.commits):
                while left and left[0] < revision:
                    out[left.popleft()] = store.fork()
                yield self.commits[revision]

        for _ in replay(kept(), store, self.where):
            pass
        return out | dict.fromkeys(left, store)

    def at(self, revision: int) -> Store:
        """The store at a revision that some reconcile read, or wrote on; its full-history kinds."""
        return self._stores[revision]


def execute_again(record: Reconcile, loop: Reconciler, api: Api, history: History) -> Verdict:
    """Executes one recorded reconcile again."""
    if record.end == "crashed":
        return Verdict(record, skipped="it was cut off when the server stopped")
    if bytes.fromhex(loop.code) != record.code:
        return Verdict(record, skipped=f"the code of {loop.name} is not the one it ran with")
    again = _Again(record, api, history)
    try:
        result = loop.execute(record.key, again.memory(), again)
    except Unrepeatable as why:
        return Verdict(record, skipped=str(why))
    except Differs as how:
        return Verdict(record, skipped=again.incomplete) if again.incomplete else Verdict(record, (str(how),))
    if again.skipped:
        return Verdict(record, skipped=again.skipped)
    differences = [*again.differences, *again.left()]
    again_wanted = result.requeue or result.requeue_after is not None or result.requeue_at is not None
    end = "raised" if result.error is not None else "requeue" if again_wanted else "done"
    if end != record.end and not differences:
        differences.append(f"ended {end!r}, not {record.end!r}")
    if differences and again.incomplete:
        return Verdict(record, skipped=again.incomplete)
    return Verdict(record, tuple(differences))


_MISSING: Final = object()


class _Again:
    """The exchange that answers from a record."""

    def __init__(self, record: Reconcile, api: Api, history: History) -> None:
        self._record = record
        self._api = api
        self._history = history
        self._reads = iter(record.reads)
        self._times = iter(record.times)
        self._randoms = iter(record.randoms)
        self._externals = iter(record.externals)
        self._writes = iter(record.writes)
        self.differences: list[str] = []
        self.skipped = ""
        self.incomplete = ""
        """Why what it read may lack objects that were there: then a difference proves nothing."""
        self._calls = 0

    def memory(self) -> Frozen | None:
        """What the controller remembered at its start."""
        first = self._record.externals[:1]
        if first and first[0].name == MEMORY:
            next(self._externals)
            memory: Frozen = freeze(orjson.loads(first[0].outcome))
            return memory
        return None

    def left(self) -> list[str]:
        """What the record has and the execution did not ask for."""
        kinds = (self._reads, self._times, self._randoms, self._externals, self._writes)
        return [f"did not make a recorded call any more: {item!r}" for kind in kinds for item in kind]

    def __call__(self, effect: Effect) -> Any:
        if effect.op == "event":
            return None
        self._calls += 1
        check_calls(self._calls)
        if self.skipped or self.differences:
            raise Differs("it went on after a difference")
        try:
            return self._answer(effect)
        except Unrepeatable as why:  # a controller may catch every Exception: remembered, so that nothing hides it
            self.skipped = str(why)
            raise
        except Differs as how:
            self.differences.append(str(how))
            raise

    def _answer(self, effect: Effect) -> Any:
        op = effect.op
        if op in ("get", "list"):
            return self._read(effect)
        if op == "write":
            return self._write(effect)
        if op == "random":
            return self._next(self._randoms, effect).hex()
        if op == "external":
            external = self._next(self._externals, effect)
            request = orjson.dumps(effect.what[1], option=orjson.OPT_SORT_KEYS)
            self._same(str(effect.what[0]), external.name)
            self._same(request.decode(), external.request.decode())
            outcome = orjson.loads(external.outcome)
            if "refused" in outcome:
                raise errors.from_status(outcome["refused"])
            return freeze(outcome["answer"])
        now = self._next(self._times, effect)
        return now >= effect.what[0] + effect.what[1] if op == "after" else now

    def _next(self, recorded: Iterator[Any], effect: Effect) -> Any:
        item = next(recorded, _MISSING)
        if item is _MISSING:
            raise Differs(f"made a call that it had not made: {effect}")
        return item

    @staticmethod
    def _same(now: str, then: str) -> None:
        if now != then:
            raise Differs(f"asked for {now!r}, not for {then!r}")

    def _read(self, effect: Effect) -> Any:
        gk = effect.what.gk
        read = self._next(self._reads, effect)
        self._same(str(effect), read.target)
        if gk == EVERY:
            self.incomplete = "it read objects of every kind, and of some no history is kept"
        elif gk in HEAD_ONLY:
            raise Unrepeatable(f"it read a {gk[1]}, of which no history is kept")
        store = self._history.at(read.revision)
        return store.get(effect.what) if effect.op == "get" else tuple(store.query(effect.what))

    def _write(self, effect: Effect) -> Any:
        write = self._next(self._writes, effect)
        self._same(str(effect), write.target)
        refusal = refusal_of(write.reply)
        if refusal is not None:
            raise refusal
        if not write.revision:
            return self._unchanged(write.reply)
        commit = self._history.commits.get(write.revision)
        if commit is None:
            raise Unrepeatable(f"revision {write.revision}, which it wrote, is not kept")
        self._check_commit(effect.what, commit)
        return load(commit.object)

    def _unchanged(self, reply: bytes) -> Object | None:
        if not reply:
            return None
        commit = self._history.commits.get(orjson.loads(reply)["unchanged"])
        if commit is None:
            raise Unrepeatable("it was answered a version that is not kept")
        return load(commit.object)

    def _check_commit(self, request: Request, commit: CommitRecord) -> None:
        """Begins the write again where it was begun, and compares what it makes with what was committed."""
        drawn = iter(self._history.drawn.get(commit.revision, ()))
        request = request._replace(actor=self._record.controller, now=commit.at)
        store = self._history.at(commit.revision - 1)
        try:
            outcome = self._api.begin(store, request)
            while isinstance(outcome, Call):
                if outcome.kind == "sign":
                    raise Unrepeatable(f"something was signed for {request.key}, and signatures are not kept")
                outcome = outcome.resume(next(drawn))
        except (ApiError, StopIteration) as error:
            raise Differs(f"the write {request.verb} {request.key} now ends in {error!r}") from None
        if not isinstance(outcome, Commit):
            raise Differs(f"the write {request.verb} {request.key} now changes nothing")
        made = None if outcome.new is None else outcome.new.at(commit.revision)
        wanted = None if commit.verb == "delete" else load(commit.object)
        if (made is None) != (wanted is None) or (made is not None and wanted is not None and made.term != wanted.term):
            raise Differs(
                f"the write {request.verb} {request.key} now makes other bytes than revision {commit.revision}"
            )
