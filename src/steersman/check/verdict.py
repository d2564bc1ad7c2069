"""Verdicts: what a check found out, and within which bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from steersman.kernel.action import Action
from steersman.kernel.schedule import Schedule


@dataclass(slots=True)
class Violation:
    """One property that does not hold, with the shortest way there that was found."""

    kind: str
    """always | converges | livelock | confluence | finding"""
    name: str
    """The property's name, or the finding's kind."""
    message: str
    actions: tuple[Action, ...] = ()
    """From the first world to the state in which it shows."""
    cycle: tuple[Action, ...] = ()
    """livelock: what repeats from there."""
    other: tuple[Action, ...] = ()
    """confluence: the way to the other end."""
    explanation: str = ""
    """The steps in words, with what each changed."""

    @property
    def schedule(self) -> Schedule:
        """The choices that lead there, replayable."""
        return Schedule(action.label for action in (*self.actions, *self.cycle))


@dataclass(slots=True)
class Verdict:
    """The result of a check. `str(verdict)` is the one screen a person reads."""

    scenario: str
    violations: list[Violation] = field(default_factory=list)
    states: int = 0
    transitions: int = 0
    converged: int = 0
    """Different stores in which fair runs come to rest."""
    executions: int = 0
    """Real executions of controllers; the memos answered the rest."""
    read_memo: tuple[int, int] = (0, 0)
    """(hits, all) of the read-set memo."""
    write_memo: tuple[int, int] = (0, 0)
    bounds: dict[str, Any] = field(default_factory=dict)
    """lag, crashes, conflicts, …: what was allowed to happen."""
    reads: tuple[str, ...] = ()
    """`controller Kind.group`: kinds that a controller reads through its cache without saying so (learned; with a
    lag, views of them exist and are part of schedules)."""
    reductions: tuple[str, ...] = ()
    incomplete: str = ""
    """Why not everything was explored; "" when everything was."""
    seconds: float = 0.0
    memory: tuple[int, int] = (0, 0)
    """Bytes of fingerprints and state facts, and of transitions."""
    frontier: int = 0
    """Worlds still waiting when the search ended."""
    frontier_peak: int = 0

    @property
    def complete(self) -> bool:
        """Everything within the bounds was explored."""
        return not self.incomplete

    @property
    def holds(self) -> bool:
        """No violation was found."""
        return not self.violations

    @property
    def word(self) -> str:
        """COMPLETE or BOUNDED."""
        return "COMPLETE" if self.complete else "BOUNDED"

    def assert_holds(self, complete: bool = False) -> Verdict:
        """Raises `AssertionError` with the report when a property is violated, or, with `complete`, when not
        everything was explored."""
        __tracebackhide__ = True
        if not self.holds or (complete and not self.complete):
            raise AssertionError(str(self))
        return self

    def __str__(self) -> str:
        title = self.scenario or "scenario"
        lines = []
        for violation in self.violations:
            lines.append(f"{title}: VIOLATED  {violation.kind}: {violation.name}")
            lines.append(f"  {violation.message}")
            if violation.explanation:
                lines.append(violation.explanation)
        if self.holds:
            lines.append(f"{title}: holds")
        lines.append(self.summary())
        return "\n".join(lines)

    def summary(self) -> str:
        """Numbers, reductions and bounds, always with COMPLETE or BOUNDED."""
        bounds = ", ".join(f"{name} {value}" for name, value in self.bounds.items())
        why = f" ({self.incomplete})" if self.incomplete else ""
        return (
            f"  {self.word}{why}: {self.states:,} states, {self.transitions:,} transitions, {self.converged} at rest, "
            f"{self.executions:,} real executions in {self.seconds:.1f} s\n"
            f"  memo hits: reads {_share(self.read_memo)}, writes {_share(self.write_memo)}; "
            f"reductions: {', '.join(self.reductions) or 'none'}; bounds: {bounds}"
        )


def _share(memo: tuple[int, int]) -> str:
    hits, total = memo
    return f"{100 * hits / total:.1f} %" if total else "-"
