"""The order of sets: a controller that depends on it does something else in another process.

Python iterates over a set of texts in an order that differs from process to process. Within one process it never
differs, so executing twice would not show it. Here the functions of a controller's module are compiled a second time
with sets that iterate backwards, and `Backwards` swaps that code in for the second execution. Sets that other modules
make (`dict.keys() - other`) keep their order.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from steersman.api.controller import is_theirs

NAMES: Final = {"set": "__steersman_set__", "frozenset": "__steersman_frozenset__"}
FILES_KEPT: Final = 64
"""Files whose rewritten functions are kept for the next search: about as many as controllers of one test run are in."""


class BackwardSet(set[Any]):
    """A set that iterates the other way round."""

    def __iter__(self) -> Iterator[Any]:
        items: list[Any] = list(super().__iter__())
        backwards: Iterator[Any] = reversed(items)
        return backwards

    def pop(self) -> Any:
        item = next(iter(self))
        self.remove(item)
        return item


class BackwardFrozenSet(frozenset[Any]):
    """The same, frozen."""

    def __iter__(self) -> Iterator[Any]:
        items: list[Any] = list(super().__iter__())
        backwards: Iterator[Any] = reversed(items)
        return backwards


def _closed(cls: type[Any], base: type[Any]) -> None:
    """Operators of set subclasses give plain sets: wrap them."""
    for name in ("and", "or", "sub", "xor", "rand", "ror", "rsub", "rxor"):
        _wrap(cls, base, f"__{name}__")
    for name in ("union", "intersection", "difference", "symmetric_difference", "copy"):
        _wrap(cls, base, name)


def _wrap(cls: type[Any], base: type[Any], name: str) -> None:
    method = getattr(base, name)

    def wrapped(self: Any, *others: Any) -> Any:
        result = method(self, *others)
        return result if result is NotImplemented else cls(result)

    setattr(cls, name, wrapped)


_closed(BackwardSet, set)
_closed(BackwardFrozenSet, frozenset)


class _Rewriter(ast.NodeTransformer):
    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        return self._made("set", ast.List(node.elts, ast.Load()), node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return self._made("set", ast.ListComp(node.elt, node.generators), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in NAMES:
            node.func = ast.copy_location(ast.Name(NAMES[node.func.id], ast.Load()), node.func)
        return node

    @staticmethod
    def _made(name: str, items: ast.expr, node: ast.expr) -> ast.AST:
        call = ast.Call(ast.Name(NAMES[name], ast.Load()), [items], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


class Backwards:
    """A context in which the sets that some classes' code makes iterate backwards. Reusable; nothing to do costs
    nothing."""

    def __init__(self, classes: Iterable[type[Any]]) -> None:
        self._swaps: list[tuple[FunctionType, CodeType, CodeType]] = []
        rewritten: dict[str, Mapping[tuple[str, int], CodeType]] = {}
        for function in _reachable(classes):
            old = function.__code__
            codes = rewritten.get(old.co_filename)
            if codes is None:
                codes = rewritten[old.co_filename] = _rewritten(function)
            new = codes.get((old.co_qualname, old.co_firstlineno))
            if (
                new is not None
                and new.co_freevars == old.co_freevars
                and not NAMES.keys() & function.__globals__.keys()
            ):
                function.__globals__[NAMES["set"]] = BackwardSet
                function.__globals__[NAMES["frozenset"]] = BackwardFrozenSet
                self._swaps.append((function, old, new))

    def __call__(self) -> Backwards:
        return self

    def __enter__(self) -> None:
        for function, _, new in self._swaps:
            function.__code__ = new

    def __exit__(self, *_error: object) -> None:
        for function, code, _ in self._swaps:
            function.__code__ = code

    def __len__(self) -> int:
        return len(self._swaps)


def _rewritten(function: FunctionType) -> Mapping[tuple[str, int], CodeType]:
    """The functions of a file that make sets, compiled anew, by name and line; none when there is no source."""
    try:
        return _compiled(function.__code__.co_filename, "".join(inspect.findsource(function)[0]))
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}


@lru_cache(maxsize=FILES_KEPT)
def _compiled(path: str, source: str) -> Mapping[tuple[str, int], CodeType]:
    """The same of a file's text. Tens of milliseconds for a long file: most of a small search, if it were done anew."""
    tree = _Rewriter().visit(ast.parse(source))
    module = compile(ast.fix_missing_locations(tree), path, "exec")
    return {(code.co_qualname, code.co_firstlineno): code for code in _codes(module) if _uses(code)}


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _uses(code: CodeType) -> bool:
    return any(name in part.co_names for part in _codes(code) for name in NAMES.values())


def _reachable(classes: Iterable[type[Any]]) -> Iterator[FunctionType]:
    """Functions of the person's own that the classes' methods can reach: by name, through closures and modules."""
    seen: set[int] = set()
    work: list[Any] = list(classes)
    while work:
        item = work.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, FunctionType):
            if is_theirs(item.__code__.co_filename):
                yield item
                work.extend(_used_by(item))
        elif isinstance(item, (staticmethod, classmethod)):
            work.append(item.__func__)
        elif isinstance(item, property):
            work.extend([part for part in (item.fget, item.fset) if part is not None])
        elif isinstance(item, type):
            work.extend([part for base in item.__mro__ if base is not object for part in vars(base).values()])


def _used_by(function: FunctionType) -> Iterator[Any]:
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in sorted(names):
        found = function.__globals__.get(name)
        if isinstance(found, ModuleType):
            yield from [getattr(found, other, None) for other in sorted(names)]
        elif isinstance(found, (FunctionType, type)):
            yield found
    yield from function.__defaults__ or ()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
