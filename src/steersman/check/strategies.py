"""Who goes first on a random walk. A strategy draws from the walk's seed only, so a seed is a run.

- `random`: evenly among what is possible.
- `pct`: by priorities that are drawn, and change at a few steps that are drawn (Burckhardt and others, "A Randomized
  Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010). A bug of depth d, one that needs d orderings,
  is found by a walk of k steps of n actors with a probability of at least 1 / (n * k**(d - 1)).
- `delay`: each actor in turn for as long as it can, but for a few delays at steps that are drawn (Emmi, Qadeer and
  Rakamarić, "Delay-Bounded Scheduling", POPL 2011).
- `swarm`: a subset of the faults, drawn for the walk: many faults at once hide each other (Groce and others, "Swarm
  Testing", ISSTA 2012). What is left is ordered as in `mixed`.
- `mixed`: `random` on even seeds, `pct` on odd ones.

An actor is a controller, each of its views, each user.
"""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from steersman.check.mistake import ScenarioError
from steersman.kernel.action import Action
from steersman.kernel.faults import FAULTY

STRATEGIES: Final = ("mixed", "random", "pct", "delay", "swarm")
FAULT_CHANCE: Final = 0.15
"""How often a fault is taken where one is possible: rare enough that the rest of a walk is ordinary life."""
WITHIN: Final = 60
"""Steps within which priorities change and delays fall: about the length of a walk that comes to rest."""

Actor = tuple[str, str, str]


class Strategy(NamedTuple):
    """How walks are drawn."""

    name: str = "mixed"
    depth: int = 4
    """Orderings that `pct` is to find together; one less than that are changes of priority."""
    delays: int = 2

    def walk(self, seed: int) -> Draw:
        """The choices of one walk. Raises `ScenarioError` for an unknown strategy."""
        if self.name not in STRATEGIES:
            raise ScenarioError(f"strategy {self.name!r} is unknown; choose one of {', '.join(STRATEGIES)}")
        chance = random.Random(seed)
        without = frozenset[str]()
        if self.name == "swarm":
            without = frozenset([op for op in sorted(FAULTY) if chance.random() < 0.5])
        order: Priorities | Turns | None = None
        if self.name == "delay":
            order = Turns(chance, self.delays)
        elif self.name == "pct" or (self.name in ("mixed", "swarm") and seed % 2 == 1):
            order = Priorities(chance, self.depth - 1)
        return Draw(chance, order, without)

    def shown(self) -> dict[str, int | str]:
        """For the verdict: what is not the default."""
        named: dict[str, int | str] = {} if self.name == "mixed" else {"strategy": self.name}
        if self.name == "delay":
            return {**named, "delays": self.delays}
        return {**named, "pct-depth": self.depth} if self.name == "pct" or self.depth != Strategy().depth else named


class Draw:
    """The choices of one walk."""

    def __init__(self, chance: random.Random, order: Priorities | Turns | None, without: frozenset[str]) -> None:
        self._chance = chance
        self._order = order
        self._without = without

    def choose(self, actions: list[Action]) -> Action | None:
        """One of what is possible; None when that is only what this walk goes without."""
        ordinary = [action for action in actions if action.op not in FAULTY]
        faults = [action for action in actions if action.op in FAULTY and action.op not in self._without]
        if not (ordinary or faults):
            return None
        if faults and (not ordinary or self._chance.random() < FAULT_CHANCE):
            return self._chance.choice(faults)
        return self._chance.choice(ordinary) if self._order is None else self._order.choose(ordinary)


class Priorities:
    """Who goes first on a walk by priorities."""

    def __init__(self, chance: random.Random, changes: int) -> None:
        self._chance = chance
        self._of: dict[Actor, float] = {}
        self._changes = {chance.randrange(WITHIN) for _ in range(changes)}
        self._step = 0

    def choose(self, actions: list[Action]) -> Action:
        """The first action of the actor with the highest priority; at a change that actor falls behind all others."""
        actors = [actor_of(action) for action in actions]
        for actor in actors:
            if actor not in self._of:
                self._of[actor] = 1 + self._chance.random()
        best = max(range(len(actions)), key=lambda at: self._of[actors[at]])
        if self._step in self._changes:
            self._of[actors[best]] = self._chance.random() / (1 + self._step)
        self._step += 1
        same = [action for action, actor in zip(actions, actors, strict=True) if actor == actors[best]]
        return self._chance.choice(same)


class Turns:
    """Actors in turn, the first one for as long as it can; at a delay it goes to the end."""

    def __init__(self, chance: random.Random, delays: int) -> None:
        self._delays = [chance.randrange(WITHIN) for _ in range(delays)]
        self._turns: list[Actor] = []
        self._step = 0

    def choose(self, actions: list[Action]) -> Action:
        """The first action of the first actor that has one."""
        first: dict[Actor, Action] = {}
        for action in actions:
            first.setdefault(actor_of(action), action)
        self._turns += [actor for actor in first if actor not in self._turns]
        for _ in range(self._delays.count(self._step)):
            self._turns.append(self._turns.pop(self._next(first)))
        self._step += 1
        self._turns = [*self._turns[self._next(first) :], *self._turns[: self._next(first)]]
        return first[self._turns[0]]

    def _next(self, first: dict[Actor, Action]) -> int:
        return next(at for at, actor in enumerate(self._turns) if actor in first)


def actor_of(action: Action) -> Actor:
    """Whose turn an action is."""
    if action.op in ("deliver", "user"):
        return (action.op, action.who, action.key.kind)
    return ("", action.who, "")
