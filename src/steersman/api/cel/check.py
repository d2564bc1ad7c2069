"""The type checker: what names and functions mean, and whether the types fit. Its texts are cel-go's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from steersman.api.cel import types
from steersman.api.cel.faults import CompileError
from steersman.api.cel.functions import Overload, Registry
from steersman.api.cel.lexer import RESERVED as WORDS
from steersman.api.cel.parser import dotted
from steersman.api.cel.tree import BIND, Call, Const, Fold, Ident, ListNode, MapNode, Node, Select, StructNode
from steersman.api.cel.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    STRING,
    Fresh,
    Subst,
    Type,
    assign,
    list_of,
    map_of,
    optional_of,
    resolve,
    settle,
)
from steersman.api.cel.values import Uint

CONSTANTS: Final[Mapping[type, Type]] = {
    type(None): NULL, bool: BOOL, int: INT, Uint: types.UINT, float: types.DOUBLE, str: STRING, bytes: types.BYTES,
}  # fmt: skip
TYPE_NAMES: Final[Mapping[str, Type]] = {
    "bool": BOOL, "int": INT, "uint": types.UINT, "double": types.DOUBLE, "string": STRING, "bytes": types.BYTES,
    "list": list_of(DYN), "map": map_of(DYN, DYN), "null_type": NULL, "type": types.TYPE,
    "google.protobuf.Timestamp": types.TIMESTAMP, "google.protobuf.Duration": types.DURATION,
    "optional_type": optional_of(DYN), **{t.name: t for t in types.OPAQUE.values()},
}  # fmt: skip
"""Names that stand for types."""


def check(
    root: Node, source: str, variables: Mapping[str, Type], registry: Registry, objects: Mapping[str, Type]
) -> Type:
    """Writes types and overloads into the tree; returns the type of the whole. Raises `CompileError`."""
    checker = _Checker(variables, registry, objects)
    try:
        found = checker.visit(root)
    except RecursionError:
        raise CompileError(source, [(-1, "the types of the expression are nested too deep")]) from None
    if checker.faults or checker.uneven:
        raise CompileError(source, checker.faults or checker.uneven)
    for node in checker.seen:
        node.type = settle(checker.subst, node.type)
    return settle(checker.subst, found)


class _Checker:
    def __init__(self, variables: Mapping[str, Type], registry: Registry, objects: Mapping[str, Type]) -> None:
        self.scope = dict(variables)
        self.registry = registry
        self.objects = objects
        self.subst: Subst = {}
        self.fresh = Fresh()
        self.faults: list[tuple[int, str]] = []
        self.uneven: list[tuple[int, str]] = []
        """Literals with elements of several types, one of which is not known: told where nothing else is wrong."""
        self.mixed = False
        """Within format(), whose arguments may be of several types."""
        self.seen: list[Node] = []

    def fault(self, at: int, message: str) -> Type:
        self.faults.append((at, message))
        return DYN

    def visit(self, node: Node) -> Type:
        """The type of a node, kept in it."""
        if isinstance(node, Const):
            found = CONSTANTS[type(node.value)]
        elif isinstance(node, Ident):
            found = self.ident(node)
        elif isinstance(node, Select):
            found = self.select(node)
        elif isinstance(node, Call):
            found = self.call(node)
        elif isinstance(node, ListNode):
            found = list_of(self.elements([(item, index in node.optional) for index, item in enumerate(node.items)]))
        elif isinstance(node, MapNode):
            found = self.mapping(node)
        elif isinstance(node, StructNode):
            found = self.struct(node)
        else:
            assert isinstance(node, Fold)
            found = self.fold(node)
        node.type = found
        self.seen.append(node)
        return found

    def shown(self, t: Type) -> str:
        """A type in an error: with what is known of its parameters."""
        t = resolve(self.subst, t)
        if t.params:
            return f"{t.name}({', '.join([self.shown(p) for p in t.params])})"
        return str(t)

    # -- names and fields ----------------------------------------------------------------------------------

    def ident(self, node: Ident) -> Type:
        if node.name in self.scope:
            return self.scope[node.name]
        if node.name in TYPE_NAMES:
            node.kind = "type"
            return types.type_of(TYPE_NAMES[node.name])
        return self.fault(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def select(self, node: Select) -> Type:
        name = "" if node.test else dotted(node)
        if name in self.scope:  # a variable with a dot in its name
            node.qualified = Ident(node.at, name)
            return self.visit(node.qualified)
        if name in TYPE_NAMES and name.partition(".")[0] not in self.scope:
            node.qualified = Ident(node.at, name)
            return self.visit(node.qualified)
        operand = resolve(self.subst, self.visit(node.operand))
        through = operand.kind == "optional"
        found = self.field(node, resolve(self.subst, operand.params[0]) if through else operand)
        if node.test:
            return BOOL
        return optional_of(found) if through or node.optional else found

    def field(self, node: Select, operand: Type) -> Type:
        if operand.kind == "map":
            return operand.params[1]
        if operand.kind == "object":
            found = (operand.fields or {}).get(node.field)
            if found is None and node.field in WORDS and f"__{node.field}__" in (operand.fields or {}):
                node.field = f"__{node.field}__"  # a word of the language, as which a field may also be written
                found = (operand.fields or {})[node.field]
            return self.fault(node.at, f"undefined field '{node.field}'") if found is None else found
        if operand.kind == "param":
            self.subst[operand.name] = DYN
            return DYN
        if operand.kind == "dyn":
            return DYN
        return self.fault(node.at, f"type '{self.shown(operand)}' does not support field selection")

    # -- calls ---------------------------------------------------------------------------------------------

    def call(self, node: Call) -> Type:
        if node.target is not None:
            name = dotted(node.target)
            if name and name.partition(".")[0] not in self.scope and f"{name}.{node.name}" in self.registry:
                node.name, node.target = f"{name}.{node.name}", None
        if node.name in ("_&&_", "_||_"):
            return self.logical(node)
        mixed, self.mixed = self.mixed, self.mixed or node.name == "format"
        given = [self.visit(operand) for operand in node.operands]
        self.mixed = mixed
        overloads = self.registry.get(node.name)
        if overloads is None:
            return self.fault(node.at, f"undeclared reference to '{node.name}' (in container '')")
        return self.overload(node, overloads, given)

    def logical(self, node: Call) -> Type:
        for operand in node.args:
            self.boolean_term(operand, self.visit(operand))
        return BOOL

    def boolean_term(self, operand: Node, found: Type) -> None:
        if not assign(self.subst, BOOL, found):
            self.fault(operand.at, f"expected type 'bool' but found '{self.shown(found)}'")

    def overload(self, node: Call, overloads: Sequence[Overload], given: list[Type]) -> Type:
        """Every signature that fits; a result they do not agree on is dyn."""
        result: Type | None = None
        for overload in overloads:
            if overload.member != (node.target is not None) or len(overload.params) != len(given):
                continue
            *params, out = self.fresh.rename([*overload.params, overload.result])
            subst = dict(self.subst)
            if all(assign(subst, want, got) for want, got in zip(params, given, strict=True)):
                self.subst = subst
                node.overloads.append(overload)
                settled = self.partly(out)
                if result is None:
                    result = settled
                elif not types.same(result, settled):
                    result = DYN
        if result is None:
            shown = [self.shown(t) for t in given]
            text = f"{shown[0]}.({', '.join(shown[1:])})" if node.target is not None else f"({', '.join(shown)})"
            return self.fault(node.at, f"found no matching overload for '{node.name}' applied to '{text}'")
        return result

    def partly(self, t: Type) -> Type:
        """A type with what is known of its parameters."""
        t = resolve(self.subst, t)
        if not t.params:
            return t
        return Type(t.kind, tuple([self.partly(p) for p in t.params]), t.name, t.fields, t.bound, t.least)

    # -- literals ------------------------------------------------------------------------------------------

    def elements(self, items: Sequence[tuple[Node, bool]]) -> Type:
        """The one type of a literal's elements."""
        found: Type | None = None
        for item, optional in items:
            t = resolve(self.subst, self.visit(item))
            if optional:
                t = self.unwrapped(item, t)
            if found is None:
                found = t
            elif not self.joined(found, t):
                if self.mixed:
                    found = DYN
                    continue
                self.fault(item.at, f"expected type '{self.shown(found)}' but found '{self.shown(t)}'")
            else:
                if not self.mixed and not self.alike(found, t):
                    told = f"expected type '{self.shown(found)}' but found '{self.shown(t)}'"
                    self.uneven.append((item.at, told))
                if t.kind == "dyn" or resolve(self.subst, found).kind in ("null", "param"):
                    found = t
        return self.fresh.variable() if found is None else found

    def alike(self, one: Type, other: Type) -> bool:
        """Whether two types that fit do so without dyn."""
        one, other = resolve(self.subst, one), resolve(self.subst, other)
        if "dyn" in (one.kind, other.kind):
            return one.name == other.name or "param" in (one.kind, other.kind)
        return all(self.alike(a, b) for a, b in zip(one.params, other.params, strict=False))

    def joined(self, one: Type, other: Type) -> bool:
        return assign(self.subst, one, other)

    def unwrapped(self, item: Node, t: Type) -> Type:
        if t.kind == "optional":
            return t.params[0]
        if t.kind != "dyn":
            self.fault(item.at, f"expected type 'optional_type({self.shown(t)})' but found '{self.shown(t)}'")
        return t

    def mapping(self, node: MapNode) -> Type:
        key = self.elements([(key, False) for key, _, _ in node.entries])
        return map_of(key, self.elements([(value, optional) for _, value, optional in node.entries]))

    def struct(self, node: StructNode) -> Type:
        known = self.objects.get(node.name)
        if known is None:
            for _, value, _, _ in node.entries:
                self.visit(value)
            return self.fault(node.at, f"undeclared reference to '{node.name}' (in container '')")
        for field, value, optional, place in node.entries:
            t = resolve(self.subst, self.visit(value))
            t = self.unwrapped(value, t) if optional else t
            want = DYN if known.fields is None else known.fields.get(field)
            if want is None:
                self.fault(place, f"undefined field '{field}'")
            elif not assign(self.subst, want, t):
                told = f"expected type of field '{field}' is '{want}' but provided type is '{self.shown(t)}'"
                self.fault(place, told)
        return known

    # -- comprehensions ------------------------------------------------------------------------------------

    def fold(self, node: Fold) -> Type:
        source = resolve(self.subst, self.visit(node.source))
        names = [source] if node.kind == BIND else self.ranged(node, source)
        outer = self.scope
        self.scope = {**outer, **dict(zip(node.names, names, strict=True))}
        steps = [self.visit(step) for step in node.steps]
        self.scope = outer
        return self.folded(node, source, steps)

    def ranged(self, node: Fold, source: Type) -> list[Type]:
        """The types of the variables."""
        if node.kind in ("optMap", "optFlatMap"):
            if source.kind == "optional":
                return [source.params[0]]
            if source.kind != "dyn":
                told = f"found no matching overload for 'hasValue' applied to '{self.shown(source)}.()'"
                self.fault(node.at, told)
            return [DYN]
        two = len(node.names) == 2
        if source.kind == "param":
            self.subst[source.name] = source = DYN
        if source.kind == "list":
            return [INT, source.params[0]] if two else [source.params[0]]
        if source.kind == "map":
            return list(source.params) if two else [source.params[0]]
        if source.kind != "dyn" or source.name == types.ANY.name:
            told = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self.fault(node.source.at, f"expression of type '{self.shown(source)}' {told}")
        return [DYN] * len(node.names)

    def boolean(self, node: Fold, t: Type, operator: str, form: str) -> None:
        if not assign(self.subst, BOOL, t):
            told = f"found no matching overload for '{operator}' applied to '{form.format(self.shown(t))}'"
            self.fault(node.at, told)

    def folded(self, node: Fold, source: Type, steps: list[Type]) -> Type:
        kind, last = node.kind, steps[-1]
        if kind in ("all", "exists"):
            self.boolean_term(node.steps[-1], last)
            return BOOL
        if kind == "existsOne":
            self.boolean(node, last, "_?_:_", "({}, int, int)")
            return BOOL
        if kind == "filter":
            inner = source.params[0] if source.kind in ("list", "map") else DYN
            self.boolean(node, last, "_?_:_", f"({{}}, list({self.shown(inner)}), list({self.shown(inner)}))")
            return list_of(inner)
        if kind == BIND:
            return last
        if kind == "optMap":
            return optional_of(last)
        if kind == "optFlatMap":
            if last.kind not in ("optional", "dyn"):
                form = f"(bool, optional_type({self.shown(last)}), {self.shown(last)})"
                self.fault(node.at, f"found no matching overload for '_?_:_' applied to '{form}'")
            return last
        if kind == "sortBy":
            return source if source.kind == "list" else list_of(DYN)
        if len(steps) == 2:
            shown = f"list({self.shown(last)})"
            self.boolean(node, steps[0], "_?_:_", f"({{}}, {shown}, {shown})")
        if kind == "transformMap":
            return map_of(source.params[0] if source.kind == "map" else INT if source.kind == "list" else DYN, last)
        if kind == "transformMapEntry":
            entry = resolve(self.subst, last)
            return entry if entry.kind == "map" else map_of(DYN, DYN)
        return list_of(last)
