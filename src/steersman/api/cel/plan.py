"""From a checked tree to a function of a frame. Every step counts its cost as cel-go's cost tracker does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from steersman.api.cel.check import TYPE_NAMES
from steersman.api.cel.faults import CelError
from steersman.api.cel.folds import FOLDS
from steersman.api.cel.frame import Frame, Made, Step, field_of, has_field, index_of, map_key
from steersman.api.cel.functions import BY_RESULT, COSTS, LIST_COST, MAP_COST, STRUCT_COST, Overload
from steersman.api.cel.tree import Call, Const, Fold, Ident, ListNode, MapNode, Node, Select, StructNode
from steersman.api.cel.types import Type
from steersman.api.cel.values import NONE, Optional, TypeName, key_text


def plan(node: Node) -> Step:
    """What evaluates the node."""
    if isinstance(node, Const):
        value = node.value
        return lambda frame: value
    if isinstance(node, Ident):
        return _ident(node)
    if isinstance(node, Select):
        return _ident(node.qualified) if node.qualified is not None else _select(node)
    if isinstance(node, Call):
        return _call(node)
    if isinstance(node, ListNode):
        return _list(node)
    if isinstance(node, MapNode):
        return _map(node)
    if isinstance(node, StructNode):
        return _struct(node)
    assert isinstance(node, Fold)
    return FOLDS[node.kind](node, plan)


def _ident(node: Ident) -> Step:
    name = node.name
    if node.kind == "type":
        value = TypeName(TYPE_NAMES[name].name if TYPE_NAMES[name].kind == "opaque" else name)
        return lambda frame: value

    def ident(frame: Frame) -> Any:
        frame.spend(1)
        try:
            return frame.names[name]
        except KeyError:
            raise CelError(f"no such attribute(s): {name}") from None

    return ident


# -- fields ----------------------------------------------------------------------------------------------------


def _select(node: Select) -> Step:
    operand, name = plan(node.operand), node.field
    if node.test:

        def test(frame: Frame) -> bool:
            value = operand(frame)
            if type(value) is Optional:
                return value.has and has_field(value.value, name)
            return has_field(value, name)

        return test
    optional = node.optional

    def select(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        if type(value) is Optional:
            if not value.has or not has_field(value.value, name):
                return NONE
            return Optional(True, field_of(value.value, name))
        if optional:
            return Optional(True, field_of(value, name)) if has_field(value, name) else NONE
        return field_of(value, name)

    return select


# -- calls -----------------------------------------------------------------------------------------------------


def _call(node: Call) -> Step:
    if node.name in ("_&&_", "_||_"):
        return _logical([plan(arg) for arg in node.args], node.name == "_||_")
    steps = [plan(operand) for operand in node.operands]
    if node.name == "_?_:_":
        return _conditional(steps)
    if node.name in ("_[_]", "_[?_]"):
        return _index(steps, node.name == "_[?_]")
    if node.name in ("orValue", "or"):
        return _or(steps, node.name == "orValue")
    impl = _impl(node)
    cost, late = COSTS.get(node.name), node.name in BY_RESULT
    if len(steps) == 1:
        (only,) = steps

        def unary(frame: Frame) -> Any:
            value = only(frame)
            if late:
                result = impl(value)
                frame.spend(cost((value,), result))  # type: ignore[misc]
                return result
            frame.spend(1 if cost is None else cost((value,), None))
            return impl(value)

        return unary
    if len(steps) == 2:
        left, right = steps

        def binary(frame: Frame) -> Any:
            a, b = left(frame), right(frame)
            if late:
                result = impl(a, b)
                frame.spend(cost((a, b), result))  # type: ignore[misc]
                return result
            frame.spend(1 if cost is None else cost((a, b), None))
            return impl(a, b)

        return binary

    def call(frame: Frame) -> Any:
        values = [step(frame) for step in steps]
        if late:
            result = impl(*values)
            frame.spend(cost(values, result))  # type: ignore[misc]
            return result
        frame.spend(1 if cost is None else cost(values, None))
        return impl(*values)

    return call


def _impl(node: Call) -> Callable[..., Any]:
    """What the call does: the one signature there is, or the one that fits the values."""
    overloads: Sequence[Overload] = node.overloads
    impls = {overload.impl: None for overload in overloads}
    sure = len(impls) == 1 and not any(_open(operand.type) for operand in node.operands)
    if sure or all(getattr(impl, "any_type", False) for impl in impls):
        return overloads[0].impl
    name = node.name

    def chosen(*values: Any) -> Any:
        for overload in overloads:
            if overload.fits(values):
                return overload.impl(*values)
        raise CelError(f"no such overload: {name}")

    return chosen


def _open(t: Type) -> bool:
    return t.kind in ("dyn", "param", "null") or any(_open(p) for p in t.params)


def _logical(steps: list[Step], stops: bool) -> Step:
    """`||` (stops at true) and `&&` (stops at false): an error counts only when no other term decides."""

    def logical(frame: Frame) -> bool:
        problem: CelError | None = None
        for step in steps:
            try:
                value = step(frame)
            except CelError as error:
                problem = problem or error
                continue
            if value is stops:
                return bool(stops)
            if type(value) is not bool:
                problem = problem or CelError("no such overload")
        if problem is not None:
            raise problem
        return not stops

    return logical


def _conditional(steps: list[Step]) -> Step:
    test, yes, no = steps

    def conditional(frame: Frame) -> Any:
        value = test(frame)
        if value is True:
            return yes(frame)
        if value is False:
            return no(frame)
        raise CelError("no such overload")

    return conditional


def _index(steps: list[Step], optional: bool) -> Step:
    source, index = steps

    def indexed(frame: Frame) -> Any:
        value, at = source(frame), index(frame)
        frame.spend(1)
        if type(value) is Optional:
            if not value.has:
                return NONE
            value = value.value
        elif not optional:
            return index_of(value, at)
        try:
            return Optional(True, index_of(value, at))
        except CelError as problem:
            if str(problem).startswith(("no such key", "index out")):
                return NONE
            raise

    return indexed


def _or(steps: list[Step], value_of: bool) -> Step:
    first, second = steps

    def either(frame: Frame) -> Any:
        value = first(frame)
        if type(value) is not Optional:
            raise CelError("no such overload")
        frame.spend(1)
        if value.has:
            return value.value if value_of else value
        return second(frame)

    return either


# -- literals --------------------------------------------------------------------------------------------------


def _given(value: Any, optional: bool, out: Callable[[Any], None], what: str) -> None:
    if not optional:
        out(value)
    elif type(value) is not Optional:
        raise CelError(f"cannot initialize optional {what} from non-optional value {key_text(value)}")
    elif value.has:
        out(value.value)


def _list(node: ListNode) -> Step:
    steps = [(plan(item), index in node.optional) for index, item in enumerate(node.items)]
    if all(isinstance(item, Const) for item in node.items) and not node.optional:
        values = [item.value for item in node.items if isinstance(item, Const)]

        def constant(frame: Frame) -> list[Any]:
            frame.spend(LIST_COST)
            return values

        return constant

    def made(frame: Frame) -> list[Any]:
        out: list[Any] = []
        for step, optional in steps:
            _given(step(frame), optional, out.append, "list element")
        frame.spend(LIST_COST)
        return out

    return made


def _map(node: MapNode) -> Step:
    steps = [(plan(key), plan(value), optional) for key, value, optional in node.entries]

    def made(frame: Frame) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for key_step, value_step, optional in steps:
            key = map_key(key_step(frame))
            value = value_step(frame)
            _given(value, optional, lambda item, key=key: out.__setitem__(key, item), "entry")  # type: ignore[misc]
        frame.spend(MAP_COST)
        return out

    return made


def _struct(node: StructNode) -> Step:
    steps = [(field, plan(value), optional) for field, value, optional, _ in node.entries]
    name = node.name

    def made(frame: Frame) -> Any:
        out = Made(name)
        for field, step, optional in steps:
            value = step(frame)
            _given(value, optional, lambda item, field=field: out.__setitem__(field, item), "entry")  # type: ignore[misc]
        frame.spend(STRUCT_COST)
        return out

    return made
