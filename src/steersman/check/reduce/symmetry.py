"""Symmetry: states that differ only in which generated name stands for whom are one.

A state's *representative* is a digest in which every generated name and its uids are replaced by a colour: what the
rest of the world says of it. Colours are refined until no more can be told apart; where that does not settle what
belongs to whom (an item that mentions some but not all of several of one colour) the state counts as it is. The search
goes on with the concrete world.

That is right only as long as nobody orders by these names or takes them apart: every step of a reconcile is executed
once more with the names exchanged, lists in their new order, and must do the same thing with the names exchanged.
Otherwise symmetry is off, and so it is where states of a cycle are merged: fairness is about who moves, by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import orjson

from steersman.check.graph import Graph
from steersman.kernel.disturb import Stamp
from steersman.kernel.draw import NAME_MAX
from steersman.kernel.effect import Effect, Refused
from steersman.kernel.fingerprint import fingerprint, places
from steersman.kernel.identity import SUFFIX_LENGTH, digest, suffix_text, term, uid_text
from steersman.kernel.object import MASK, SORTED, Key, Object, Section
from steersman.kernel.precondition import tokenise
from steersman.kernel.reexec import Node, Outcome, Replay, Result, Suspend
from steersman.kernel.store import Store
from steersman.kernel.system import System
from steersman.kernel.value import freeze
from steersman.kernel.world import World

ADDRESS: Final = re.compile(r"fd[0-9a-f]{2}(:[0-9a-f]{1,4}){7}")
"""Addresses that are made from a uid (as `nodes.status.pod_address` does): they are exchanged together with it."""
LEAST_DERIVED: Final = 1 << 16
"""Numbers of texts that are derived from names; below are uids."""
NOBODYS: Final = 27**5 - 1
"""The number of a suffix that is not drawn."""

Pieces = tuple[str, ...]
"""A text cut at names: literal, name, literal, …"""
Item = tuple[tuple[Pieces, ...], ...]
"""Something a world says: groups of texts; the order within a group does not count."""


class Symmetry:
    """The generated names of one search."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.unfit = ""
        """Why symmetry is not right here."""
        self._base: dict[str, str] = {}
        """By name, what it was generated from."""
        self._owner: dict[str, tuple[str, int]] = {}
        """By name or uid, the name, and which of its uids it is (from 1; 0 is the name)."""
        self._uids: dict[str, list[str]] = {}
        self._texts: dict[tuple[str, int], str] = {}
        """What was derived from names."""
        self._pattern: re.Pattern[str] | None = None
        self._known: dict[Any, Any] = {}
        self._contents: dict[int, int] = {}
        self._sums: dict[frozenset[Item], int | None] = {}
        self._exchanges: dict[tuple[tuple[str, str], ...], _Exchange] = {}
        self._plain: dict[int, int] = {}
        self._merged: set[tuple[int, int]] = set()
        self.joined: set[int] = set()
        """Fingerprints of worlds that led to states which were there."""
        system.draw = self._drawing(system.draw)
        system.reexec.checked = self.check

    def anew(self) -> Symmetry | None:
        """For a system that has learned something."""
        for known in (self._known, self._contents, self._sums, self._exchanges, self._plain, self._merged, self.joined):
            known.clear()
        self.system.reexec.checked = self.check
        return self if self.suits(self.system) else None

    @staticmethod
    def suits(system: System) -> bool:
        """Whether representatives are made for such worlds: no views, times, components or states outside, and the
        table of canonical form in force."""
        plain = not (system.caches or system.components or system.outside or system.horizon is not None)
        return plain and bool(system.canon.table) and not system.canon.managers

    # -- names -----------------------------------------------------------------------------------------------------

    def _drawing(self, draw: Callable[[World, Any], str]) -> Callable[[World, Any], str]:
        def drawn(world: World, question: Any) -> str:
            answer = draw(world, question)
            if question[0] == "uid":
                name = question[1].name
                if name in self._base and answer not in self._owner:
                    uids = self._uids.setdefault(name, [])
                    uids.append(answer)
                    self._learn(answer, (name, len(uids)))
            else:
                name = f"{question[2][: NAME_MAX - SUFFIX_LENGTH]}{answer}"
                if name not in self._base:
                    self._base[name] = question[2]
                    self._learn(name, (name, 0))
            return answer

        return drawn

    def _learn(self, text: str, owner: tuple[str, int]) -> None:
        self._owner[text] = owner
        for known in (self._known, self._contents, self._sums, self._exchanges):
            known.clear()
        self._pattern = None

    @property
    def idle(self) -> bool:
        """No two names were generated from one base: there is nothing to exchange."""
        return len(set(self._base.values())) == len(self._base)

    def _cut(self, text: str) -> Pieces:
        pattern = self._pattern
        if pattern is None:
            texts = sorted(self._owner, key=lambda name: (-len(name), name))
            pattern = self._pattern = re.compile(f"({'|'.join([re.escape(name) for name in texts])})")
        return tuple(pattern.split(text))

    def collapsed(self, text: str) -> str:
        """A text with bases in the place of generated names: whoever is meant."""
        if not self._owner:
            return text
        return "".join(
            [self._base[self._owner[part][0]] if at % 2 else part for at, part in enumerate(self._cut(text))]
        )

    # -- merged states ---------------------------------------------------------------------------------------------

    def met(self, parent: int, state: int, new: bool, world: World) -> None:
        """Notes by which world a state was found, and where another one was taken for it."""
        plain = fingerprint(world) & MASK
        if new:
            self._plain[state] = plain
        elif self._plain.get(state) != plain:
            self._merged.add((parent, state))

    def led(self, parent: int, before: int, state: int) -> None:
        """The same where a world, by its fingerprint before it was settled, was found again."""
        if before in self.joined:
            self._merged.add((parent, state))

    def verified(self, graph: Graph) -> bool:
        """Whether a finished search was right to use it. If not, it says why (`unfit`)."""
        if self._merged and not self.unfit:
            of = {state: number for number, states in enumerate(graph.components(None)) for state in states}
            if any(of[parent] == of[state] for parent, state in self._merged if parent in of):
                self.unfit = "states of a cycle differ in names only"
        self._plain.clear()
        self._merged.clear()
        self.joined.clear()
        return not self.unfit

    # -- representatives -------------------------------------------------------------------------------------------

    def identity(self, world: World) -> int:
        """What a world is known by."""
        if self.idle or self.unfit or world.rare is not None:
            return fingerprint(world)
        items: list[Item] = []
        total = self._stored(world.store, items)
        for loop, key in world.pending:
            items.append(((self._cut(f"pending {loop} {key}"),),))
        for loop, key in world.wakes:
            items.append(((self._cut(f"wake {loop} {key}"),),))
        for loop, memory in world.memory.items():
            items.append(((self._cut(f"memory {loop} {orjson.dumps(memory, option=SORTED).decode()}"),),))
        for (loop, key), flight in world.flights.items():
            apart: dict[Key, list[Any]] = {}
            where = iter(places(world, loop, flight.versions, apart))
            if flight.waiting is not None or apart:
                return fingerprint(world)
            held = [self._cut(f"{slot} {[next(where) for _ in seen]}") for slot, seen in flight.versions.items()]
            head = self._cut(f"flight {loop} {key} {flight.wrote}")
            items.append(((head,), tuple(held), *self._journal(flight.node)))
        found = self._coloured(items)
        if found is None:
            return fingerprint(world)
        return (total + found + term("rest", world.budgets, world.users)) & MASK

    def contents(self, world: World) -> int:
        """The same of what there is: the store and what is outside."""
        plain = world.contents
        if self.idle or self.unfit:
            return plain
        found = self._contents.get(plain)
        if found is None:
            items: list[Item] = []
            total = self._stored(world.store, items)
            coloured = self._coloured(items)
            found = self._contents[plain] = plain if coloured is None else (total + coloured) & MASK
        return found

    def _stored(self, store: Store, items: list[Item]) -> int:
        """Adds the objects that have to do with names; the digest of the others."""
        canon, total = self.system.canon, store.sum_canonical
        for obj in store.objects():
            plain = canon.of(obj)
            pieces = self._known.get(plain)
            if pieces is None:
                pieces = self._known[plain] = self._cut(canon.text(obj))
            if len(pieces) > 1:
                total -= plain
                items.append(((pieces,),))
        return total

    def _journal(self, node: Node) -> tuple[tuple[Pieces, ...], ...]:
        """What a reconcile in flight was told so far."""
        found = self._known.get(node)
        if found is None:
            if node.parent is None or node.outcome is None:
                start = "" if node.memory is None else orjson.dumps(node.memory, option=SORTED).decode()
                found = ((self._cut(f"{start} {node.key}"),),)
            else:
                found = (*self._journal(node.parent), self._told(node.outcome))
            self._known[node] = found
        told: tuple[tuple[Pieces, ...], ...] = found
        return told

    def _told(self, outcome: Outcome) -> tuple[Pieces, ...]:
        value, canon = outcome.value, self.system.canon
        if isinstance(value, (Object, tuple)):
            objects = value if isinstance(value, tuple) else (value,)
            told = zip(objects, outcome.places, strict=True)
            return (self._cut(type(value).__name__), *[self._cut(f"{at} {canon.text(obj)}") for obj, at in told])
        if isinstance(value, Refused):
            return (self._cut(f"refused {value.code} {value.reason} {value}"),)
        if isinstance(value, Stamp):
            return (self._cut("stamp"),)
        return (self._cut(orjson.dumps(value, option=SORTED, default=str).decode()),)

    # -- colours ---------------------------------------------------------------------------------------------------

    def _coloured(self, items: Iterable[Item]) -> int | None:
        """The sum of the items' digests with colours for names; None where colours do not tell what belongs to whom."""
        total = 0
        groups: dict[str, list[tuple[Item, list[str]]]] = {}
        for item in items:
            names = [self._owner[text][0] for group in item for part in group for text in part[1::2]]
            if not names:
                total += digest(item)
                continue
            bases = {self._base[name] for name in names}
            where = bases.pop() if len(bases) == 1 else ""
            groups.setdefault(where, []).append((item, list(dict.fromkeys(names))))
        if "" in groups:  # names of several bases in one: all together
            groups = {"": [named for group in groups.values() for named in group]}
        for group in groups.values():
            place = frozenset([item for item, _ in group])
            found = self._sums.get(place, 0)
            if found == 0:
                found = self._sums[place] = self._sum(group)
            if found is None:
                return None
            total += found
        return total

    def _sum(self, named: list[tuple[Item, list[str]]]) -> int | None:
        """The same of items that are all about names."""
        total = 0
        colours: dict[str, int] = {name: term("base", self._base[name]) for _, names in named for name in names}
        told = 0
        while len(set(colours.values())) > told:
            told = len(set(colours.values()))
            seen: dict[str, list[int]] = {name: [] for name in colours}
            for item, names in named:
                for name in names:
                    seen[name].append(self._digest(item, colours, name))
            colours = {name: digest(colours[name], *sorted(said)) for name, said in seen.items()}
        sizes: dict[int, int] = {}
        for colour in colours.values():
            sizes[colour] = sizes.get(colour, 0) + 1
        for item, names in named:
            if len(names) > 1 and not self._whole([colours[name] for name in names], sizes):
                return None
            total += self._digest(item, colours, "")
        return total

    @staticmethod
    def _whole(mentioned: list[int], sizes: dict[int, int]) -> bool:
        """Whether an item mentions all of each colour that it mentions."""
        return all(mentioned.count(colour) == sizes[colour] for colour in set(mentioned))

    def _digest(self, item: Item, colours: dict[str, int], me: str) -> int:
        def shown(text: str) -> str:
            name, number = self._owner[text]
            return f"<me {number}>" if name == me else f"<{colours[name]:x} {number}>"

        groups = []
        for group in item:
            texts = ["".join([shown(text) if at % 2 else text for at, text in enumerate(part)]) for part in group]
            groups.append("\1".join(sorted(texts)))
        return digest(*groups)

    # -- whether names may be exchanged ------------------------------------------------------------------------------

    def check(self, node: Node, journal: list[Outcome]) -> None:
        """Executes a step of a reconcile once more with the names exchanged."""
        if self.unfit or not self._owner:
            return
        told = [part for group in self._journal(node) for part in group]
        names = sorted({self._owner[text][0] for part in told for text in part[1::2]})
        other = self._exchanged(names)
        if not other:
            return
        place = tuple(sorted(other.items()))
        exchange = self._exchanges.get(place) or self._exchanges.setdefault(place, _Exchange(self, other))
        replay = Replay([o._replace(value=exchange.value(o.value)) for o in journal])
        memory = None if node.memory is None else freeze(exchange.json(node.memory))
        result: Result | None = None
        loop = self.system.loops[node.loop]
        with suppress(Suspend):
            result = loop.execute(exchange.key(node.key), memory, replay)
        effect, version = replay.effect, -1
        if effect is not None:
            result = None
            if effect.op == "write":
                effect, version = tokenise(effect, replay.journal)
        found: dict[str, tuple[str, str]] = {}
        first = _json(node.effect, node.result)
        same = version == node.version and exchange.alike(first, _json(effect, result), "", found)
        if not same or (found and len(names) > 1):
            self.unfit = f"{loop.name} tells generated names apart"
            return
        for text, (second, path) in found.items():
            number = LEAST_DERIVED + digest(path)
            for name, derived in ((names[0], text), (other[names[0]], second)):
                if name in self._base and derived not in self._owner:
                    self._texts[(name, number)] = derived
                    self._learn(derived, (name, number))

    def _exchanged(self, names: list[str]) -> dict[str, str]:
        """Which name to put for which: those of one base the other way round; for a single one another one, be it one
        that there is not."""
        other: dict[str, str] = {}
        for base in {self._base[name] for name in names}:
            group = [name for name in names if self._base[name] == base]
            if len(group) == 1:
                every = [name for name, known in self._base.items() if known == base and name != group[0]]
                other[group[0]] = every[-1] if every else f"{base}{suffix_text(NOBODYS)}"
                if every:
                    other[every[-1]] = group[0]
            else:
                other.update(zip(group, reversed(group), strict=True))
        return {} if all(name == renamed for name, renamed in other.items()) else other


class _Exchange:
    """Names exchanged in whatever there is."""

    def __init__(self, symmetry: Symmetry, other: dict[str, str]) -> None:
        self._symmetry = symmetry
        self._other = other
        self._made: dict[Object, Object] = {}

    def text(self, text: str) -> str:
        return "".join([self._name(part) if at % 2 else part for at, part in enumerate(self._symmetry._cut(text))])

    def _name(self, text: str) -> str:
        name, number = self._symmetry._owner[text]
        other = self._other.get(name, name)
        if not number or other == name:
            return other if not number else text
        if number >= LEAST_DERIVED:
            return self._symmetry._texts.get((other, number), text)
        uids = self._symmetry._uids.get(other, [])
        return uids[number - 1] if number <= len(uids) else uid_text(other, number)

    def alike(self, a: Any, b: Any, path: str, found: dict[str, tuple[str, str]]) -> bool:
        """Whether `b` is `a` with the names exchanged. An address that was made from a name is noted in `found`, with
        the other one and where it stands."""
        if isinstance(a, dict) and isinstance(b, dict):
            renamed = {self.text(key): item for key, item in a.items()}
            if renamed.keys() != b.keys():
                return False
            return all(self.alike(renamed[key], b[key], f"{path}.{key}", found) for key in sorted(b))
        if isinstance(a, list) and isinstance(b, list):
            both = enumerate(zip(a, b, strict=False))
            return len(a) == len(b) and all(self.alike(x, y, f"{path}[{at}]", found) for at, (x, y) in both)
        if isinstance(a, str) and isinstance(b, str):
            other = self.text(a)
            if other == b:
                return True
            if other == a and ADDRESS.fullmatch(a) and ADDRESS.fullmatch(b) and found.get(a, (b, ""))[0] == b:
                found.setdefault(a, (b, path))
                return True
            return False
        return type(a) is type(b) and bool(a == b)

    def json(self, value: Any) -> Any:
        return orjson.loads(self.text(orjson.dumps(value, option=SORTED).decode()))

    def key(self, key: Key) -> Key:
        return key._replace(name=self.text(key.name))

    def value(self, value: Any) -> Any:
        if isinstance(value, Object):
            return self._object(value)
        if isinstance(value, tuple):
            objects = [self._object(item) if isinstance(item, Object) else item for item in value]
            return tuple(sorted(objects, key=lambda obj: (obj.key.namespace, obj.key.name)))
        return value

    def _object(self, obj: Object) -> Object:
        made = self._made.get(obj)
        if made is None:
            meta, spec, rest, status = [self._section(part) for part in (obj.meta, obj.spec, obj.rest, obj.status)]
            assert meta is not None
            key = self.key(obj.key)
            made = Object(key, obj.api_version, obj.rv, meta, spec, rest, status, obj.managers, obj.node)
            self._made[obj] = made
        return made

    def _section(self, part: Section | None) -> Section | None:
        if part is None:
            return None
        text = part.raw.decode()
        other = self.text(text)
        return part if other == text else Section(freeze(orjson.loads(other)))


def _json(effect: Effect | None, result: Result | None) -> Any:
    """What a step of a reconcile comes to, as JSON."""
    if effect is None:
        return [] if result is None else orjson.loads(orjson.dumps([*result[:-1]], option=SORTED, default=str))
    what = effect.what
    if effect.op == "list":
        what = [*what[:5]]
    elif effect.op == "write":
        what = [what.verb, what.key, what.body, what.subresource, what.manager, dict(what.options)]
    return orjson.loads(orjson.dumps([effect.op, what, effect.fresh], option=SORTED, default=str))
