"""Every switch of a check, once: `sm.check(w, lag=1)`, `steersman check --lag 1` and `pytest --steersman-lag 1` are
made from this table.

Imports hardly anything: the command line shows its help without loading the checker.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from steersman.kernel.faults import CATALOGUE

BOUNDS, REDUCTION, WALKS, CLAIMS, HOST = "bounds", "reduction", "walks", "claims", "host"
"""Who takes an option: a field of `explore.Bounds`; a switch of `Explorer` that is on; the walker; what is judged; what
of the machine is used, which changes no verdict."""


class Option(NamedTuple):
    """One switch. `kind` is the type of its value: int, float, bool (a switch), or tuple (a text, given repeatedly)."""

    name: str
    kind: type
    default: Any
    part: str
    help: str
    least: float | None = None
    cuts: bool = False
    """It makes a verdict BOUNDED."""

    @property
    def shown(self) -> str:
        """How a verdict and the header of a schedule call it."""
        return self.name.rstrip("_").replace("_", "-")

    @property
    def flag(self) -> str:
        """`--max-states`; a switch that is on is turned off: `--no-read-memo`."""
        return f"--{'no-' if self.default is True else ''}{self.shown}"

    def value(self, given: Any) -> Any:
        """What `sm.check` is given, from what the command line was; None: nothing."""
        if self.kind is tuple:
            return tuple(given) if given else None
        if self.kind is bool:
            return (not self.default) if given else None
        return given


OPTIONS: Final[tuple[Option, ...]] = (
    Option("lag", int, 0, BOUNDS, "Events a controller's cache may be behind.", 0),
    Option("trees", bool, False, BOUNDS, "Trees of objects overtake each other in caches; findings are confirmed."),
    *[Option(fault.name, int, 0, BOUNDS, f"How often on a path: {fault.models}.", 0) for fault in CATALOGUE],
    Option("atomic", bool, False, BOUNDS, "Whole reconciles are single steps."),
    Option("by_write", bool, False, BOUNDS, "A write and what its reconcile reads before it are a single step."),
    Option("walks", int, 0, WALKS, "That many random walks instead of a search.", 1, cuts=True),
    Option("seed", int, 0, WALKS, "Seed of the first walk."),
    Option("strategy", str, "mixed", WALKS, "How walks are drawn: mixed, random, pct, delay or swarm."),
    Option("pct_depth", int, 4, WALKS, "Orderings that the strategy pct is to find together.", 1),
    Option("delays", int, 2, WALKS, "Delays of a walk of the strategy delay.", 0),
    Option("max_states", int, None, BOUNDS, "States to visit.", 1, cuts=True),
    Option("max_depth", int, None, BOUNDS, "Steps from the start.", 1, cuts=True),
    Option("max_transitions", int, None, BOUNDS, "Transitions to take.", 1, cuts=True),
    Option("max_seconds", float, None, BOUNDS, "Seconds to search.", 0, cuts=True),
    Option("max_memory", int, None, BOUNDS, "Megabytes (default: 75 % of the machine's).", 1, cuts=True),
    Option("read_memo", bool, True, REDUCTION, "Execute every step of a reconcile."),
    Option("write_memo", bool, True, REDUCTION, "Validate and merge every write."),
    Option("canonical", bool, True, REDUCTION, "Compare states as they are."),
    Option("settle", bool, True, REDUCTION, "Explore reconciles that change nothing, in every order."),
    Option("clusters", bool, True, REDUCTION, "Mix the steps of what can never matter to each other, too."),
    Option("sleep", bool, True, REDUCTION, "Execute steps that commute in both orders."),
    Option("symmetry", bool, True, REDUCTION, "Tell states apart that differ in generated names only."),
    Option("lazy", bool, True, REDUCTION, "Deliver events to caches in every mixture, not when their controller acts."),
    Option("factored", bool, True, REDUCTION, "Mix what controllers do by themselves between two changes, too."),
    Option("from_", str, None, HOST, "Start from a real state: FILE.sktrace@TIME, or a kubeconfig (only read)."),
    Option("workers", int, 1, HOST, "Processes that search, or walk.", 1),
    Option("engine", str, None, HOST, "Who walks: ray, a cluster that is there, or ray://HOST:PORT (default: here)."),
    Option("memo", str, None, HOST, "A folder where what controllers did is kept, by their code, for later checks."),
    Option("without", tuple, (), CLAIMS, "A property out of the box that is not judged (see --explain)."),
)
BY_NAME: Final[Mapping[str, Option]] = {option.name: option for option in OPTIONS}
CUTTING: Final = frozenset([option.name for option in OPTIONS if option.cuts])


def chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every option. Raises `TypeError` for a name that is none."""
    for name in given:
        if name not in BY_NAME:
            raise TypeError(f"sm.check has no option {name!r}; it has: {', '.join(BY_NAME)}")
    return {option.name: given.get(option.name, option.default) for option in OPTIONS}


def split(values: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Those that one part takes."""
    return {name: value for name, value in values.items() if BY_NAME[name].part == part}


def overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given on a command line, as options of `sm.check`."""
    values = {option.name: option.value(given.get(option.name)) for option in OPTIONS}
    return {name: value for name, value in values.items() if value is not None}


def parameters() -> Iterable[inspect.Parameter]:
    """The options as parameters of a command, in typer's annotations."""
    from typing import Annotated

    import typer

    for option in OPTIONS:
        shown = typer.Option(option.flag, help=option.help, min=option.least)
        kind: Any = list[str] if option.kind is tuple else option.kind
        plain = option.kind is bool
        annotation: Any = Annotated[kind if plain else kind | None, shown]
        default = False if plain else None
        yield inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
