"""The bounds of a check."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from steersman.check.options import BY_NAME as OPTIONS
from steersman.check.options import CUTTING, chosen
from steersman.kernel.faults import BY_NAME, EVENTS


@dataclass(slots=True, init=False)
class Bounds:
    """What may happen, and how long to look: the options of that part (see `check.options`)."""

    lag: int
    trees: bool
    """Caches lag tree by tree (`kernel.view.Cursors`)."""
    atomic: bool
    """Whole reconciles are single steps: nothing happens between two calls of one."""
    by_write: bool
    """A write and the reads before it are a single step: a reconcile reads when it is about to write."""
    faults: dict[str, int]
    """Budgets by the names of the catalogue (`kernel.faults`), those that are 0 too."""
    max_states: int | None
    max_depth: int | None
    max_transitions: int | None
    max_seconds: float | None
    max_memory: int | None
    """Megabytes of this process; None: a share of the machine's (`memory.DEFAULT_SHARE`)."""

    def __init__(self, **given: Any) -> None:
        every = chosen(given)
        self.faults = {name: every[name] for name in BY_NAME}
        for field in fields(self):
            if field.name != "faults":
                setattr(self, field.name, every[field.name])

    def shown(self) -> dict[str, Any]:
        """The bounds in force, for the verdict: always the first three, the others where they are used."""
        out: dict[str, Any] = {"lag": self.lag} | ({"cursors": "by tree"} if self.trees else {})
        for name, number in self.faults.items():
            if number or name in ("crashes", "conflicts"):
                out[OPTIONS[name].shown] = number
        if self.atomic:
            out["granularity"] = "whole reconciles"
        elif self.by_write:
            out["granularity"] = "writes, with the reads before them"
        for name in OPTIONS:
            value = getattr(self, name, None) if name in CUTTING else None
            if value is not None:
                out[OPTIONS[name].shown] = value
        return out

    def calm(self, faulty: bool, states: int) -> Bounds:
        """Those of a search that this one is compared with: without lag and faults, or (not `faulty`) with whole
        reconciles, and with no more states."""
        return Bounds(
            atomic=self.atomic or not faulty,
            by_write=self.by_write and faulty,
            max_states=states,
            max_seconds=self.max_seconds,
            max_memory=self.max_memory,
            **{name: self.faults[name] for name in EVENTS},
        )
