"""One process of a search in several: it expands the states that are its own, and tells what came of it.

It is a fork of the search: it goes on with the graph, the memos and the reductions that were there, and with numbers of
its own from there on. What it sends are arrays of these numbers, and what stands behind each once; `spread` puts them
together. Worlds never leave the process that made them.
"""

from __future__ import annotations

import signal
from array import array
from itertools import islice
from multiprocessing.connection import Connection
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from steersman.check.graph import LOW, Visited
from steersman.check.properties.changes import Slot
from steersman.check.reduce.changes import Change, Log
from steersman.check.reduce.settle import Settled
from steersman.check.watchdog import Watchdog
from steersman.check.workers import Lesson
from steersman.kernel.action import Action
from steersman.kernel.reexec import Finding
from steersman.kernel.system import Learned
from steersman.kernel.world import World

if TYPE_CHECKING:
    from steersman.check.explore import Explorer

CHUNK: Final = 64
"""States whose expansions are sent together: few enough for the others not to wait, enough to be cheap."""
Waiting = tuple[int, int, World]
"""A state that waits to be expanded: number, depth, world."""


class Wrong(NamedTuple):
    """What went wrong at a transition, or in the state that it led to."""

    state: int
    """Which of the chunk's states was expanded."""
    edge: int
    """How many of the chunk's transitions there were before."""
    findings: tuple[tuple[tuple[str, str], Finding], ...] = ()
    actions: tuple[Action, ...] = ()
    """Findings: the steps from that state to where they showed."""
    name: str = ""
    """A claim that must always hold, and does not."""
    message: str = ""


class Counters(NamedTuple):
    """What the memos did in one process since it began."""

    executions: int = 0
    hits: int = 0
    write_hits: int = 0
    writes: int = 0

    @staticmethod
    def of(explorer: Explorer) -> Counters:
        """What they did so far."""
        reexec, memo = explorer.system.reexec, explorer.writes
        hits, misses = (0, 0) if memo is None else (memo.hits, memo.misses)
        return Counters(reexec.executions, reexec.hits + reexec.recalled, hits, hits + misses)

    def plus(self, other: Counters, sign: int = 1) -> Counters:
        """Both together; with -1 what is more here."""
        return Counters(*[mine + sign * theirs for mine, theirs in zip(self, other, strict=True)])


class Chunk(NamedTuple):
    """What came of expanding some states, in this process's numbers."""

    edges: array[int]
    """How many transitions each state has; fewer states than expected when something ended the search there."""
    edge_action: array[int]
    edge_target: array[int]
    actions: list[Action]
    """Those with new numbers."""
    stores: list[int]
    """The contents of stores with new numbers."""
    high: array[int]
    """What new states are known by: the upper and the lower halves; and their stores."""
    low: array[int]
    store_of: array[int]
    gone: list[tuple[int, tuple[Slot, ...]]]
    """What transitions of the chunk removed."""
    wrong: list[Wrong]
    notes: tuple[array[int], ...]
    """Pairs for the reductions, a state and a number: changes, what was settled, reads that were taken at once."""
    counters: Counters
    raw: tuple[frozenset[str], frozenset[str]]
    """Who has read the raw time, and who has drawn random numbers."""
    unfit: bool = False
    """Lazy deliveries were found not to be right."""
    lesson: Lesson | None = None
    full: str = ""
    """Why the process could not go on."""
    error: BaseException | None = None


class Facts(NamedTuple):
    """What the numbers in `Chunk.notes` stand for that this process has given out."""

    changes: list[Change]
    reads: int
    settled: list[Settled]
    nodes: list[tuple[Any, int]]


class Listener(Protocol):
    """Who hears of what goes wrong while states are expanded."""

    def report(self, number: int, *actions: Action) -> None:
        """There are new findings, after some steps from a state."""

    def breaks(self, name: str, message: str, number: int) -> None:
        """A claim that must always hold does not in a new state."""


class Recorded(Visited):
    """The visited states, with those that are new."""

    __slots__ = ("found",)

    def __init__(self, inner: Visited) -> None:
        self._shards, self.size = inner._shards, inner.size
        self.found: list[int] = []

    def number(self, fingerprint: int) -> tuple[int, bool]:
        number, new = super().number(fingerprint)
        if new:
            self.found.append(fingerprint)
        return number, new


class Part:
    """The search in this process."""

    def __init__(self, explorer: Explorer, workers: int, pipe: Connection) -> None:
        self.explorer = explorer
        self.pipe = pipe
        explorer.share(workers + 1)
        explorer.listener = self
        self._visited = explorer.graph.visited = Recorded(explorer.graph.visited)
        self._start = Counters.of(explorer)
        settler = explorer.reducer.settler
        log = explorer.reducer.log
        self._base = (len(log.changes), len(log.reads))
        self._known = (0, 0) if settler is None else settler.size
        self._wrong: list[Wrong] = []
        self._broken = {violation.name for violation in explorer.verdict.violations}
        self._begin()

    def work(self, mine: list[Waiting]) -> None:
        """Expands level by level what it is told is its own, until there is no more."""
        reducer, graph = self.explorer.reducer, self.explorer.graph
        most = self.explorer.bounds.max_depth
        while True:
            found: list[Waiting] = []
            for number, depth, world in mine if most is None or not mine or mine[0][1] < most else ():
                start = graph.transitions
                chunk = None
                try:
                    self.explorer.expand(number, depth, world, reducer.actions(world, number), found)
                    self._edges.append(graph.transitions - start)
                    if len(self._edges) == CHUNK:
                        chunk = self._chunk(full=self.explorer.look(_nothing))
                except Learned as learned:
                    chunk = self._chunk(lesson=Lesson.of(learned))
                except Exception as error:
                    chunk = self._chunk(error=error)
                if chunk is not None:
                    self._send(chunk)
                    if chunk.lesson or chunk.full or chunk.error:
                        return
            if self._edges:
                self.pipe.send(self._chunk())
            chosen = self.pipe.recv()
            if chosen is None:
                break
            mine = [found[at] for at in chosen]
            reducer.deeper()
        self._tell()

    def _send(self, chunk: Chunk) -> None:
        try:
            self.pipe.send(chunk)
        except (PicklingError, TypeError, AttributeError):
            if chunk.error is None:
                raise
            self.pipe.send(chunk._replace(error=RuntimeError(f"{type(chunk.error).__name__}: {chunk.error}")))

    def _tell(self) -> None:
        """What is needed to verify the guesses of the reductions: what was seen here, and which changes that are known
        by now matter to what was read here."""
        log, settler = self.explorer.reducer.log, self.explorer.reducer.settler
        settled, nodes = ([], []) if settler is None else settler.since(self._known)
        changes, reads = self._base
        self.pipe.send(Facts(log.changes[changes:], len(log.reads) - reads, settled, nodes))
        every = [*log.changes[:changes], *self.pipe.recv()]
        self.pipe.send([] if settler is None else [settler.masks(change, reads) for change in every])

    # -- what an explorer tells ----------------------------------------------------------------------------------

    def report(self, number: int, *actions: Action) -> None:
        """Findings that were not known here, after some steps from a state."""
        self._note(Wrong(len(self._edges), self._at, tuple(self.explorer.unseen()), actions))

    def breaks(self, name: str, message: str, number: int) -> None:
        """A claim does not hold in the state that the last transition led to."""
        if name not in self._broken:
            self._broken.add(name)
            self._note(Wrong(len(self._edges), self._at, name=name, message=message))

    def _note(self, wrong: Wrong) -> None:
        self._wrong.append(wrong)

    @property
    def _at(self) -> int:
        return self.explorer.graph.transitions - self._from[0]

    # -- chunks --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        explorer = self.explorer
        graph, log = explorer.graph, explorer.reducer.log
        self._edges = array("I")
        self._wrong = []
        self._visited.found = []
        self._from = (graph.transitions, len(graph.actions), len(explorer.stores), len(graph))
        self._noted = tuple([len(part) for part in _notes(explorer, log)])

    def _chunk(self, lesson: Lesson | None = None, full: str = "", error: Exception | None = None) -> Chunk:
        """What there is since the last one."""
        explorer = self.explorer
        graph, system = explorer.graph, explorer.system
        edge, action, store, state = self._from
        kept = edge + sum(self._edges)
        identities = self._visited.found
        stores = list(islice(reversed(explorer.stores), len(explorer.stores) - store))
        stores.reverse()
        lazy = explorer.reducer.lazy
        notes = zip(_notes(explorer, explorer.reducer.log), self._noted, strict=True)
        chunk = Chunk(
            self._edges,
            graph.edge_action[edge:kept],
            graph.edge_target[edge:kept],
            graph.actions[action:],
            stores,
            array("Q", [identity >> 64 for identity in identities]),
            array("Q", [identity & LOW for identity in identities]),
            graph.stores[state:],
            [(number - edge, slots) for number, slots in explorer.removed.since(edge)],
            self._wrong,
            tuple([part[start:] for part, start in notes]),
            Counters.of(explorer).plus(self._start, -1),
            (frozenset(system.raw_time), frozenset(system.raw_random)),
            lazy is not None and bool(lazy.unfit),
            lesson,
            full,
            error,
        )
        self._begin()
        return chunk


def _notes(explorer: Explorer, log: Log) -> tuple[array[int], ...]:
    settler = explorer.reducer.settler
    return (*log.notes, *(settler.notes if settler is not None else ()))


def _nothing() -> None:
    """No numbers to bring up to date."""


def work(explorer: Explorer, mine: list[Waiting], workers: int, pipe: Connection) -> None:
    """A process with its share of what waits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the parent, which ends this process
    with Watchdog(explorer):
        try:
            Part(explorer, workers, pipe).work(mine)
        except (EOFError, BrokenPipeError):
            return  # the parent has gone
