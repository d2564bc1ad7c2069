"""Comprehensions: loops that set their variables, count every turn and stop at the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.api.cel.faults import CelError
from steersman.api.cel.frame import Frame, Step
from steersman.api.cel.functions import COSTS, LIST_COST, MAP_COST
from steersman.api.cel.library.lists import sorted_by
from steersman.api.cel.tree import BIND, Fold, Node
from steersman.api.cel.values import NONE, Fields, Optional, key_text, type_name

Plan = Callable[[Node], Step]


def _pairs(value: Any, two: bool) -> list[tuple[Any, ...]]:
    """The variables of every turn."""
    if isinstance(value, list):
        return list(enumerate(value)) if two else [(item,) for item in value]
    if isinstance(value, Fields):
        value = value.cel_plain()
    if isinstance(value, dict):
        return list(value.items()) if two else [(key,) for key in value]
    raise CelError(f"unsupported comprehension range type: {type_name(value)}")


class _Loop:
    """The turns of a comprehension: its variables set, its cost counted."""

    __slots__ = ("names", "per_turn", "source", "two")

    def __init__(self, node: Fold, plan: Plan, per_turn: int) -> None:
        self.source = plan(node.source)
        self.names = node.names
        self.two = len(node.names) == 2
        self.per_turn = per_turn

    def run(self, frame: Frame, turn: Callable[[tuple[Any, ...]], bool]) -> None:
        """Calls `turn` until it says False."""
        pairs = _pairs(self.source(frame), self.two)
        names, per_turn = self.names, self.per_turn
        first, second = names[0], names[-1]
        outer = frame.names
        inner = frame.names = dict(outer)
        try:
            for pair in pairs:
                inner[first] = pair[0]
                if self.two:
                    inner[second] = pair[1]
                frame.spend(per_turn)
                if not turn(pair):
                    return
        finally:
            frame.names = outer


def _quantified(node: Fold, plan: Plan) -> Step:
    """all and exists: errors are forgotten when another element decides."""
    stops = node.kind == "exists"
    loop, body = _Loop(node, plan, 4 if stops else 3), plan(node.steps[0])

    def quantified(frame: Frame) -> bool:
        problem: CelError | None = None
        found = not stops

        def turn(pair: tuple[Any, ...]) -> bool:
            nonlocal problem, found
            try:
                value = body(frame)
            except CelError as error:
                problem = problem or error
                return True
            if value is stops:
                found = stops
                return False
            if type(value) is not bool:
                problem = problem or CelError("no such overload")
            return True

        loop.run(frame, turn)
        frame.cost += 1
        if found is not stops and problem is not None:
            raise problem
        return found

    return quantified


def _exists_one(node: Fold, plan: Plan) -> Step:
    loop, body = _Loop(node, plan, 1), plan(node.steps[0])

    def exists_one(frame: Frame) -> bool:
        count = 0

        def turn(pair: tuple[Any, ...]) -> bool:
            nonlocal count
            count += _true(body(frame))
            return True

        loop.run(frame, turn)
        frame.spend(2)
        return count == 1

    return exists_one


def _true(value: Any) -> bool:
    if type(value) is not bool:
        raise CelError("no such overload")
    return value


def _collected(node: Fold, plan: Plan) -> Step:
    """map, filter, transformList: a list of what the turns give."""
    loop = _Loop(node, plan, LIST_COST + 2)
    test = plan(node.steps[0]) if len(node.steps) == 2 or node.kind == "filter" else None
    body = None if node.kind == "filter" else plan(node.steps[-1])

    def collected(frame: Frame) -> list[Any]:
        out: list[Any] = []

        def turn(pair: tuple[Any, ...]) -> bool:
            if test is None or _true(test(frame)):
                out.append(pair[0] if body is None else body(frame))
            return True

        loop.run(frame, turn)
        frame.spend(LIST_COST + 1)
        return out

    return collected


def _mapped(node: Fold, plan: Plan) -> Step:
    """transformMap and transformMapEntry."""
    loop = _Loop(node, plan, 3)
    test = plan(node.steps[0]) if len(node.steps) == 2 else None
    body, entry = plan(node.steps[-1]), node.kind == "transformMapEntry"

    def mapped(frame: Frame) -> dict[Any, Any]:
        out: dict[Any, Any] = {}

        def turn(pair: tuple[Any, ...]) -> bool:
            if test is None or _true(test(frame)):
                value = body(frame)
                for key, item in value.items() if entry else ((pair[0], value),):
                    if key in out:
                        raise CelError(f"insert failed: key {key_text(key)} already exists")
                    out[key] = item
            return True

        loop.run(frame, turn)
        frame.spend(MAP_COST + 1)
        return out

    return mapped


def _optional_map(node: Fold, plan: Plan) -> Step:
    source, body, name = plan(node.source), plan(node.steps[0]), node.names[0]
    flat = node.kind == "optFlatMap"

    def mapped(frame: Frame) -> Any:
        value = source(frame)
        if type(value) is not Optional:
            raise CelError("no such overload")
        frame.spend(2)
        if not value.has:
            return NONE
        outer = frame.names
        frame.names = {**outer, name: value.value}
        try:
            found = body(frame)
        finally:
            frame.names = outer
        return found if flat else Optional(True, found)

    return mapped


def _sorted_by(node: Fold, plan: Plan) -> Step:
    loop, body = _Loop(node, plan, LIST_COST + 2), plan(node.steps[0])

    def sorted_list(frame: Frame) -> list[Any]:
        items: list[Any] = []
        keys: list[Any] = []

        def turn(pair: tuple[Any, ...]) -> bool:
            items.append(pair[0])
            keys.append(body(frame))
            return True

        loop.run(frame, turn)
        frame.spend(COSTS["sort"]((items,), items))
        return sorted_by(items, keys)

    return sorted_list


def _bound(node: Fold, plan: Plan) -> Step:
    """A value with a name. An error of the value is one only where the name is asked for."""
    source, body, name = plan(node.source), plan(node.steps[0]), node.names[0]

    def bound(frame: Frame) -> Any:
        frame.spend(LIST_COST)  # cel-go writes it as a loop over an empty list
        outer = frame.names
        try:
            value, problem = source(frame), None
        except CelError as error:
            value, problem = None, error
        frame.names = {key: item for key, item in outer.items() if key != name}
        if problem is None:
            frame.names[name] = value
        try:
            return body(frame)
        except CelError:
            if problem is not None:
                raise problem from None
            raise
        finally:
            frame.names = outer

    return bound


FOLDS: Final[dict[str, Callable[[Fold, Plan], Step]]] = {
    "all": _quantified, "exists": _quantified, "existsOne": _exists_one,
    "map": _collected, "filter": _collected, "transformList": _collected,
    "transformMap": _mapped, "transformMapEntry": _mapped,
    "optMap": _optional_map, "optFlatMap": _optional_map, "sortBy": _sorted_by, BIND: _bound,
}  # fmt: skip
