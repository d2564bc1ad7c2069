"""A row of the corpus: one known bug as a pair of controllers, and what is asked of the two."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import steersman as sm
from steersman.check import Verdict, Violation
from steersman.kernel.faults import BY_NAME

JIRA: Final = "https://jira.percona.com/browse/"
STALE: Final = "[STALE: "
"""How a counterexample marks a read from a cache that is behind."""


@dataclass(frozen=True)
class Row:
    """One known bug; see the package's text for what it promises."""

    number: int
    """Of the corpus."""
    source: str
    """`owner/repo#number`, or the key of an issue elsewhere, as in `PSMDB-430`; several: separated by `, `."""
    mechanism: str
    """What goes wrong, in our words."""
    scenario: Callable[[Any], sm.Scenario]
    """The scenario of either controller."""
    buggy: Any
    fixed: Any
    found: tuple[str, ...]
    """Names (or kinds) of the violations of the buggy one."""
    bounds: dict[str, Any] = field(default_factory=dict)
    """Options of `sm.check`; its faults are causes."""
    harder: dict[str, Any] = field(default_factory=dict)
    """What the fixed one is checked with besides."""
    shows: tuple[str, ...] = ()
    """Texts that stand in the explanation of each violation of `found`."""
    bounded: str = ""
    """Why the fixed one's verdict is BOUNDED; "": it is COMPLETE."""

    @property
    def name(self) -> str:
        """`28-Resize`."""
        return f"{self.number}-{getattr(self.buggy, '__name__', self.buggy)}"

    @property
    def faults(self) -> dict[str, Any]:
        """The bounds that let something go wrong."""
        return {name: value for name, value in self.bounds.items() if name == "lag" or name in BY_NAME}

    @property
    def calm(self) -> dict[str, Any]:
        """The bounds without faults."""
        return {name: value for name, value in self.bounds.items() if name not in self.faults}

    # -- what is asked -----------------------------------------------------------------------------------------

    def reported(self) -> Verdict:
        """Checks the buggy one: it is reported, and for the right reason."""
        verdict = sm.check(self.scenario(self.buggy), **self.bounds)
        for violation in self.violations(verdict):
            for fault in self.faults:
                assert _befalls(fault, violation), f"{violation.title} needs no {fault}:\n{verdict}"
            for text in self.shows:
                assert text in violation.explanation, f"{violation.title} does not show {text!r}:\n{verdict}"
        return verdict

    def violations(self, verdict: Verdict) -> list[Violation]:
        """Those of the row, one for each name in `found`."""
        by_name = {name: violation for violation in verdict.violations for name in (violation.kind, violation.name)}
        missing = [name for name in self.found if name not in by_name]
        assert not missing, f"not reported: {missing}\n{verdict}"
        return [by_name[name] for name in self.found]

    def innocent(self) -> Verdict:
        """Checks the buggy one without the faults: it passes."""
        return sm.check(self.scenario(self.buggy), **self.calm).assert_holds()

    def unclaimed(self) -> Verdict:
        """Checks the buggy one with no claim of the scenario: what the properties out of the box find."""
        scenario = self.scenario(self.buggy)
        scenario.properties.clear()
        return sm.check(scenario, **self.bounds)

    def holds(self, **more: Any) -> Verdict:
        """Checks the fixed one: it passes."""
        verdict = sm.check(self.scenario(self.fixed), **self.bounds | more).assert_holds(complete=not self.bounded)
        assert verdict.word == ("BOUNDED" if self.bounded else "COMPLETE"), str(verdict)
        return verdict


@dataclass(frozen=True)
class Omitted:
    """A row that is not attempted."""

    number: int
    source: str
    reason: str


def _befalls(fault: str, violation: Violation) -> bool:
    """Whether a fault is part of how a violation comes about."""
    stale = STALE in violation.explanation or fault not in ("lag", "rewinds")
    ops = [action.op for action in (*violation.actions, *violation.cycle)]
    return stale and (fault == "lag" or BY_NAME[fault].op in ops)


def links(source: str) -> str:
    """A source in Markdown: what has an address links to it."""
    return ", ".join([_link(part) for part in source.split(", ")])


def _link(part: str) -> str:
    if match := re.fullmatch(r"([\w.-]+/([\w.-]+))#(\d+)", part):
        return f"[{match[2]} {match[3]}](https://github.com/{match[1]}/issues/{match[3]})"
    return f"[{part}]({JIRA}{part})" if part.startswith(("PSMDB-", "PXC-")) else part
