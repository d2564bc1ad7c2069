"""The estimated costs of functions that cost something else than 1, by name. See `estimate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.api.cel.estimate import (
    AUTHORIZATION,
    MOST,
    NAMED_FORMAT,
    NEW_LIST,
    NEW_OBJECT,
    ONE,
    REGEX,
    WALK,
    Estimate,
    Span,
)
from steersman.api.cel.tree import Call, Const, Node

Estimated = tuple[Span, Span | None]
"""A cost, and the size of the result where it can be told."""
Estimator = Callable[[Estimate, Call, tuple[str, ...]], "Estimated | None"]
FORMAT_NAME: Final = 64
ADDRESS: Final = Span(4, 16)
"""Bytes of an IP address."""


def _argument(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    return (e.size(node.args[0]).by(WALK), None) if node.args else None


def _argument_kept(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    size = e.size(node.args[0])
    return size.by(WALK), size


def _twice(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    return e.size(node.args[0]).by(2 * WALK), None


def _target(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    size = e.size(node.target)
    return size.by(WALK), size


def _matches(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    return e.size(node.target).plus(ONE).by(WALK).times(e.size(node.args[0]).by(REGEX)), None


def _find(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    size = e.size(node.target)
    return size.plus(ONE).by(WALK).times(e.size(node.args[0]).by(REGEX)), Span(0, size.most)


def _contains(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    return e.size(node.target).by(WALK).times(e.size(node.args[0]).by(WALK)), None


def _in(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    return (e.size(node.args[1]).by(1), None) if form[1] == "list" else None


def _compared(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if form[0] not in ("string", "bytes"):
        return None
    return _equal(e, node, form)


def _equal(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    left, right = node.args
    if node.name == "_==_" and left.type.kind == "opaque" and left.type.name == right.type.name:
        if left.type.name == "kubernetes.NamedFormat":
            return Span(1, FORMAT_NAME).by(WALK), None
        return ONE, None
    most = min(e.size(left).most, e.size(right).most)
    return Span(1 if most else 0, most).by(WALK), None


def _elements(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    """Functions that compare all elements of a list."""
    if node.target is None:
        return None
    each, size = ONE, e.size(node.target)
    if not node.target.type.params:  # of a string
        return size.by(WALK), None
    if node.target.type.params[0].kind in ("string", "bytes"):
        each = each.plus(e.element(node.target).by(WALK))
    return size.times(each), None


def _replace(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    size, out, new = e.size(node.target), e.size(node.args[0]), e.size(node.args[1])
    if out.least == 0:
        most_times, most_kept = min(size.most + 1, MOST), size.most
    elif new.most <= out.least:
        most_times, most_kept = 0, size.most
    else:
        most_times, most_kept = -(-size.most // out.least), 0
    if out.most == 0:
        least_times, least_kept = min(size.least + 1, MOST), size.least
    elif out.most <= new.least:
        least_times, least_kept = 0, size.least
    else:
        least_times, least_kept = -(-size.least // out.most), 0
    made = Span(least_times, most_times).times(new).plus(Span(least_kept, most_kept))
    return size.by(2 * WALK), made


def _split(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    size = e.size(node.target)
    most = _number(node.args[1], size.most) if len(node.args) > 1 else size.most
    return size.by(2 * WALK), Span(0, most)


def _join(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    count = e.size(node.target)
    size = count.times(e.element(node.target))
    if node.args:
        between = Span(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(e.size(node.args[0]).times(between))
    return size.by(WALK), size


def _converted(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    """string(bytes) and bytes(string)."""
    size = e.size(node.args[0])
    if node.name == "bytes" and form == ("string",):
        return size.by(WALK), Span(size.least, min(size.most * 4, MOST))
    if node.name == "string" and form == ("bytes",):
        return size.by(WALK), Span(size.least // 4, size.most)
    return None


def _format(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    return None if node.target is None else (e.size(node.target).by(WALK), None)


def _quoted(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    size = e.size(node.args[0])
    return size.by(WALK), Span(size.least + 2, min(size.most * 2 + 2, MOST))


def _check(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    return Span(AUTHORIZATION, AUTHORIZATION), None


def _contains_ip(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    cost = ADDRESS.plus(ADDRESS).by(WALK)
    if node.name == "containsCIDR":
        cost = cost.plus(ADDRESS.by(WALK)).plus(ONE)
    return (cost.plus(e.size(node.args[0]).by(WALK)) if form[-1] == "string" else cost), None


def _ip(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    return None if node.target is not None else _argument(e, node, form)


def _validate(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    return e.size(node.args[0]).by(WALK).by(NAMED_FORMAT * REGEX), None


def _selector(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    size = e.size(node.args[0])
    requirements = size.by(0.5).by(NEW_LIST + NEW_OBJECT)  # the shortest has two characters
    return Span(NEW_LIST, NEW_LIST).plus(size.by(WALK)).plus(requirements), None


def _sets(factor: float) -> Estimator:
    def estimated(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
        return e.size(node.args[0]).times(e.size(node.args[1])).by(factor).plus(ONE), None

    return estimated


def _allocated(size: Span, factor: float = 1) -> Estimated:
    return size.by(factor).plus(Span(1 + NEW_LIST, 1 + NEW_LIST)), size


def _slice(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    start, end = _number(node.args[0], 0), _number(node.args[1], e.size(node.target).most)
    size = (end - start) & MOST
    return _allocated(Span(size, size))


def _range(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    size = _number(node.args[0], MOST)
    return _allocated(Span(size, size))


def _reversed(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None or node.target.type.kind != "list":
        return None
    return _allocated(e.size(node.target))


def _flattened(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    if node.target is None:
        return None
    depth = _number(node.args[0], MOST) if node.args else 1
    return _allocated(e.size(node.target), float(depth))


def _pairwise(e: Estimate, node: Call, form: tuple[str, ...]) -> Estimated | None:
    """Functions that compare every element of a list with every other."""
    if node.target is None:
        return None
    size = e.size(node.target)
    params = node.target.type.params
    text = node.name == "sort" and bool(params) and params[0].kind in ("string", "bytes")
    return _allocated(size.times(size), 2 + WALK if text else 2.0)


def _number(node: Node, default: int) -> int:
    """A literal number; what else there is counts as `default`."""
    return max(node.value, 0) if isinstance(node, Const) and type(node.value) is int else default


ESTIMATES: Final[dict[str, Estimator]] = {
    "check": _check, "fieldSelector": _selector, "labelSelector": _selector,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _elements),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _argument_kept),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _target),
    "replace": _replace, "split": _split, "join": _join, "find": _find, "findAll": _find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _argument),
    "ip": _ip, "ip.isCanonical": _twice, "containsIP": _contains_ip, "containsCIDR": _contains_ip,
    "validate": _validate, "format": _format, "string": _converted, "bytes": _converted,
    "strings.quote": _quoted, "startsWith": _argument, "endsWith": _argument, "in": _in, "@in": _in,
    "matches": _matches, "contains": _contains,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compared), "_==_": _equal, "_!=_": _equal,
    "sets.contains": _sets(1), "sets.intersects": _sets(1), "sets.equivalent": _sets(2),
    "slice": _slice, "lists.range": _range, "reverse": _reversed, "flatten": _flattened,
    "distinct": _pairwise, "sort": _pairwise,
}  # fmt: skip
