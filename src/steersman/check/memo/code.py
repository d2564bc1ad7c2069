"""The code of a controller as a digest: equal digests mean that the same reads lead to the same calls.

It covers what a controller can reach by name: its class and bases, the functions, values and classes that their code
names, what closures and the instance hold, whole files of other modules (with what those reach in turn), Steersman
itself and Python. What cannot be told apart reliably is `Unknowable`: such a controller is executed every time.
"""

from __future__ import annotations
import __future__

import builtins
import dis
import importlib.util
import re
import sys
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from xxhash import xxh3_128_hexdigest

MAX_PARTS: Final = 20_000
"""Functions, classes, values and modules that one controller reaches: more is not looked through."""
PACKAGE: Final = Path(__file__).parents[2]
_PLAIN: Final = (str, bytes, int, float, complex, bool, type(None), type(...), PurePath)
_SLOTS: Final = frozenset(["__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__annotations__"])


class Unknowable(Exception):
    """What a controller does depends on something that has no digest; the text says on what."""


@lru_cache(maxsize=1)
def platform() -> str:
    """Digest of Steersman's own code and of Python's version."""
    parts = [sys.version, sys.implementation.cache_tag or ""]
    for path in sorted(PACKAGE.rglob("*.py")):
        parts.append(f"{path.relative_to(PACKAGE)}\0{xxh3_128_hexdigest(path.read_bytes())}")
    return xxh3_128_hexdigest("\0".join(parts).encode())


def code_of(*roots: Any) -> str:
    """The digest of what some values (a class, a function that makes a controller, an instance) do. Raises
    `Unknowable`."""
    reached = _Reached()
    for root in roots:
        reached.add(root)
    return xxh3_128_hexdigest("\0".join([platform(), *reached.parts]).encode("utf-8", "surrogatepass"))


class _Reached:
    """Everything reached so far, in the order in which it was met. A thing met again is named by its number."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []

    def add(self, item: Any) -> None:
        """Adds a value and what it reaches."""
        if len(self.parts) > MAX_PARTS:
            raise Unknowable(f"more than {MAX_PARTS:,} parts")
        if isinstance(item, _PLAIN) and not isinstance(item, Enum):
            self.parts.append(f"{type(item).__name__} {item!r}")
            return
        known = self._numbers.get(id(item))
        if known is not None:
            self.parts.append(f"again {known}")
            return
        self._numbers[id(item)] = len(self._held)
        self._held.append(item)  # an id is its own as long as the thing lives
        self._compound(item)

    def _compound(self, item: Any) -> None:
        if isinstance(item, FunctionType):
            self._function(item)
        elif isinstance(item, type):
            self._class(item)
        elif isinstance(item, ModuleType):
            self._module(item)
        elif isinstance(item, CodeType):
            self._code(item)
        elif isinstance(item, (staticmethod, classmethod)):
            self._named(type(item).__name__, item.__func__)
        elif isinstance(item, property):
            self._named("property", item.fget, item.fset, item.fdel)
        elif isinstance(item, MethodType):
            self._named("method", item.__func__, item.__self__)
        elif isinstance(item, BuiltinFunctionType):
            self._named(f"builtin {item.__module__}.{item.__qualname__}")
        elif isinstance(item, partial):
            self._named("partial", item.func, item.args, item.keywords)
        elif isinstance(item, (tuple, list)):
            self._named(f"{_full(type(item))} {len(item)}", *item)
        elif isinstance(item, (set, frozenset)):
            self._named(f"{_full(type(item))} {len(item)}", *sorted(item, key=repr))
        elif isinstance(item, dict):
            self._named(f"{_full(type(item))} {len(item)}", *[part for pair in item.items() for part in pair])
        elif isinstance(item, re.Pattern):
            self._named(f"pattern {item.pattern!r} {item.flags}")
        elif isinstance(item, __future__._Feature):
            self._named(f"feature {item!r}")  # `annotations`: the name of a field, most of the time
        elif isinstance(item, Enum):
            self._named(f"enum {item.name}", type(item), item.value)
        else:
            self._instance(item)

    def _named(self, name: str, *items: Any) -> None:
        self.parts.append(name)
        for item in items:
            self.add(item)

    def _instance(self, item: Any) -> None:
        """Something with attributes only: a dataclass, a controller."""
        cls = type(item)
        slots = [name for base in cls.__mro__ for name in _slots(base)]
        if not hasattr(item, "__dict__") and not slots:
            raise Unknowable(f"a {cls.__qualname__}")
        if _known(cls.__module__) and cls.__module__.partition(".")[0] != "steersman":
            raise Unknowable(f"a {cls.__qualname__} of {cls.__module__}")
        held = dict(getattr(item, "__dict__", {}))
        held |= {name: getattr(item, name) for name in slots if hasattr(item, name)}
        self._named(f"instance {len(held)}", cls, *[part for pair in sorted(held.items()) for part in pair])

    def _class(self, cls: type) -> None:
        self.parts.append(f"class {_full(cls)}")
        if _known(cls.__module__):
            return
        for base in cls.__bases__:
            self.add(base)
        for name, value in sorted(vars(cls).items()):
            if name not in _SLOTS and not type(value).__name__.endswith(("_descriptor", "_abc_data")):
                self._named(f"attribute {name}", value)

    def _function(self, function: FunctionType) -> None:
        self.parts.append(f"function {function.__module__}.{function.__qualname__}")
        if _known(function.__module__):
            return
        self.add(function.__code__)
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.add(cell.cell_contents)
            except ValueError:  # not filled yet
                self.parts.append("empty")
        for name in _names(function.__code__):
            if name in function.__globals__:
                self._named(f"global {name}", function.__globals__[name])
            elif hasattr(builtins, name):
                self.parts.append(f"builtin {name}")
        for imported in _imports(function.__code__, function.__globals__.get("__package__") or ""):
            self._imported(imported)

    def _code(self, code: CodeType) -> None:
        """Bytecode and constants; where in the file it stands does not count."""
        self.parts.append(f"code {code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames}")
        self.parts.append(f"{code.co_freevars} {code.co_argcount} {code.co_kwonlyargcount} {code.co_flags}")
        self.parts.append(code.co_exceptiontable.hex())
        for constant in code.co_consts:
            self.add(constant)

    def _module(self, module: ModuleType) -> None:
        """A module's file, and the modules that what it holds comes from."""
        name = module.__name__
        self.parts.append(f"module {name}")
        if _known(name):
            return
        file = getattr(module, "__file__", None)
        if file is None or not Path(file).is_file():
            raise Unknowable(f"module {name}, which has no file")
        self.parts.append(xxh3_128_hexdigest(Path(file).read_bytes()))
        for value in list(vars(module).values()):
            other = value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", "") or "")
            if other is not None and other is not module:
                self.add(other)

    def _imported(self, name: str) -> None:
        """A module that code imports as it runs."""
        if _known(name):
            self.parts.append(f"module {name}")
            return
        if name not in sys.modules:
            raise Unknowable(f"module {name}, which it imports as it runs")
        self.add(sys.modules[name])


def _known(module: str | None) -> bool:
    """Whether a module is Python's or Steersman's: `platform` covers those."""
    top = (module or "builtins").partition(".")[0]
    return top in sys.stdlib_module_names or top == "steersman" or top in sys.builtin_module_names


def _full(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _slots(cls: type) -> list[str]:
    slots = vars(cls).get("__slots__", ())
    return [slots] if isinstance(slots, str) else [name for name in slots if name not in _SLOTS]


def _codes(code: CodeType) -> list[CodeType]:
    inner = [found for part in code.co_consts if isinstance(part, CodeType) for found in _codes(part)]
    return [code, *inner]


def _names(code: CodeType) -> list[str]:
    return sorted({name for part in _codes(code) for name in part.co_names})


def _imports(code: CodeType, package: str) -> list[str]:
    """The modules that a function's own import statements name, absolute."""
    out: dict[str, None] = {}
    for part in _codes(code):
        level = 0
        for step in dis.get_instructions(part):
            if step.opname == "LOAD_CONST" and isinstance(step.argval, int):
                level = step.argval
            elif step.opname == "IMPORT_NAME":
                name = f"{'.' * level}{step.argval}"
                try:
                    out[importlib.util.resolve_name(name, package) if level else name] = None
                except ImportError:
                    raise Unknowable(f"module {name}, which it imports as it runs") from None
    return list(out)


__all__ = ["Unknowable", "code_of", "platform"]
