"""An exhaustive search in several processes that finds what one process finds, state by state.

It begins in one process. When enough states wait, each process (a fork) gets its share of them and expands it level by
level (`part`); what they find is put together here in the order in which one process would have found it: states get
their numbers, transitions and violations their places from that, and never from who was faster. A state belongs to one
of the processes that found it, that with the fewest; the others forget its world.

So every bound cuts where it would cut, and what is judged on the graph is judged here, once. Guesses of `settle` are
verified over what all processes read and changed; `sleep` and `lazy` are each process's own, and change no transition.
`clusters` and `symmetry` compare whatever happened anywhere: where they make a difference the search stays in one
process, and where they have made none so far they are given up.
"""

from __future__ import annotations

import multiprocessing
from array import array
from collections import deque
from multiprocessing import connection
from multiprocessing.connection import Connection
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from steersman.check.graph import Graph
from steersman.check.guard import take
from steersman.check.mistake import ScenarioError
from steersman.check.part import Chunk, Counters, Facts, Waiting, work
from steersman.check.reduce.settle import Settled
from steersman.check.verdict import plural
from steersman.check.workers import LOOK_SECONDS
from steersman.kernel.action import Action
from steersman.kernel.transition import apply
from steersman.kernel.world import World

if TYPE_CHECKING:
    from steersman.check.explore import Explorer

ALONE: Final = 2_000
"""States that one process visits before others are started: a search of half a second ends in it."""
SHARE: Final = 8
"""States that wait for each process when they are started."""
ENOUGH_VIOLATIONS: Final = 5
"""Violations after which a search stops: a person mends one at a time."""


NOWHERE: Final = Counters()
"""No other process did anything."""


class Anew(Exception):
    """The search starts again without what one process alone can do."""


def again(world: World, action: Action) -> World:
    """The world after a step that another process may have taken. Raises `ScenarioError` where it is not possible."""
    try:
        return apply(world, action)
    except KeyError:
        raise ScenarioError(
            f"{action.label}: was found in another process and is not possible here, so {action.who} depends on more "
            "than what it reads through its client (a global, a file, the process); leave workers out to be told what"
        ) from None


def ready(explorer: Explorer, waiting: int) -> bool:
    """Whether a search goes on in several processes from here. Raises `Anew`."""
    reducer = explorer.reducer
    if len(explorer.graph) < ALONE or waiting < SHARE * explorer.workers:
        return False
    if reducer.working:
        reducer.left = (f"one process (for {' and '.join(reducer.working)})",)
        return False
    if reducer.single:
        reducer.leave()
        raise Anew
    return True


def spread(explorer: Explorer, queue: deque[Waiting], start: float) -> None:
    """Expands what waits, and what comes of it, in several processes, until nothing waits or a bound is met."""
    parts: list[_Process] = []
    before = explorer.elsewhere
    try:
        for number in range(explorer.workers):
            parts.append(_Process(explorer, list(queue)[number :: explorer.workers]))
        first = queue[0][0]
        owners = array("H", [number % explorer.workers for number in range(len(queue))])
        queue.clear()
        _Whole(explorer, parts, start, before).run(first, owners)
    finally:
        for part in parts:
            part.end()


class _Lost(Exception):
    """Why a process does not go on."""


class _Process:
    """One process, as the parent sees it: what it sent, and its numbers in the numbers of the whole."""

    def __init__(self, explorer: Explorer, mine: list[Waiting]) -> None:
        graph = explorer.graph
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(explorer, mine, explorer.workers, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.inbox: deque[Any] = deque()
        self.gone = False
        self.counters = Counters()
        self.base = (len(graph), len(graph.actions), len(explorer.stores))
        self.states = array("I")
        self.actions: list[Action | int] = []
        """An action gets its number in the whole when it is met there."""
        self.stores: list[int] = []
        """The contents of its stores."""
        self.level = 0
        """How many of its states were known when the level began."""
        self.chunk: Chunk | None = None
        self.at = self.edge = 0
        """How far the chunk was taken in: states, transitions."""
        self.wrong = self.removed = 0
        self.fresh = 0
        """New states of the chunk that were taken in."""
        self.notes: list[tuple[array[int], ...]] = []

    def state(self, number: int) -> int:
        """A state's number in the whole."""
        return number if number < self.base[0] else self.states[number - self.base[0]]

    def action(self, graph: Graph, number: int) -> int:
        """An action's."""
        at = number - self.base[1]
        if at < 0:
            return number
        found = self.actions[at]
        if not isinstance(found, int):
            found = self.actions[at] = graph.action(found)
        return found

    def store(self, stores: dict[int, int], number: int) -> int:
        """A store's; `stores`: the numbers in the whole, by contents."""
        at = number - self.base[2]
        return number if at < 0 else stores.setdefault(self.stores[at], len(stores))

    def end(self) -> None:
        """Ends it, wherever it is."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


class _Whole:
    """The search as the parent puts it together."""

    def __init__(self, explorer: Explorer, parts: list[_Process], start: float, before: Counters) -> None:
        self.explorer = explorer
        self.parts = parts
        self.start = start
        self.before = before
        settler, log = explorer.reducer.settler, explorer.reducer.log
        self.known = (len(log.changes), len(log.reads), *((0, 0) if settler is None else settler.size))

    def run(self, first: int, owners: array[int]) -> None:
        """Level by level, from the first state that waits on."""
        explorer, verdict, graph = self.explorer, self.explorer.verdict, self.explorer.graph
        depth = verdict.depth
        try:
            while owners:
                verdict.depth = depth
                level = first + len(owners)
                for part in self.parts:
                    part.level = len(part.states)
                for number, owner in enumerate(owners, first):
                    if self._over(len(graph) - number):
                        verdict.frontier = len(graph) - number
                        return
                    most = explorer.bounds.max_depth
                    if most is not None and depth >= most:
                        verdict.incomplete = f"deeper than {plural(most, 'step')}"
                        continue
                    self._take(number, self.parts[owner])
                    lazy = explorer.reducer.lazy
                    if lazy is not None and lazy.grew:
                        return  # the next search knows
                first, owners, depth = level, self._deal(level), depth + 1
            verdict.frontier = 0
            if not verdict.incomplete:
                self._verify()
        except _Lost as why:
            verdict.incomplete = str(why)
            verdict.frontier = len(graph) - first

    def _over(self, waiting: int) -> bool:
        """Whether enough was found, or a bound is met."""
        explorer, verdict = self.explorer, self.explorer.verdict
        if len(verdict.violations) >= ENOUGH_VIOLATIONS:
            verdict.incomplete = f"stopped after {len(verdict.violations)} violations"
        else:
            verdict.incomplete = explorer.limit(self.start, waiting) or verdict.incomplete
            return bool(verdict.incomplete) and not verdict.incomplete.startswith("deeper")
        return True

    # -- what processes send -------------------------------------------------------------------------------------

    def _receive(self, part: _Process) -> Any:
        """The next message of a process; meanwhile the others' are taken out of their pipes, lest they wait."""
        while not part.inbox:
            take()
            if part.gone:
                raise _Lost("stopped: a process of the search has died")
            open_: dict[Connection, _Process] = {each.pipe: each for each in self.parts if not each.gone}
            for pipe in connection.wait(list(open_), LOOK_SECONDS):
                each = open_[pipe]  # type: ignore[index]
                try:
                    each.inbox.append(each.pipe.recv())
                except (EOFError, ConnectionResetError):
                    each.gone = True
            most = self.explorer.bounds.max_seconds
            if most is not None and not part.inbox and perf_counter() - self.start > most:
                raise _Lost(f"stopped after {most:g} s")
        return part.inbox.popleft()

    def _next(self, part: _Process) -> Chunk:
        """The chunk with a process's next state."""
        while part.chunk is None or part.at == len(part.chunk.edges):
            old = part.chunk
            if old is not None:
                if old.lesson is not None:
                    raise old.lesson.learned()
                if old.error is not None:
                    raise old.error
                if old.full:
                    raise _Lost(old.full)
            chunk = part.chunk = self._receive(part)
            self._open(part, chunk)
        return part.chunk

    def _open(self, part: _Process, chunk: Chunk) -> None:
        explorer = self.explorer
        part.at = part.edge = part.wrong = part.removed = part.fresh = 0
        part.actions += chunk.actions
        part.stores += chunk.stores
        part.notes.append(chunk.notes)
        part.counters = chunk.counters
        total = self.before
        for each in self.parts:
            total = total.plus(each.counters)
        explorer.elsewhere = total
        explorer.system.raw_time |= chunk.raw[0]
        explorer.system.raw_random |= chunk.raw[1]
        if chunk.unfit and explorer.reducer.lazy is not None:
            explorer.reducer.lazy.unfit = True

    def _take(self, number: int, part: _Process) -> None:
        """Takes in the expansion of a state."""
        explorer, graph, chunk = self.explorer, self.explorer.graph, self._next(part)
        graph.expand(number)
        place, new = part.at, False
        wrong = len(chunk.wrong) > part.wrong
        for edge in range(part.edge, part.edge + chunk.edges[place]):
            if wrong:
                self._tell(part, chunk, number, (place, edge), new)
            target, action = chunk.edge_target[edge], part.action(graph, chunk.edge_action[edge])
            known = target - part.base[0]
            if known < len(part.states):
                target, new = (target if known < 0 else part.states[known]), False
            else:
                at = part.fresh
                store = part.store(explorer.stores, chunk.store_of[at])
                target, new = graph.add((chunk.high[at] << 64) + chunk.low[at], number, action, store)
                part.states.append(target)
                part.fresh += 1
            while part.removed < len(chunk.gone) and chunk.gone[part.removed][0] == edge:
                explorer.removed.again(graph.transitions, chunk.gone[part.removed][1])
                part.removed += 1
            graph.edge(number, action, target)
        part.edge += chunk.edges[place]
        if wrong:
            self._tell(part, chunk, number, (place, part.edge), new)
        part.at += 1

    def _tell(self, part: _Process, chunk: Chunk, number: int, place: tuple[int, int], new: bool) -> None:
        """What went wrong up to a transition."""
        explorer, graph = self.explorer, self.explorer.graph
        while part.wrong < len(chunk.wrong) and chunk.wrong[part.wrong][:2] <= place:
            wrong = chunk.wrong[part.wrong]
            part.wrong += 1
            for where, finding in wrong.findings:
                explorer.system.reexec.findings.setdefault(where, finding)
            if wrong.findings:
                explorer.report(number, *wrong.actions)
            elif new and all(violation.name != wrong.name for violation in explorer.verdict.violations):
                explorer.breaks(wrong.name, wrong.message, graph.edge_target[-1])

    # -- levels --------------------------------------------------------------------------------------------------

    def _deal(self, level: int) -> array[int]:
        """Tells the processes which states of the next level, which begins with this number, are theirs; the owners."""
        finders: list[list[int]] = [[] for _ in range(len(self.explorer.graph) - level)]
        for which, part in enumerate(self.parts):
            for state in part.states[part.level :]:
                if state >= level:
                    finders[state - level].append(which)
        loads = [0] * len(self.parts)
        for those in finders:
            if len(those) == 1:
                loads[those[0]] += 1
        owners = array("H")
        for those in finders:
            owner = those[0]
            if len(those) > 1:
                owner = min(those, key=loads.__getitem__)
                loads[owner] += 1
            owners.append(owner)
        if owners:
            for which, part in enumerate(self.parts):
                found = enumerate(part.states[part.level :])
                mine = sorted([(state, at) for at, state in found if state >= level and owners[state - level] == which])
                self._send(part, array("I", [at for _, at in mine]))
        return owners

    @staticmethod
    def _send(part: _Process, what: Any) -> None:
        try:
            part.pipe.send(what)
        except (BrokenPipeError, ConnectionResetError):
            part.gone = True

    # -- the guesses of the reductions ---------------------------------------------------------------------------

    def _verify(self) -> None:
        """Gathers what `Settler.unsafe` looks at."""
        settler, log = self.explorer.reducer.settler, self.explorer.reducer.log
        if settler is None:
            return
        for part in self.parts:
            self._send(part, None)
        facts: list[Facts] = [self._receive(part) for part in self.parts]
        changes, reads, settled, nodes = self.known
        of_change, reads_at = [], []
        for told in facts:
            of_change.append([log.number(change) for change in told.changes])
            reads_at.append(len(log.reads))
            log.reads += [None] * told.reads
        for part in self.parts:
            self._send(part, log.changes[changes:])
        for part, at in zip(self.parts, reads_at, strict=True):
            for number, masks in enumerate(self._receive(part)):
                old = log.elsewhere.get(number, (0, 0))
                if masks != (0, 0):
                    log.elsewhere[number] = (old[0] | masks[0] << at, old[1] | masks[1] << at)
        for part, told, numbers, at in zip(self.parts, facts, of_change, reads_at, strict=True):

            def shifted(bits: int, at: int = at) -> int:
                return bits & ((1 << reads) - 1) | bits >> reads << at

            sizes = settler.size
            moved = [Settled(one.item, one.end, shifted(one.first), shifted(one.all)) for one in told.settled]
            settler.join(moved, [(place, shifted(bit)) for place, bit in told.nodes])
            ours = (*log.notes, *settler.notes)
            maps = (
                [*range(changes), *numbers],
                [*range(settled), *range(sizes[0], sizes[0] + len(moved))],
                [*range(nodes), *range(sizes[1], sizes[1] + len(told.nodes))],
            )
            for notes in part.notes:
                for which, ours_of in enumerate(maps):
                    ours[2 * which].extend([part.state(state) for state in notes[2 * which]])
                    ours[2 * which + 1].extend([ours_of[each] for each in notes[2 * which + 1]])
