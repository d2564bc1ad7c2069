"""Verdicts: what a check found out, and within which bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from steersman.kernel.action import Action
from steersman.kernel.reexec import Finding
from steersman.kernel.schedule import Schedule

if TYPE_CHECKING:
    from steersman.check.ends import End
    from steersman.check.picture import Picture
    from steersman.check.story import Story
    from steersman.kernel.system import System


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
    """livelock, or nothing changes but somebody goes on: what repeats from there."""
    other: tuple[Action, ...] = ()
    """confluence: the way to the other end."""
    story: Story | None = None
    """The run in detail."""
    other_story: Story | None = None
    """The way to the other end in detail."""
    explanation: str = ""
    """The steps in words, with what each changed."""

    def __post_init__(self) -> None:
        self.message = plain(self.message)

    @property
    def title(self) -> str:
        """Kind and name; one word when they are the same."""
        return self.kind if self.kind == self.name else f"{self.kind}: {self.name}"

    @property
    def schedule(self) -> Schedule:
        """The choices that lead there, replayable."""
        return Schedule(action.label for action in (*self.actions, *self.cycle))


@dataclass(slots=True)
class Verdict:
    """The result of a check. `str(verdict)` is the one screen a person reads."""

    scenario: str
    violations: list[Violation] = field(default_factory=list)
    unconfirmed: list[Violation] = field(default_factory=list)
    """What showed only where trees of objects overtake each other in a cache: see `check.confirm`."""
    states: int = 0
    transitions: int = 0
    converged: int = 0
    """Different stores in which fair runs come to rest."""
    ends: tuple[End, ...] = ()
    """Those stores, with the way to each; of a search that was cut short the ones found so far in which nobody moves.
    `ends.parting` tells two of them apart."""
    picture: Picture | None = None
    """The graph of states, or a part of it, where a report is to show it."""
    branches: list[Story] = field(default_factory=list)
    """The run to each state of the picture."""
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
    controllers: Mapping[str, type[Any]] = field(default_factory=dict)
    """The classes of those that ran, by their names."""
    reductions: tuple[str, ...] = ()
    static: str = ""
    """What follows from who reads and writes which field, in a line."""
    aside: str = ""
    """What was seen where nothing changes any more and is not judged, and why."""
    memo: str = ""
    """What the memo on disk did, and what of it was not used and why."""
    claimed: bool = True
    """The scenario has properties."""
    incomplete: str = ""
    """Why not everything was explored; "" when everything was."""
    failed: ValueError | None = None
    """What ended the search: functions of the scenario that failed, or did not return."""
    cut: bool = False
    """Something ended the search before everything was visited."""
    unheeded: tuple[str, ...] = ()
    """Options that choose walks, of a search."""
    excused: bool = False
    """The command line bounded the search: `assert_holds(complete=True)` is not to hold that against the code."""
    refused: bool = False
    """`assert_holds(complete=True)` has refused it because it is BOUNDED."""
    replayed: int | None = None
    """Steps of the schedule that was followed instead of a search."""
    unjudged: str = ""
    """What could not be judged on a replay, and why."""
    depth: int = 0
    """Steps of the longest path that was being extended when the search ended."""
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
        everything was explored (unless an option of the command line is why)."""
        __tracebackhide__ = True
        if not self.holds:
            raise AssertionError(str(self))
        if complete and not self.complete and not self.excused:
            self.refused = True
            raise AssertionError(f"{self.title}: {self.refusal}\n{self.summary()}")
        return self

    @property
    def title(self) -> str:
        """The scenario's name."""
        return self.scenario or "scenario"

    @property
    def refusal(self) -> str:
        """Why a BOUNDED verdict is not good enough."""
        return f"BOUNDED ({self.incomplete}), but complete=True was asked"

    def __str__(self) -> str:
        lines = []
        for violation in self.violations:
            lines.append(f"{self.title}: VIOLATED  {violation.title}")
            lines.append(f"  {violation.message}")
            if violation.explanation:
                lines.append(violation.explanation)
        if self.holds:
            lines.append(f"{self.title}: {self.outcome}")
        lines.append(self.summary())
        return "\n".join(lines)

    @property
    def outcome(self) -> str:
        """In words: violated, holds, or what can be said instead of that."""
        if not self.holds:
            return "VIOLATED"
        if self.replayed is not None:
            said = self.unjudged or "nothing is violated on the way"
            return f"replayed {plural(self.replayed, 'step')}; {said}"
        word = "nothing found so far" if self.cut else "holds"
        return word if self.claimed else f"{word} (nothing was claimed: only what is out of the box was judged)"

    def summary(self) -> str:
        """Numbers, reductions and bounds, always with COMPLETE or BOUNDED."""
        bounds = ", ".join(f"{name} {value}" for name, value in self.bounds.items())
        why = f" ({self.incomplete})" if self.incomplete else ""
        word = f"  {'' if self.holds else 'search: '}{self.word}{why}"
        if self.replayed is not None:
            return f"{word}: {plural(self.replayed, 'step')}; bounds: {bounds}"
        memo = f"\n  memo on disk: {self.memo}" if self.memo else ""
        static = f"\n  static: {self.static}" if self.static else ""
        if self.unheeded:
            static += f"\n  not heeded: {', '.join(self.unheeded)}: they choose walks; give walks=N for walks"
        aside = f"\n  not judged: {self.aside}" if self.aside else ""
        return (
            f"{word}: {plural(self.states, 'state')}, {plural(self.transitions, 'transition')}, "
            f"{self.converged:,} at rest, {plural(self.executions, 'real execution')} in {self.seconds:.1f} s\n"
            f"  memo hits: reads {_share(self.read_memo)}, writes {_share(self.write_memo)}; "
            f"reductions: {', '.join(self.reductions) or 'none'}; bounds: {bounds}{memo}{static}{aside}"
        )


UNSEEN: Final = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (
        *(code for code in range(0x20) if chr(code) not in "\n\t"),
        *range(0x7F, 0xA0),
        0x061C,
        *range(0x200E, 0x2010),
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
    )
}
"""Characters that steer a terminal, or turn the order of what follows, and how they are shown."""


def plain(text: str) -> str:
    """Without halves of characters, which no file and no terminal takes, and with what steers a terminal made visible:
    names and messages may quote anything."""
    return text.encode("utf-8", "replace").decode().translate(UNSEEN)


def plural(count: int, noun: str) -> str:
    """`1 state`, `2 states`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _share(memo: tuple[int, int]) -> str:
    hits, total = memo
    return f"{100 * hits / total:.1f} %" if total else "-"


def said(finding: Finding) -> str:
    """A finding in a line."""
    return f"{finding.who} on {finding.key}: {finding.text}"


def ending_differently(ways: Sequence[Sequence[Action]]) -> Violation:
    """The violation of confluence; `ways`: one to each end."""
    message = f"fair runs end in {len(ways)} different states"
    return Violation("confluence", "confluence", message, tuple(ways[0]), other=tuple(ways[1]))


def unproved(system: System) -> str:
    """Why a finished search is none: what depends on the raw time or on chance was seen once, not in every way."""
    if system.raw_time:
        return f"{', '.join(sorted(system.raw_time))} reads the raw time; use c.after"
    if system.raw_random:
        return f"{', '.join(sorted(system.raw_random))} draws random numbers: one outcome was explored"
    return ""
