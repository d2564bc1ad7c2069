"""The order of sets: a controller that depends on it does something else in another process.

Python iterates over a set of texts in an order that differs from process to process. Within one process it never
differs, so executing twice would not show it. Here the functions of a controller's module are compiled a second time
with sets that iterate backwards, and `Backwards` swaps that code in for the second execution. Sets that other modules
make (`dict.keys() - other`) keep their order.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

NAMES: Final = {"set": "__steersman_set__", "frozenset": "__steersman_frozenset__"}


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
    """A context in which the sets of some classes' modules iterate backwards. Reusable; nothing to do costs nothing."""

    def __init__(self, classes: Iterable[type[Any]]) -> None:
        self._swaps: list[tuple[FunctionType, CodeType, CodeType]] = []
        bases = {base for cls in classes for base in cls.__mro__ if not base.__module__.startswith("steersman.api")}
        for name in sorted({base.__module__ for base in bases} - {"builtins"}):
            module = sys.modules.get(name)
            if module is not None and not NAMES.keys() & vars(module).keys():
                self._prepare(module, [base for base in bases if base.__module__ == name])

    def _prepare(self, module: ModuleType, classes: list[type[Any]]) -> None:
        try:
            source, file = inspect.getsource(module), inspect.getsourcefile(module) or "?"
            tree = ast.parse(source)
        except (OSError, TypeError, SyntaxError):
            return  # no source: this test is not made
        if not any(_makes_set(node) for node in ast.walk(tree)):
            return
        rewritten = compile(ast.fix_missing_locations(_Rewriter().visit(tree)), file, "exec")
        codes = {(code.co_qualname, code.co_firstlineno): code for code in _codes(rewritten)}
        for function in _functions(module, classes):
            old = function.__code__
            new = codes.get((old.co_qualname, old.co_firstlineno))
            if new is not None and new.co_freevars == old.co_freevars and _uses(new):
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


def _makes_set(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in NAMES
    return isinstance(node, (ast.Set, ast.SetComp))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _uses(code: CodeType) -> bool:
    return any(name in part.co_names for part in _codes(code) for name in NAMES.values())


def _functions(module: ModuleType, classes: list[type[Any]]) -> Iterator[FunctionType]:
    """The functions of a module and of some classes of it, once each."""
    seen: set[int] = set()
    work: list[Any] = [item for item in vars(module).values() if getattr(item, "__module__", "") == module.__name__]
    work.extend(classes)
    while work:
        item = work.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, FunctionType):
            yield item
        elif isinstance(item, (staticmethod, classmethod)):
            work.append(item.__func__)
        elif isinstance(item, property):
            work.extend([part for part in (item.fget, item.fset) if part is not None])
        elif isinstance(item, type) and item.__module__ == module.__name__:
            work.extend(vars(item).values())
