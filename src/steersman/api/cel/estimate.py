"""What an expression may cost at worst, told from the sizes that a schema allows: before it is ever evaluated.

A cost and a size are ranges. Sizes come from literals, from what functions make of them, and from the schema, which is
found by the path of an expression below its root. Source of the facts: `checker/cost.go` and `ext/lists.go` of cel-go
0.26, `apiserver/pkg/cel/library/cost.go` of Kubernetes 1.36, whose numbers decide which definitions clusters accept.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from steersman.api.cel.tree import BIND, Call, Const, Fold, Ident, ListNode, MapNode, Node, Select, StructNode
from steersman.api.cel.types import ANY, Type

MOST: Final = (1 << 64) - 1
"""What cannot be told, or does not end: Kubernetes counts in 64 bits and stays at the last."""
WALK: Final = 0.1
"""Of a character that is looked at."""
REGEX: Final = 0.25
"""Of a character of a regular expression."""
NEW_LIST: Final = 10
NEW_MAP: Final = 30
NEW_OBJECT: Final = 40
AUTHORIZATION: Final = 350_000
NAMED_FORMAT: Final = 128
"""Characters of the longest regular expression of a named format; those of its name are 64."""
SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


class Span(NamedTuple):
    """The least and the most."""

    least: int
    most: int

    def plus(self, other: Span) -> Span:
        """The sum."""
        return Span(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def times(self, other: Span) -> Span:
        """The product."""
        return Span(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def by(self, factor: float) -> Span:
        """Times a factor, rounded up."""
        return Span(_scaled(self.least, factor), _scaled(self.most, factor))

    def or_(self, other: Span) -> Span:
        """Either of the two."""
        return Span(min(self.least, other.least), max(self.most, other.most))


def _scaled(number: int, factor: float) -> int:
    return min(math.ceil(float(number) * factor), MOST)


UNKNOWN: Final = Span(0, MOST)
NOTHING: Final = Span(0, 0)
ONE: Final = Span(1, 1)


class Path(NamedTuple):
    """Names from the root on. Paths share their cells as slices do in Go, so that one may change when another is made
    longer: estimates of clusters have that in them, and must not differ from these."""

    cells: list[str]
    length: int

    def below(self, name: str) -> Path:
        """The path made longer by a name."""
        if self.length < len(self.cells):
            self.cells[self.length] = name
            return Path(self.cells, self.length + 1)
        room = max(self.length - 1, 0)
        return Path([*self.cells, name, *[""] * room], self.length + 1)

    @property
    def names(self) -> list[str]:
        """What it says now."""
        return self.cells[: self.length]


class Entry(NamedTuple):
    """What is known of the elements of a list or map that an expression makes."""

    container: str
    key: Span
    value: Span


class Local(NamedTuple):
    """A variable of a comprehension."""

    path: Path
    size: Span | None
    entry: Entry | None


def most(root: Node, declared: Type, name: str = "") -> int:
    """The worst cost of a checked expression about values of a declared type; `name`: what alone is of that type."""
    return Estimate(declared, name).cost(root).most


class Estimate:
    """The estimate of one expression; every node is visited once, from below."""

    def __init__(self, declared: Type, name: str = "") -> None:
        self._root = declared
        self._name = name
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Span] = {}
        self._entries: dict[int, Entry] = {}
        self._locals: dict[str, Local] = {}

    # -- sizes ---------------------------------------------------------------------------------------------

    def path(self, node: Node) -> Path:
        """Where a node is below the root; empty for what is no part of it."""
        if isinstance(node, Ident) and node.name in self._locals:
            return self._locals[node.name].path
        return self._paths.get(id(node)) or Path([], 0)

    def _declared(self, names: list[str]) -> Span | None:
        """The size of what the schema has at a path."""
        if not names or self._name not in ("", names[0]):
            return None
        found: Type | None = self._root
        for name in names[1:]:
            assert found is not None
            if name in ("@items", "@values"):
                found = found.params[-1] if found.kind in ("list", "map") and found.params else None
            elif name == "@keys":
                found = found.params[0] if found.kind == "map" else None
            elif found.kind == "map" and found.params[1].name == ANY.name:  # whatever it is called
                found = found.params[1]
            else:
                found = (found.fields or {}).get(name)
            if found is None:
                return None
        assert found is not None
        return Span(0, found.bound or 0)

    def _known(self, node: Node) -> Span | None:
        """The size of a node, where it can be told."""
        found = self._sizes.get(id(node))
        if found is not None:
            return found
        if isinstance(node, Const):
            size = len(node.value) if isinstance(node.value, (str, bytes)) else 1
            return Span(size, size)
        if isinstance(node, ListNode):
            return Span(len(node.items), len(node.items))
        if isinstance(node, MapNode):
            return Span(len(node.entries), len(node.entries))
        found = self._declared(self.path(node).names)
        if found is not None:
            self._sizes[id(node)] = found
            return found
        t = node.type
        while t.kind == "optional" and t.params:
            t = t.params[0]
        if t.kind in SCALARS:
            return ONE
        if isinstance(node, Ident) and node.name in self._locals:
            return self._locals[node.name].size
        return None

    def size(self, node: Node) -> Span:
        """The size of a node."""
        return self._known(node) or UNKNOWN

    def element(self, node: Node) -> Span:
        """The size of an element of a list."""
        names = self.path(node).names
        return (self._declared([*names, "@items"]) if names else None) or UNKNOWN

    def _entry(self, node: Node) -> Entry | None:
        found = self._entries.get(id(node))
        if found is None and isinstance(node, Ident) and node.name in self._locals:
            return self._locals[node.name].entry
        return found

    def _same(self, node: Node, other: Node) -> None:
        """Whatever is known of one is true of the other."""
        size, entry = self._known(other), self._entry(other)
        if size is not None:
            self._sizes[id(node)] = size
        if entry is not None:
            self._entries[id(node)] = entry

    # -- costs ---------------------------------------------------------------------------------------------

    def cost(self, node: Node) -> Span:
        """The cost of a node and of all below it."""
        if isinstance(node, Const):
            return NOTHING
        if isinstance(node, Ident):
            self._paths[id(node)] = self.path(node) if node.name in self._locals else Path([node.name], 1)
            return ONE
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Fold):
            return self._fold(node)
        if isinstance(node, StructNode):
            return _sum([Span(NEW_OBJECT, NEW_OBJECT), *[self.cost(value) for _, value, _, _ in node.entries]])
        if isinstance(node, ListNode):
            costs = [self.cost(item) for item in node.items]
            inside = _either([self.size(item) for item in node.items])
            self._entries[id(node)] = Entry("list", ONE, inside)
            return _sum([Span(NEW_LIST, NEW_LIST), *costs])
        assert isinstance(node, MapNode)
        costs = [self.cost(part) for key, value, _ in node.entries for part in (key, value)]
        keys, values = (
            [self.size(key) for key, _, _ in node.entries],
            [self.size(value) for _, value, _ in node.entries],
        )
        self._entries[id(node)] = Entry("map", _either(keys), _either(values))
        return _sum([Span(NEW_MAP, NEW_MAP), *costs])

    def _select(self, node: Select) -> Span:
        if node.qualified is not None:
            return self.cost(node.qualified)
        below = self.cost(node.operand)
        if node.test:
            return below  # Kubernetes lets has() cost nothing
        if node.optional:
            return below.plus(ONE)
        self._paths[id(node)] = self.path(node.operand).below(node.field)
        return below.plus(ONE) if node.operand.type.kind in ("map", "object", "param") else below

    def _call(self, node: Call) -> Span:
        if node.name == "dyn" and node.target is None:
            below = self.cost(node.args[0])
            self._same(node, node.args[0])
            return below.plus(ONE)
        if node.name in ("_&&_", "_||_"):
            parts = [self._argument(arg) for arg in node.args]
            return Span(parts[0].least, _sum(parts).most)
        costs = [self._argument(arg) for arg in node.args]
        target = NOTHING if node.target is None else self._argument(node.target)
        if node.name == "_?_:_":
            self._conditional(node)
            return costs[0].plus(costs[1].or_(costs[2]))
        given = _sum(costs)
        forms = {tuple([p.kind for p in overload.params]) for overload in node.overloads}
        estimates = [self._function(node, form) for form in sorted(forms)]
        if not estimates:
            return NOTHING
        found, size = _either([cost for cost, _ in estimates]), None
        for _, result in estimates:
            size = result if size is None else size if result is None else size.or_(result)
        if node.name == "_[_]" and node.args:
            inside = self._entry(node.args[0])
            size = None if inside is None else inside.value
            step = "@items" if node.args[0].type.kind == "list" else "@values"
            self._paths[id(node)] = self.path(node.args[0]).below(step)
        if size is None:
            size = self._known(node)
        if size is not None:
            self._sizes[id(node)] = size
        return target.plus(given).plus(found)

    def _argument(self, node: Node) -> Span:
        """The cost of an argument, whose size is settled at once."""
        cost = self.cost(node)
        self._known(node)
        return cost

    def _conditional(self, node: Call) -> None:
        _, one, other = node.args
        self._sizes[id(node)] = self.size(one).or_(self.size(other))
        self._join(node, one, other)

    def _join(self, node: Node, one: Node, other: Node) -> None:
        """The elements of what is made of two lists or maps."""
        a, b = self._entry(one), self._entry(other)
        if a is not None and b is not None:
            self._entries[id(node)] = Entry(a.container, a.key.or_(b.key), a.value.or_(b.value))

    def _function(self, node: Call, form: tuple[str, ...]) -> tuple[Span, Span | None]:
        """Cost of one form of a function, without that of its arguments; and the size of its result."""
        from steersman.api.cel.estimates import ESTIMATES  # it is written in terms of this class

        known = ESTIMATES.get(node.name)
        found = None if known is None else known(self, node, form)
        if found is not None:
            return found
        if node.name == "_+_" and form[0] in ("string", "bytes", "list"):
            size = self.size(node.args[0]).plus(self.size(node.args[1]))
            self._join(node, *node.args)
            return (ONE if form[0] == "list" else size.by(WALK)), size
        return ONE, None

    # -- comprehensions ------------------------------------------------------------------------------------

    def _bind(self, node: Fold) -> Span:
        """A value with a name: cel-go writes it as a loop over an empty list that never turns."""
        (name,), (body,) = node.names, node.steps
        value = Span(NEW_LIST, NEW_LIST).plus(self.cost(node.source))
        before = dict(self._locals)
        self._locals[name] = Local(self.path(node.source), self._known(node.source), self._entry(node.source))
        cost = value.plus(self.cost(body))
        self._same(node, body)
        self._locals = before
        return cost

    def _fold(self, node: Fold) -> Span:
        if node.kind == BIND:
            return self._bind(node)
        if node.kind in ("optMap", "optFlatMap"):
            return self._opt_map(node)
        source = self.cost(node.source)
        before = dict(self._locals)
        for name, local in self._variables(node):
            self._locals[name] = local
        steps = [self.cost(step) for step in node.steps]
        if node.kind == "filter":
            kept = self._locals[node.names[0]]
            made = self._declared(kept.path.names) or kept.size or UNKNOWN
        else:
            made = self.size(node.steps[-1])
        self._locals = before
        count = self.size(node.source)
        turn, rest = _turn(node.kind, steps)
        cost = source.plus(rest).plus(count.times(turn))
        if node.kind in ("all", "exists", "existsOne"):
            self._sizes[id(node)] = ONE
            return cost
        self._sizes[id(node)] = count
        if node.kind in ("map", "filter", "transformList", "sortBy"):
            self._entries[id(node)] = Entry("list", ONE, made.or_(NOTHING))
        if node.kind == "sortBy":
            factor = 2 + WALK if node.steps[0].type.kind in ("string", "bytes") else 2.0
            self._sizes[id(node)] = pairs = count.times(count)
            return cost.plus(pairs.by(factor)).plus(Span(1 + NEW_LIST, 1 + NEW_LIST))
        return cost

    def _variables(self, node: Fold) -> list[tuple[str, Local]]:
        """The variables of a comprehension, and where their values come from."""
        entry, path = self._entry(node.source), self.path(node.source)
        container = node.source.type.kind if entry is None else entry.container
        one = "@indices" if container == "list" else "@keys"
        other = "@items" if container == "list" else "@values"
        if len(node.names) == 2:
            key = Local(path.below(one), entry and entry.key, None)
            return [(node.names[0], key), (node.names[1], Local(path.below(other), entry and entry.value, None))]
        if container == "list":
            return [(node.names[0], Local(path.below(other), entry and entry.value, None))]
        return [(node.names[0], Local(path.below(one), entry and entry.key, None))]

    def _opt_map(self, node: Fold) -> Span:
        """`source.hasValue() ? optional.of(f of source.value()) : optional.none()`"""
        source = self.cost(node.source)
        before = dict(self._locals)
        self._locals[node.names[0]] = Local(Path([], 0), None, None)
        body = self.cost(node.steps[0])
        self._locals = before
        bound = body.plus(source).plus(Span(NEW_LIST + 1, NEW_LIST + 1))
        taken = bound if node.kind == "optFlatMap" else bound.plus(ONE)
        return source.plus(ONE).plus(taken.or_(ONE))


def _turn(kind: str, steps: list[Span]) -> tuple[Span, Span]:
    """The cost of one turn of a macro as cel-go writes it out, and what it costs beside its turns."""
    body = steps[-1]
    if kind == "all":
        return Span(3, body.plus(Span(3, 3)).most), ONE
    if kind == "exists":
        return Span(4, body.plus(Span(4, 4)).most), ONE
    if kind == "existsOne":
        return body.plus(Span(1, 2)), Span(2, 2)
    if kind == "filter":
        return body.plus(Span(1, NEW_LIST + 3)), Span(NEW_LIST + 1, NEW_LIST + 1)
    maps = kind in ("transformMap", "transformMapEntry")
    new = NEW_MAP if maps else NEW_LIST
    added = 2 if kind == "transformMapEntry" else 3 if maps else NEW_LIST + 2
    made = body.plus(Span(added, added))
    if len(steps) == 2:
        made = steps[0].plus(made.or_(ONE))
    bound = NEW_LIST + 2 if kind == "sortBy" else 0
    return made, Span(new + 1 + bound, new + 1 + bound)


def _sum(spans: list[Span]) -> Span:
    total = NOTHING
    for span in spans:
        total = total.plus(span)
    return total


def _either(spans: list[Span]) -> Span:
    if not spans:
        return NOTHING
    found = spans[0]
    for span in spans[1:]:
        found = found.or_(span)
    return found
