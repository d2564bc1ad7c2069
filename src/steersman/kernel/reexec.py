"""Re-execution: how a plain synchronous reconcile is stopped between any two of its calls.

A reconcile in flight is a start (controller, key, memory) and the outcomes of the calls it made so far. To take it one
call further it is run again from its start, fed with those outcomes, up to its next call: there `Suspend` is raised. A
crash just forgets it; two futures share its past.

Equal pasts lead to equal futures, so the reconciles of one search form a trie: its nodes are (start, outcomes so far),
each with the next call or the result. Walking an edge that exists costs a dict lookup: this is the read-set memo. A
reconcile must therefore be a function of what it reads. Every new edge is executed twice, the second time disturbed:
what the table of `identity` says does not count is shown changed (`Disturbed`), and the order of sets too where the
face can do that. What comes of it must be the same; whatever differs is reported as a `Finding`, or `Learned`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple, Protocol

import orjson

from .disturb import NOTHING, Disturbed, Stamp, same_json
from .effect import GK, Effect, Event, Refused, Request
from .identity import Canon, digest
from .object import SORTED, Key, Object
from .precondition import tokenise
from .recall import Recall as Recall
from .recall import Recalled as Recalled
from .store import Finder, Store
from .value import Frozen, ValueRefused, freeze

MAX_CALLS: Final = 10_000
"""Calls of one reconcile: more is a loop that never ends (Kubernetes' own busiest make some hundreds)."""
PLAIN_EXECUTIONS: Final = 3
"""Undisturbed executions that must agree before a difference is put down to the disturbance: a controller may go back
and forth."""


class Hung(BaseException):
    """Raised in a controller from outside, by a face that watches how long it runs without a call."""


class Suspend(BaseException):
    """The reconcile has reached its next call. Not an Exception: `except Exception` must not catch it."""


class Result(NamedTuple):
    """How a reconcile ended."""

    memory: Frozen | None = None
    requeue_after: int | None = None
    """Run again this many microseconds from now."""
    requeue_at: int | None = None
    """Run again at this time (`c.after` was asked too early)."""
    requeue: bool = False
    error: str | None = None
    """The text of the exception it ended with; it is then run again, with back-off."""
    api_error: bool = False
    """The exception was a refused request: part of life. Anything else is a bug of the controller."""
    where: str = ""
    """`file, line n` of that bug."""
    names: tuple[str, ...] = ()
    """The names in its memory that it looked at; "*" for all of them."""


class Outcome(NamedTuple):
    """What a call gave: a value or a refusal, and its two digests."""

    value: Any
    """Object | tuple of Objects | Refused | JSON scalar or value."""
    concrete: int
    canonical: int
    places: tuple[int, ...] = ()
    """Which version each of its objects is: the n-th that the reconcile meets of its slot, from 1; 0: another one."""


Exchange = Callable[[Effect], Any]
"""Performs an effect for a controller: returns the value or raises `Refused`."""


class Reconciler(Protocol):
    """A controller as the kernel sees it."""

    name: str
    workers: int
    """Reconciles of different keys that may be in flight at a time."""
    code: str
    """Digest of the controller's code, for memos and journals."""
    informers: tuple[GK, ...]
    """Kinds it watches or says it reads."""

    def listens(self, gk: GK) -> bool:
        """Whether events of a kind can trigger it."""

    def triggers(self, event: Event, store: Finder) -> Sequence[Key]:
        """The keys an event puts on the work queue."""

    def initial(self, store: Store) -> Sequence[Key]:
        """The keys to reconcile after a start."""

    def execute(self, key: Key, memory: Frozen | None, exchange: Exchange) -> Result:
        """One whole reconcile by a fresh instance. Lets `Suspend` through."""


class Finding(NamedTuple):
    """A fault of a controller that is seen while it runs, whatever the properties say."""

    kind: str
    """non-determinism | set-order | resource-version | swallowed-suspend | endless | raised | hangs"""
    who: str
    key: Key
    text: str


class Node:
    """A reconcile in flight: a place in the trie of outcomes."""

    __slots__ = ("canonical", "children", "depth", "effect", "key", "loop", "memory", "outcome", "parent", "result",
                 "revisions", "stamps", "version")  # fmt: skip

    def __init__(
        self, loop: int, key: Key, memory: Frozen | None, parent: Node | None, outcome: Outcome | None
    ) -> None:
        self.loop = loop
        self.key = key
        self.memory = memory
        self.parent = parent
        self.outcome = outcome
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.canonical = 0
        self.revisions: Mapping[Key, tuple[int, ...]] = {} if parent is None else parent.revisions
        """The revisions by which this place's outcomes show the versions met so far, by slot."""
        if outcome is not None and outcome.places:
            self._number(outcome)
        self.stamps: tuple[int, ...] = () if parent is None else parent.stamps
        """The times it was given as text (`c.timestamp`)."""
        if outcome is not None and isinstance(outcome.value, Stamp):
            self.stamps += (outcome.value,)
        self.effect: Effect | None = None
        """The next call; None when the reconcile has ended."""
        self.result: Result | None = None
        self.version = -1
        """The precondition of a write: it names the n-th version of its object that this reconcile has seen."""
        self.children: dict[int, Node] = {}

    def _number(self, outcome: Outcome) -> None:
        """Gives the outcome's objects revisions of this place of the trie. Paths that share it met the same versions
        at other revisions: what one path reads must agree with what another one read before."""
        single = not isinstance(outcome.value, tuple)
        revisions = dict(self.revisions)
        shown: list[Object] = []
        for obj, place in zip((outcome.value,) if single else outcome.value, outcome.places, strict=True):
            known = revisions.get(obj.key, ())
            if place:
                rv = known[place - 1]
            else:
                rv = obj.rv if obj.rv not in known else max(known) + 1
                revisions[obj.key] = (*known, rv)
            shown.append(obj if obj.rv == rv else obj.at(rv))
        self.revisions = revisions
        self.outcome = outcome._replace(value=shown[0] if single else tuple(shown))

    def journal(self) -> list[Outcome]:
        """The outcomes from the start to here."""
        out: list[Outcome] = []
        node: Node | None = self
        while node is not None and node.outcome is not None:
            out.append(node.outcome)
            node = node.parent
        out.reverse()
        return out


class Replay:
    """The exchange of an execution: answers from the journal, then suspends."""

    def __init__(self, journal: Sequence[Outcome]) -> None:
        self.journal = journal
        self.at = 0
        self.effect: Effect | None = None
        self.made: list[Effect] = []

    def __call__(self, effect: Effect) -> Any:
        if self.effect is not None:
            raise Suspend
        if effect.op == "event":
            return None  # for people: no state, so nothing can come between it and the next call
        if self.at == len(self.journal):
            self.effect = effect
            raise Suspend
        outcome = self.journal[self.at]
        self.at += 1
        self.made.append(effect)
        if isinstance(outcome.value, Refused):
            raise outcome.value
        return outcome.value


class Learned(BaseException):
    """A search found out something that must hold from its start; `System.learn` takes it in and the search starts
    again. Not an Exception: a person's step that catches those must not swallow it."""

    def __init__(
        self, loop: int = -1, gk: GK | None = None, *, applies: bool = False, ranks: bool = False, delay: int = -1
    ) -> None:
        super().__init__()
        self.loop = loop
        self.gk = gk
        """A kind that this controller reads through its cache: views of it must lag."""
        self.applies = applies
        """Somebody applies: managedFields count."""
        self.ranks = ranks
        """A controller does more with generations than compare them with observed ones: they count as they are."""
        self.delay = delay
        """A controller compares a time with this one (microseconds) before now, or with another: times count."""


Vary = Callable[[], AbstractContextManager[Any]]
"""What a face can do to disturb an execution from outside, such as reversing the order of sets."""


class Reexec:
    """The trie of all reconciles of one search, and what was found while growing it."""

    def __init__(
        self,
        loops: Sequence[Reconciler],
        canon: Canon,
        twice: bool = True,
        memo: bool = True,
        vary: Vary = nullcontext,
    ) -> None:
        self.loops = loops
        self.canon = canon
        self.twice = twice
        self.memo = memo
        self.vary = vary
        self.times = False
        """Times count: the second execution shows them as they are."""
        self.executions = 0
        """Real executions of controllers."""
        self.hits = 0
        """Edges that were there already."""
        self.recall: Recall | None = None
        """Knows steps of earlier searches, which are not executed then."""
        self.recalled = 0
        """Steps that it knew."""
        self.running: Node | None = None
        """What is being executed, for whoever watches how long it takes."""
        self.findings: dict[tuple[str, str], Finding] = {}
        self.asked: list[tuple[tuple[int, Key], Effect]] = []
        """Every question that reconciles of an item were found to ask: gets and lists, in the order they were found."""
        self.ended = 0
        """Reconciles that were executed to their end; found in the trie is not executed."""
        self.looked: list[tuple[tuple[int, Key], tuple[str, ...]]] = []
        """The names in memory that they were found to look at."""
        self.checked: Callable[[Node, list[Outcome]], None] | None = None
        """Hears of every new place of the trie, with what it was told so far."""
        self._roots: dict[tuple[int, Key, bytes], Node] = {}
        self._wrong = False
        """Something was found in the step that is being executed."""

    def root(self, loop: int, key: Key, memory: Frozen | None) -> Node:
        """The start of a reconcile."""
        text = b"" if memory is None else orjson.dumps(memory, option=SORTED)
        place = (loop, key, text)
        node = self._roots.get(place) if self.memo else None
        if node is None:
            node = Node(loop, key, memory, None, None)
            node.canonical = digest("start", self.loops[loop].name, key, text)
            self._grow(node)
            self._roots[place] = node
        else:
            self.hits += 1
        return node

    def advance(self, node: Node, outcome: Outcome) -> Node:
        """The reconcile one call further."""
        child = node.children.get(outcome.concrete) if self.memo else None
        if child is not None:
            self.hits += 1
            return child
        child = Node(node.loop, node.key, node.memory, node, outcome)
        child.canonical = digest(f"{node.canonical:x}", f"{outcome.canonical:x}")
        self._grow(child)
        node.children[outcome.concrete] = child
        return child

    def reconciles(self) -> Iterator[list[Node]]:
        """Every reconcile there was, from its start to its end or as far as it came, in the order they were met."""
        for root in self._roots.values():
            work = [[root]]
            while work:
                way = work.pop()
                if way[-1].children:
                    work.extend([[*way, child] for child in reversed(way[-1].children.values())])
                else:
                    yield way

    def _grow(self, node: Node) -> None:
        """Executes up to the node's next call, twice, and stores what came of it; what is recalled is not executed."""
        journal = node.journal()
        if self.recall is None or not self._recall(node, journal):
            self._executed(node, journal)
        if node.effect is not None and node.effect.op in ("get", "list"):
            self.asked.append(((node.loop, node.key), node.effect))
        if node.result is not None:
            self.ended += 1
        if node.result is not None and node.result.names:
            self.looked.append(((node.loop, node.key), node.result.names))
        if self.checked is not None:
            self.checked(node, journal)

    def _executed(self, node: Node, journal: Sequence[Outcome]) -> None:
        """Executes a step, and has it kept unless something is wrong with it."""
        self._wrong = False
        node.effect, node.result = self._execute(node, journal)
        if node.effect is not None and node.effect.op == "write":
            node.effect, node.version = tokenise(_private(node.effect), journal)
        if node.result is not None and node.result.where:
            self._find("raised", node, f"raised {node.result.error} ({node.result.where})")
        if self.twice:
            try:
                self._compare(node, journal)
            except Learned as learned:
                if self.recall is not None and not self._wrong:
                    self.recall.keep(self, node, journal, learned)
                raise
            if self.recall is not None and not self._wrong:
                self.recall.keep(self, node, journal, None)

    def _recall(self, node: Node, journal: Sequence[Outcome]) -> bool:
        """Whether an earlier search knew the step."""
        known = None if self.recall is None else self.recall.find(self, node, journal)
        if known is None:
            return False
        self.recalled += 1
        if known.learned is not None:
            raise known.learned
        node.effect, node.version, node.result = known[:3]
        return True

    def _execute(self, node: Node, journal: Sequence[Outcome]) -> tuple[Effect | None, Result | None]:
        self.executions += 1
        loop = self.loops[node.loop]
        replay = Replay(journal)
        if len(journal) >= MAX_CALLS:
            text = f"made {MAX_CALLS:,} calls in one reconcile; it was ended there"
            self._find("endless", node, text)
            return None, Result(node.memory, error=text)
        self.running = node
        try:
            result = loop.execute(node.key, node.memory, replay)
        except Suspend:
            result = None
        except Hung as hung:
            self._find("hangs", node, str(hung))
            return None, Result(node.memory, error=str(hung))
        finally:
            self.running = None
        if replay.effect is not None:
            if result is not None:
                text = (
                    "caught BaseException around a call, or called in another thread; catch Exception; call in its own"
                )
                self._find("swallowed-suspend", node, text)
            return replay.effect, None
        if replay.at < len(journal):
            self._find("non-determinism", node, f"made {replay.at} calls where it had made {len(journal)} before")
        return None, result

    def _compare(self, node: Node, journal: Sequence[Outcome]) -> None:
        """The second execution, disturbed in every way at once; if that changed anything, in each way alone."""
        ended = node.result
        if ended is not None and ended.error is not None and not (ended.api_error or ended.where):
            return  # from outside: it hangs, or never ends
        table = bool(self.canon.table)
        ranks, times = table and self.canon.ranks, table and not self.times
        if self._agrees(node, journal, Disturbed(True, ranks, times), self.vary):
            return
        plain = [self._agrees(node, journal, NOTHING, nullcontext) for _ in range(PLAIN_EXECUTIONS)]
        if not all(plain):
            self._differs("non-determinism", "the same reads", node, journal, nullcontext)
        elif self.vary is not nullcontext and not self._agrees(node, journal, NOTHING, self.vary):
            self._differs("set-order", "another order of a set", node, journal, self.vary)
        elif not self._agrees(node, journal, Disturbed(True, False, False), nullcontext):
            text = "computes with resourceVersion, which is only ever to be compared"
            self._find("resource-version", node, text)
        elif ranks or times:
            by_rank = ranks and not self._agrees(node, journal, Disturbed(False, True, False), nullcontext)
            by_time = times and not self._agrees(node, journal, Disturbed(False, False, True), nullcontext)
            if not (by_rank or by_time):  # only both together
                by_rank, by_time = ranks, times
            raise Learned(ranks=by_rank, delay=0 if by_time else -1)

    def _agrees(self, node: Node, journal: Sequence[Outcome], how: Disturbed, vary: Vary) -> bool:
        """Whether another execution, disturbed, makes the same call or ends in the same way."""
        changed = journal if how == NOTHING else [o._replace(value=how.value(o.value, self.canon)) for o in journal]
        with vary():
            effect, result = self._execute(node, changed)
        version = -1
        if effect is not None and effect.op == "write":
            effect, version = tokenise(effect, changed)
        return version == node.version and self._same(effect, node.effect, how) and _same_result(result, node.result)

    def _same(self, a: Effect | None, b: Effect | None, how: Disturbed) -> bool:
        if a is None or b is None:
            return a is b
        if a.op != b.op or a.fresh != b.fresh:
            return False
        if a.op == "list":
            return bool(a.what[:5] == b.what[:5])
        if a.op == "after":
            return how.times or bool(a.what == b.what)
        if a.op == "write":
            x, y = a.what, b.what
            tree = None if isinstance(x.body, list) else self.canon.tree(x.key.gk)
            return bool(x[:2] == y[:2] and x[3:] == y[3:] and same_json(x.body, y.body, how, tree))
        return bool(a.what == b.what)

    def _differs(self, kind: str, why: str, node: Node, journal: Sequence[Outcome], vary: Vary) -> None:
        with vary():
            effect, result = self._execute(node, journal)
        first, second = node.effect or node.result, effect or result
        text = f"{why} led first to {_brief(first)}, then to {_brief(second)}"
        if _brief(first) == _brief(second):
            text = f"{why} do not always lead to {_brief(first)}"
        self._find(kind, node, text)

    def _find(self, kind: str, node: Node, text: str) -> None:
        name, self._wrong = self.loops[node.loop].name, True
        self.findings.setdefault((kind, name), Finding(kind, name, node.key, text))


def _private(effect: Effect) -> Effect:
    """A write whose body the controller cannot change any more: it may be a template that it fills again and again."""
    request: Request = effect.what
    try:
        return effect._replace(what=request._replace(body=freeze(request.body)))
    except ValueRefused:
        return effect  # no JSON: the request machine refuses it


def _brief(what: Any) -> str:
    text = str(what)
    if isinstance(what, Effect) and what.op == "write":
        body = orjson.dumps(what.what.body, default=str).decode()
        text = f"{text} {body}"
    return text if len(text) <= 300 else text[:297] + "..."


def _same_result(a: Result | None, b: Result | None) -> bool:
    if a is None or b is None:
        return a is b
    return a[1:] == b[1:] and same_json(a.memory, b.memory, NOTHING)


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=SORTED, default=str)


def outcome_of(value: Any, canon: Canon, versions: Mapping[Key, tuple[Object, ...]]) -> Outcome:
    """The outcome of a call. `versions` are those the reconcile had seen before: an object's place among them is part
    of the digests, its revision is not."""
    if isinstance(value, Object):
        at = _place(value, versions)
        return Outcome(value, digest("o", value.content, at), digest("o", canon.of(value), at), (at,))
    if isinstance(value, tuple):
        places = tuple([_place(obj, versions) for obj in value]) if versions else (0,) * len(value)
        concrete = digest("l", places, *[obj.content for obj in value])
        return Outcome(value, concrete, digest("l", places, *[canon.of(obj) for obj in value]), places)
    if isinstance(value, Refused):
        both = digest("refused", value.code, value.reason, value)
        return Outcome(value, both, both)
    if isinstance(value, Stamp):
        return Outcome(value, digest("stamp", int(value)), digest("stamp", int(value) if not canon.table else ""))
    both = digest("value", _json(value))
    return Outcome(value, both, both)


def _place(obj: Object, versions: Mapping[Key, tuple[Object, ...]]) -> int:
    for number, seen in enumerate(versions.get(obj.key, ())):
        if seen.rv == obj.rv:
            return number + 1
    return 0
