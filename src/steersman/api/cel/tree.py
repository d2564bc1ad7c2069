"""The nodes of a parsed expression. The checker writes types into them; nothing else changes."""

from __future__ import annotations

from typing import Any, Final

from steersman.api.cel.types import DYN, Type

BIND: Final = "bind"
"""The kind of a `Fold` that is none: `cel.bind(name, source, step)`, which gives a value a name."""


class Node:
    """A node: its place in the text (code points from the start) and, once checked, its type."""

    __slots__ = ("at", "depth", "type")

    depth: int
    """Nodes on the longest way down, this one included."""

    def __init__(self, at: int, *children: Node | None) -> None:
        self.at = at
        self.type: Type = DYN
        self.depth = 1 + max([child.depth for child in children if child is not None], default=0)


class Const(Node):
    """A literal: None, bool, int, Uint, float, str, bytes."""

    __slots__ = ("value",)

    def __init__(self, at: int, value: Any) -> None:
        super().__init__(at)
        self.value = value


class Ident(Node):
    """A name. `kind` after the check: "var" or "type"."""

    __slots__ = ("kind", "name")

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name
        self.kind = "var"


class Select(Node):
    """`operand.field`, `operand.?field` (optional) or, in has(), the test of it."""

    __slots__ = ("field", "operand", "optional", "qualified", "test")

    def __init__(self, at: int, operand: Node, field: str, test: bool = False, optional: bool = False) -> None:
        super().__init__(at, operand)
        self.operand = operand
        self.field = field
        self.test = test
        self.optional = optional
        self.qualified: Ident | None = None
        """The name it turned out to be: a type with dots."""


class Call(Node):
    """A function, an operator (`_+_`) or a method (`target` is not None). `overloads`: what may be meant, once
    checked."""

    __slots__ = ("args", "name", "overloads", "target")

    def __init__(self, at: int, name: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(at, target, *args)
        self.name = name
        self.args = args
        self.target = target
        self.overloads: list[Any] = []

    @property
    def operands(self) -> list[Node]:
        """Target and arguments."""
        return self.args if self.target is None else [self.target, *self.args]


class ListNode(Node):
    """A list literal; `optional` are the indices of `?e`."""

    __slots__ = ("items", "optional")

    def __init__(self, at: int, items: list[Node], optional: frozenset[int]) -> None:
        super().__init__(at, *items)
        self.items = items
        self.optional = optional


class MapNode(Node):
    """A map literal: (key, value, optional)."""

    __slots__ = ("entries",)

    def __init__(self, at: int, entries: list[tuple[Node, Node, bool]]) -> None:
        super().__init__(at, *[key for key, _, _ in entries], *[value for _, value, _ in entries])
        self.entries = entries


class StructNode(Node):
    """An object literal `Name{field: value}`: (field, value, optional, place)."""

    __slots__ = ("entries", "name")

    def __init__(self, at: int, name: str, entries: list[tuple[str, Node, bool, int]]) -> None:
        super().__init__(at, *[value for _, value, _, _ in entries])
        self.name = name
        self.entries = entries


class Fold(Node):
    """A comprehension. `kind` is the macro's name; `names` its one or two variables; `steps` its expressions, in the
    order they are written."""

    __slots__ = ("kind", "names", "source", "steps")

    def __init__(self, at: int, kind: str, source: Node, names: tuple[str, ...], steps: list[Node]) -> None:
        super().__init__(at, source, *steps)
        self.kind = kind
        self.source = source
        self.names = names
        self.steps = steps


def children(node: Node) -> list[Node]:
    """The nodes directly below."""
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return node.operands
    if isinstance(node, ListNode):
        return node.items
    if isinstance(node, MapNode):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, StructNode):
        return [value for _, value, _, _ in node.entries]
    if isinstance(node, Fold):
        return [node.source, *node.steps]
    return []


def names_in(node: Node) -> set[str]:
    """Every name the expression mentions."""
    found = {node.name} if isinstance(node, Ident) else set()
    for child in children(node):
        found |= names_in(child)
    return found
