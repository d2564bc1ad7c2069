"""An environment: the variables, functions and objects an expression may use. It compiles texts to programs, once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from steersman.api.cel.check import check
from steersman.api.cel.faults import CelError, CompileError, CostExceeded
from steersman.api.cel.frame import Frame, Step
from steersman.api.cel.functions import Registry, functions, merged
from steersman.api.cel.library.amounts import amounts
from steersman.api.cel.library.authz import authz
from steersman.api.cel.library.formats import formats
from steersman.api.cel.library.lists import lists
from steersman.api.cel.library.net import net
from steersman.api.cel.library.strings import strings
from steersman.api.cel.library.times import times
from steersman.api.cel.operators import standard
from steersman.api.cel.parser import parse
from steersman.api.cel.plan import plan
from steersman.api.cel.tree import Node, names_in
from steersman.api.cel.types import Type

CALL_LIMIT: Final = 1_000_000
"""Most cost of one evaluation (PerCallLimit of Kubernetes)."""
OBJECT_BUDGET: Final = 10_000_000
"""Most cost of all evaluations for one object (RuntimeCELCostBudget)."""
CONDITIONS_BUDGET: Final = 2_500_000
"""Most cost of the match conditions of one webhook or policy (RuntimeCELCostBudgetMatchConditions)."""
MAX_MESSAGE: Final = 5 * 1024
"""Bytes of a message an expression makes."""
CACHE: Final = 2048
"""Programs an environment keeps."""


class Budget:
    """What is left to spend on one object."""

    __slots__ = ("left",)

    def __init__(self, left: int = OBJECT_BUDGET) -> None:
        self.left = left


class Result(NamedTuple):
    """What an evaluation came to: a value, or the error it ended with; and its cost."""

    value: Any
    error: CelError | CostExceeded | None
    cost: int


class Program:
    """A compiled expression. Immutable."""

    __slots__ = ("_step", "names", "root", "source", "type")

    def __init__(self, source: str, root: Node, found: Type) -> None:
        self.source = source
        self.root = root
        self.type = found
        self.names = frozenset(names_in(root))
        """Every name it mentions: variables, and those of its comprehensions."""
        self._step: Step = plan(root)

    def run(self, variables: Mapping[str, Any], limit: int = CALL_LIMIT) -> Result:
        """Evaluates it, up to a cost. An error is a result, never an exception."""
        frame = Frame(dict(variables), limit)
        try:
            return Result(self._step(frame), None, frame.cost)
        except (CelError, CostExceeded) as error:
            return Result(None, error, frame.cost)
        except RecursionError:
            return Result(None, CelError("a value is nested too deep"), frame.cost)


class Environment:
    """See the module's text. `objects` are the names of object literals; `binds`: there is cel.bind()."""

    __slots__ = ("_programs", "binds", "objects", "registry", "variables")

    def __init__(
        self,
        variables: Mapping[str, Type],
        objects: Mapping[str, Type] | None = None,
        registry: Registry | None = None,
        binds: bool = False,
    ) -> None:
        self.variables = dict(variables)
        self.objects: Mapping[str, Type] = {} if objects is None else objects
        self.registry = kubernetes() if registry is None else registry
        self.binds = binds
        self._programs: dict[str, Program | CompileError] = {}

    def compile(self, source: str) -> Program:
        """The program of a text; the same one for the same text. Raises `CompileError`."""
        found = self._programs.get(source)
        if found is None:
            if len(self._programs) >= CACHE:
                self._programs.clear()
            found = self._programs[source] = self._compile(source)
        if isinstance(found, CompileError):
            raise found
        return found

    def _compile(self, source: str) -> Program | CompileError:
        try:
            root = parse(source, self.binds)
            return Program(source, root, check(root, source, self.variables, self.registry, self.objects))
        except CompileError as error:
            return error

    def extended(self, variables: Mapping[str, Type]) -> Environment:
        """The environment with more variables."""
        return Environment({**self.variables, **variables}, self.objects, self.registry, self.binds)


@cache
def kubernetes() -> Registry:
    """The language and the libraries of Kubernetes 1.36."""
    return merged(standard(), strings(), lists(), times(), amounts(), net(), formats(), authz())


@cache
def with_json_patch() -> Registry:
    """The same, and what mutations may use."""
    escape = ("jsonpatch.escapeKey", "string -> string", lambda text: text.replace("~", "~0").replace("/", "~1"))
    return merged(kubernetes(), functions([escape]))
